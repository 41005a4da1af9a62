//! Building a data directory aside, and putting it in place of what is there.
//!
//! Owns the names `recovering/` and `before-epoch-<n>/` and the order of the exchange. The marker of the old content goes
//! first and that of the new one comes last: at any crash between the two there is no marker, so no node starts, and the
//! same command goes on from there.

use std::fs;
use std::path::{Path, PathBuf};

use super::OfflineError;
use crate::durable;
use crate::identity::MARKER;

/// Where it is built. A directory without a marker but with this is no empty one, see [`crate::identity`].
pub const STAGING: &str = crate::identity::STAGING;

/// Made last: from then on the exchange is only carried on. Holds the name of the directory for the old content.
const READY: &str = "ready";

/// What is exchanged beside the marker.
const PARTS: [&str; 3] = ["log", "log.mark", "state"];

/// A directory that is being built.
#[derive(Debug)]
pub struct Staging {
    data_dir: PathBuf,
}

/// Whether an exchange was interrupted in this directory: the marker of the old content is gone, and that of the new one not there
/// yet. Where a marker is in its place a node may have gone on with it since, and what was built aside is of the past.
pub fn is_interrupted(data_dir: &Path) -> bool {
    let home = data_dir.join(STAGING);
    home.join(READY).exists() && home.join("new").join(MARKER).exists() && !data_dir.join(MARKER).exists()
}

/// Removes what a recovery left that was ended before its exchange, or right behind it: a node goes on beside it, and links keep files of
/// its past. For whoever has the lock of the directory, in which the marker is in its place. Whether there was something.
pub fn remove_beside_marker(data_dir: &Path) -> Result<bool, OfflineError> {
    let home = data_dir.join(STAGING);
    if !home.exists() || !data_dir.join(MARKER).exists() {
        return Ok(false);
    }
    // First what says that an exchange may go on, should this end half-way.
    let ready = home.join(READY);
    durable::remove(&ready).map_err(OfflineError::at(&ready))?;
    remove(&home)?;
    Ok(true)
}

/// Refuses where the old content cannot be kept under this name, since that of an earlier exchange is there: an exchange
/// would get stuck in the middle, with the marker gone.
pub fn refuse_kept(data_dir: &Path, old: &str) -> Result<(), OfflineError> {
    let kept = data_dir.join(old);
    let is_free = match fs::read_dir(&kept) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(OfflineError::at(&kept)(error)),
    };
    if is_free {
        return Ok(());
    }
    Err(OfflineError::Refused(format!(
        "{} holds what an earlier recovery kept; move it out of the data directory, or remove it, then recover again",
        kept.display()
    )))
}

impl Staging {
    /// Starts anew, and removes what an earlier attempt left.
    pub fn begin(data_dir: &Path) -> Result<Self, OfflineError> {
        let staging = Self { data_dir: data_dir.to_owned() };
        let home = staging.home();
        remove(&home)?;
        for dir in [data_dir.to_owned(), home, staging.new_dir(), staging.scratch()] {
            durable::create_dir(&dir).map_err(OfflineError::at(&dir))?;
        }
        Ok(staging)
    }

    /// Goes on with what was ready.
    pub fn resume(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }

    fn home(&self) -> PathBuf {
        self.data_dir.join(STAGING)
    }

    /// What will be the data directory.
    pub fn new_dir(&self) -> PathBuf {
        self.home().join("new")
    }

    /// For whatever is needed on the way.
    pub fn scratch(&self) -> PathBuf {
        self.home().join("scratch")
    }

    /// Gives up what was built. What cannot be removed is removed by the next attempt.
    pub fn abandon(self) {
        if let Err(error) = remove(&self.home()) {
            tracing::warn!(%error, "what was built aside could not be removed");
        }
    }

    /// The new content is complete and durable: the exchange may begin. `old` is the name for what is there now, and must be free.
    pub fn seal(&self, old: &str) -> Result<(), OfflineError> {
        refuse_kept(&self.data_dir, old)?;
        let path = self.home().join(READY);
        durable::write_whole(&path, old.as_bytes(), "offline-before-ready").map_err(OfflineError::at(&path))
    }

