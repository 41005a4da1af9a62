//! Sessions, locks, barriers and latches, as the model has them.

use quorate_machine::access::Permission;
use quorate_machine::keyspace::lock_queue::{HolderRow, LockHead, WaiterRow};
use quorate_machine::keyspace::session::SessionRow;
use quorate_machine::limits;
use quorate_machine::types::{
    Acquire, Action, BarrierOp, BarrierRow, LatchOp, LatchRow, LockMode, LockName, LockOp, LockReply, LockSpace,
    Outcome, Question, Refusal, SessionId, SessionOp, SessionReply,
};

use super::Model;
use crate::picture::Picture;

/// Whether something was done, or why not.
type Applied = Result<(), Refusal>;

/// Compares what is answered about sessions and locks with what there is afterwards.
pub fn judge(before: &Picture, action: &Action, outcome: &Outcome, after: &Picture) {
    match (action, outcome) {
        (Action::Session(SessionOp::Renew(ids)), Outcome::Session(SessionReply::Renewed(renewed))) => {
            let live = |id: &SessionId| after.sessions.get(id).map(|row| (row.ttl_ms, row.expires_at));
            let lives: Vec<_> = ids.iter().map(live).collect();
            assert_eq!(*renewed, lives, "what was renewed on the left, what lives on the right");
        }
        (Action::Session(_), Outcome::Session(SessionReply::Created { id, expires_at })) => {
            let row = after.sessions.get(id).filter(|_| !before.sessions.contains_key(id));
            assert_eq!(row.map(|row| row.expires_at), Some(*expires_at), "session {id}, which was begun");
        }
        (Action::Session(SessionOp::End(id)), Outcome::Session(SessionReply::Ended(hung))) => {
            assert_eq!(before.sessions[id].attached, *hung, "what hung on session {id}");
        }
        (Action::Lock(op), Outcome::Lock(reply)) => judge_lock(op, reply, after),
        _ => {}
    }
}

fn judge_lock(op: &LockOp, reply: &LockReply, after: &Picture) {
    let (lock, session) = match op {
        LockOp::Acquire(Acquire { lock, session, .. }) => (lock, session),
        LockOp::Leave { lock, session, .. } | LockOp::Listen { lock, session } => (lock, session),
        LockOp::HangUp { lock, session, .. } => (lock, session),
        LockOp::Release { .. } | LockOp::Proclaim { .. } => return,
    };
    let holds = after.holders.iter().find(|((of, _), row)| of == lock && row.session == *session);
    let waits = after.waiters.iter().find(|((of, _), row)| of == lock && row.party.session == *session);
    let is_so = match reply {
        LockReply::Held { token } => holds.is_some_and(|((_, at), _)| at == token),
        LockReply::Waiting { place, asked } => waits.is_some_and(|((_, at), row)| (at, row.asked) == (place, *asked)),
        LockReply::HungUp(number) => {
            let asked = waits.map(|(_, row)| row.asked).or(holds.and_then(|(_, row)| row.unheard));
            asked == Some(*number)
        }
        // Of another question than that which hung up nothing is given up.
        LockReply::Gone(_) => matches!(op, LockOp::HangUp { .. }) || (holds.is_none() && waits.is_none()),
        LockReply::Proclaimed => false,
    };
    assert!(is_so, "{op:?} is answered {reply:?}: {holds:?} {waits:?}");
}

impl Model {
    pub(super) fn session(&mut self, op: &SessionOp) -> Applied {
        let clock = self.clock();
        match op {
            SessionOp::Create { ttl_ms, owner, labels } => self.create(None, *ttl_ms, owner, labels)?,
            SessionOp::CreateAs { id, ttl_ms, owner, labels } => self.create(Some(*id), *ttl_ms, owner, labels)?,
            SessionOp::Renew(ids) => {
                for id in ids {
                    if let Some(row) = self.now.sessions.get_mut(id) {
                        row.expires_at = row.expires_at.max(clock + row.ttl_ms);
                    }
                }
            }
            SessionOp::End(id) => {
                if self.now.sessions.remove(id).is_none() {
                    return Err(Refusal::SessionExpired);
                }
                self.end(*id);
            }
        }
        Ok(())
    }

