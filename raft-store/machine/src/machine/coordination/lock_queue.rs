//! Locks and elections: a queue with holders, first come first served.
//!
//! Owns who holds a lock and who is next. A grant takes a revision of its own, which is the fencing token: so tokens only
//! grow, whatever happens to the lock, and no two holders have the same. A party is one session at one lock.

use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::lock_queue::{self, HolderRow, LockHead, WaiterRow};
use crate::keyspace::session::{self, AttachedKind, PartyAt};
use crate::keyspace::timer::TimerKind;
use crate::limits;
use crate::machine::Most;
use crate::machine::stop::{Tried, split};
use crate::machine::view::{Fault, View};
use crate::machine::{Applier, Caller};
use crate::mutants::Mutant;
use crate::types::{
    Acquire, ClusterMillis, Counted, Elected, LockMode, LockName, LockOp, LockReply, LockSpace, Outcome, Question,
    Rejection, Revision, SessionId, Value,
};

impl<V: View> Applier<'_, V> {
    /// Carries out a command about a lock.
    pub(in crate::machine) fn lock(&mut self, op: LockOp, caller: Caller) -> Result<Outcome, Fault> {
        let (kind, lock) = match &op {
            LockOp::Acquire(Acquire { lock, .. }) | LockOp::Listen { lock, .. } => (AuditOp::Acquire, lock.clone()),
            LockOp::Release { lock, .. } | LockOp::Leave { lock, .. } | LockOp::HangUp { lock, .. } => {
                (AuditOp::Release, lock.clone())
            }
            LockOp::Proclaim { lock, .. } => (AuditOp::Proclaim, lock.clone()),
        };
        let tried = match op {
            LockOp::Acquire(request) => self.acquire(request, &caller),
            LockOp::Release { token, .. } => self.release(&lock, token, &caller),
            LockOp::Leave { session, asked, release, .. } => Ok(self.leave(&lock, session, asked, release, &caller)?),
            LockOp::Proclaim { token, value, .. } => self.proclaim(&lock, token, value, &caller),
            LockOp::Listen { session, .. } => self.listen(&lock, session),
            LockOp::HangUp { session, question, .. } => Ok(self.hang_up(&lock, session, question)?),
        };
        Ok(match split(tried)? {
            Ok(done) => Outcome::Lock(done),
            Err(rejection) => self.refuse_in(kind, Some(lock.waker()), caller, rejection),
        })
    }

    fn acquire(&mut self, request: Acquire, caller: &Caller) -> Tried<LockReply> {
        if let Some(why) = acquire_fault(&request) {
            return Err(Rejection::Unsupported(why).into());
        }
        if self.session_row(request.session)?.is_none() {
            return Err(Rejection::SessionExpired(request.session).into());
        }
        let known = self.head(&request.lock)?;
        let in_use = known.as_ref().filter(|head| head.holders > 0 || head.waiters > 0).map(|head| head.slots);
        let slots = request.slots.or(in_use).unwrap_or(1);
        if let Some(others) =
            in_use.filter(|others| *others != slots || (request.mode == LockMode::Shared && slots > 1))
        {
            return Err(Rejection::OtherNumber(others.into()).into());
        }
        if let Some(at) = self.party_at(&request.lock, request.session)? {
            return self.acquire_again(&request, at);
        }
        let principal = self.check_session(request.session)?.principal;
        let fresh = LockHead {
            slots,
            holders: 0,
            mode: request.mode,
            waiters: 0,
            not_before: None,
            first_place: self.vars.revision,
        };
        let head = LockHead { slots, ..known.unwrap_or(fresh) };
        let Acquire { lock, session, mode, wait_ms, delay_ms, value, max_waiters, .. } = request;
        let party = HolderRow { session, mode, delay_ms, value, since: self.vars.wall, unheard: None };
        let holds_at_once = head.waiters == 0 && head.admits(mode);
        let most = max_waiters.unwrap_or(limits::LOCK_WAITERS_MAX);
        let waits = wait_ms > 0 && head.waiters < most;
        if holds_at_once || waits {
            self.check_principal(&principal, Counted::Locks)?;
        }
        if holds_at_once {
            let party = HolderRow { unheard: (wait_ms > 0).then(|| self.question()), ..party };
            return Ok(self.hold(&lock, head, party, AuditOp::Acquire, caller.clone())?);
        }
        if !waits {
            let LockHead { holders, waiters, .. } = head;
            let delay_ms = head.not_before.map_or(0, |until| until.saturating_sub(self.vars.clock));
            let refused = match wait_ms {
                0 => Rejection::Held { holders, waiters, delay_ms },
                _ => Rejection::QueueLong { holders, waiters, most, delay_ms },
            };
            return Err(refused.into());
        }
        Ok(self.enqueue(&lock, head, party, wait_ms, caller.clone())?)
    }

    /// A session that asks again keeps what it has, and its wait begins anew.
    fn acquire_again(&mut self, request: &Acquire, at: PartyAt) -> Tried<LockReply> {
        let is_same = |party: &HolderRow| {
            party.mode == request.mode && request.value.as_ref().is_none_or(|value| party.value.as_ref() == Some(value))
        };
        match at {
            PartyAt::Holding(token) => {
                let party = self.holder(&request.lock, token)?;
                // Who leads said something else of itself since, perhaps: it leads all the same, with what it said last.
                if request.lock.space != LockSpace::Election && !is_same(&party) {
                    return Err(Rejection::AnotherPlace { is_holder: true, at: token }.into());
                }
                Ok(self.tell(&request.lock, token, party)?)
            }
            PartyAt::Waiting(place) => {
                let mut waiter = self.waiter(&request.lock, place)?;
                if !is_same(&waiter.party) {
                    return Err(Rejection::AnotherPlace { is_holder: false, at: place }.into());
                }
                if request.wait_ms > 0 {
                    let subject = lock_queue::place_subject(&request.lock, place);
                    self.disarm(waiter.until, TimerKind::Place, &subject)?;
                    waiter.until = self.vars.clock.saturating_add(request.wait_ms);
                    self.arm(waiter.until, TimerKind::Place, &subject)?;
                    (waiter.asked, waiter.hung_up) = (self.question(), false);
                    let row = codec::encode(&waiter);
                    self.overlay.replace(&lock_queue::waiter_key(&request.lock, place), Some(row))?;
                }
                Ok(LockReply::Waiting { place, asked: waiter.asked })
            }
        }
    }

    /// The number of the question that is being asked. No other has it, one of the same entry neither: by it the cluster tells who of two
    /// that ask for one session hung up.
    fn question(&self) -> u64 {
        self.batch.index * limits::BATCH_COMMANDS_MAX as u64 + u64::from(self.batch.nth)
    }

    fn listen(&mut self, lock: &LockName, session: SessionId) -> Tried<LockReply> {
        if self.session_row(session)?.is_none() {
            return Err(Rejection::SessionExpired(session).into());
        }
        match self.party_at(lock, session)? {
            None => Ok(LockReply::Gone(false)),
            Some(PartyAt::Holding(token)) => {
                let party = self.holder(lock, token)?;
                Ok(self.tell(lock, token, party)?)
            }
            Some(PartyAt::Waiting(place)) => {
                let asked = self.question();
                let row = codec::encode(&WaiterRow { asked, hung_up: false, ..self.waiter(lock, place)? });
                self.overlay.replace(&lock_queue::waiter_key(lock, place), Some(row))?;
                Ok(LockReply::Waiting { place, asked })
            }
        }
    }

    /// Notes that nobody listens to a question, under a number of its own: what comes of it is given up with that number, unless the
    /// session asks or listens meanwhile.
    fn hang_up(&mut self, lock: &LockName, session: SessionId, question: Question) -> Result<LockReply, Fault> {
        let asked = self.question();
        let (row_key, row) = match self.party_at(lock, session)? {
            None => return Ok(LockReply::Gone(false)),
            Some(PartyAt::Holding(token)) => {
                let party = self.holder(lock, token)?;
                let is_of_it = match question {
                    Question::Numbered(number) => party.unheard == Some(number),
                    Question::Granted(granted) => granted == token && party.unheard.is_some(),
                };
                if !is_of_it {
                    return Ok(LockReply::Gone(false));
                }
                let party = HolderRow { unheard: Some(asked), ..party };
                (lock_queue::holder_key(lock, token), codec::encode(&party))
            }
            Some(PartyAt::Waiting(place)) => {
                let waiter = self.waiter(lock, place)?;
                if question != Question::Numbered(waiter.asked) {
                    return Ok(LockReply::Gone(false));
                }
                let waiter = WaiterRow { asked, hung_up: true, ..waiter };
                (lock_queue::waiter_key(lock, place), codec::encode(&waiter))
            }
        };
        self.overlay.replace(&row_key, Some(row))?;
        self.wake(lock.waker());
        Ok(LockReply::HungUp(asked))
    }

    /// Tells a holder that it holds. From now on it can hang up without losing that.
    fn tell(&mut self, lock: &LockName, token: Revision, mut party: HolderRow) -> Result<LockReply, Fault> {
        if party.unheard.take().is_some() {
            let row = codec::encode(&party);
            self.overlay.replace(&lock_queue::holder_key(lock, token), Some(row))?;
        }
        Ok(LockReply::Held { token })
    }

    /// Gives the lock to a party that it admits, at a revision of its own.
    fn hold(
        &mut self,
        lock: &LockName,
        mut head: LockHead,
        party: HolderRow,
        op: AuditOp,
        caller: Caller,
    ) -> Result<LockReply, Fault> {
        assert!(head.admits(party.mode), "{lock:?} as {head:?} given to {party:?}");
        self.take_revision()?;
        let token = if Mutant::TokensComeTwice.acts() { self.vars.revision & !7 } else { self.vars.revision };
        head.holders += 1;
        head.mode = party.mode;
        self.place_party(lock, party.session, PartyAt::Holding(token))?;
        self.put_holder(lock, token, &party)?;
        self.put_head(lock, &head)?;
        let effect = self.effect_on_observers(lock, Some((token, &party)))?;
        self.record(op, Some(lock.waker()), caller, effect);
        Ok(LockReply::Held { token })
    }

    /// Gives a party the last place in the queue.
    fn enqueue(
        &mut self,
        lock: &LockName,
        mut head: LockHead,
        party: HolderRow,
        wait_ms: u64,
        caller: Caller,
    ) -> Result<LockReply, Fault> {
        self.take_revision()?;
        let (place, asked) = (self.vars.revision, self.question());
        let until = self.vars.clock.saturating_add(wait_ms);
        self.arm(until, TimerKind::Place, &lock_queue::place_subject(lock, place))?;
        self.place_party(lock, party.session, PartyAt::Waiting(place))?;
        let row = codec::encode(&WaiterRow { party, until, asked, hung_up: false });
        self.overlay.insert_new(lock_queue::waiter_key(lock, place), row)?;
        head.waiters += 1;
        self.put_head(lock, &head)?;
        self.record(AuditOp::Acquire, Some(lock.waker()), caller, AuditEffect::Beside);
        Ok(LockReply::Waiting { place, asked })
    }

    fn release(&mut self, lock: &LockName, token: Revision, caller: &Caller) -> Tried<LockReply> {
        let mut token = token;
        if Mutant::AnyTokenReleases.acts() {
            token = self.any_token(lock)?.unwrap_or(token);
        }
        let Some(party) = self.decoded::<HolderRow>(&lock_queue::holder_key(lock, token))? else {
            return Err(Rejection::NotHolder.into());
        };
        if !self.may_act_for(party.session, lock.name.as_str(), caller)? {
            return Err(Rejection::NotYours.into());
        }
        self.take_revision()?;
        self.drop_party(lock, PartyAt::Holding(token), AuditOp::Release, caller.clone())?;
        self.grant_waiting(lock)?;
        Ok(LockReply::Gone(true))
    }

    fn leave(
        &mut self,
        lock: &LockName,
        session: SessionId,
        asked: Option<u64>,
        release: bool,
        caller: &Caller,
    ) -> Result<LockReply, Fault> {
        let Some(at) = self.party_at(lock, session)? else { return Ok(LockReply::Gone(false)) };
        match at {
            PartyAt::Holding(token) => {
                let party = self.holder(lock, token)?;
                if !release {
                    return self.tell(lock, token, party);
                }
                if asked.is_some() && asked != party.unheard {
                    return Ok(LockReply::Held { token });
                }
            }
            PartyAt::Waiting(place) => {
                let waiter = self.waiter(lock, place)?;
                if asked.is_some_and(|asked| asked != waiter.asked) {
                    return Ok(LockReply::Waiting { place, asked: waiter.asked });
                }
            }
        }
        self.take_revision()?;
        self.drop_party(lock, at, AuditOp::Release, caller.clone())?;
        self.grant_waiting(lock)?;
        Ok(LockReply::Gone(true))
    }

    fn proclaim(&mut self, lock: &LockName, token: Revision, value: Value, caller: &Caller) -> Tried<LockReply> {
        if let Some(why) = value_fault(lock, Some(&value)) {
            return Err(Rejection::Unsupported(why).into());
        }
        let row_key = lock_queue::holder_key(lock, token);
        let Some(mut party) = self.decoded::<HolderRow>(&row_key)? else {
            return Err(Rejection::NotHolder.into());
        };
        if !self.may_act_for(party.session, lock.name.as_str(), caller)? {
            return Err(Rejection::NotYours.into());
        }
        self.take_revision()?;
        // By its term it knows that it leads.
        (party.value, party.unheard) = (Some(value), None);
        self.overlay.replace(&row_key, Some(codec::encode(&party)))?;
        let effect = self.effect_on_observers(lock, Some((token, &party)))?;
        self.record(AuditOp::Proclaim, Some(lock.waker()), caller.clone(), effect);
        self.wake(lock.waker());
        Ok(LockReply::Proclaimed)
    }

    /// Takes a party out of a lock within a revision that was taken, and notes it. What that makes possible for others is
    /// left to [`Self::grant_waiting`].
    pub(in crate::machine) fn drop_party(
        &mut self,
        lock: &LockName,
        at: PartyAt,
        op: AuditOp,
        caller: Caller,
    ) -> Result<(), Fault> {
        let effect = match at {
            PartyAt::Holding(token) => self.drop_holder(lock, token, op)?,
            PartyAt::Waiting(place) => {
                let until = self.waiter(lock, place)?.until;
                if !Mutant::WhoLeavesKeepsATimer.acts() {
                    self.disarm(until, TimerKind::Place, &lock_queue::place_subject(lock, place))?;
                }
                self.drop_waiter(lock, place)?;
                AuditEffect::Beside
            }
        };
        // The end of a session has a line of its own; who observes an election needs one more.
        if op == AuditOp::Release || matches!(effect, AuditEffect::Elected { .. }) {
            self.record(op, Some(lock.waker()), caller, effect);
        }
        Ok(())
    }

    fn drop_holder(&mut self, lock: &LockName, token: Revision, op: AuditOp) -> Result<AuditEffect, Fault> {
        let party = self.holder(lock, token)?;
        self.overlay.take(&lock_queue::holder_key(lock, token))?;
        self.detach(party.session, AttachedKind::Lock, &lock.to_bytes())?;
        let mut head = self.head_of_party(lock)?;
        head.holders -= 1;
        if op == AuditOp::SessionExpire && party.delay_ms > 0 {
            self.hold_back(lock, &mut head, party.delay_ms)?;
        }
        self.put_head(lock, &head)?;
        self.effect_on_observers(lock, None)
    }

    /// Keeps the lock from everybody for a while.
    fn hold_back(&mut self, lock: &LockName, head: &mut LockHead, delay_ms: u64) -> Result<(), Fault> {
        let until = self.vars.clock.saturating_add(delay_ms);
        if head.not_before.is_some_and(|before| before >= until) {
            return Ok(());
        }
        let subject = lock.to_bytes();
        if let Some(before) = head.not_before.replace(until).filter(|_| !Mutant::ShorterDelaysStay.acts()) {
            self.disarm(before, TimerKind::LockDelay, &subject)?;
        }
        self.arm(until, TimerKind::LockDelay, &subject)
    }

    /// Takes a waiter whose timer is gone out of the queue.
    fn drop_waiter(&mut self, lock: &LockName, place: Revision) -> Result<(), Fault> {
        let waiter = self.waiter(lock, place)?;
        self.overlay.take(&lock_queue::waiter_key(lock, place))?;
        self.detach(waiter.party.session, AttachedKind::Lock, &lock.to_bytes())?;
        let mut head = self.head_of_party(lock)?;
        head.waiters -= 1;
        self.put_head(lock, &head)
    }

    /// Gives the lock to the first in the queue, and to those behind it as long as it admits them; the rest of them later, where
    /// the batch has no room for it. Where that faults, what made it possible stays done.
    pub(in crate::machine) fn grant_waiting(&mut self, lock: &LockName) -> Result<(), Fault> {
        self.work_on_row(&lock_queue::head_key(lock), |applier| applier.grant_now(lock))
    }

    /// Tries again to grant a lock where that faulted before.
    pub(in crate::machine) fn grant_parked(&mut self, head_key: &[u8]) -> Result<(), Fault> {
        let lock = lock_queue::decode_head_key(head_key).map_err(|error| Fault::row(head_key, error))?;
        self.grant_now(&lock)
    }

    fn grant_now(&mut self, lock: &LockName) -> Result<(), Fault> {
        let (_, end) = lock_queue::waiters_of(lock);
        while let Some(mut head) = self.head(lock)? {
            let admits_any = head.admits(LockMode::Exclusive) || head.admits(LockMode::Shared);
            if head.waiters == 0 || !admits_any {
                return Ok(());
            }
            // Whoever waits is given it as soon as a batch has room for that, in the same order.
            if self.has_taken_its_part() {
                return self.go_on_later(TimerKind::Grant, &lock.to_bytes());
            }
            let start = lock_queue::waiter_key(lock, head.first_place);
            let first = self.overlay.scan(&start, &end, 1)?.into_iter().next();
            assert_eq!(first.is_some(), head.waiters > 0, "the queue of {lock:?} is not as {head:?} has it");
            let Some((row_key, row)) = first else { return Ok(()) };
            let damaged = |error| Fault::row(&row_key, error);
            let (_, place) = lock_queue::decode_waiter(&row_key).map_err(damaged)?;
            let WaiterRow { mut party, until, asked, .. } = codec::decode(&row).map_err(damaged)?;
            if !head.admits(party.mode) {
                return Ok(());
            }
            self.disarm(until, TimerKind::Place, &lock_queue::place_subject(lock, place))?;
            self.overlay.take(&row_key)?;
            (head.waiters, head.first_place) = (head.waiters - 1, place);
            self.take_bytes(limits::GRANT_BYTES);
            (party.since, party.unheard) = (self.vars.wall, Some(asked));
            self.hold(lock, head, party, AuditOp::Grant, Caller::default())?;
        }
        Ok(())
    }

    /// The timer of a lock that nobody was given: it is given again.
    pub(in crate::machine) fn fire_lock_delay(&mut self, at: ClusterMillis, subject: &[u8]) -> Result<(), Fault> {
        let lock = lock_queue::lock_of(subject)?;
        let mut head = self.head_of_party(&lock)?;
        if head.not_before != Some(at) {
            return Err(Fault::Invariant(format!("a timer of {lock:?} at {at}, which is {head:?}")));
        }
        head.not_before = None;
        self.put_head(&lock, &head)?;
        self.grant_waiting(&lock)
    }

    /// The timer of grants that a batch had no room for. Meanwhile all who wait may have left.
    pub(in crate::machine) fn fire_grant(&mut self, subject: &[u8]) -> Result<(), Fault> {
        self.grant_waiting(&lock_queue::lock_of(subject)?)
    }

    /// The timer of a place: its time is over.
    pub(in crate::machine) fn fire_place(&mut self, at: ClusterMillis, subject: &[u8]) -> Result<(), Fault> {
        let (lock, place) = lock_queue::decode_place(subject)?;
        let waiter = self.waiter(&lock, place)?;
        if waiter.until != at {
            return Err(Fault::Invariant(format!("a timer of place {place} of {lock:?} at {at}, which is {waiter:?}")));
        }
        self.take_revision()?;
        self.drop_waiter(&lock, place)?;
        self.record(AuditOp::GiveUp, Some(lock.waker()), Caller::default(), AuditEffect::Beside);
        self.grant_waiting(&lock)
    }

    /// Where a session is at a lock, if it is there.
    fn party_at(&self, lock: &LockName, session: SessionId) -> Result<Option<PartyAt>, Fault> {
        self.decoded(&session::attached_key(session, AttachedKind::Lock, &lock.to_bytes()))
    }

    /// Notes where a session is at a lock.
    fn place_party(&mut self, lock: &LockName, session: SessionId, at: PartyAt) -> Result<(), Fault> {
        let (subject, row) = (lock.to_bytes(), codec::encode(&at));
        match self.party_at(lock, session)? {
            None => self.attach(session, AttachedKind::Lock, &subject, row),
            Some(_) => {
                let row_key = session::attached_key(session, AttachedKind::Lock, &subject);
                self.overlay.replace(&row_key, Some(row)).map(|_| ())
            }
        }
    }

    fn head(&self, lock: &LockName) -> Result<Option<LockHead>, Fault> {
        self.decoded(&lock_queue::head_key(lock))
    }

    /// The head of a lock that has a party or is held back.
    fn head_of_party(&self, lock: &LockName) -> Result<LockHead, Fault> {
        self.head(lock)?.ok_or_else(|| Fault::Invariant(format!("{lock:?} is in use without a row")))
    }

    fn put_head(&mut self, lock: &LockName, head: &LockHead) -> Result<(), Fault> {
        let row = (!head.is_idle()).then(|| codec::encode(head));
        self.overlay.replace(&lock_queue::head_key(lock), row)?;
        self.wake(lock.waker());
        Ok(())
    }

    fn holder(&self, lock: &LockName, token: Revision) -> Result<HolderRow, Fault> {
        let row = self.decoded(&lock_queue::holder_key(lock, token))?;
        row.ok_or_else(|| Fault::Invariant(format!("no token {token} holds {lock:?}")))
    }

    fn put_holder(&mut self, lock: &LockName, token: Revision, party: &HolderRow) -> Result<(), Fault> {
        let row = codec::encode(party);
        self.overlay.insert_new(lock_queue::holder_key(lock, token), row).map(|_| ())
    }

    /// Whoever holds the lock, for a bug on purpose.
    fn any_token(&self, lock: &LockName) -> Result<Option<Revision>, Fault> {
        let (start, end) = lock_queue::holders_of(lock);
        let holder = self.overlay.scan_page(&start, &end, true, Most::rows(1))?;
        let token = |row_key: &[u8]| lock_queue::decode_holder(row_key).map_err(|error| Fault::row(row_key, error));
        holder.first().map(|(row_key, _)| token(row_key).map(|(_, token)| token)).transpose()
    }

    fn waiter(&self, lock: &LockName, place: Revision) -> Result<WaiterRow, Fault> {
        let row = self.decoded(&lock_queue::waiter_key(lock, place))?;
        row.ok_or_else(|| Fault::Invariant(format!("nobody has place {place} of {lock:?}")))
    }

    /// Keeps who leads an election from the present revision on, for those who observe it; of a lock nothing is kept.
    fn effect_on_observers(
        &mut self,
        lock: &LockName,
        leader: Option<(Revision, &HolderRow)>,
    ) -> Result<AuditEffect, Fault> {
        if lock.space != LockSpace::Election {
            return Ok(AuditEffect::Beside);
        }
        let elected = match leader {
            None => None,
            Some((token, party)) => {
                let session = self.session_row(party.session)?;
                let owner = session.map(|row| row.owner).unwrap_or_default();
                let (session, value, since) = (party.session, party.value.clone(), party.since);
                Some(Elected { token, session, owner, value, since })
            }
        };
        let row = codec::encode(&elected);
        let row = self.overlay.insert_new(lock_queue::elected_key(&lock.name, self.vars.revision), row)?;
        Ok(AuditEffect::Elected { row })
    }
}

