//! Reads of sessions.
//!
//! Owns the walk over what hangs on one.

use super::super::{Moment, Snapshot};
use super::{Page, SessionHeld};
use crate::codec;
use crate::keyspace::session::{self, AttachedKind, SessionRow};
use crate::keyspace::{family, family_range, gates, lock_queue, task};
use crate::limits::SESSION_ATTACHED_MAX;
use crate::machine::Fault;
use crate::machine::View;
use crate::types::{Key, Name, SessionId};

/// The row of a session that lives.
pub(super) fn row(moment: &Moment<impl Snapshot>, id: SessionId) -> Result<Option<SessionRow>, Fault> {
    moment.decoded(session::row_key(id))
}

/// Whether there is such a session.
pub(super) fn lives(moment: &Moment<impl Snapshot>, id: SessionId) -> Result<bool, Fault> {
    Ok(moment.snapshot.get_pinned(session::row_key(id))?.is_some())
}

/// Whether a session is in a barrier.
pub(super) fn is_in(moment: &Moment<impl Snapshot>, id: SessionId, barrier: &Name) -> Result<bool, Fault> {
    let row_key = session::attached_key(id, AttachedKind::Barrier, barrier.as_str().as_bytes());
    Ok(moment.snapshot.get_pinned(row_key)?.is_some())
}

/// A session with what hangs on it.
pub(super) fn held(moment: &Moment<impl Snapshot>, id: SessionId, max: usize) -> Result<Option<SessionHeld>, Fault> {
    let Some(row) = row(moment, id)? else { return Ok(None) };
    let (start, end) = session::attached_to(id);
    let mut held = SessionHeld { row, locks: Vec::new(), barriers: Vec::new(), keys: Vec::new(), tasks: Vec::new() };
    // Not even a look: it would be among the traces of all that hung on it before.
    if max == 0 {
        return Ok(Some(held));
    }
    for (row_key, value) in moment.scan(&start, &end, SESSION_ATTACHED_MAX as usize)? {
        let (_, kind, subject) = session::decode_attached(&row_key)?;
        match kind {
            AttachedKind::Entry if held.keys.len() < max => {
                held.keys.push(
                    Key::new(subject).map_err(|error| Fault::Invariant(format!("a stored key is none: {error}")))?,
                );
            }
            AttachedKind::Lock => held.locks.push((lock_queue::lock_of(subject)?, codec::decode(&value)?)),
            AttachedKind::Barrier if held.barriers.len() < max => held.barriers.push(gates::name_of(subject)?),
            AttachedKind::Task if held.tasks.len() < max => held.tasks.push(task::of_subject(subject)?),
            AttachedKind::Entry | AttachedKind::Barrier | AttachedKind::Task => {}
        }
    }
    // The two spaces lie one after the other.
    let first_election = held.locks.partition_point(|(lock, _)| lock.space == crate::types::LockSpace::Lock);
    let mut elections = held.locks.split_off(first_election);
    elections.truncate(max);
    held.locks.truncate(max);
    held.locks.append(&mut elections);
    Ok(Some(held))
}

/// Sessions after this one.
pub(super) fn page(
    moment: &Moment<impl Snapshot>,
    after: Option<SessionId>,
    limit: usize,
) -> Result<Page<(SessionId, SessionRow)>, Fault> {
    let (first, end) = family_range(family::SESSION);
    let start = after.map_or(first, |id| [&session::row_key(id)[..], &[0]].concat());
    let mut rows = moment.scan(&start, &end, limit.saturating_add(1))?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let read = |(row_key, row): &(Vec<u8>, Vec<u8>)| Ok((session::decode_key(row_key)?, codec::decode(row)?));
    Ok(Page { items: rows.iter().map(read).collect::<Result<_, Fault>>()?, more })
}