    /// Exchanges the content, durably. Gives where the old content is, if there was any. May be repeated after a crash.
    pub fn exchange(self) -> Result<Option<PathBuf>, OfflineError> {
        let ready = self.home().join(READY);
        let name = fs::read_to_string(&ready).map_err(OfflineError::at(&ready))?;
        let (old, new) = (self.data_dir.join(name), self.new_dir());
        durable::create_dir(&old).map_err(OfflineError::at(&old))?;
        let dirs = [&self.data_dir, &old, &new];
        if new.join(MARKER).exists() {
            move_if_there(&self.data_dir.join(MARKER), &old.join(MARKER))?;
            sync(dirs)?;
            for part in PARTS {
                if new.join(part).exists() {
                    move_if_there(&self.data_dir.join(part), &old.join(part))?;
                    move_if_there(&new.join(part), &self.data_dir.join(part))?;
                }
            }
            sync(dirs)?;
            move_if_there(&new.join(MARKER), &self.data_dir.join(MARKER))?;
            sync(dirs)?;
        }
        remove(&self.home())?;
        // Empty where there was nothing before.
        let is_empty = fs::read_dir(&old).map_err(OfflineError::at(&old))?.next().is_none();
        if is_empty {
            fs::remove_dir(&old).map_err(OfflineError::at(&old))?;
        }
        durable::sync_dir(&self.data_dir).map_err(OfflineError::at(&self.data_dir))?;
        Ok((!is_empty).then_some(old))
    }
}

fn move_if_there(from: &Path, to: &Path) -> Result<(), OfflineError> {
    if !from.exists() {
        return Ok(());
    }
    fs::rename(from, to).map_err(OfflineError::at(from))
}

fn sync(dirs: [&PathBuf; 3]) -> Result<(), OfflineError> {
    dirs.into_iter().try_for_each(|dir| durable::sync_dir(dir).map_err(OfflineError::at(dir)))
}

fn remove(dir: &Path) -> Result<(), OfflineError> {
    durable::remove_tree(dir).map_err(OfflineError::at(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: [&str; 3] = ["identity", "log.mark", "state"];

    fn fill(dir: &Path, names: &[&str], text: &str) {
        names.iter().for_each(|name| fs::write(dir.join(name), text).unwrap());
    }

    fn holds(dir: &Path, names: &[&str], text: &str) {
        names.iter().for_each(|name| assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), text, "{name}"));
    }

    #[test]
    fn what_was_left_is_removed_beside_a_marker_and_nowhere_else() {
        let data = tempfile::tempdir().unwrap();
        assert!(!remove_beside_marker(data.path()).unwrap());
        let staging = Staging::begin(data.path()).unwrap();
        fill(&staging.new_dir(), &["identity", "log", "log.mark", "state"], "new");
        staging.seal("before").unwrap();
        assert!(!remove_beside_marker(data.path()).unwrap(), "it may be all that there is");
        assert!(is_interrupted(data.path()));
        fill(data.path(), &OLD, "old");
        assert!(remove_beside_marker(data.path()).unwrap());
        assert!(!data.path().join(STAGING).exists());
        holds(data.path(), &OLD, "old");
    }

    #[test]
    fn an_exchange_goes_on_wherever_it_was_interrupted() {
        // How many of the moves were done before the crash.
        for done in 0..=6 {
            let dir = tempfile::tempdir().unwrap();
            let data = dir.path().join("data");
            fs::create_dir(&data).unwrap();
            fill(&data, &OLD, "old");
            let staging = Staging::begin(&data).unwrap();
            fill(&staging.new_dir(), &["identity", "log", "log.mark", "state"], "new");
            staging.seal("before").unwrap();
            let (old, new) = (data.join("before"), staging.new_dir());
            fs::create_dir(&old).unwrap();
            let moves = [
                (data.join("identity"), old.join("identity")),
                (new.join("log"), data.join("log")),
                (data.join("log.mark"), old.join("log.mark")),
                (new.join("log.mark"), data.join("log.mark")),
                (data.join("state"), old.join("state")),
                (new.join("state"), data.join("state")),
                (new.join("identity"), data.join("identity")),
            ];
            moves.iter().take(done).for_each(|(from, to)| fs::rename(from, to).unwrap());
            assert_eq!(is_interrupted(&data), done > 0, "with its marker in place the old content is whole");
            assert_eq!(Staging::resume(&data).exchange().unwrap().as_deref(), Some(old.as_path()));
            holds(&data, &["identity", "log", "log.mark", "state"], "new");
            holds(&old, &OLD, "old");
            assert!(!data.join(STAGING).exists());
        }
    }
}