    fn create(&mut self, chosen: Option<SessionId>, ttl_ms: u64, owner: &str, labels: &[(String, String)]) -> Applied {
        let is_choice = chosen.is_none_or(SessionId::is_chosen);
        if !(limits::SESSION_TTL_MS_MIN..=limits::SESSION_TTL_MS_MAX).contains(&ttl_ms) || !is_choice {
            return Err(Refusal::Unsupported);
        }
        if chosen.is_some_and(|id| self.now.sessions.contains_key(&id)) {
            return Err(Refusal::SessionExists);
        }
        let id = SessionId(self.take_revision());
        let (expires_at, armed_at) = (self.clock() + ttl_ms, self.clock() + ttl_ms);
        let (owner, labels, created, principal) = (owner.to_owned(), labels.to_vec(), 0, self.principal.clone());
        let (attached, bytes) = (0, 0);
        let row = SessionRow { ttl_ms, expires_at, armed_at, owner, labels, created, attached, bytes, principal };
        self.now.sessions.insert(chosen.unwrap_or(id), row);
        Ok(())
    }

    /// All that hangs on a session goes at one revision; then locks are given to others.
    fn end(&mut self, id: SessionId) {
        self.take_revision();
        self.now.entries.retain(|_, entry| entry.meta.session != Some(id));
        let holds = self.now.holders.iter().filter(|(_, row)| row.session == id).map(|((lock, _), _)| lock.clone());
        let waits =
            self.now.waiters.iter().filter(|(_, row)| row.party.session == id).map(|((lock, _), _)| lock.clone());
        let mut locks: Vec<LockName> = holds.chain(waits).collect();
        locks.sort();
        self.now.holders.retain(|_, row| row.session != id);
        self.now.waiters.retain(|_, row| row.party.session != id);
        locks.iter().for_each(|lock| self.count(lock));
        let left: Vec<_> = self.now.parties.iter().filter(|(_, of)| *of == id).map(|(name, _)| name.clone()).collect();
        left.into_iter().for_each(|name| self.leave_barrier(&name, id));
        locks.iter().for_each(|lock| self.grant(lock));
    }

    /// Counts the parties of a lock anew.
    fn count(&mut self, lock: &LockName) {
        let holders = self.now.holders.keys().filter(|(of, _)| of == lock).count() as u32;
        let waiters = self.now.waiters.keys().filter(|(of, _)| of == lock).count() as u32;
        if let Some(head) = self.now.heads.get_mut(lock) {
            (head.holders, head.waiters) = (holders, waiters);
            if head.holders == 0 && head.waiters == 0 && head.not_before.is_none() {
                self.now.heads.remove(lock);
            }
        }
    }

    /// Whether a lock has room for one more.
    fn has_room(&self, lock: &LockName, head: &LockHead, mode: LockMode) -> bool {
        let holders: Vec<_> =
            self.now.holders.iter().filter(|((of, _), _)| of == lock).map(|(_, row)| row.mode).collect();
        let is_shared = mode == LockMode::Shared && holders.iter().all(|mode| *mode == LockMode::Shared);
        let has_slot = mode == LockMode::Exclusive
            && holders.iter().all(|mode| *mode == LockMode::Exclusive)
            && (holders.len() as u32) < head.slots;
        head.not_before.is_none() && (holders.is_empty() || is_shared || has_slot)
    }

    fn hold(&mut self, lock: &LockName, party: HolderRow) {
        let token = self.take_revision();
        self.now.holders.insert((lock.clone(), token), party);
        self.count(lock);
    }

