//! Reading a log from its first group to its last, and telling a torn end from damage.
//!
//! Owns the judgement of what stands behind the last whole group. Never writes but in [`Walked::settle`], and that is
//! called only once nothing is left to refuse.
//!
//! A group is written only after the one before it was synced, and nothing is acknowledged before its group was. So
//! whatever a crash spoiled is the last group that was ever begun, and nobody was told of it: it may go. The proof that
//! it is the last one is that no whole group with a sequence number of its own or above stands anywhere behind it;
//! where one does, what cannot be read was acknowledged, and the log is refused.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::direct::Blocks;
use super::group::{self, BLOCK, Group, GroupError, HEADER_BYTES, Preamble};
use super::index::{Content, Index, Segments};
use super::open_error::LogOpenError;
use super::record::DirectoryTag;
use super::segment::{FIRST_GROUP, Segment};

/// Bytes looked at at once in search of what stands behind the end.
const SEARCH_BYTES: u64 = 1024 * 1024;

/// Compared with as a whole: byte by byte, a build without optimisation would take a second for what follows the end.
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// A stretch of a segment.
#[derive(Debug, Clone)]
struct Stretch {
    segment: Arc<Segment>,
    start: u64,
    end: u64,
}

/// A log that was read.
pub struct Walked {
    /// What it holds.
    pub content: Content,
    /// The segment that the next group goes to.
    pub segment: Arc<Segment>,
    /// Where in that segment.
    pub offset: u64,
    /// Number of the next group.
    pub sequence: u64,
    /// The segment after that one, if it is made already.
    pub spare: Option<Arc<Segment>>,
    /// Bytes of all segments but the spare.
    pub bytes: u64,
    /// Last whole group: it may never have been synced.
    newest: Option<Stretch>,
    /// What a crash left of the group after that one, and why it is not whole.
    torn: Option<(Stretch, String)>,
}

impl Walked {
    /// What was found behind the last whole group, if anything.
    pub fn torn(&self) -> Option<String> {
        let (Stretch { segment, start, end }, reason) = self.torn.as_ref()?;
        Some(format!("{}, bytes {start} to {end}: {reason}", segment.path().display()))
    }

    /// Makes true what was taken for true: that the last group is durable and that zeros follow.
    pub fn settle(&self) -> Result<(), LogOpenError> {
        if let Some(newest) = &self.newest {
            // Written again: a page whose write-back failed before the crash would count as clean, and a sync alone
            // would have nothing to do.
            on(&newest.segment, || {
                let bytes = newest.segment.read(newest.start, (newest.end - newest.start) as usize)?;
                newest.segment.write(newest.start, &Blocks::copy_of(&bytes))?;
                newest.segment.sync()
            })?;
        }
        let (Some((torn, _)), Some(what)) = (&self.torn, self.torn()) else { return Ok(()) };
        tracing::warn!(what, "dropped a group that was being written when the node stopped; nobody was told of it");
        on(&torn.segment, || {
            torn.segment.write(torn.start, &Blocks::zeros((torn.end - torn.start) as usize))?;
            torn.segment.sync()
        })
    }
}

/// Reads the segments, which are all there are and in order.
pub fn walk(mut segments: Vec<Arc<Segment>>, tag: DirectoryTag) -> Result<Walked, LogOpenError> {
    let oldest = Arc::clone(&segments[0]);
    let from_the_start = oldest.number() == 1;
    let sequence = from_the_start.then_some(1);
    let mut walker = Walker { tag, oldest, content: None, sequence, pending: None, newest: None };
    let (mut at, mut offset) = (0, FIRST_GROUP);
    let mut reason = loop {
        match walker.find(&segments[at], offset)? {
            Ok(group) => offset = walker.hold_back(&segments[at], offset, group)?,
            Err(reason) if !walker.goes_on(segments.get(at + 1))? => break reason.to_string(),
            Err(_) => (at, offset) = (at + 1, FIRST_GROUP),
        }
    };
    if let Some((start, error)) = walker.check_pending()? {
        (offset, reason) = (start, error.to_string());
        if at > 0 && start == FIRST_GROUP {
            // A segment without a whole group is not in use yet: the one before it must not go.
            (at, offset) = (at - 1, walker.newest.as_ref().map_or(FIRST_GROUP, |newest| newest.end));
        }
    }
    let Walker { content, sequence, newest, .. } = walker;
    // Those before it went only once this one held a group.
    let Some(sequence) = sequence.filter(|_| from_the_start || content.is_some()) else {
        return Err(damaged(&segments[0], format!("its first group cannot be read: {reason}")));
    };
    let torn = find_torn(&segments[at..], offset, sequence, tag)?.map(|stretch| (stretch, reason));
    check_unused(&segments[at + 1..])?;
    let bytes = segments[..=at].iter().map(|segment| segment.capacity()).sum();
    let spare = segments.drain(at + 1..).next();
    let segment = segments.pop().expect("the walk ended in one of the segments");
    let mut content = content.unwrap_or_default();
    content.segments.written(&segment, 0);
    Ok(Walked { content, segment, offset, sequence, spare, bytes, newest, torn })
}

