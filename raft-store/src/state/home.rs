//! The state directory: which database is the live one.
//!
//! Owns the names under `<data_dir>/state/`, the pointer file, and what is cleaned up at open. Never looks into a
//! database.
//!
//! ```text
//! CURRENT-DB        "quorate-state 1 db-<n>": the live database; replaced atomically
//! db-<n>/           the live RocksDB; any other db-* is a leftover of an interrupted installation
//! new-db/           the first database while it is being made
//! snap/<name>/      snapshots; tmp-* are unfinished
//! recv/<name>/      a snapshot being received; done-* were received but not installed
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::db::Db;
use super::files;
use super::types::StateOpenError;
use crate::durable;

const POINTER: &str = "CURRENT-DB";
const POINTER_MAGIC: &str = "quorate-state";
const POINTER_VERSION: &str = "1";
const FIRST_DB: &str = "db-1";
const DB_PREFIX: &str = "db-";
const NEW_DB: &str = "new-db";

/// Prefix of snapshots under construction.
pub(crate) const UNFINISHED_PREFIX: &str = "tmp-";
/// Prefix of snapshots that were received whole.
pub(crate) const RECEIVED_PREFIX: &str = "done-";

/// The state directory, by name.
#[derive(Debug, Clone)]
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    /// Makes sure of the directories, makes the first database where there is none, removes leftovers, and gives the
    /// path of the live database.
    pub(crate) fn prepare(&self) -> Result<PathBuf, StateOpenError> {
        let io_error = |source| StateOpenError::Io { path: self.0.clone(), source };
        for dir in [self.0.clone(), self.snapshots(), self.received()] {
            durable::create_dir(&dir).map_err(io_error)?;
        }
        let name = match self.read_pointer()? {
            Some(name) => name,
            None => self.make_first()?,
        };
        self.finish_first(&name).map_err(io_error)?;
        let live = self.0.join(&name);
        if !live.is_dir() {
            let reason = format!("{POINTER} names it as the live database, but it is missing");
            return Err(StateOpenError::Damaged { path: live, reason });
        }
        self.clean(&name).map_err(io_error)?;
        Ok(live)
    }

    /// The path of the live database, which must be there. Changes nothing.
    pub(crate) fn live(&self) -> Result<PathBuf, StateOpenError> {
        let missing = |reason: &str| StateOpenError::Damaged { path: self.0.clone(), reason: reason.to_owned() };
        let name = self.read_pointer()?.ok_or_else(|| missing("there is no state in it"))?;
        let live = self.0.join(name);
        if live.is_dir() { Ok(live) } else { Err(missing("the live database is missing")) }
    }

    /// Where snapshots are.
    pub(crate) fn snapshots(&self) -> PathBuf {
        self.0.join("snap")
    }

    /// Where snapshots are received.
    pub(crate) fn received(&self) -> PathBuf {
        self.0.join("recv")
    }

    /// A name for a database after the live one.
    pub(crate) fn next_db(&self, live: &Path) -> PathBuf {
        let number = live.file_name().and_then(|name| name.to_str()).and_then(db_number);
        let number = number.expect("the live database has a name of ours");
        self.0.join(format!("{DB_PREFIX}{}", number + 1))
    }

    /// Makes `db` the live database, durably.
    pub(crate) fn point_to(&self, db: &Path) -> io::Result<()> {
        let name = db.file_name().and_then(|name| name.to_str()).expect("databases have names of ours");
        let line = format!("{POINTER_MAGIC} {POINTER_VERSION} {name}\n");
        let path = self.0.join(POINTER);
        durable::write_whole(&path, line.as_bytes(), "state-pointer-before-rename").map_err(files::named(&path))
    }

    fn read_pointer(&self) -> Result<Option<String>, StateOpenError> {
        let path = self.0.join(POINTER);
        let line = match fs::read_to_string(&path) {
            Ok(line) => line,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StateOpenError::Io { path, source }),
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [POINTER_MAGIC, POINTER_VERSION, name] if db_number(name).is_some() => Ok(Some(name.to_string())),
            [POINTER_MAGIC, version, _] if version != POINTER_VERSION => {
                let reason = format!("format version {version:?}, this build knows only {POINTER_VERSION}");
                Err(StateOpenError::Damaged { path, reason })
            }
            _ => Err(StateOpenError::Damaged { path, reason: format!("it holds {line:?}") }),
        }
    }

    /// A store without a pointer is new, unless there is a database: then the pointer was lost.
    fn make_first(&self) -> Result<String, StateOpenError> {
        let io_error = |source| StateOpenError::Io { path: self.0.clone(), source };
        let names = files::names_in(&self.0).map_err(io_error)?;
        if let Some(name) = names.iter().find(|name| db_number(name).is_some()) {
            let reason = format!("the file is missing, though there is a database {name}");
            return Err(StateOpenError::Damaged { path: self.0.join(POINTER), reason });
        }
        let fresh = self.0.join(NEW_DB);
        files::remove_tree(&fresh).map_err(io_error)?;
        Db::create(&fresh)
            .map_err(|fault| StateOpenError::Damaged { path: fresh.clone(), reason: fault.to_string() })?;
        files::sync_dir(&fresh).map_err(io_error)?;
        self.point_to(&self.0.join(FIRST_DB)).map_err(io_error)?;
        Ok(FIRST_DB.to_string())
    }

    /// Gives the first database its name, also where a crash came between the pointer and this step.
    fn finish_first(&self, name: &str) -> io::Result<()> {
        let (fresh, first) = (self.0.join(NEW_DB), self.0.join(FIRST_DB));
        if name == FIRST_DB && fresh.is_dir() && !first.exists() {
            fs::rename(&fresh, &first).map_err(files::named(&fresh))?;
            files::sync_dir(&self.0)?;
        }
        Ok(())
    }

    fn clean(&self, live: &str) -> io::Result<()> {
        for name in files::names_in(&self.0)? {
            let is_leftover = name == NEW_DB || (db_number(&name).is_some() && name != live);
            if is_leftover {
                tracing::info!(name, "removing the leftover of an interrupted installation");
                files::remove_tree(&self.0.join(name))?;
            }
        }
        self.clean_in(&self.snapshots(), UNFINISHED_PREFIX)?;
        self.clean_in(&self.received(), RECEIVED_PREFIX)
    }

    fn clean_in(&self, dir: &Path, prefix: &str) -> io::Result<()> {
        for name in files::names_in(dir)?.iter().filter(|name| name.starts_with(prefix)) {
            files::remove_tree(&dir.join(name))?;
        }
        Ok(())
    }
}

fn db_number(name: &str) -> Option<u64> {
    name.strip_prefix(DB_PREFIX)?.parse().ok()
}
