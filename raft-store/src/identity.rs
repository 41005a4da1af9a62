//! Who this data directory belongs to: the marker file that a wiped or foreign disk cannot fake.
//!
//! Owns the file `identity` in the data directory, written whole, fsynced, renamed into place, directory fsynced.
//! Never changes a marker that exists, but for filling in the cluster id once, and for giving a directory that never took part in a
//! cluster to another node id.

use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use crate::durable::{self, SealError};
use crate::high_water_mark;

/// Name of the marker in the data directory.
pub(crate) const MARKER: &str = "identity";

/// Name of the directory in which a restore or a recovery builds what it puts in place of the rest, see [`crate::offline`].
pub(crate) const STAGING: &str = "recovering";

/// Name of the directory that takes what a node left behind under an id that it was refused under, until all of it is removed.
const LEFT: &str = "left";

/// Whatever of these exists was written by a node, so a marker has existed beside it.
const DATA: [&str; 3] = ["log", "log.mark", "state"];

/// The marker's content.
///
/// Invariant: `cluster_id` changes once, from `None`; `node_id` and `incarnation` do not change once the log holds something.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// The cluster; `None` until this node was adopted by one.
    pub cluster_id: Option<u128>,
    /// The operator's number for this node.
    pub node_id: u64,
    /// Random, made with the directory.
    pub incarnation: u128,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The marker is damaged or of an unknown format.
    #[error("{path}: the identity marker is damaged: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The directory belongs to another node.
    #[error(
        "{path} belongs to node {found}, not to node {asked}; start node {found} on it or give node {asked} a directory of its own"
    )]
    OtherNode {
        /// The directory.
        path: PathBuf,
        /// Node id in the marker.
        found: u64,
        /// Node id in the configuration.
        asked: u64,
    },
    /// The directory belongs to another cluster.
    #[error("{path} belongs to cluster {found:032x}, not to cluster {asked:032x}")]
    OtherCluster {
        /// The directory.
        path: PathBuf,
        /// Cluster id in the marker.
        found: u128,
        /// Cluster id asked for.
        asked: u128,
    },
    /// The directory is of a cluster, so it cannot be given away.
    #[error("{path} belongs to cluster {found:032x}, and stays with the node that it belongs to")]
    OfACluster {
        /// The directory.
        path: PathBuf,
        /// Its cluster.
        found: u128,
    },
    /// Data without a marker.
    #[error(
        "{path} holds data but no identity marker; restore the file `identity` or start on an empty directory under a new node id"
    )]
    Unmarked {
        /// The directory.
        path: PathBuf,
    },
    /// A restore or a recovery did not come to its end.
    #[error(
        "{path} holds an unfinished restore or recovery; run `quorate-node recover` on it again, or, where nothing but \
         `{STAGING}` is in it, empty it"
    )]
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
}

/// Opens the marker of `dir`, or makes one with `fresh_incarnation` where the directory is new and empty. Makes the
/// directory too, private to its owner.
pub fn open(dir: &Path, node_id: u64, fresh_incarnation: u128) -> Result<Identity, IdentityError> {
    durable::create_dir(dir).map_err(|source| IdentityError::Io { path: dir.to_owned(), source })?;
    match read(dir)? {
        Some(identity) if identity.node_id == node_id => {
            remove_left(dir)?;
            Ok(identity)
        }
        Some(identity) => {
            Err(IdentityError::OtherNode { path: dir.to_owned(), found: identity.node_id, asked: node_id })
        }
        None if dir.join(STAGING).exists() => Err(IdentityError::Unfinished { path: dir.to_owned() }),
        None if DATA.iter().any(|name| dir.join(name).exists()) => {
            Err(IdentityError::Unmarked { path: dir.to_owned() })
        }
        None => {
            let identity = Identity { cluster_id: None, node_id, incarnation: fresh_incarnation };
            write(dir, &identity)?;
            Ok(identity)
        }
    }
}