struct Walker {
    tag: DirectoryTag,
    oldest: Arc<Segment>,
    /// `None` before the first group.
    content: Option<Content>,
    /// Number that the next group must have; `None` where any will do.
    sequence: Option<u64>,
    /// The newest group found so far. Taken in only once it is known to be followed by another, or to be whole.
    pending: Option<(Stretch, Group)>,
    /// The newest group taken in.
    newest: Option<Stretch>,
}

impl Walker {
    /// The group that continues the log at this place, its entries not verified.
    fn find(&self, segment: &Arc<Segment>, offset: u64) -> Result<Result<Group, GroupError>, LogOpenError> {
        let found = find_group(segment, offset, self.tag)?;
        match (&found, self.sequence) {
            (Ok(group), Some(expected)) if group.sequence != expected => {
                let reason = format!("at offset {offset} is group {} where {expected} should be", group.sequence);
                Err(damaged(segment, reason))
            }
            _ => Ok(found),
        }
    }

    /// Whether the log goes on in this segment.
    fn goes_on(&self, segment: Option<&Arc<Segment>>) -> Result<bool, LogOpenError> {
        // Where any group would do, none shows the loss of those before it.
        let (Some(segment), Some(_)) = (segment, self.sequence) else { return Ok(false) };
        Ok(self.find(segment, FIRST_GROUP)?.is_ok())
    }

    /// Keeps the group for later and takes in the one before it. Returns where the next one starts.
    fn hold_back(&mut self, segment: &Arc<Segment>, start: u64, group: Group) -> Result<u64, LogOpenError> {
        let end = start + group.padded_len();
        self.sequence = Some(group.sequence + 1);
        let held = self.pending.replace((Stretch { segment: Arc::clone(segment), start, end }, group));
        held.map_or(Ok(()), |(stretch, group)| self.take_in(stretch, &group))?;
        Ok(end)
    }

    /// Takes in the last group if it is whole; otherwise says where it starts and what is wrong.
    fn check_pending(&mut self) -> Result<Option<(u64, GroupError)>, LogOpenError> {
        let Some((stretch, group)) = self.pending.take() else { return Ok(None) };
        let from = stretch.start + group.directory_end() as u64;
        let payload = on(&stretch.segment, || stretch.segment.read(from, group.payload as usize))?;
        match group.check_payload(self.tag, &payload) {
            Ok(()) => self.take_in(stretch, &group).map(|()| None),
            Err(error) => {
                self.sequence = Some(group.sequence);
                Ok(Some((stretch.start, error)))
            }
        }
    }

    fn take_in(&mut self, stretch: Stretch, group: &Group) -> Result<(), LogOpenError> {
        let content = self.content.get_or_insert_with(|| {
            let mut segments = Segments::default();
            // The very first one stays empty where the very first group was too large for it.
            segments.written(&self.oldest, 0);
            Content { index: Index::new(group.before.next()), segments, log_state: group.before }
        });
        if content.log_state != group.before {
            let reason = format!("group {} follows {:?}, not {:?}", group.sequence, group.before, content.log_state);
            return Err(damaged(&stretch.segment, reason));
        }
        let taken = content.apply(&stretch.segment, stretch.start, &group.records);
        taken.map_err(|reason| damaged(&stretch.segment, format!("group {}: {reason}", group.sequence)))?;
        self.newest = Some(stretch);
        Ok(())
    }
}

