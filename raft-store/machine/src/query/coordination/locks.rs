//! Reads of locks and elections.
//!
//! Owns the walks over holders, queues and changes of leaders.

use super::super::{Cursor, Moment, Snapshot};
use super::{CoordinationCounts, LeaderChange, LockRead, Page, Party, PartyShown, sessions};
use crate::codec::{self, CodecError};
use crate::keyspace::lock_queue::{self, HolderRow, LockHead, WaiterRow};
use crate::keyspace::session::{self, AttachedKind, PartyAt};
use crate::keyspace::{family, family_range};
use crate::machine::Fault;
use crate::machine::Row;
use crate::machine::View;
use crate::types::{Elected, LockName, LockSpace, Name, Revision, SessionId};

/// What a session is to a lock.
pub(super) fn party(moment: &Moment<impl Snapshot>, lock: &LockName, id: SessionId) -> Result<Party, Fault> {
    let row_key = session::attached_key(id, AttachedKind::Lock, &lock.to_bytes());
    let Some(at) = moment.snapshot.get_pinned(row_key)? else {
        return Ok(if sessions::lives(moment, id)? { Party::Nothing } else { Party::Expired });
    };
    match codec::decode(&at)? {
        PartyAt::Holding(token) => match holder(moment, lock, token)? {
            Some(row) => Ok(Party::Holding { token, row }),
            None => Err(Fault::Invariant(format!("session {id} should hold {lock:?} by {token}"))),
        },
        PartyAt::Waiting(place) => match moment.snapshot.get_pinned(lock_queue::waiter_key(lock, place))? {
            Some(row) => Ok(Party::Waiting { place, row: codec::decode(&row)? }),
            None => Err(Fault::Invariant(format!("session {id} should wait for {lock:?} at {place}"))),
        },
    }
}

/// Who holds a lock by this token.
pub(super) fn holder(
    moment: &Moment<impl Snapshot>,
    lock: &LockName,
    token: Revision,
) -> Result<Option<HolderRow>, Fault> {
    moment.decoded(lock_queue::holder_key(lock, token))
}

/// How many places are before this one.
pub(super) fn places_before(
    moment: &Moment<impl Snapshot>,
    lock: &LockName,
    place: Revision,
    max: usize,
) -> Result<usize, Fault> {
    let Some(head) = head(moment, lock)? else { return Ok(0) };
    let start = lock_queue::waiter_key(lock, head.first_place.min(place));
    let mut rows = moment.rows(&start, &lock_queue::waiter_key(lock, place));
    rows.seek_to_first();
    let mut count = 0;
    while rows.valid() && count < max {
        count += 1;
        rows.next();
    }
    rows.status()?;
    Ok(count)
}

/// What is known of a lock beside its parties.
fn head(moment: &Moment<impl Snapshot>, lock: &LockName) -> Result<Option<LockHead>, Fault> {
    moment.decoded(lock_queue::head_key(lock))
}

/// A lock with its parties. Where many come and go, what stands before those who are there now, or behind them, are traces alone: of both
/// it is known how many there are, and of those who wait also where the first may be.
pub(super) fn lock(moment: &Moment<impl Snapshot>, lock: &LockName, shown_max: usize) -> Result<LockRead, Fault> {
    let head = head(moment, lock)?;
    let (holding, waiting, first_place) = match &head {
        Some(head) => (head.holders as usize, head.waiters as usize, head.first_place),
        None => (0, 0, 0),
    };
    let token = |row_key: &[u8]| -> Result<Revision, CodecError> { Ok(lock_queue::decode_holder(row_key)?.1) };
    let (first, end) = lock_queue::holders_of(lock);
    let holders: Vec<(Revision, HolderRow)> = match holding {
        0 => Vec::new(),
        // The newest token is the greatest, so that of the only holder is the last.
        few if few <= shown_max => {
            let mut rows = moment.scan_back(&first, &end, few)?;
            rows.reverse();
            decoded(&rows, token)?
        }
        _ => decoded(&moment.scan(&first, &end, shown_max)?, token)?,
    };
    let (first, end) = (lock_queue::waiter_key(lock, first_place), lock_queue::waiters_of(lock).1);
    let waiters = match waiting.min(shown_max) {
        0 => Vec::new(),
        most => moment.scan(&first, &end, most)?,
    };
    let waiters: Vec<(Revision, WaiterRow)> = decoded(&waiters, |row_key| Ok(lock_queue::decode_waiter(row_key)?.1))?;
    let owner = |id| sessions::row(moment, id).map(|row| row.map(|row| row.owner).unwrap_or_default());
    let holders = holders.into_iter().map(|(number, row)| Ok(PartyShown { number, owner: owner(row.session)?, row }));
    let waiters =
        waiters.into_iter().map(|(number, row)| Ok(PartyShown { number, owner: owner(row.party.session)?, row }));
    Ok(LockRead {
        head,
        holders: holders.collect::<Result<_, Fault>>()?,
        waiters: waiters.collect::<Result<_, Fault>>()?,
    })
}

