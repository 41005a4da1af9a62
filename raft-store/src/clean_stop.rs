//! What a node leaves behind that stopped as it was told to: how far its state was, all of it durable.
//!
//! Owns the file. It holds for one start: whoever takes it removes it, so that a crash after that finds none.

use std::io;
use std::path::Path;

use crate::durable;

const FILE: &str = "clean-stop";

/// Notes that nothing beyond this log index was ever shown, not before an earlier crash either, and that all up to it is durable.
pub fn note(data_dir: &Path, applied: u64) -> io::Result<()> {
    durable::write_sealed(&data_dir.join(FILE), &applied, "before the rename of a clean stop")
}

/// Takes what was noted; `None` where the node did not stop so, or nobody can tell. Durably gone when this returns.
pub fn take(data_dir: &Path) -> io::Result<Option<u64>> {
    let path = data_dir.join(FILE);
    // A note that cannot be read is as good as none.
    let noted = durable::read_sealed(&path).ok().flatten();
    durable::remove(&path)?;
    Ok(noted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_holds_once() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(take(dir.path()).unwrap(), None);
        note(dir.path(), 7).unwrap();
        assert_eq!(take(dir.path()).unwrap(), Some(7));
        assert_eq!(take(dir.path()).unwrap(), None);
        note(dir.path(), 8).unwrap();
        std::fs::write(dir.path().join(FILE), b"damaged").unwrap();
        assert_eq!(take(dir.path()).unwrap(), None);
        assert!(!dir.path().join(FILE).exists());
    }
}
