//! What clients do, whatever the protocol.
//!
//! Owns what a client asks next and which answer is the right one. Never knows how that is written, nor over what it is sent.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::Failure;
use crate::args::{Args, Op};

/// Keys of a transaction.
pub const TXN: usize = 8;
/// Keys of a range.
pub const RANGE: usize = 1000;
/// Writes of a bulk.
pub const BULK: usize = 1000;
/// Documents that a find is for.
pub const FOUND: usize = 100;

/// The lock that all want. To etcd it is the prefix of keys of its own, so it must not be that of the keys which are written.
pub const LOCK_NAME: &str = "bench-lock";

const SESSION_SECONDS: u64 = 60;
/// Longer than any measurement: a client keeps its session and does not renew it.
const LOCK_SESSION_SECONDS: u64 = 6 * 3600;

/// What is asked; keys and documents by their numbers.
#[derive(Debug)]
pub enum Ask {
    Put(usize),
    Get(usize),
    /// Replaces this client's own key where its token is that one; where it is 0, the key does not exist.
    Swap(usize, u64),
    /// Overwrites them all or none.
    Txn(Vec<usize>),
    /// Reads as many as [`RANGE`] says, from this one on.
    Range(usize),
    /// Overwrites each.
    Bulk(Vec<usize>),
    Documents(Range<usize>),
    /// Finds as many documents as [`FOUND`] says, by their place in the index, from this one on.
    Find(usize),
    /// Opens a session of so many seconds.
    Open(u64),
    End(u64),
    /// Waits for the lock with this session.
    Lock(u64),
    /// Gives up the lock by what the answer said.
    Unlock(Bytes),
}

/// What was answered, as far as anybody looks at it.
#[derive(Debug)]
pub enum Reply {
    Done,
    /// Whether a swap was done, and the token that the entry has now.
    Swapped(bool, u64),
    /// How many entries were read, and how long their values are together.
    Entries(usize, usize),
    /// The places in the index of the documents that were found.
    Documents(Vec<usize>),
    Session(u64),
    Held(Bytes),
    /// The lock is still another's; the place in its queue stays.
    Waiting,
}

/// What an answer means for what a client does.
pub enum Step {
    /// Something else belongs to it.
    Unfinished,
    /// It is done, and began then.
    Done(Instant),
    /// It was refused, and began then.
    Mismatch(Instant),
}

/// The lock, as the clients see it that want it.
#[derive(Default)]
pub enum Lock {
    #[default]
    Untouched,
    Held,
    /// A release was sent then.
    Released(Instant),
}

pub type SharedLock = Arc<Mutex<Lock>>;

/// What a client does, over and over.
pub enum Work {
    /// Asks once, and nothing hangs on what was answered before.
    Once(Op),
    /// Replaces its own key on the token that it knows; learns the true one from a refusal.
    Cas {
        client: usize,
        token: u64,
    },
    /// Opens a session, and ends it where it has one.
    Session(Option<u64>),
    Lock(Place, SharedLock),
    /// Writes its part of all keys once.
    Fill {
        next: usize,
        step: usize,
    },
    /// The same, so many at a time as a bulk has.
    FillByBulks {
        next: usize,
        step: usize,
    },
    /// Writes its part of all documents once, so many at a time as a bulk has.
    FillDocuments {
        next: usize,
        step: usize,
    },
}

/// Where a client is that wants the lock.
pub enum Place {
    /// Without a session.
    Away,
    /// With a session, and without the lock.
    Outside(u64),
    /// With the lock, and with what it is given up by.
    Inside(u64, Bytes),
    /// Its session ends, for good.
    Left,
}

/// One client.
pub struct Client {
    work: Work,
    random: StdRng,
    keys: usize,
    value_size: usize,
    /// When what it does began.
    begun: Instant,
}

/// The key of this number.
pub fn key(number: usize) -> String {
    format!("bench/{number:08}")
}

/// The key that only this client writes.
pub fn own_key(client: usize) -> String {
    format!("bench/own/{client}")
}

impl Client {
    /// The client of this number.
    pub fn new(number: usize, work: Work, args: &Args) -> Self {
        let random = StdRng::seed_from_u64(number as u64);
        Self { work, random, keys: args.keys, value_size: args.value_size, begun: Instant::now() }
    }

    /// What it asks now; nothing where it is done. Where it may begin nothing new, it ends what it has begun.
    pub fn next(&mut self, now: Instant, may_begin: bool) -> Option<Ask> {
        match &mut self.work {
            Work::Session(session @ Some(_)) => return session.take().map(Ask::End),
            Work::Lock(place, lock) => return place.next(now, may_begin, lock),
            _ if !may_begin => return None,
            _ => self.begun = now,
        }
        match &mut self.work {
            Work::Once(op) => {
                let op = *op;
                Some(self.draw(op))
            }
            Work::Cas { client, token } => Some(Ask::Swap(*client, *token)),
            Work::Session(_) => Some(Ask::Open(SESSION_SECONDS)),
            Work::Fill { next, step } => advance(next, *step, self.keys).map(Ask::Put),
            Work::FillByBulks { next, step } => Some(Ask::Bulk(advance_by_bulk(next, *step, self.keys)?.collect())),
            Work::FillDocuments { next, step } => Some(Ask::Documents(advance_by_bulk(next, *step, self.keys)?)),
            Work::Lock(..) => None,
        }
    }