/// Rows with a number at the end of their key.
fn numbered<R: bincode::Decode<crate::codec::Written>>(
    moment: &Moment<impl Snapshot>,
    (start, end): (Vec<u8>, Vec<u8>),
    limit: usize,
    number: impl Fn(&[u8]) -> Result<Revision, CodecError>,
) -> Result<Vec<(Revision, R)>, Fault> {
    decoded(&moment.scan(&start, &end, limit)?, number)
}

fn decoded<R: bincode::Decode<crate::codec::Written>>(
    rows: &[Row],
    number: impl Fn(&[u8]) -> Result<Revision, CodecError>,
) -> Result<Vec<(Revision, R)>, Fault> {
    rows.iter().map(|(row_key, row)| Ok((number(row_key)?, codec::decode(row)?))).collect()
}

/// Locks of a space after this name.
pub(super) fn page(
    moment: &Moment<impl Snapshot>,
    space: LockSpace,
    after: Option<&Name>,
    limit: usize,
) -> Result<Page<(Name, LockHead)>, Fault> {
    let (start, end) = match after {
        None => lock_queue::heads_of(space),
        Some(name) => {
            let last = lock_queue::head_key(&LockName { space, name: name.clone() });
            ([&last[..], &[0]].concat(), lock_queue::heads_of(space).1)
        }
    };
    let mut rows = moment.scan(&start, &end, limit.saturating_add(1))?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let read =
        |(row_key, row): &(Vec<u8>, Vec<u8>)| Ok((lock_queue::decode_head_key(row_key)?.name, codec::decode(row)?));
    Ok(Page { items: rows.iter().map(read).collect::<Result<_, Fault>>()?, more })
}

/// The last change of who leads. Where it is compacted, the leader that there is stands for it.
pub(super) fn elected(moment: &Moment<impl Snapshot>, election: &Name) -> Result<Option<LeaderChange>, Fault> {
    let (start, end) = lock_queue::elected_of(election);
    if let Some((row_key, row)) = moment.scan_back(&start, &end, 1)?.first() {
        return Ok(Some((lock_queue::decode_elected(row_key)?.1, codec::decode(row)?)));
    }
    let lock = LockName { space: LockSpace::Election, name: election.clone() };
    let leads = self::lock(moment, &lock, 1)?.holders.pop();
    Ok(leads.map(|PartyShown { number: token, row: HolderRow { session, value, since, .. }, owner }| {
        (token, Some(Elected { token, session, owner, value, since }))
    }))
}

/// Changes of who leads after a revision.
pub(super) fn elected_after(
    moment: &Moment<impl Snapshot>,
    election: &Name,
    after: Revision,
    limit: usize,
) -> Result<Page<LeaderChange>, Fault> {
    let (_, end) = lock_queue::elected_of(election);
    let start = lock_queue::elected_key(election, after.saturating_add(1));
    let mut items =
        numbered(moment, (start, end), limit.saturating_add(1), |key| Ok(lock_queue::decode_elected(key)?.1))?;
    let more = items.len() > limit;
    items.truncate(limit);
    Ok(Page { items, more })
}

/// How much of it there is.
pub(super) fn counts(moment: &Moment<impl Snapshot>, locks_max: usize) -> Result<CoordinationCounts, Fault> {
    let mut counts = CoordinationCounts { sessions: moment.vars.sessions, ..CoordinationCounts::default() };
    let (start, end) = family_range(family::LOCK_HEAD);
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    for _ in 0..locks_max {
        let Some(row) = rows.value() else { break };
        let head: LockHead = codec::decode(row)?;
        counts.holders += u64::from(head.holders);
        counts.waiters += u64::from(head.waiters);
        rows.next();
    }
    rows.status()?;
    Ok(counts)
}
