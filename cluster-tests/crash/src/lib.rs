//! Crashes of one node's storage: what is on its disk after a power loss at any sync, and after `kill -9` at any moment.
//!
//! Owns both, with log and state as the node opens them and no node around. [`life`] is a process that does to them what openraft
//! does, and says what it was promised ([`note`]). For a power loss its file-system calls are recorded ([`event`]), played on a disk in
//! memory ([`disk`], [`loss`]), and what may be left at each sync is judged ([`judge`], [`power`]). For `kill -9` the process is really killed,
//! and the next one judges what it finds ([`kill`]). [`mutant`] says which syncs can be left out, to see that it is noticed.
//!
//! Never starts a node: whole clusters are killed and lose their power in `tests/clusters`.

pub mod disk;
pub mod entries;
pub mod event;
pub mod judge;
pub mod kill;
pub mod life;
pub mod loss;
pub mod mutant;
pub mod note;
pub mod power;
pub mod reference;
mod snapshots;
pub mod store;
pub mod tree;

use std::path::{Path, PathBuf};

use bincode::{Decode, Encode};

use store::Fault;

/// A broken promise, and where it can be looked at.
#[derive(Debug)]
pub struct Broken {
    /// What is wrong.
    pub fault: Fault,
    /// Holds `image`, what the crash left, and `birth`: see [`life::Birth`]. `crash judge` on it says the fault again.
    pub kept: PathBuf,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; look again with: crash judge {}", self.fault, self.kept.display())
    }
}

/// A directory for what is not kept, in memory where there is such a place: no test here needs a disk.
pub fn scratch(name: &str) -> Result<tempfile::TempDir, Fault> {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let made = tempfile::Builder::new().prefix(&format!("crash-{name}-")).tempdir_in(&place);
    made.map_err(|error| format!("{}: {error}", place.display()))
}

/// Writes a value to a file.
pub fn write_file(path: &Path, value: &impl Encode) -> Result<(), Fault> {
    let bytes = bincode::encode_to_vec(value, bincode::config::standard()).map_err(|error| error.to_string())?;
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// Reverses [`write_file`].
pub fn read_file<T: Decode<()>>(path: &Path) -> Result<T, Fault> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let (value, _) =
        bincode::decode_from_slice(&bytes, bincode::config::standard()).map_err(|error| error.to_string())?;
    Ok(value)
}

/// Where what is kept of a broken run goes: under `QUORATE_HISTORIES`, else under the system's directory for such things.
fn keep(name: &str, image: &disk::Tree, birth: &life::Birth) -> Result<PathBuf, Fault> {
    let root = std::env::var_os("QUORATE_HISTORIES").map_or_else(std::env::temp_dir, PathBuf::from);
    let place = root.join(format!("crash-{name}-{}-{}", birth.seed, std::process::id()));
    std::fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    tree::write(image, &place.join("image"))?;
    write_file(&place.join("birth"), birth)?;
    Ok(place)
}