/// What is wrong with a request for a lock whatever the state.
fn acquire_fault(request: &Acquire) -> Option<String> {
    let is_election = request.lock.space == LockSpace::Election;
    let slots = request.slots.unwrap_or(1);
    if !(1..=limits::LOCK_SLOTS_MAX).contains(&slots) {
        Some(format!("a lock with {slots} slots; 1 to {} are possible", limits::LOCK_SLOTS_MAX))
    } else if slots > 1 && (is_election || request.mode == LockMode::Shared) {
        Some("only a lock that is held exclusively has more than one slot".into())
    } else if is_election && request.mode == LockMode::Shared {
        Some("nobody shares leadership".into())
    } else if request.wait_ms > limits::LOCK_WAIT_MS_MAX {
        Some(format!("a wait of {} ms; at most {}", request.wait_ms, limits::LOCK_WAIT_MS_MAX))
    } else if request.delay_ms > limits::LOCK_DELAY_MS_MAX {
        Some(format!("a delay of {} ms; at most {}", request.delay_ms, limits::LOCK_DELAY_MS_MAX))
    } else if let Some(most) = request.max_waiters.filter(|most| !(1..=limits::LOCK_WAITERS_MAX).contains(most)) {
        Some(format!("a queue of {most}; 1 to {} are possible", limits::LOCK_WAITERS_MAX))
    } else {
        value_fault(&request.lock, request.value.as_ref())
    }
}

fn value_fault(lock: &LockName, value: Option<&Value>) -> Option<String> {
    let length = value?.data.len();
    if lock.space != LockSpace::Election {
        Some("only leaders have values".into())
    } else if length > limits::PROCLAIMED_BYTES_MAX {
        Some(format!("a value of {length} bytes; at most {}", limits::PROCLAIMED_BYTES_MAX))
    } else {
        None
    }
}
