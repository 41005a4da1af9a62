//! Installing a snapshot in place of the live state.
//!
//! Owns the order of the steps, each of which leaves the old or the new state after a crash: build a database beside
//! the live one, open and check it, keep the snapshot as the current one, switch the pointer file, switch the readers,
//! drop the old database. The snapshot's own files are never opened for writing: tables are shared by hard link, which
//! is safe since they never change, and the rest is copied.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quorate_machine::level;
use quorate_machine::query::StateFault;
use quorate_threads::{background, watchdog};

use super::db::Db;
use super::files;
use super::shared::{Shared, position_of};
use super::snapshot::{SnapshotHandle, is_table_file};
use crate::raft::wire::SnapshotMetaRecord;

/// How often the old database is tried to be closed while somebody still reads from it.
const CLOSE_POLL: Duration = Duration::from_millis(10);

/// Installs a snapshot, durably. Blocks for milliseconds: the files are in place already. An error before the pointer
/// was switched leaves the old state; the node stops either way.
pub(crate) fn install(shared: &Shared, meta: &SnapshotMetaRecord, snapshot: &SnapshotHandle) -> Result<(), StateFault> {
    if snapshot.manifest().meta != *meta {
        let found = &snapshot.manifest().meta;
        return Err(StateFault::new(format!("the snapshot covers {found:?}, openraft expects {meta:?}")));
    }
    let applied = shared.applied().log_id;
    if applied > meta.last_log_id {
        return Err(StateFault::new(format!(
            "the snapshot covers {:?}, the state is at {applied:?}",
            meta.last_log_id
        )));
    }
    let old = shared.db_owned();
    let dir = shared.home.next_db(&old.dir);
    files::remove_tree(&dir)?;
    link_files(snapshot, &dir)?;
    let fresh = Db::open(&dir, old.node_id)?;
    let applied = fresh.applied()?;
    if (applied.log_id, &applied.membership) != (meta.last_log_id, &meta.last_membership) {
        return Err(StateFault::new(format!(
            "the snapshot's manifest says {meta:?}, its state is at {:?} with {:?}",
            applied.log_id, applied.membership
        )));
    }
    level::check(applied.vars.level).map_err(|error| StateFault::because("the state cannot be taken", error))?;
    remember_checksums(&fresh, snapshot);
    files::sync_dir(&dir)?;
    files::sync_dir(shared.state_dir())?;
    failpoint!("install-before-pointer");
    // The snapshot first: openraft purges its log up to the state it finds at start, and needs a snapshot no older than
    // that. A crash between the two steps leaves a snapshot ahead of the state, which openraft then installs.
    keep(shared, snapshot)?;
    shared.home.point_to(&dir)?;
    failpoint!("install-after-pointer");
    drop(old);
    let old = shared.publish(&applied, || Ok(shared.swap_db(fresh)))?;
    shared.replacements.fetch_add(1, Ordering::Release);
    shared.digests.restart(position_of(&applied).index, applied.vars.digest());
    shared.feed.tell_replaced(applied.vars.revision);
    shared.note_durable()?;
    close_when_unused(old)
}

/// Gives the database directory, which is made, all files of the snapshot.
pub(crate) fn link_files(snapshot: &SnapshotHandle, dir: &Path) -> Result<(), StateFault> {
    fs::create_dir(dir).map_err(files::named(dir))?;
    for file in &snapshot.manifest().files {
        let (from, to) = (snapshot.dir().join(&file.name), dir.join(&file.name));
        if is_table_file(&file.name) {
            files::link_or_copy(&from, &to)?;
        } else {
            files::copy_durably(&from, &to)?;
        }
    }
    Ok(files::sync_dir(dir)?)
}

/// The tables have known checksums already.
fn remember_checksums(fresh: &Db, snapshot: &SnapshotHandle) {
    let tables = snapshot.manifest().files.iter().filter(|file| is_table_file(&file.name));
    *fresh.checksums.lock() = tables.map(|file| ((file.name.clone(), file.bytes), file.checksum)).collect();
}

/// Makes the snapshot the current one under the store's own snapshot directory, for peers and for the next start.
fn keep(shared: &Shared, snapshot: &SnapshotHandle) -> Result<(), StateFault> {
    if shared.snapshots.holds(snapshot) {
        shared.snapshots.adopt(snapshot);
        return Ok(());
    }
    let unfinished = shared.snapshots.unfinished();
    link_files(snapshot, &unfinished)?;
    shared.snapshots.keep(&unfinished, snapshot.manifest().clone())?;
    Ok(())
}

/// Closes the old database and removes its files once the last reader is done with it, on a thread of its own, since
/// closing waits for what RocksDB does in the background. A crash before that leaves it to the next start.
fn close_when_unused(mut old: Arc<Db>) -> Result<(), StateFault> {
    if background::is_simulated() {
        watchdog::spawn_thread_of_simulation(async move {
            while let Err(still_used) = close(old) {
                old = still_used;
                tokio::time::sleep(CLOSE_POLL).await;
            }
        });
        return Ok(());
    }
    let run = move || {
        while let Err(still_used) = close(old) {
            old = still_used;
            std::thread::sleep(CLOSE_POLL);
        }
    };
    std::thread::Builder::new().name("state-close".into()).spawn(run)?;
    Ok(())
}

/// Closes a database that nobody else uses, and removes its files; else gives it back.
fn close(old: Arc<Db>) -> Result<(), Arc<Db>> {
    let db = Arc::try_unwrap(old)?;
    let dir = db.dir.clone();
    drop(db);
    if let Err(error) = files::remove_tree(&dir) {
        tracing::warn!(%error, "the former state could not be removed; the next start tries again");
    }
    Ok(())
}
