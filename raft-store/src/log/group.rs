//! The unit of writing: one group of operations, one write, one sync.
//!
//! Owns the byte layout of a group and what its records mean for the log's bounds ([`LogState`]). Never does I/O.
//!
//! All numbers are little endian. A group starts at a multiple of [`BLOCK`] and is padded with zeros to the next, so no
//! write ever touches a block that holds something acknowledged: what a power loss can tear is the last group alone.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | checksum, seeded with the tag, of everything from offset 12 to the end of the directory |
//! | 12 | 4 | tag of the data directory |
//! | 16 | 8 | sequence number: consecutive over the whole log |
//! | 24 | 8 | number of the segment |
//! | 32 | 8 | bytes of the entries behind the directory |
//! | 40 | 4 | records in the directory |
//! | 44 | 4 | which of the following are set (bits 0, 1, 2), whether the vote is committed (bit 3) |
//! | 48 | 16 | vote before this group: term, node |
//! | 64 | 24 | purge mark before this group: term, node, index |
//! | 88 | 24 | last id before this group |
//! | 112 | 16 | zero |
//! | 128 | 32 each | the directory: kind, bytes, three numbers |
//! | then | | the entries, each sealed by itself ([`super::record`]), in the order of the directory |
//!
//! Each group repeats what stood before it. So any segment can be the first one, and a header that does not continue
//! the one before it is noticed.

use bytes::{BufMut, BytesMut};

use super::record::{DirectoryTag, RecordError};
use crate::raft::LogEntry;
use crate::raft::wire::{LogIdRecord, VoteRecord};

/// Groups start at multiples of this: the unit in which the page cache and the disk write.
pub const BLOCK: usize = 4096;

/// Leads every group.
pub const MAGIC: [u8; 8] = *b"\x89QRGROUP";

/// Bytes before the directory.
pub const HEADER_BYTES: usize = 128;

/// Bytes of one record of the directory.
pub const RECORD_BYTES: usize = 32;

/// Where the checksum ends and what it covers begins.
const COVERED: usize = 12;

/// What the log amounts to at one point of its history, but for the entries themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogState {
    /// The last vote.
    pub vote: Option<VoteRecord>,
    /// Last purged entry.
    pub purged: Option<LogIdRecord>,
    /// Last entry, or what was purged last.
    pub last: Option<LogIdRecord>,
}

/// One record of a group's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// An entry, of this many bytes with its seal.
    Entry {
        /// The entry.
        id: LogIdRecord,
        /// Its bytes behind the directory.
        bytes: u32,
    },
    /// A vote.
    Vote(VoteRecord),
    /// Everything after this one was dropped.
    Truncate(Option<LogIdRecord>),
    /// Everything up to this one was dropped; it may lie beyond the end.
    Purge(LogIdRecord),
}

impl LogState {
    /// Index that the next entry gets.
    pub fn next(&self) -> u64 {
        self.last.map_or(0, |id| id.index + 1)
    }

    /// Takes the record in. An error is a record that cannot follow what there is.
    pub fn apply(&mut self, record: &Record) -> Result<(), String> {
        match *record {
            Record::Entry { id, .. } => {
                self.check_follows(id)?;
                self.last = Some(id);
            }
            Record::Vote(vote) => self.vote = Some(vote),
            Record::Truncate(keep) => {
                if keep.map(|id| id.index) > self.last.map(|id| id.index) {
                    return Err(format!("a truncation keeps {keep:?}, but the log ends with {:?}", self.last));
                }
                self.last = keep;
            }
            Record::Purge(upto) => {
                self.purged = Some(upto);
                if self.last.is_none_or(|last| last.index <= upto.index) {
                    self.last = Some(upto);
                }
            }
        }
        Ok(())
    }

    fn check_follows(&self, id: LogIdRecord) -> Result<(), String> {
        let Some(last) = self.last else { return Ok(()) };
        if id.index != last.index + 1 {
            return Err(format!("between entry {} and entry {} there is a hole", last.index, id.index));
        }
        if (id.term, id.node) < (last.term, last.node) {
            return Err(format!("the term falls from {last:?} to {id:?}"));
        }
        Ok(())
    }
}

/// Bytes from the start of a group to the first of its entries.
pub fn directory_end(records: usize) -> usize {
    HEADER_BYTES + RECORD_BYTES * records
}