    /// Gives a lock to those who wait, first come first served.
    fn grant(&mut self, lock: &LockName) {
        loop {
            let first = self.now.waiters.iter().find(|((of, _), _)| of == lock);
            let Some((at, row)) = first.map(|(at, row)| (at.clone(), row.clone())) else { return };
            let head = self.now.heads[lock].clone();
            if !self.has_room(lock, &head, row.party.mode) {
                return;
            }
            self.now.waiters.remove(&at);
            let (since, unheard) = (self.now.vars.wall, Some(row.asked));
            self.hold(lock, HolderRow { since, unheard, ..row.party });
        }
    }

    pub(super) fn lock(&mut self, op: &LockOp) -> Applied {
        match op {
            LockOp::Acquire(request) => self.acquire(request),
            LockOp::Release { lock, token } => {
                self.check_theirs(lock, *token)?;
                self.now.holders.remove(&(lock.clone(), *token));
                self.take_revision();
                self.count(lock);
                self.grant(lock);
                Ok(())
            }
            LockOp::Leave { lock, session, asked, release } => {
                self.leave(lock, *session, *asked, *release);
                Ok(())
            }
            LockOp::Listen { lock, session } => self.listen(lock, *session),
            LockOp::HangUp { lock, session, question } => {
                self.hang_up(lock, *session, *question);
                Ok(())
            }
            LockOp::Proclaim { lock, token, value } => {
                if lock.space == LockSpace::Lock {
                    return Err(Refusal::Unsupported);
                }
                self.check_theirs(lock, *token)?;
                let row = self.now.holders.get_mut(&(lock.clone(), *token)).ok_or(Refusal::NotHolder)?;
                (row.value, row.unheard) = (Some(value.clone()), None);
                self.take_revision();
                Ok(())
            }
        }
    }

    /// The number of a question in the next entry, which has one command.
    fn question(&self) -> u64 {
        (self.now.index + 1) * limits::BATCH_COMMANDS_MAX as u64
    }

    fn listen(&mut self, lock: &LockName, session: SessionId) -> Applied {
        if !self.now.sessions.contains_key(&session) {
            return Err(Refusal::SessionExpired);
        }
        let question = self.question();
        let holder = self.now.holders.iter_mut().find(|((of, _), row)| of == lock && row.session == session);
        let waiter = self.now.waiters.iter_mut().find(|((of, _), row)| of == lock && row.party.session == session);
        if let Some((_, row)) = holder {
            row.unheard = None;
        } else if let Some((_, row)) = waiter {
            (row.asked, row.hung_up) = (question, false);
        }
        Ok(())
    }

    fn hang_up(&mut self, lock: &LockName, session: SessionId, question: Question) {
        let number = self.question();
        let holder = self.now.holders.iter_mut().find(|((of, _), row)| of == lock && row.session == session);
        let waiter = self.now.waiters.iter_mut().find(|((of, _), row)| of == lock && row.party.session == session);
        if let Some(((_, token), row)) = holder {
            let is_told = row.unheard.is_none();
            if !is_told
                && (row.unheard.map(Question::Numbered) == Some(question) || question == Question::Granted(*token))
            {
                row.unheard = Some(number);
            }
        } else if let Some((_, row)) = waiter
            && question == Question::Numbered(row.asked)
        {
            (row.asked, row.hung_up) = (number, true);
        }
    }

    /// Whether a token holds a lock, and the caller may act for who holds it.
    fn check_theirs(&self, lock: &LockName, token: u64) -> Applied {
        let holder = self.now.holders.get(&(lock.clone(), token)).ok_or(Refusal::NotHolder)?;
        if self.principal.is_empty() {
            return Ok(());
        }
        let is_theirs = self.now.sessions[&holder.session].principal == self.principal;
        let user = self.now.users.iter().find(|(name, _)| name.as_str() == self.principal);
        let roles = user.map_or(&[][..], |(_, row)| &row.roles);
        let mut grants = roles.iter().flat_map(|role| &self.now.roles[role].grants);
        let is_admin = grants.any(|grant| {
            grant.permission == Permission::Admin && lock.name.as_str().as_bytes().starts_with(&grant.prefix)
        });
        if is_theirs || is_admin { Ok(()) } else { Err(Refusal::NotYours) }
    }