    fn draw(&mut self, op: Op) -> Ask {
        match op {
            Op::Get => Ask::Get(self.below(self.keys)),
            Op::Txn8 => Ask::Txn(self.different(TXN)),
            Op::Range1000 => Ask::Range(self.below(self.keys - RANGE + 1)),
            Op::Bulk1000 => Ask::Bulk((0..BULK).map(|_| self.below(self.keys)).collect()),
            Op::Find => Ask::Find(self.below(self.keys - FOUND + 1)),
            _ => Ask::Put(self.below(self.keys)),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    /// A transaction may write a key only once.
    fn different(&mut self, count: usize) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let number = self.below(self.keys);
            if !drawn.contains(&number) {
                drawn.push(number);
            }
        }
        drawn
    }

    /// Looks at the answer.
    pub fn take(&mut self, ask: &Ask, reply: Reply) -> Result<Step, Failure> {
        match (&mut self.work, ask, reply) {
            (Work::Lock(place, lock), _, reply) => return place.take(reply, lock),
            (Work::Session(session), Ask::Open(_), Reply::Session(opened)) => {
                *session = Some(opened);
                return Ok(Step::Unfinished);
            }
            (Work::Cas { token, .. }, Ask::Swap(..), Reply::Swapped(is_done, current)) => {
                *token = current;
                return Ok(if is_done { Step::Done(self.begun) } else { Step::Mismatch(self.begun) });
            }
            (_, Ask::Get(_), Reply::Entries(1, bytes)) if bytes == self.value_size => {}
            (_, Ask::Range(_), Reply::Entries(RANGE, bytes)) if bytes == RANGE * self.value_size => {}
            (_, Ask::Find(first), Reply::Documents(found)) if found.iter().copied().eq(*first..*first + FOUND) => {}
            (_, Ask::Put(_) | Ask::Txn(_) | Ask::Bulk(_) | Ask::Documents(_) | Ask::End(_), Reply::Done) => {}
            (_, ask, reply) => return Err(format!("{ask:?} was answered with {reply:?}").into()),
        }
        Ok(Step::Done(self.begun))
    }
}

/// The number that is next, while there is one.
fn advance(next: &mut usize, step: usize, end: usize) -> Option<usize> {
    let number = std::mem::replace(next, *next + step);
    (number < end).then_some(number)
}

/// The numbers of the bulk that is next, while there is one.
fn advance_by_bulk(next: &mut usize, step: usize, end: usize) -> Option<Range<usize>> {
    let first = advance(next, step * BULK, end)?;
    Some(first..end.min(first + BULK))
}

impl Place {
    fn next(&mut self, now: Instant, may_begin: bool, lock: &SharedLock) -> Option<Ask> {
        match self {
            Self::Away if may_begin => Some(Ask::Open(LOCK_SESSION_SECONDS)),
            Self::Outside(session) if may_begin => Some(Ask::Lock(*session)),
            Self::Outside(session) => {
                let session = *session;
                *self = Self::Left;
                Some(Ask::End(session))
            }
            Self::Inside(_, held) => {
                set(lock, Lock::Released(now));
                Some(Ask::Unlock(held.clone()))
            }
            Self::Away | Self::Left => None,
        }
    }

    /// To get the lock took the time since the holder before sent its release.
    fn take(&mut self, reply: Reply, lock: &SharedLock) -> Result<Step, Failure> {
        let mut step = Step::Unfinished;
        *self = match (&*self, reply) {
            (Self::Away, Reply::Session(session)) => Self::Outside(session),
            (Self::Outside(session), Reply::Waiting) => Self::Outside(*session),
            (Self::Outside(session), Reply::Held(held)) => {
                match set(lock, Lock::Held) {
                    Lock::Untouched => {}
                    Lock::Released(sent) => step = Step::Done(sent),
                    Lock::Held => return Err("two clients got the lock at once".into()),
                }
                Self::Inside(*session, held)
            }
            (Self::Inside(session, _), Reply::Done) => Self::Outside(*session),
            (Self::Left, Reply::Done) => Self::Left,
            (_, reply) => return Err(format!("a client that wants the lock was answered with {reply:?}").into()),
        };
        Ok(step)
    }
}

/// Gives what the lock was before.
fn set(lock: &SharedLock, now: Lock) -> Lock {
    std::mem::replace(&mut lock.lock().unwrap_or_else(PoisonError::into_inner), now)
}