/// The next multiple of [`BLOCK`].
pub fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK as u64)
}

/// Builds one group after the other in the same memory.
#[derive(Debug, Default)]
pub struct GroupBuilder {
    bytes: BytesMut,
    records: usize,
    room: usize,
}

/// Memory that is kept for the next group, where one was larger.
pub const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;

impl GroupBuilder {
    /// Starts a group of exactly so many records.
    pub fn start(&mut self, before: &LogState, records: usize) {
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = BytesMut::new();
        }
        self.bytes.clear();
        self.bytes.put_bytes(0, directory_end(records));
        (self.records, self.room) = (0, records);
        let flags = u32::from(before.vote.is_some())
            | u32::from(before.purged.is_some()) << 1
            | u32::from(before.last.is_some()) << 2
            | u32::from(before.vote.is_some_and(|vote| vote.committed)) << 3;
        self.put(44, &flags.to_le_bytes());
        if let Some(vote) = before.vote {
            self.put_numbers(48, &[vote.term, vote.node]);
        }
        for (at, id) in [(64, before.purged), (88, before.last)] {
            if let Some(id) = id {
                self.put_numbers(at, &[id.term, id.node, id.index]);
            }
        }
    }

    /// Adds an entry and returns its record.
    pub fn entry(&mut self, tag: DirectoryTag, entry: &LogEntry) -> Record {
        let bytes = tag.seal_entry(entry, &mut self.bytes);
        let bytes = u32::try_from(bytes).expect("an entry came in one frame, so it is far below 4 GiB");
        let record = Record::Entry { id: (&entry.log_id).into(), bytes };
        self.record(&record);
        record
    }

    /// Adds a record to the directory.
    pub fn record(&mut self, record: &Record) {
        assert!(self.records < self.room, "record {} in a group of {}", self.records, self.room);
        let at = directory_end(self.records);
        let numbers = |id: LogIdRecord| [id.term, id.node, id.index];
        let (kind, bytes, three) = match *record {
            Record::Entry { id, bytes } => (KIND_ENTRY, bytes, numbers(id)),
            Record::Vote(vote) => (KIND_VOTE, 0, [vote.term, vote.node, vote.committed.into()]),
            Record::Truncate(None) => (KIND_TRUNCATE_ALL, 0, [0; 3]),
            Record::Truncate(Some(keep)) => (KIND_TRUNCATE, 0, numbers(keep)),
            Record::Purge(upto) => (KIND_PURGE, 0, numbers(upto)),
        };
        self.put(at, &kind.to_le_bytes());
        self.put(at + 4, &bytes.to_le_bytes());
        self.put_numbers(at + 8, &three);
        self.records += 1;
    }

    /// Bytes that the group will take in a segment.
    pub fn padded_len(&self) -> u64 {
        padded(self.bytes.len() as u64)
    }

    /// Seals and pads the group.
    pub fn finish(&mut self, tag: DirectoryTag, sequence: u64, segment: u64) -> &[u8] {
        assert_eq!(self.records, self.room, "a group of {} records has {}", self.room, self.records);
        let directory_end = directory_end(self.records);
        let payload = (self.bytes.len() - directory_end) as u64;
        let records = u32::try_from(self.records).expect("the queue is bounded");
        self.put(0, &MAGIC);
        self.put(COVERED, &tag.get().to_le_bytes());
        self.put_numbers(16, &[sequence, segment, payload]);
        self.put(40, &records.to_le_bytes());
        let checksum = tag.checksum([&self.bytes[COVERED..directory_end], &[]]);
        self.put(8, &checksum.to_le_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        &self.bytes
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn put_numbers(&mut self, at: usize, numbers: &[u64]) {
        for (place, number) in numbers.iter().enumerate() {
            self.put(at + 8 * place, &number.to_le_bytes());
        }
    }
}

const KIND_ENTRY: u32 = 1;
const KIND_VOTE: u32 = 2;
const KIND_TRUNCATE: u32 = 3;
const KIND_TRUNCATE_ALL: u32 = 4;
const KIND_PURGE: u32 = 5;

/// A group without its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// See the table.
    pub sequence: u64,
    /// What stood before it.
    pub before: LogState,
    /// The directory.
    pub records: Vec<Record>,
    /// Bytes of the entries.
    pub payload: u64,
}