    fn leave(&mut self, lock: &LockName, session: SessionId, asked: Option<u64>, release: bool) {
        let holder = self.now.holders.iter_mut().find(|((of, _), row)| of == lock && row.session == session);
        if let Some((_, row)) = holder.filter(|_| !release) {
            // It is told that it holds.
            row.unheard = None;
            return;
        }
        let holder = self.now.holders.iter().find(|((of, _), row)| of == lock && row.session == session);
        let holder = holder.filter(|(_, row)| asked.is_none() || asked == row.unheard).map(|(at, _)| at.clone());
        let waiter = self.now.waiters.iter().find(|((of, _), row)| of == lock && row.party.session == session);
        let waiter = waiter.filter(|(_, row)| asked.is_none_or(|asked| asked == row.asked)).map(|(at, _)| at.clone());
        let gone = match (holder, waiter) {
            (Some(at), _) => self.now.holders.remove(&at).is_some(),
            (_, Some(at)) => self.now.waiters.remove(&at).is_some(),
            _ => false,
        };
        if gone {
            self.take_revision();
            self.count(lock);
            self.grant(lock);
        }
    }

    fn acquire(&mut self, request: &Acquire) -> Applied {
        let Acquire { lock, session, mode, slots, wait_ms, delay_ms, value, max_waiters } = request;
        let (is_election, is_shared) = (lock.space == LockSpace::Election, *mode == LockMode::Shared);
        let given = slots.unwrap_or(1);
        let is_odd = given == 0 || (given > 1 && (is_election || is_shared)) || (is_election && is_shared);
        let is_odd = is_odd || *max_waiters == Some(0);
        if is_odd || (value.is_some() && !is_election) {
            return Err(Refusal::Unsupported);
        }
        if !self.now.sessions.contains_key(session) {
            return Err(Refusal::SessionExpired);
        }
        let known = self.now.heads.get(lock).cloned();
        let in_use = known.as_ref().filter(|head| head.holders + head.waiters > 0).map(|head| head.slots);
        let slots = slots.or(in_use).unwrap_or(1);
        if in_use.is_some_and(|others| others != slots || (is_shared && slots > 1)) {
            return Err(Refusal::OtherNumber);
        }
        let is_same = |party: &HolderRow| {
            party.mode == *mode && value.as_ref().is_none_or(|value| party.value.as_ref() == Some(value))
        };
        let (clock, question) = (self.clock(), self.question());
        let holder = self.now.holders.iter_mut().find(|((of, _), row)| of == lock && row.session == *session);
        if let Some((_, row)) = holder {
            // Who leads goes on to, whatever it said of itself since.
            if !is_election && !is_same(row) {
                return Err(Refusal::AnotherPlace);
            }
            row.unheard = None;
            return Ok(());
        }
        let waiter = self.now.waiters.iter_mut().find(|((of, _), row)| of == lock && row.party.session == *session);
        if let Some((_, row)) = waiter {
            if !is_same(&row.party) {
                return Err(Refusal::AnotherPlace);
            }
            if *wait_ms > 0 {
                (row.until, row.asked, row.hung_up) = (clock + wait_ms, question, false);
            }
            return Ok(());
        }
        let fresh = LockHead { slots, holders: 0, mode: *mode, waiters: 0, not_before: None, first_place: 0 };
        let head = LockHead { slots, ..known.unwrap_or(fresh) };
        let (session, mode, delay_ms, value) = (*session, *mode, *delay_ms, value.clone());
        let party = HolderRow { session, mode, delay_ms, value, since: self.now.vars.wall, unheard: None };
        let is_free = head.waiters == 0 && self.has_room(lock, &head, mode);
        if !is_free && *wait_ms > 0 && head.waiters >= max_waiters.unwrap_or(limits::LOCK_WAITERS_MAX) {
            return Err(Refusal::QueueLong);
        }
        if !is_free && *wait_ms == 0 {
            return Err(Refusal::Held);
        }
        self.now.heads.insert(lock.clone(), head);
        if is_free {
            let unheard = (*wait_ms > 0).then_some(question);
            self.hold(lock, HolderRow { unheard, ..party });
        } else {
            let place = self.take_revision();
            let row = WaiterRow { party, until: clock + wait_ms, asked: question, hung_up: false };
            self.now.waiters.insert((lock.clone(), place), row);
            self.count(lock);
        }
        Ok(())
    }

