//! Building a data directory aside, and putting it in place of what is there.
//!
//! Owns the names `recovering/` and `before-epoch-<n>/` and the order of the exchange. The marker of the old content goes
//! first and that of the new one comes last: at any crash between the two there is no marker, so no node starts, and the
//! same command goes on from there. Of two that would work in one directory at once the second is refused.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use super::OfflineError;
use crate::durable;
use crate::identity::{self, MARKER};

/// Where it is built. A directory without a marker but with this is no empty one, see [`crate::identity`].
pub const STAGING: &str = crate::identity::STAGING;

/// Made last: from then on the exchange is only carried on. Says what it exchanges, see [`Ready`].
const READY: &str = "ready";

/// What is exchanged beside the marker.
const PARTS: [&str; 3] = ["log", "log.mark", "state"];

/// A directory that is being built.
#[derive(Debug)]
pub struct Staging {
    data_dir: PathBuf,
    /// The data directory, locked for as long as it is open. A file beside would be in the way of a restore.
    _lock: File,
}

/// What an exchange is about.
#[derive(Debug, PartialEq, Eq)]
struct Ready {
    /// Name of the directory for the old content.
    old: String,
    /// The disk that it is the content of; `None` where there was none.
    incarnation: Option<u128>,
}

impl Ready {
    fn text(&self) -> String {
        let incarnation = self.incarnation.map_or_else(String::new, |incarnation| format!("{incarnation:032x}"));
        format!("{}\n{incarnation}", self.old)
    }

    /// `None` where there is none.
    fn read(home: &Path) -> Result<Option<Self>, OfflineError> {
        let path = home.join(READY);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(OfflineError::at(&path)(error)),
        };
        let (old, incarnation) = text.split_once('\n').unwrap_or((&text, ""));
        Ok(Some(Self { old: old.to_owned(), incarnation: u128::from_str_radix(incarnation, 16).ok() }))
    }
}

/// Whether an exchange was interrupted in this directory: the marker of the old content is where the exchange puts it, and that of the new
/// one not in its place yet. Where a marker is in its place a node may have gone on with it since, and where it was lost in another way,
/// too: what was built aside is of the past then.
pub fn is_interrupted(data_dir: &Path) -> bool {
    let home = data_dir.join(STAGING);
    let Ok(Some(ready)) = Ready::read(&home) else { return false };
    let is_begun = match ready.incarnation {
        Some(incarnation) => {
            let moved = identity::read(&data_dir.join(&ready.old));
            moved.is_ok_and(|moved| moved.is_some_and(|moved| moved.incarnation == incarnation))
        }
        None => true,
    };
    is_begun && home.join("new").join(MARKER).exists() && !data_dir.join(MARKER).exists()
}

