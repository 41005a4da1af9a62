//! Building a snapshot of this node's own state.
//!
//! Owns the steps from RocksDB checkpoint to current snapshot. Never stops the apply path: a checkpoint is atomic by
//! itself, since the applied row is in the same database and the same write batch as what it speaks of. So what the
//! snapshot covers is read from the checkpoint, never from memory, and applies may go on meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use quorate_machine::query::StateFault;

use super::db::Db;
use super::files;
use super::reading::rocks_fault;
use super::shared::Shared;
use super::snapshot::{SnapshotFile, SnapshotHandle, SnapshotManifest, is_snapshot_file, is_table_file};
use crate::raft::wire::SnapshotMetaRecord;

/// Builds a snapshot and makes it the current one, unless an installation has overtaken the build. Blocks for as long as
/// it takes to flush the memtables and to read the table files that no earlier snapshot held.
pub(crate) fn build(shared: &Shared) -> Result<SnapshotHandle, StateFault> {
    let db = shared.db_owned();
    // The checkpoint flushes, too, and RocksDB keeps no files back while it does: what it finds to flush is little.
    db.flush()?;
    let unfinished = shared.snapshots.unfinished();
    rocksdb::checkpoint::Checkpoint::new(&db.rocks)
        .map_err(rocks_fault)?
        .create_checkpoint(&unfinished)
        .map_err(rocks_fault)?;
    shared.note_durable()?;
    let built = complete(shared, &db, &unfinished);
    if built.is_err() {
        files::remove_tree(&unfinished)?;
    }
    built
}

/// Makes a checkpoint a snapshot.
fn complete(shared: &Shared, db: &Db, unfinished: &Path) -> Result<SnapshotHandle, StateFault> {
    let applied = Db::peek_applied(unfinished)?;
    let meta = SnapshotMetaRecord { last_log_id: applied.log_id, last_membership: applied.membership };
    let files = list(db, unfinished)?;
    let manifest = SnapshotManifest { meta, files };
    manifest.check()?;
    failpoint!("snapshot-before-keep");
    let handle = shared.snapshots.keep(unfinished, manifest)?;
    shared.work.snapshots_built.fetch_add(1, Ordering::Relaxed);
    Ok(handle)
}

/// Removes what is no part of a snapshot, syncs the small files, and lists the rest with checksums. Those of table files
/// are remembered, so that each is read once in its life.
fn list(db: &Db, dir: &Path) -> Result<Vec<SnapshotFile>, StateFault> {
    let known = db.checksums.lock().clone();
    let mut seen = BTreeMap::new();
    let mut listed = Vec::new();
    for name in files::names_in(dir)? {
        let path = dir.join(&name);
        if !is_snapshot_file(&name) {
            fs::remove_file(&path).map_err(files::named(&path))?;
            continue;
        }
        let bytes = fs::metadata(&path).map_err(files::named(&path))?.len();
        let checksum = match known.get(&(name.clone(), bytes)) {
            Some(checksum) => *checksum,
            None => files::checksum(&path)?.1,
        };
        if is_table_file(&name) {
            seen.insert((name.clone(), bytes), checksum);
        } else {
            files::sync_file(&path)?;
        }
        listed.push(SnapshotFile { name, bytes, checksum });
    }
    *db.checksums.lock() = seen;
    Ok(listed)
}