    fn leave_barrier(&mut self, name: &quorate_machine::types::Name, id: SessionId) {
        self.now.parties.remove(&(name.clone(), id));
        let row = self.now.barriers.get_mut(name).expect("a barrier with a party is there");
        row.entered -= 1;
        if row.entered == 0 {
            self.now.barriers.remove(name);
        }
    }

    pub(super) fn barrier(&mut self, op: &BarrierOp) -> Applied {
        match op {
            BarrierOp::Leave { name, session } => {
                if self.now.parties.contains(&(name.clone(), *session)) {
                    self.take_revision();
                    self.leave_barrier(name, *session);
                }
                Ok(())
            }
            BarrierOp::Enter { name, session, parties } => {
                if *parties == 0 {
                    return Err(Refusal::Unsupported);
                }
                if !self.now.sessions.contains_key(session) {
                    return Err(Refusal::SessionExpired);
                }
                let row = self.now.barriers.get(name).copied();
                let mut row = row.unwrap_or(BarrierRow { parties: *parties, entered: 0, opened: None });
                if row.parties != *parties {
                    return Err(Refusal::OtherNumber);
                }
                if self.now.parties.contains(&(name.clone(), *session)) {
                    return Ok(());
                }
                if row.opened.is_some() {
                    return Err(Refusal::BarrierOpen);
                }
                let revision = self.take_revision();
                row.entered += 1;
                row.opened = (row.entered == row.parties).then_some(revision);
                self.now.parties.insert((name.clone(), *session));
                self.now.barriers.insert(name.clone(), row);
                Ok(())
            }
        }
    }

    pub(super) fn latch(&mut self, op: &LatchOp) -> Applied {
        let (LatchOp::Create { name, .. } | LatchOp::CountDown { name, .. } | LatchOp::Remove { name }) = op;
        let known = self.now.latches.get(name).copied();
        match (op, known) {
            (LatchOp::Create { count: 0, .. } | LatchOp::CountDown { by: 0, .. }, _) => {
                return Err(Refusal::Unsupported);
            }
            (LatchOp::Create { count, .. }, None) => {
                self.take_revision();
                self.now.latches.insert(name.clone(), LatchRow { count: *count, left: *count, opened: None });
            }
            (LatchOp::Create { count, .. }, Some(row)) if row.count != *count => return Err(Refusal::OtherNumber),
            (LatchOp::Create { .. }, Some(_)) => {}
            (_, None) => return Err(Refusal::NotFound),
            (LatchOp::CountDown { by, .. }, Some(row)) if row.left > 0 => {
                let revision = self.take_revision();
                let left = row.left.saturating_sub(*by);
                let opened = (left == 0).then_some(revision);
                self.now.latches.insert(name.clone(), LatchRow { left, opened, ..row });
            }
            (LatchOp::CountDown { .. }, Some(_)) => {}
            (LatchOp::Remove { .. }, Some(_)) => {
                self.take_revision();
                self.now.latches.remove(name);
            }
        }
        Ok(())
    }
}
