//! Opening: everything that is checked before a log is believed.
//!
//! Owns the decision to refuse. Never repairs and never forgets: a log that lost or changed what it once synced is
//! the end of this node's membership, and only a person may decide that. The one thing that may go is a group that was
//! never acknowledged ([`super::walk`]).
//!
//! What is noticed: anything wrong with a segment's header, length or name, a missing segment, a flipped bit or zeroed
//! block in the header or directory of any group, in the newest [`VERIFIED_BYTES`] of entries, in both slots of the mark.
//! Damage to an older entry is noticed when it is read, and stops the node then.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use super::index::Content;
use super::open_error::LogOpenError;
use super::options::LogOptions;
use super::read;
use super::record::DirectoryTag;
use super::segment::{self, Segment, SegmentError};
use super::tail::{self, Tail};
use super::view::{TAIL_BYTES_MAX, View};
use super::walk::{self, Walked};
use crate::durable::{self, SealError};
use crate::high_water_mark::{self, MARK_FILE, Mark, MarkFile};
use crate::identity::Identity;
use crate::raft::wire::{LogIdRecord, VoteRecord};
use crate::raft::{LogEntry, LogId};

/// Name of the log's directory in the data directory.
pub const LOG_DIR: &str = "log";

/// Held by the process that has the log open.
const LOCK_FILE: &str = "LOCK";

/// Bytes of the newest entries that are verified: a fraction of a second, and more than is likely to be read again.
const VERIFIED_BYTES: usize = 128 * 1024 * 1024;

/// Entries are verified in runs of about so many bytes.
pub(super) const RUN_BYTES: usize = 1024 * 1024;

/// A log that was checked.
pub struct Recovered {
    /// Keeps other processes out.
    pub lock: File,
    pub tag: DirectoryTag,
    pub mark: (MarkFile, Mark),
    pub walked: Walked,
    pub view: View,
}

/// Opens or makes the log of `data_dir`.
pub fn recover(data_dir: &Path, identity: &Identity, options: &LogOptions) -> Result<Recovered, LogOpenError> {
    let dir = data_dir.join(LOG_DIR);
    // Before the mark is read: whoever has the log open writes it.
    let lock = dir.is_dir().then(|| take_lock(&dir)).transpose()?;
    let (mut file, mut mark) = read_mark(data_dir, &dir, identity)?;
    let lock = lock.map_or_else(|| take_lock(&dir), Ok)?;
    let opening = Opening { data_dir, dir: &dir, identity, tag: DirectoryTag::new(identity) };
    let walked = walk::walk(opening.segments(&mark, options)?, opening.tag)?;
    let view = opening.view(&walked.content)?;
    opening.check_mark(&mark, &view, &walked)?;
    walked.settle()?;
    opening.in_dir(segment::remove_unfinished(&dir))?;
    if !mark.created {
        mark.created = true;
        let path = data_dir.join(MARK_FILE);
        file.write(&mark, "mark-before-sync").map_err(|source| LogOpenError::Io { path, source })?;
    }
    Ok(Recovered { lock, tag: opening.tag, mark: (file, mark), walked, view })
}

/// Locks the directory until the file is dropped, also against this very process.
pub(super) fn take_lock(dir: &Path) -> Result<File, LogOpenError> {
    let path = dir.join(LOCK_FILE);
    let opened = File::options().write(true).create(true).truncate(false).open(&path);
    let file = opened.map_err(|source| LogOpenError::Io { path: path.clone(), source })?;
    // SAFETY: the call reads nothing but its two numbers, and the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(file);
    }
    match io::Error::last_os_error() {
        held if held.kind() == io::ErrorKind::WouldBlock => Err(LogOpenError::InUse { path, reason: held.to_string() }),
        source => Err(LogOpenError::Io { path, source }),
    }
}

/// The mark decides whether a log may be made: only where there never was one.
fn read_mark(data_dir: &Path, dir: &Path, identity: &Identity) -> Result<(MarkFile, Mark), LogOpenError> {
    let path = data_dir.join(MARK_FILE);
    let found = high_water_mark::open(data_dir).map_err(|error| match error {
        SealError::Io(source) => LogOpenError::Io { path: path.clone(), source },
        damage => LogOpenError::Damaged { path: path.clone(), reason: damage.to_string() },
    })?;
    let occupied = dir.read_dir().is_ok_and(|files| files.flatten().any(|file| file.file_name() != LOCK_FILE));
    match found {
        None if occupied => {
            let reason = format!("the high-water mark is missing, but there is a log in {}", dir.display());
            Err(LogOpenError::Damaged { path, reason })
        }
        None => {
            // Before the log: a log without a mark is taken for damage.
            let unborn = Mark::unborn(identity.incarnation);
            let file =
                high_water_mark::create(data_dir, &unborn).map_err(|source| LogOpenError::Io { path, source })?;
            durable::create_dir(dir).map_err(|source| LogOpenError::Io { path: dir.to_owned(), source })?;
            Ok((file, unborn))
        }
        Some((_, mark)) if mark.incarnation != identity.incarnation => {
            let reason = "it belongs to another data directory".to_owned();
            Err(LogOpenError::Damaged { path, reason })
        }
        Some((_, mark)) if mark.created && !occupied => {
            let reason = format!("empty or missing, but {} says that it holds a log", path.display());
            Err(LogOpenError::Damaged { path: dir.to_owned(), reason })
        }
        Some((file, mark)) => {
            durable::create_dir(dir).map_err(|source| LogOpenError::Io { path: dir.to_owned(), source })?;
            Ok((file, mark))
        }
    }
}

pub(super) struct Opening<'a> {
    pub data_dir: &'a Path,
    pub dir: &'a Path,
    pub identity: &'a Identity,
    pub tag: DirectoryTag,
}