/// What stands at a place where a group could start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preamble {
    /// Bytes of header and directory.
    pub directory_end: usize,
    /// Bytes of the entries.
    pub payload: u64,
}

/// Why bytes are not a group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// Something else is there, or nothing.
    #[error("no group starts here")]
    NoMagic,
    /// It would not fit where it stands.
    #[error("a group of {0} bytes does not fit")]
    Length(u64),
    /// Header or directory are not what was written, or were written in another data directory.
    #[error("checksum {found:08x} of a group's header where {expected:08x} was written")]
    Checksum {
        /// Computed.
        found: u32,
        /// Stored.
        expected: u32,
    },
    /// It was written elsewhere.
    #[error("a group of segment {0}")]
    Elsewhere(u64),
    /// The checksum is right, the content is not for this build.
    #[error("a record of unknown kind {0}")]
    Kind(u32),
    /// The lengths in the directory do not add up.
    #[error("its entries take {found} bytes, its header says {expected}")]
    Sum {
        /// By the directory.
        found: u64,
        /// By the header.
        expected: u64,
    },
    /// One of its entries is not what was written.
    #[error("entry {index}: {source}")]
    Entry {
        /// Which.
        index: u64,
        /// What is wrong with it.
        source: RecordError,
    },
}

/// Reads the lengths of a group out of at least [`HEADER_BYTES`], nothing of it verified, but that it has `room`.
pub fn preamble(bytes: &[u8], room: u64) -> Result<Preamble, GroupError> {
    if bytes[..8] != MAGIC {
        return Err(GroupError::NoMagic);
    }
    let (records, payload) = (u64::from(number32(bytes, 40)), number(bytes, 32));
    let directory_end = HEADER_BYTES as u64 + records * RECORD_BYTES as u64;
    let whole = directory_end.saturating_add(payload);
    if whole > room {
        return Err(GroupError::Length(whole));
    }
    Ok(Preamble { directory_end: directory_end as usize, payload })
}

impl Group {
    /// Reads header and directory, which must be all of `bytes`.
    pub fn parse(bytes: &[u8], tag: DirectoryTag, segment: u64) -> Result<Group, GroupError> {
        let (found, expected) = (tag.checksum([&bytes[COVERED..], &[]]), number32(bytes, 8));
        if found != expected {
            return Err(GroupError::Checksum { found, expected });
        }
        match number(bytes, 24) {
            found if found == segment => {}
            found => return Err(GroupError::Elsewhere(found)),
        }
        let records = bytes[HEADER_BYTES..].chunks_exact(RECORD_BYTES).map(parse_record);
        let group = Group {
            sequence: number(bytes, 16),
            before: parse_state(bytes),
            records: records.collect::<Result<_, _>>()?,
            payload: number(bytes, 32),
        };
        let found = group.entries().map(|(_, bytes)| u64::from(bytes)).sum();
        if found != group.payload {
            return Err(GroupError::Sum { found, expected: group.payload });
        }
        Ok(group)
    }

    /// The entries with their bytes.
    pub fn entries(&self) -> impl Iterator<Item = (LogIdRecord, u32)> {
        self.records.iter().filter_map(|record| match *record {
            Record::Entry { id, bytes } => Some((id, bytes)),
            _ => None,
        })
    }

    /// Bytes from its start to the first of its entries.
    pub fn directory_end(&self) -> usize {
        directory_end(self.records.len())
    }

    /// Bytes that it takes in a segment.
    pub fn padded_len(&self) -> u64 {
        padded(self.directory_end() as u64 + self.payload)
    }

    /// Whether these are the bytes of its entries.
    pub fn check_payload(&self, tag: DirectoryTag, mut payload: &[u8]) -> Result<(), GroupError> {
        for (id, bytes) in self.entries() {
            let (sealed, rest) = payload.split_at(bytes as usize);
            tag.check_entry(id.index, sealed).map_err(|source| GroupError::Entry { index: id.index, source })?;
            payload = rest;
        }
        Ok(())
    }
}

fn parse_state(bytes: &[u8]) -> LogState {
    let flags = number32(bytes, 44);
    let set = |bit: u32| flags & (1 << bit) != 0;
    let vote = VoteRecord { term: number(bytes, 48), node: number(bytes, 56), committed: set(3) };
    LogState {
        vote: set(0).then_some(vote),
        purged: set(1).then(|| parse_id(&bytes[64..])),
        last: set(2).then(|| parse_id(&bytes[88..])),
    }
}