/// Everything but zeros behind the end at `offset` of the first of the segments. Refuses where any of it shows that the
/// log once went on: a whole group numbered `sequence` or above.
fn find_torn(
    segments: &[Arc<Segment>],
    offset: u64,
    sequence: u64,
    tag: DirectoryTag,
) -> Result<Option<Stretch>, LogOpenError> {
    let mut torn: Option<Stretch> = None;
    for (segment, start) in segments.iter().zip([offset].into_iter().chain(std::iter::repeat(FIRST_GROUP))) {
        let Some(found) = search(segment, start, sequence, tag)? else { continue };
        if torn.replace(found).is_some() {
            let reason = format!("neither group {sequence} nor what stands behind it can be read");
            return Err(damaged(&segments[0], reason));
        }
    }
    Ok(torn)
}

/// Searches one segment.
fn search(
    segment: &Arc<Segment>,
    start: u64,
    sequence: u64,
    tag: DirectoryTag,
) -> Result<Option<Stretch>, LogOpenError> {
    let mut torn: Option<Stretch> = None;
    let mut at = start;
    while at < segment.capacity() {
        let bytes = on(segment, || segment.read(at, (segment.capacity() - at).min(SEARCH_BYTES) as usize))?;
        for (block, offset) in bytes.chunks(BLOCK).zip((at..).step_by(BLOCK)) {
            if *block == ZEROS[..block.len()] {
                continue;
            }
            if let Some(found) = whole_group(segment, offset, tag)?.filter(|found| *found >= sequence) {
                let reason = format!(
                    "group {sequence}, which should start at offset {start}, cannot be read, but group {found} at \
                     offset {offset} can"
                );
                return Err(damaged(segment, reason));
            }
            let end = offset + block.len() as u64;
            torn.get_or_insert_with(|| Stretch { segment: Arc::clone(segment), start: offset, end }).end = end;
        }
        at += bytes.len() as u64;
    }
    Ok(torn)
}

/// The number of the group that starts here, if one does and is whole.
fn whole_group(segment: &Arc<Segment>, offset: u64, tag: DirectoryTag) -> Result<Option<u64>, LogOpenError> {
    let Ok(group) = find_group(segment, offset, tag)? else { return Ok(None) };
    let from = offset + group.directory_end() as u64;
    let payload = on(segment, || segment.read(from, group.payload as usize))?;
    Ok(group.check_payload(tag, &payload).is_ok().then_some(group.sequence))
}

/// A segment is made only once the one before it is in use.
fn check_unused(unused: &[Arc<Segment>]) -> Result<(), LogOpenError> {
    match unused {
        [] | [_] => Ok(()),
        [empty, .., last] => Err(damaged(empty, format!("it holds nothing, but segment {} exists", last.number()))),
    }
}

/// Header and directory of the group at this place.
fn find_group(
    segment: &Arc<Segment>,
    offset: u64,
    tag: DirectoryTag,
) -> Result<Result<Group, GroupError>, LogOpenError> {
    let room = segment.capacity().saturating_sub(offset);
    if room < HEADER_BYTES as u64 {
        return Ok(Err(GroupError::NoMagic));
    }
    let mut bytes = on(segment, || segment.read(offset, room.min(BLOCK as u64) as usize))?;
    let Preamble { directory_end, .. } = match group::preamble(&bytes, room) {
        Ok(preamble) => preamble,
        Err(error) => return Ok(Err(error)),
    };
    if directory_end > bytes.len() {
        bytes = on(segment, || segment.read(offset, directory_end))?;
    }
    Ok(Group::parse(&bytes[..directory_end], tag, segment.number()))
}

fn damaged(segment: &Segment, reason: String) -> LogOpenError {
    LogOpenError::Damaged { path: PathBuf::from(segment.path()), reason }
}

fn on<T>(segment: &Segment, work: impl FnOnce() -> io::Result<T>) -> Result<T, LogOpenError> {
    work().map_err(|source| LogOpenError::Io { path: segment.path().to_owned(), source })
}
