//! Names of what somebody may wait for beside the change of an entry.
//!
//! Owns that no two things share a name. A name is a [`Key`] because the register of those who wait is one of keys; an
//! entry may have the same key, which at worst wakes somebody for nothing.

use xxhash_rust::xxh3::xxh3_128;

use super::{Key, Name};

/// What may be waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Waker {
    /// A lock: its holders or its queue.
    Lock = 1,
    /// An election.
    Election = 2,
    /// A barrier.
    Barrier = 3,
    /// A latch.
    Latch = 4,
    /// The tasks of a queue that may be due.
    Tasks = 5,
    /// A session; its name is its id.
    Session = 6,
    /// The rules of access; its name is empty. With a kind, a slash and a name it is what lines of audit say of one of them.
    Access = 7,
    /// The end of a lock on an entry, see [`Waker::of_entry_lock`].
    EntryLock = 8,
    /// Only in lines of audit: a kind, a slash and what it is; of an invitation its id, of a node its number.
    Members = 10,
    /// A quota: only what lines of audit say of one.
    Quota = 9,
}

impl Waker {
    /// The name under which a thing of this kind is waited for.
    pub fn of(self, name: impl AsRef<[u8]>) -> Key {
        let mut bytes = vec![0, self as u8];
        bytes.extend_from_slice(name.as_ref());
        Key::new(bytes).expect("names are far shorter than keys")
    }

    /// The name under which the end of the lock on an entry is waited for. Made of a hash, since a key may be as long as a name here:
    /// two entries with one hash wake each other for nothing.
    pub fn of_entry_lock(key: &Key) -> Key {
        Self::EntryLock.of(format!("{:032x}", xxh3_128(key.as_bytes())))
    }

    /// Reverses [`Self::of`].
    pub fn name(self, key: &Key) -> Option<Name> {
        let name = key.as_bytes().strip_prefix(&[0, self as u8])?;
        Name::new(std::str::from_utf8(name).ok()?).ok()
    }
}