fn parse_record(bytes: &[u8]) -> Result<Record, GroupError> {
    let id = parse_id(&bytes[8..]);
    match number32(bytes, 0) {
        KIND_ENTRY => Ok(Record::Entry { id, bytes: number32(bytes, 4) }),
        KIND_VOTE => Ok(Record::Vote(VoteRecord { term: id.term, node: id.node, committed: id.index != 0 })),
        KIND_TRUNCATE => Ok(Record::Truncate(Some(id))),
        KIND_TRUNCATE_ALL => Ok(Record::Truncate(None)),
        KIND_PURGE => Ok(Record::Purge(id)),
        kind => Err(GroupError::Kind(kind)),
    }
}

fn parse_id(bytes: &[u8]) -> LogIdRecord {
    LogIdRecord { term: number(bytes, 0), node: number(bytes, 8), index: number(bytes, 16) }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes are eight bytes"))
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes are four bytes"))
}

#[cfg(test)]
mod tests {
    use openraft::EntryPayload;

    use super::*;
    use crate::identity::Identity;
    use crate::raft::EncodedBatch;

    fn tag(node_id: u64) -> DirectoryTag {
        DirectoryTag::new(&Identity { cluster_id: None, node_id, incarnation: 9 })
    }

    fn id(term: u64, index: u64) -> LogIdRecord {
        LogIdRecord { term, node: 1, index }
    }

    fn parse(bytes: &[u8], tag: DirectoryTag, segment: u64) -> Result<Group, GroupError> {
        let Preamble { directory_end, payload } = preamble(bytes, bytes.len() as u64)?;
        let group = Group::parse(&bytes[..directory_end], tag, segment)?;
        group.check_payload(tag, &bytes[directory_end..directory_end + payload as usize])?;
        Ok(group)
    }

    #[test]
    fn a_group_comes_back_and_every_flipped_bit_of_it_is_noticed() {
        let vote = VoteRecord { term: 7, node: 2, committed: true };
        let before = LogState { vote: Some(vote), purged: Some(id(3, 4)), last: Some(id(6, 20)) };
        let entry =
            LogEntry { log_id: id(7, 11).into(), payload: EntryPayload::Normal(EncodedBatch(vec![5; 9].into())) };
        let mut builder = GroupBuilder::default();
        let small = [Record::Truncate(Some(id(5, 10))), Record::Vote(vote), Record::Purge(id(9, 99))];
        for _ in 0..2 {
            builder.start(&before, 5);
            small.iter().for_each(|record| builder.record(record));
            builder.record(&Record::Truncate(None));
            builder.entry(tag(1), &entry);
        }
        let written = builder.finish(tag(1), 70, 3).to_vec();
        assert_eq!(written.len(), BLOCK);
        let group = parse(&written, tag(1), 3).unwrap();
        assert_eq!((group.sequence, &group.before, &group.records[..3]), (70, &before, &small[..]));
        assert_eq!(group.entries().map(|(id, _)| id.index).collect::<Vec<_>>(), [11]);
        assert!(parse(&written, tag(2), 3).is_err());
        assert_eq!(parse(&written, tag(1), 4), Err(GroupError::Elsewhere(3)));
        let whole = group.directory_end() + group.payload as usize;
        for bit in 0..whole * 8 {
            let mut damaged = written.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&damaged, tag(1), 3).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn records_that_cannot_follow_are_refused() {
        let mut log_state = LogState { last: Some(id(2, 5)), ..LogState::default() };
        let entry = |term, index| Record::Entry { id: id(term, index), bytes: 0 };
        assert!(log_state.apply(&entry(2, 7)).is_err(), "a hole");
        assert!(log_state.apply(&entry(1, 6)).is_err(), "an older term");
        assert!(log_state.apply(&Record::Truncate(Some(id(2, 6)))).is_err(), "beyond the end");
        log_state.apply(&Record::Purge(id(3, 9))).unwrap();
        assert_eq!(log_state.next(), 10);
        log_state.apply(&Record::Purge(id(3, 9))).unwrap();
        log_state.apply(&entry(3, 10)).unwrap();
        log_state.apply(&Record::Truncate(None)).unwrap();
        log_state.apply(&entry(1, 40)).unwrap();
        assert_eq!((log_state.next(), log_state.purged), (41, Some(id(3, 9))));
    }
}