/// Locks a directory until the file is dropped.
fn lock(data_dir: &Path) -> Result<File, OfflineError> {
    let dir = File::open(data_dir).map_err(OfflineError::at(data_dir))?;
    // SAFETY: the call reads nothing but its two numbers, and the descriptor is open.
    if unsafe { libc::flock(dir.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(dir);
    }
    match io::Error::last_os_error() {
        held if held.kind() == io::ErrorKind::WouldBlock => Err(OfflineError::Refused(format!(
            "another restore or recovery works in {} at the moment; wait for its end",
            data_dir.display()
        ))),
        error => Err(OfflineError::at(data_dir)(error)),
    }
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
        durable::create_dir(data_dir).map_err(OfflineError::at(data_dir))?;
        let staging = Self { data_dir: data_dir.to_owned(), _lock: lock(data_dir)? };
        let home = staging.home();
        remove(&home)?;
        for dir in [home, staging.new_dir(), staging.scratch()] {
            durable::create_dir(&dir).map_err(OfflineError::at(&dir))?;
        }
        Ok(staging)
    }

    /// Goes on with what was ready.
    pub fn resume(data_dir: &Path) -> Result<Self, OfflineError> {
        Ok(Self { data_dir: data_dir.to_owned(), _lock: lock(data_dir)? })
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
        let incarnation = identity::read(&self.data_dir)?.map(|identity| identity.incarnation);
        let ready = Ready { old: old.to_owned(), incarnation };
        let path = self.home().join(READY);
        durable::write_whole(&path, ready.text().as_bytes(), "offline-before-ready").map_err(OfflineError::at(&path))
    }

    /// Exchanges the content, durably. Gives where the old content is, if there was any. May be repeated after a crash.
    pub fn exchange(self) -> Result<Option<PathBuf>, OfflineError> {
        let home = self.home();
        let ready = Ready::read(&home)?.ok_or_else(|| {
            OfflineError::Refused(format!("{} holds nothing that is ready to be put in its place", home.display()))
        })?;
        let (old, new) = (self.data_dir.join(ready.old), self.new_dir());
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

    const OLD: [&str; 2] = ["log.mark", "state"];
    const NEW: [&str; 3] = ["log", "log.mark", "state"];

    /// Marker first: beside data without one it is refused.
    fn fill(dir: &Path, names: &[&str], incarnation: u128) {
        identity::open(dir, 1, incarnation).unwrap();
        names.iter().for_each(|name| fs::write(dir.join(name), incarnation.to_string()).unwrap());
    }

    fn holds(dir: &Path, names: &[&str], incarnation: u128) {
        assert_eq!(identity::read(dir).unwrap().unwrap().incarnation, incarnation);
        let text = incarnation.to_string();
        names.iter().for_each(|name| assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), text, "{name}"));
    }

    #[test]
    fn what_was_left_is_removed_beside_a_marker_and_nowhere_else() {
        let data = tempfile::tempdir().unwrap();
        assert!(!remove_beside_marker(data.path()).unwrap());
        let staging = Staging::begin(data.path()).unwrap();
        fill(&staging.new_dir(), &NEW, 2);
        staging.seal("before").unwrap();
        assert!(!remove_beside_marker(data.path()).unwrap(), "it may be all that there is");
        assert!(is_interrupted(data.path()), "nothing was there before");
        fs::copy(staging.new_dir().join(MARKER), data.path().join(MARKER)).unwrap();
        assert!(remove_beside_marker(data.path()).unwrap());
        assert!(!data.path().join(STAGING).exists());
        assert_eq!(identity::read(data.path()).unwrap().unwrap().incarnation, 2);
    }

    #[test]
    fn a_marker_that_was_lost_in_another_way_is_no_exchange() {
        let data = tempfile::tempdir().unwrap();
        fill(data.path(), &OLD, 1);
        let staging = Staging::begin(data.path()).unwrap();
        fill(&staging.new_dir(), &NEW, 2);
        staging.seal("before").unwrap();
        let marker = data.path().join(MARKER);
        let lost = fs::read(&marker).unwrap();
        fs::remove_file(&marker).unwrap();
        assert!(!is_interrupted(data.path()), "what was built is of the past");
        let old = data.path().join("before");
        fs::create_dir(&old).unwrap();
        fs::write(old.join(MARKER), lost).unwrap();
        assert!(is_interrupted(data.path()), "the exchange has moved it");
    }

    #[test]
    fn of_two_in_one_directory_the_second_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let first = Staging::begin(data.path()).unwrap();
        fill(&first.new_dir(), &NEW, 2);
        let refused = Staging::begin(data.path()).unwrap_err().to_string();
        assert!(refused.contains("another restore or recovery works in"), "{refused}");
        holds(&first.new_dir(), &NEW, 2);
        first.abandon();
        Staging::begin(data.path()).unwrap();
    }

    #[test]
    fn an_exchange_goes_on_wherever_it_was_interrupted() {
        // How many of the moves were done before the crash.
        for done in 0..=6 {
            let dir = tempfile::tempdir().unwrap();
            let data = dir.path().join("data");
            fs::create_dir(&data).unwrap();
            fill(&data, &OLD, 1);
            let staging = Staging::begin(&data).unwrap();
            fill(&staging.new_dir(), &NEW, 2);
            staging.seal("before").unwrap();
            let (old, new) = (data.join("before"), staging.new_dir());
            drop(staging);
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
            let exchanged = Staging::resume(&data).unwrap().exchange().unwrap();
            assert_eq!(exchanged.as_deref(), Some(old.as_path()));
            holds(&data, &NEW, 2);
            holds(&old, &OLD, 1);
            assert!(!data.join(STAGING).exists());
        }
    }
}
