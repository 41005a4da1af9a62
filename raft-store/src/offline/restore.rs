//! A restore: the data directory of the first node of a new cluster, out of a backup.
//!
//! Owns what is refused before anything is written. The backup is read once, and nothing of it counts before its end was
//! found whole.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use quorate_machine::machine::{Row, Vars};
use quorate_machine::types::Revision;

use super::OfflineError;
use super::build::{Beginning, build};
use super::position::make_log;
use super::staging::{self, STAGING, Staging};
use crate::backup::{BackupEnd, BackupError, BackupHeader, BackupReader};
use crate::raft::wire::{LogIdRecord, MemberRecord};
use crate::{durable, identity};

/// Bytes read from the backup at a time.
const READ_BYTES: usize = 1 << 20;

/// What is wanted.
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// The backup.
    pub from: PathBuf,
    /// Missing or empty.
    pub data_dir: PathBuf,
    /// The node that it shall be of.
    pub node_id: u64,
    /// Where peers will reach it.
    pub peer_addr: String,
    /// Where clients will reach it.
    pub client_addr: String,
    /// Random: the new cluster.
    pub cluster_id: u128,
    /// The new epoch begins at this revision or above: greater than any of a cluster that was made of the same content before.
    pub revision_floor: Revision,
    /// Random: the disk.
    pub incarnation: u128,
}

/// What was made.
#[derive(Debug, Clone)]
pub struct Restored {
    /// What the backup is of.
    pub header: BackupHeader,
    /// What was in it.
    pub end: BackupEnd,
    /// The revision at which the new cluster begins.
    pub revision: Revision,
    /// Its epoch.
    pub epoch: u64,
}

/// Restores. `progress` is told the bytes of the backup that were read so far, and how many there are.
pub fn restore(options: &RestoreOptions, progress: impl FnMut(u64, u64)) -> Result<Restored, OfflineError> {
    // What is no backup is refused before a directory is made for it.
    open(&options.from)?;
    restore_made(options, |_| Ok(options.from.clone()), progress)
}

/// Restores from a backup that `make` makes first, on the disk of the new directory: it is given a directory for it, which is removed
/// at the end. `options.from` is not looked at.
pub fn restore_made<E: From<OfflineError>>(
    options: &RestoreOptions,
    make: impl FnOnce(&Path) -> Result<PathBuf, E>,
    progress: impl FnMut(u64, u64),
) -> Result<Restored, E> {
    refuse_occupied(&options.data_dir)?;
    let staging = Staging::begin(&options.data_dir)?;
    let built = make(&staging.scratch()).and_then(|from| Ok(build_of(&from, options, &staging.new_dir(), progress)?));
    let restored = match built {
        Ok(restored) => restored,
        Err(error) => {
            staging.abandon();
            return Err(error);
        }
    };
    staging.seal(&format!("before-epoch-{}", restored.epoch))?;
    staging.exchange()?;
    Ok(restored)
}

fn open(from: &Path) -> Result<(BackupReader<BufReader<File>>, u64), OfflineError> {
    let file = File::open(from).map_err(OfflineError::at(from))?;
    let length = file.metadata().map_err(OfflineError::at(from))?.len();
    let reader = BackupReader::open(BufReader::with_capacity(READ_BYTES, file));
    Ok((reader.map_err(|source| OfflineError::Backup { path: from.to_owned(), source })?, length))
}

/// Makes the whole directory out of a backup.
fn build_of(
    from: &Path,
    options: &RestoreOptions,
    new_dir: &Path,
    mut progress: impl FnMut(u64, u64),
) -> Result<Restored, OfflineError> {
    let (mut reader, length) = open(from)?;
    let header = reader.header().clone();
    let vars = make(options, new_dir, &header, || {
        let in_file = |source: BackupError| OfflineError::Backup { path: from.to_owned(), source };
        let block = reader.next_block().map_err(in_file)?;
        progress(reader.bytes_read(), length);
        Ok(block)
    })?;
    Ok(Restored { header, end: reader.counted(), revision: vars.revision, epoch: vars.epoch })
}

/// Makes the whole directory out of the rows of the backup.
fn make(
    options: &RestoreOptions,
    new_dir: &Path,
    header: &BackupHeader,
    rows: impl FnMut() -> Result<Option<Vec<Row>>, OfflineError>,
) -> Result<Vars, OfflineError> {
    let identity = identity::open(new_dir, options.node_id, options.incarnation)?;
    let identity = identity::adopt(new_dir, &identity, options.cluster_id)?;
    let member = MemberRecord {
        peer_addr: options.peer_addr.clone(),
        client_addr: options.client_addr.clone(),
        incarnation: options.incarnation,
    };
    // A backup of a cluster always has one.
    let log_id = header.log_id.unwrap_or(LogIdRecord { term: 1, node: options.node_id, index: 0 });
    let beginning = Beginning {
        node_id: options.node_id,
        member,
        log_id,
        vars: header.vars.clone(),
        revision_floor: options.revision_floor,
    };
    let vars = build(new_dir, &beginning, rows)?;
    make_log(new_dir, &identity, log_id)?;
    Ok(vars)
}

/// A restore never writes over anything: what is there may be all that is left of something. Makes the directory where it is missing.
pub fn refuse_occupied(data_dir: &Path) -> Result<(), OfflineError> {
    if staging::is_interrupted(data_dir) {
        return Err(OfflineError::Refused(format!(
            "{} holds a restore that was complete and only has to be put in its place: run `quorate-node recover` on it, or \
             empty the directory and restore anew",
            data_dir.display()
        )));
    }
    durable::create_dir(data_dir).map_err(OfflineError::at(data_dir))?;
    for entry in fs::read_dir(data_dir).map_err(OfflineError::at(data_dir))? {
        let name = entry.map_err(OfflineError::at(data_dir))?.file_name();
        // An attempt of before that was not completed; and what file systems make by themselves.
        if name != STAGING && name != "lost+found" {
            return Err(OfflineError::Refused(format!(
                "{} is not empty (there is {}): a restore makes a new data directory and never writes over one; give it \
                 another, or move this one away",
                data_dir.display(),
                name.display()
            )));
        }
    }
    Ok(())
}
