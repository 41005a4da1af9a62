//! The mark of a state that is not trusted: the file `quarantine` in the data directory.
//!
//! Owns the file. It is there from when a node finds its state to differ from that of a majority until the state was replaced, or from
//! when it stopped for a split until a majority agrees with it: a restart must not make the node trust what it did not trust before.

use std::io;
use std::path::Path;

use bincode::{Decode, Encode};

use crate::durable::{self, SealError};

/// Name of the file in the data directory.
const FILE: &str = "quarantine";

/// Why a state is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Quarantine {
    /// Log index at which it was seen.
    pub index: u64,
    /// What takes it away.
    pub cause: Cause,
    /// A sentence for people.
    pub reason: String,
}

/// Why a node stopped trusting its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Cause {
    /// A majority holds something else: only another state takes it away.
    Contradicted,
    /// Another node holds something else, and there is no majority: one that agrees takes it away, too.
    Split,
}

/// The mark of a data directory, if it has one.
pub fn read(data_dir: &Path) -> Result<Option<Quarantine>, SealError> {
    durable::read_sealed(&data_dir.join(FILE))
}

/// Marks a data directory, durably.
pub fn write(data_dir: &Path, quarantine: &Quarantine) -> io::Result<()> {
    durable::write_sealed(&data_dir.join(FILE), quarantine, "quarantine-before-rename")
}

/// Takes the mark away, durably. Fine where there is none.
pub fn lift(data_dir: &Path) -> io::Result<()> {
    durable::remove(&data_dir.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stays_until_it_is_lifted_and_damage_is_no_absence() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        lift(dir.path()).unwrap();
        let mark = Quarantine { index: 7, cause: Cause::Split, reason: "differs".into() };
        write(dir.path(), &mark).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Some(mark));
        let path = dir.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(read(dir.path()).is_err());
        lift(dir.path()).unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
    }
}