impl Opening<'_> {
    /// Every segment, in order, without a gap. Makes the first one where the log was never made completely.
    pub fn segments(&self, mark: &Mark, options: &LogOptions) -> Result<Vec<Arc<Segment>>, LogOpenError> {
        let numbers = self.in_dir(numbers(self.dir))?;
        let Some(&first) = numbers.first() else {
            if mark.created {
                return Err(self.damaged("it holds no segment, but it once did".to_owned()));
            }
            let made =
                Segment::make(self.dir, 1, (options.format, options.first_segment_bytes()), self.identity, |_| {});
            return Ok(vec![Arc::new(self.in_dir(made)?)]);
        };
        for (&number, expected) in numbers.iter().zip(first..) {
            if number != expected {
                let path = self.dir.join(segment::name(expected));
                let reason = format!("it is missing, though segment {number} is there");
                return Err(LogOpenError::Damaged { path, reason });
            }
        }
        numbers.into_iter().map(|number| self.open_segment(number).map(Arc::new)).collect()
    }

    fn open_segment(&self, number: u64) -> Result<Segment, LogOpenError> {
        let path = self.dir.join(segment::name(number));
        Segment::open(self.dir, number, self.identity).map_err(|error| match error {
            SegmentError::Io(source) => LogOpenError::Io { path, source },
            SegmentError::Damaged(reason) => LogOpenError::Damaged { path, reason },
            SegmentError::UnknownFormat(found) => LogOpenError::UnknownFormat { path, found },
        })
    }

    pub fn view(&self, content: &Content) -> Result<View, LogOpenError> {
        let log_state = &content.log_state;
        let first = log_state.purged.map_or(0, |id| id.index + 1);
        let found = content.index.first();
        if log_state.purged.is_none() && !content.is_from_the_start() {
            let path = self.dir.join(segment::name(1));
            return Err(LogOpenError::Damaged { path, reason: "it is missing, though nothing was purged".to_owned() });
        }
        if log_state.purged.is_some() && found > first {
            return Err(self.damaged(format!("entries {first} to {} are missing", found - 1)));
        }
        // A log that never purged anything may have started anywhere.
        let first = if log_state.purged.is_none() { found } else { first };
        let tail = self.verify(content, first)?;
        let last = log_state.last.map(LogId::from);
        Ok(View::new(log_state.purged.map(LogId::from), last, first, log_state.vote.map(Into::into), tail))
    }

    /// Verifies the newest entries, backwards, down to `first` at most. The newest of them stay in memory.
    fn verify(&self, content: &Content, first: u64) -> Result<Tail, LogOpenError> {
        let (mut tail, mut bytes, mut cached) = (Tail::new(content.log_state.next(), TAIL_BYTES_MAX), 0, true);
        let mut end = content.index.next();
        while end > first && bytes <= VERIFIED_BYTES {
            let start = content.index.run_before(end, RUN_BYTES as u64).max(first);
            let run = read::locations(content, start..end, usize::MAX);
            let entries = read::read_run(&run, self.tag).map_err(|error| self.damaged(error.to_string()))?;
            for entry in entries.into_iter().rev() {
                bytes += tail::cost(&entry);
                cached = cached && tail.push_front_within_bound(entry);
            }
            end = start;
        }
        Ok(tail)
    }

    pub fn check_mark(&self, mark: &Mark, view: &View, walked: &Walked) -> Result<(), LogOpenError> {
        let torn = walked.torn().map_or_else(String::new, |torn| format!(" ({torn})"));
        let vote = view.vote.as_ref().map(VoteRecord::from);
        if mark.vote.map(|vote| (vote.term, vote.node)) > vote.map(|vote| (vote.term, vote.node)) {
            return Err(self.lost(&format!("holds {:?}", mark.vote), &format!("holds {vote:?}{torn}")));
        }
        let Some(claimed) = mark.last else { return Ok(()) };
        if claimed.index >= view.next() {
            return Err(self.lost(&format!("reaches to {claimed:?}"), &format!("ends with {:?}{torn}", view.last)));
        }
        if claimed.index < view.first {
            return Ok(());
        }
        let found = LogIdRecord::from(&self.entry(&walked.content, claimed.index)?.log_id);
        if found != claimed {
            return Err(self.lost(&format!("holds {claimed:?}"), &format!("holds {found:?} in its place")));
        }
        Ok(())
    }

    fn entry(&self, content: &Content, index: u64) -> Result<LogEntry, LogOpenError> {
        let run = read::locations(content, index..index + 1, usize::MAX);
        let read = read::read_run(&run, self.tag).map_err(|error| self.damaged(error.to_string()))?;
        read.into_iter().next().ok_or_else(|| self.damaged(format!("entry {index} is missing")))
    }

    pub fn in_dir<T>(&self, result: io::Result<T>) -> Result<T, LogOpenError> {
        result.map_err(|source| LogOpenError::Io { path: self.dir.to_owned(), source })
    }

    pub fn damaged(&self, reason: String) -> LogOpenError {
        LogOpenError::Damaged { path: self.dir.to_owned(), reason }
    }

    fn lost(&self, claimed: &str, found: &str) -> LogOpenError {
        LogOpenError::LostSyncedData {
            mark: self.data_dir.join(MARK_FILE),
            dir: self.dir.to_owned(),
            claimed: claimed.to_owned(),
            found: found.to_owned(),
        }
    }
}

/// The numbers of the segments in the directory, in order.
pub(super) fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for file in fs::read_dir(dir)? {
        numbers.extend(file?.file_name().to_str().and_then(segment::number_of));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

const _: () = assert!(VERIFIED_BYTES > TAIL_BYTES_MAX);
