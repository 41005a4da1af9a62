//! Whether the place of an archive is the one in which this cluster archived before: a directory may be one on which nothing is mounted.
//!
//! Owns the note of the place in the data directory, and that judgement: where this node or another one has found the place before, it is
//! never made anew. Knows nothing of what is archived.

use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use quorate_archive::{Archive, ArchiveError, Location};
use quorate_node_core::millis::wall_now;
use quorate_store::durable;

/// The cluster and the place in which it archives, in the data directory.
const NOTE: &str = "archived-to";

/// Why a place is not used. A sentence for people.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It cannot be opened.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// This cluster archived there before, and nothing says that it is the same place.
    #[error(
        "{place} is not the place in which this cluster archived before: {mark} is not there. Mount the file system, or bring the directory \
         back; until then nothing is archived, and the log waits for it. To begin anew there on purpose, make that file"
    )]
    Away {
        /// The place.
        place: String,
        /// The file that is missing.
        mark: String,
    },
    /// A file of this machine.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Refuses a place without its mark. Blocks.
pub fn check(archive: &Archive) -> Result<(), PlaceError> {
    refuse_unmarked(archive, archive.mark())
}

fn refuse_unmarked(place: &dyn Display, mark: Option<PathBuf>) -> Result<(), PlaceError> {
    // A store is there or answers nothing.
    let Some(mark) = mark else { return Ok(()) };
    match mark.try_exists().map_err(of_file(&mark))? {
        true => Ok(()),
        false => Err(PlaceError::Away { place: place.to_string(), mark: mark.display().to_string() }),
    }
}

fn of_file(path: &Path) -> impl FnOnce(io::Error) -> PlaceError {
    let path = path.display().to_string();
    move |source| PlaceError::File { path, source }
}

/// Opens the place of a cluster, and notes that: from then on it is never made anew. `is_known`: another node has found it. Gives also what
/// an operator should know. Blocks.
pub fn open(
    data_dir: &Path,
    location: &Location,
    cluster: u128,
    is_known: bool,
) -> Result<(Archive, Option<String>), PlaceError> {
    let note = format!("{cluster:032x} {location}");
    let path = data_dir.join(NOTE);
    let is_noted = match fs::read_to_string(&path) {
        Ok(noted) => noted == note,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(of_file(&path)(error)),
    };
    if is_noted || is_known {
        refuse_unmarked(location, location.mark(cluster))?;
    }
    let archive = Archive::of(location.open()?, cluster);
    let warning = archive.prepare(wall_now())?;
    if !is_noted {
        let written = durable::write_whole(&path, note.as_bytes(), "archive-place-before-rename");
        written.map_err(of_file(&path))?;
    }
    Ok((archive, warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: u128 = 7;

    #[test]
    fn a_place_is_made_once_and_never_anew_where_nothing_is_mounted() {
        let home = tempfile::tempdir().expect("a directory");
        let (data, dir) = (home.path().join("data"), home.path().join("mount/archive"));
        fs::create_dir(&data).expect("made");
        let location: Location = dir.to_str().expect("UTF-8").parse().expect("a location");
        let (archive, _) = open(&data, &location, CLUSTER, false).expect("it is made");
        check(&archive).expect("it is marked");
        fs::remove_dir_all(home.path().join("mount")).expect("removed");
        // Nothing of it is there, or a directory on which nothing is mounted.
        for is_empty in [false, true] {
            if is_empty {
                fs::create_dir_all(&dir).expect("made");
            }
            let refused = open(&data, &location, CLUSTER, false).expect_err("it is away").to_string();
            assert!(refused.contains("Mount the file system") && refused.contains("archived-here"), "{refused}");
            assert!(check(&archive).is_err() && !dir.join(format!("quorate-{CLUSTER:032x}")).exists());
        }
        let mark = archive.mark().expect("a directory");
        fs::create_dir_all(mark.parent().expect("in a directory")).expect("made");
        fs::write(&mark, "").expect("written");
        open(&data, &location, CLUSTER, false).expect("on purpose");
    }

    #[test]
    fn a_place_that_another_node_has_found_is_not_made_by_this_one() {
        let home = tempfile::tempdir().expect("a directory");
        let location: Location = home.path().join("archive").to_str().expect("UTF-8").parse().expect("a location");
        open(home.path(), &location, CLUSTER, true).expect_err("nothing is mounted here");
        assert!(!home.path().join("archive").exists());
        open(home.path(), &location, CLUSTER, false).expect("the first one makes it");
        // Of another cluster, or in another place, it is a first time.
        open(home.path(), &location, CLUSTER + 1, false).expect("another cluster");
        let other: Location = home.path().join("other").to_str().expect("UTF-8").parse().expect("a location");
        open(home.path(), &other, CLUSTER, false).expect("another place");
    }
}
