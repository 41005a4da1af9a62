//! The record of a process: each call that changed the file system under its data directory, and what it said meanwhile.
//!
//! Owns the form of a record. Never takes one: only a program can put itself between its code and the system
//! (`bin/crash/interpose.rs`).

use bincode::{Decode, Encode};

use super::note::Note;

/// One event. Paths are relative to the data directory's parent.
#[derive(Debug, Clone, Encode, Decode)]
pub enum Event {
    /// A file or directory was opened.
    Open {
        /// The descriptor.
        fd: i32,
        /// What was opened.
        path: String,
        /// Whether a missing file is made.
        create: bool,
        /// Whether its content goes.
        truncate: bool,
    },
    /// The descriptor is no more.
    Close {
        /// The descriptor.
        fd: i32,
    },
    /// Bytes were given to the system.
    Write {
        /// The descriptor.
        fd: i32,
        /// Their place in the file.
        offset: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A file got another length.
    Truncate {
        /// The descriptor.
        fd: i32,
        /// The length in bytes.
        length: u64,
    },
    /// A sync began: it covers what was given to the system before.
    SyncBegin {
        /// The descriptor.
        fd: i32,
        /// Names this sync.
        number: u64,
        /// Whether it was `fdatasync`.
        data_only: bool,
    },
    /// It returned without an error.
    SyncEnd {
        /// Which.
        number: u64,
    },
    /// A file or directory got another name, in place of what had it.
    Rename {
        /// The name before.
        from: String,
        /// The name after.
        to: String,
    },
    /// A file got a second name.
    Link {
        /// The file.
        from: String,
        /// Its other name.
        to: String,
    },
    /// A name went, of a file or of an empty directory.
    Remove {
        /// The name.
        path: String,
    },
    /// A directory was made.
    MakeDir {
        /// Its name.
        path: String,
    },
    /// The process said something.
    Said(Note),
}
