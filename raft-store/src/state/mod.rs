//! The replicated state on disk: one RocksDB without WAL, data and applied position in one batch.
//!
//! Owns everything under `<data_dir>/state/`. The state is rebuilt from its last flush plus the log, so the log must keep
//! what is not durable here ([`StateReader::durable_index`]). The openraft adapter is
//! [`crate::adapters::state_machine::StateMachine`].

mod types;

mod apply;
mod db;
mod digests;
mod fresh;
mod frozen;
mod heads;
mod home;
mod reading;
mod recent;
mod shared;

mod counts;
mod manifest;
mod merging;
mod reader;

mod watermark;

mod checkpoint;
mod files;
mod flusher;
mod install;
mod kept;
pub mod receive;
pub mod snapshot;

use std::path::Path;
use std::sync::Arc;

use quorate_machine::level;
use quorate_machine::query::StateFault;

pub(crate) use apply::Committer;
pub use apply::wall_after;
pub(crate) use checkpoint::build as build_snapshot;
pub(crate) use db::{Db, LatestView};
pub(crate) use files::{checksum as file_checksum, free_bytes};
pub(crate) use flusher::Flusher;
pub(crate) use frozen::{Moment, record_of};
pub(crate) use home::{Home, UNFINISHED_PREFIX};
pub(crate) use install::{install as install_snapshot, link_files};
pub(crate) use kept::newest as newest_snapshot;
pub use reader::StateReader;
pub(crate) use reading::rocks_fault;
pub(crate) use shared::Shared;
pub(crate) use snapshot::SnapshotHandle;
pub use types::{AppliedState, CHECK_GROUPS, StateOpenError, StateOptions, StateStats};

/// Opens what [`crate::adapters::state_machine::StateMachine::open`] stands on.
pub(crate) fn open(data_dir: &Path, options: &StateOptions) -> Result<(Arc<Shared>, Flusher), StateOpenError> {
    let home = home::Home(data_dir.join("state"));
    let live = home.prepare()?;
    let damaged = |fault: StateFault| StateOpenError::Damaged { path: live.clone(), reason: fault.to_string() };
    let db = db::Db::open(&live, options.node_id).map_err(damaged)?;
    level::check(db.applied().map_err(damaged)?.vars.level)?;
    db.verify(options.verify_bytes_max).map_err(damaged)?;
    let snapshots = home.snapshots();
    let snapshots =
        kept::Kept::open(snapshots.clone()).map_err(|source| StateOpenError::Io { path: snapshots, source })?;
    let shared = Arc::new(Shared::new(home, db, snapshots, options).map_err(damaged)?);
    let flusher = Flusher::start(Arc::clone(&shared), options.durable_poll, options.flush_every).map_err(damaged)?;
    Ok((shared, flusher))
}
