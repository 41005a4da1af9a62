//! Sessions, locks, elections, barriers and latches.

use quorate_machine::limits;
use quorate_machine::types::{
    Acquire, BarrierOp, LatchOp, LockMode, LockName, LockOp, LockSpace, Question, SessionId, SessionOp,
};

use super::Generator;
use crate::names;

/// More sessions than this are not begun.
const SESSIONS: usize = 5;

impl Generator<'_> {
    /// About a session.
    pub(super) fn session(&mut self) -> SessionOp {
        let few = self.picture.sessions.len() < SESSIONS;
        match self.chance.weighted(&[if few { 50 } else { 2 }, 30, 18]) {
            0 => self.new_session(),
            1 => SessionOp::Renew((0..self.chance.between(1, 5)).map(|_| self.some_session()).collect()),
            _ => SessionOp::End(self.some_session()),
        }
    }

    /// A new session, mostly of one second.
    pub(super) fn new_session(&mut self) -> SessionOp {
        let short = *self.chance.pick(&[1_000, 1_000, 1_000, 1_000, limits::SESSION_TTL_MS_MIN, 5]);
        let ttl_ms = if self.chance.percent(self.theme.long_sessions()) { 60_000 } else { short };
        let (owner, labels) = ("o".into(), Vec::new());
        if self.chance.percent(70) {
            return SessionOp::Create { ttl_ms, owner, labels };
        }
        // Of few, so that some are taken; and now and then one that nobody may choose.
        let number = self.chance.between(1, 3);
        let is_plain = self.chance.percent(5);
        let id = if is_plain { SessionId(number) } else { SessionId::chosen(number as i64).expect("it is small") };
        SessionOp::CreateAs { id, ttl_ms, owner, labels }
    }

    /// About a lock or an election.
    pub(super) fn lock(&mut self) -> LockOp {
        let space = if self.chance.percent(60) { LockSpace::Lock } else { LockSpace::Election };
        let lock = names::lock(space, self.chance.weighted(&[50, 25, 25]) as u64);
        match self.chance.weighted(&[54, 15, 11, 9, 5, 6]) {
            0 => LockOp::Acquire(self.acquire(lock)),
            1 => LockOp::Release { token: self.token(&lock), lock },
            2 => {
                let session = self.party(&lock);
                let asked = self.chance.percent(20).then(|| self.asked(&lock, session));
                LockOp::Leave { lock, session, asked, release: self.chance.percent(50) }
            }
            3 => LockOp::Listen { session: self.party(&lock), lock },
            4 => {
                let session = self.party(&lock);
                let question = match self.chance.percent(30) {
                    true => Question::Granted(self.token(&lock)),
                    false => Question::Numbered(self.asked(&lock, session)),
                };
                LockOp::HangUp { lock, session, question }
            }
            _ => LockOp::Proclaim { token: self.token(&lock), lock, value: names::json("2") },
        }
    }

    fn acquire(&mut self, lock: LockName) -> Acquire {
        let is_election = lock.space == LockSpace::Election;
        let session = self.some_session();
        let mode =
            if self.chance.percent(if is_election { 2 } else { 25 }) { LockMode::Shared } else { LockMode::Exclusive };
        // Each lock has its own usual number of slots, so that queues come about.
        let usual = if lock.name.as_str() == "z" && !is_election { Some(2) } else { None };
        let slots = match self.chance.weighted(&[80, 14, 6]) {
            0 => usual,
            1 => None,
            _ => Some(self.chance.between(0, 3) as u32),
        };
        let mode =
            if slots.is_some_and(|slots| slots > 1) && self.chance.percent(95) { LockMode::Exclusive } else { mode };
        let wait_ms = *self.chance.pick(&[0, 300, 600, 5_000, 60_000]);
        let delay_ms = *self.chance.pick(self.theme.lock_delays());
        let value = self
            .chance
            .percent(if is_election { 60 } else { 2 })
            .then(|| names::json(if self.chance.percent(60) { "1" } else { "2" }));
        let max_waiters = match self.chance.weighted(&[60, 20, 18, 2]) {
            0 => None,
            1 => Some(1),
            2 => Some(2),
            _ => Some(0),
        };
        Acquire { lock, session, mode, slots, wait_ms, delay_ms, value, max_waiters }
    }

    /// A token that holds the lock, or not.
    fn token(&mut self, lock: &LockName) -> u64 {
        let holders: Vec<_> =
            self.picture.holders.keys().filter(|(of, _)| of == lock).map(|(_, token)| *token).collect();
        let other = self.chance.below(self.picture.vars.revision + 1);
        match self.chance.percent(75) {
            true => self.chance.maybe(&holders).copied().unwrap_or(other),
            false => other,
        }
    }

    /// A session that is at the lock, or some other.
    fn party(&mut self, lock: &LockName) -> SessionId {
        let holders = self.picture.holders.iter().filter(|((of, _), _)| of == lock).map(|(_, row)| row.session);
        let waiters = self.picture.waiters.iter().filter(|((of, _), _)| of == lock).map(|(_, row)| row.party.session);
        let parties: Vec<_> = holders.chain(waiters).collect();
        let other = self.some_session();
        match self.chance.percent(75) {
            true => self.chance.maybe(&parties).copied().unwrap_or(other),
            false => other,
        }
    }

    /// The number of the question that a session asked last, mostly.
    fn asked(&mut self, lock: &LockName, session: SessionId) -> u64 {
        let waiter = self.picture.waiters.iter().find(|((of, _), row)| of == lock && row.party.session == session);
        let holder = self.picture.holders.iter().find(|((of, _), row)| of == lock && row.session == session);
        let asked = waiter.map(|(_, row)| row.asked).or(holder.and_then(|(_, row)| row.unheard));
        asked.unwrap_or(1) + self.chance.below(2)
    }

    /// About a barrier.
    pub(super) fn barrier(&mut self) -> BarrierOp {
        let name = names::name(self.chance.text(&["b1", "b2"]));
        let parties: Vec<_> = self.picture.parties.iter().filter(|(of, _)| *of == name).map(|(_, id)| *id).collect();
        match self.chance.percent(65) {
            true => {
                let of = if name.as_str() == "b1" { 2 } else { 3 };
                let session = match self.chance.percent(20) {
                    true => self.chance.maybe(&parties).copied().unwrap_or(SessionId(1)),
                    false => self.some_session(),
                };
                let parties = if self.chance.percent(90) { of } else { self.chance.below(4) as u32 };
                BarrierOp::Enter { name, session, parties }
            }
            false => {
                let other = self.some_session();
                let session = if self.chance.percent(75) { self.chance.maybe(&parties).copied() } else { None };
                BarrierOp::Leave { name, session: session.unwrap_or(other) }
            }
        }
    }

    /// About a latch.
    pub(super) fn latch(&mut self) -> LatchOp {
        let name = names::name(self.chance.text(&["l1", "l2"]));
        match self.chance.weighted(&[35, 45, 20]) {
            0 => LatchOp::Create { name, count: *self.chance.pick(&[2, 2, 2, 3, 0]) },
            1 => LatchOp::CountDown { name, by: self.chance.below(3) },
            _ => LatchOp::Remove { name },
        }
    }
}