/// Records the cluster id, durably. The same id again is fine; another is [`IdentityError::OtherCluster`].
pub fn adopt(dir: &Path, identity: &Identity, cluster_id: u128) -> Result<Identity, IdentityError> {
    // The file decides, not the caller's copy, which may be from before an earlier adoption.
    let on_disk = read(dir)?.ok_or_else(|| IdentityError::Unmarked { path: dir.to_owned() })?;
    if (on_disk.node_id, on_disk.incarnation) != (identity.node_id, identity.incarnation) {
        let reason = format!("it changed under the running node: {identity:?} became {on_disk:?}");
        return Err(IdentityError::Damaged { path: dir.join(MARKER), reason });
    }
    match on_disk.cluster_id {
        Some(found) if found == cluster_id => Ok(on_disk),
        Some(found) => Err(IdentityError::OtherCluster { path: dir.to_owned(), found, asked: cluster_id }),
        None => {
            let adopted = Identity { cluster_id: Some(cluster_id), ..on_disk };
            write(dir, &adopted)?;
            Ok(adopted)
        }
    }
}

/// Gives a directory that never took part in a cluster to another node id, or, without one, to nobody. What a node left there that was
/// never taken in goes with it: nobody was ever told anything by it.
///
/// # Errors
/// Also where the directory is of a cluster, and its log holds a vote or an entry: an id and its disk belong together for ever then.
pub fn renumber(dir: &Path, node_id: Option<u64>, fresh_incarnation: u128) -> Result<(), IdentityError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| IdentityError::Io { path, source }
    };
    match read(dir)? {
        Some(Identity { cluster_id: Some(found), .. }) if took_part(dir) => {
            return Err(IdentityError::OfACluster { path: dir.to_owned(), found });
        }
        Some(_) | None => {}
    }
    // A database of the node that ends may still make files. It makes them under the name that its directory had: what is moved away
    // first stays as it is while it is removed.
    remove_left(dir)?;
    let left = dir.join(LEFT);
    durable::create_dir(&left).map_err(io(&left))?;
    for name in DATA {
        let path = dir.join(name);
        match std::fs::rename(&path, left.join(name)) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(IdentityError::Io { path, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    durable::sync_dir(dir).map_err(io(dir))?;
    // While there is a marker: without one nothing says that what is here is ours.
    remove_left(dir)?;
    match node_id {
        Some(node_id) => write(dir, &Identity { cluster_id: None, node_id, incarnation: fresh_incarnation }),
        None => durable::remove(&dir.join(MARKER)).map_err(io(&dir.join(MARKER))),
    }
}

/// Removes what was left behind, as a [`renumber`] does, and the next start after one that was cut short. Only beside a marker.
fn remove_left(dir: &Path) -> Result<(), IdentityError> {
    let left = dir.join(LEFT);
    durable::remove_tree(&left).map_err(|source| IdentityError::Io { path: left, source })
}

/// Whether the log of a directory holds anything. One whose mark cannot be read counts as if it did.
fn took_part(dir: &Path) -> bool {
    match high_water_mark::read(dir) {
        Ok(None) => dir.join("log").exists(),
        Ok(Some(mark)) => mark.vote.is_some() || mark.last.is_some(),
        Err(_) => true,
    }
}

/// The marker of `dir`, if there is one. Changes nothing.
pub fn read(dir: &Path) -> Result<Option<Identity>, IdentityError> {
    let path = dir.join(MARKER);
    durable::read_sealed(&path).map_err(|error| match error {
        SealError::Io(source) => IdentityError::Io { path, source },
        damage => IdentityError::Damaged { path, reason: damage.to_string() },
    })
}

fn write(dir: &Path, identity: &Identity) -> Result<(), IdentityError> {
    let path = dir.join(MARKER);
    durable::write_sealed(&path, identity, "identity-before-rename")
        .map_err(|source| IdentityError::Io { path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fresh() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("node");
        (root, dir)
    }

    #[test]
    fn a_new_directory_gets_a_marker_that_stays() {
        let (_root, dir) = fresh();
        let made = open(&dir, 3, 77).unwrap();
        assert_eq!(made, Identity { cluster_id: None, node_id: 3, incarnation: 77 });
        assert_eq!(open(&dir, 3, 78).unwrap(), made, "an existing marker must win over a fresh incarnation");
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_of_another_node_is_refused_by_name() {
        let (_root, dir) = fresh();
        open(&dir, 3, 77).unwrap();
        let error = open(&dir, 4, 78).unwrap_err();
        assert!(matches!(error, IdentityError::OtherNode { found: 3, asked: 4, .. }), "{error}");
        assert!(error.to_string().contains(dir.to_str().unwrap()), "{error}");
    }

    #[test]
    fn data_without_a_marker_is_refused() {
        for name in DATA {
            let (_root, dir) = fresh();
            std::fs::create_dir_all(dir.join(name)).unwrap();
            assert!(matches!(open(&dir, 3, 77), Err(IdentityError::Unmarked { .. })), "{name}");
        }
    }

    #[test]
    fn the_cluster_is_adopted_once() {
        let (_root, dir) = fresh();
        let made = open(&dir, 3, 77).unwrap();
        let adopted = adopt(&dir, &made, 5).unwrap();
        assert_eq!(adopted.cluster_id, Some(5));
        assert_eq!(open(&dir, 3, 1).unwrap(), adopted);
        assert_eq!(adopt(&dir, &made, 5).unwrap(), adopted, "a second adoption by the same cluster is fine");
        assert!(matches!(adopt(&dir, &adopted, 6), Err(IdentityError::OtherCluster { found: 5, asked: 6, .. })));
    }

    #[test]
    fn only_a_directory_that_never_took_part_in_a_cluster_is_given_to_another_id() {
        let (_root, dir) = fresh();
        open(&dir, 3, 77).unwrap();
        for name in ["log", "state"] {
            std::fs::create_dir(dir.join(name)).unwrap();
            std::fs::write(dir.join(name).join("file"), "x").unwrap();
        }
        std::fs::write(dir.join("log.mark"), "x").unwrap();
        renumber(&dir, Some(103), 78).unwrap();
        let made = open(&dir, 103, 1).unwrap();
        assert_eq!(made, Identity { cluster_id: None, node_id: 103, incarnation: 78 });
        assert!(DATA.iter().all(|name| !dir.join(name).exists()), "a log of another id would not be read");
        assert!(!dir.join(LEFT).exists(), "what a node left takes no room");
        renumber(&dir, None, 79).unwrap();
        assert_eq!(read(&dir).unwrap(), None);
        let made = open(&dir, 3, 80).unwrap();
        adopt(&dir, &made, 5).unwrap();
        std::fs::create_dir(dir.join("log")).unwrap();
        let error = renumber(&dir, Some(103), 81).unwrap_err();
        assert!(matches!(error, IdentityError::OfACluster { found: 5, .. }), "{error}");
        assert!(dir.join("log").exists() && read(&dir).unwrap().unwrap().node_id == 3, "nothing was touched");
    }

    #[test]
    fn a_directory_is_given_away_while_a_database_still_makes_files_in_it() {
        use std::sync::atomic::{AtomicBool, Ordering};
        const FILES_MAX: usize = 20_000;
        let (_root, dir) = fresh();
        open(&dir, 3, 77).unwrap();
        let state = dir.join("state");
        std::fs::create_dir(&state).unwrap();
        let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..FILES_MAX {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    // Fails once the directory is gone.
                    let _ = std::fs::write(state.join(n.to_string()), "x");
                    begun.store(n > 100, Ordering::Relaxed);
                }
                begun.store(true, Ordering::Relaxed);
            });
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            let given = renumber(&dir, Some(103), 78);
            done.store(true, Ordering::Relaxed);
            given.unwrap();
        });
        assert!(!state.exists() && !dir.join(LEFT).exists());
    }

    #[test]
    fn what_a_start_that_was_cut_short_left_behind_goes_at_the_next() {
        let (_root, dir) = fresh();
        open(&dir, 3, 77).unwrap();
        std::fs::create_dir_all(dir.join(LEFT).join("state")).unwrap();
        open(&dir, 3, 78).unwrap();
        assert!(!dir.join(LEFT).exists());
    }

    #[test]
    fn nothing_is_removed_from_a_directory_that_was_no_nodes() {
        let (_root, dir) = fresh();
        std::fs::create_dir_all(dir.join(LEFT).join("photos")).unwrap();
        open(&dir, 3, 77).unwrap();
        assert!(dir.join(LEFT).join("photos").exists());
    }

    #[test]
    fn a_flipped_bit_in_the_marker_is_refused_naming_the_file() {
        let (_root, dir) = fresh();
        open(&dir, 3, 77).unwrap();
        let path = dir.join(MARKER);
        let written = std::fs::read(&path).unwrap();
        for at in 0..written.len() {
            let mut damaged = written.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let error = open(&dir, 3, 77).unwrap_err();
            assert!(matches!(error, IdentityError::Damaged { .. }), "byte {at}: {error}");
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
    }
}
