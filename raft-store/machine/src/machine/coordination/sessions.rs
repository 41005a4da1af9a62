//! Sessions: what lives as long as somebody renews it.
//!
//! Owns when a session is over, and that all that hangs on it goes in one revision. What a lock or a barrier does about a
//! party that is gone is theirs.

use std::borrow::Cow;

use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::session::{self, AttachedKind, PartyAt, SessionRow};
use crate::keyspace::timer::TimerKind;
use crate::keyspace::{entry, gates, lock_queue};
use crate::limits;
use crate::machine::current::decode_current;
use crate::machine::quotas::walk::locks_among;
use crate::machine::stop::{Tried, split};
use crate::machine::view::{Fault, Row, View};
use crate::machine::{Applier, Caller, stored_key};
use crate::mutants::Mutant;
use crate::types::{
    Bounded, ClusterMillis, Counted, Key, LockName, Outcome, PrincipalUse, Rejection, SessionId, SessionOp,
    SessionReply, Waker,
};

impl<V: View> Applier<'_, V> {
    /// Begins, renews or ends.
    pub(in crate::machine) fn session(&mut self, op: SessionOp, caller: Caller) -> Result<Outcome, Fault> {
        match op {
            SessionOp::Create { ttl_ms, owner, labels } => self.create_session(None, ttl_ms, owner, labels, caller),
            SessionOp::CreateAs { id, ttl_ms, owner, labels } => {
                self.create_session(Some(id), ttl_ms, owner, labels, caller)
            }
            SessionOp::Renew(ids) => self.renew_sessions(&ids),
            SessionOp::End(id) => match self.session_row(id)? {
                Some(row) => {
                    self.disarm(row.armed_at, TimerKind::Session, &id.0.to_be_bytes())?;
                    self.end_session(id, AuditOp::SessionEnd, caller)?;
                    Ok(Outcome::Session(SessionReply::Ended(row.attached)))
                }
                None => {
                    let rejection = Rejection::SessionExpired(id);
                    Ok(self.refuse_in(AuditOp::SessionEnd, Some(waker(id)), caller, rejection))
                }
            },
        }
    }

    /// Notes a refusal of something that is not about an entry.
    pub(in crate::machine) fn refuse_in(
        &mut self,
        op: AuditOp,
        key: Option<Key>,
        caller: Caller,
        rejection: Rejection,
    ) -> Outcome {
        self.record(op, key, caller, AuditEffect::Refused((&rejection).into()));
        Outcome::Rejected(rejection)
    }

    fn create_session(
        &mut self,
        chosen: Option<SessionId>,
        ttl_ms: u64,
        owner: String,
        labels: Vec<(String, String)>,
        caller: Caller,
    ) -> Result<Outcome, Fault> {
        let fault = session_fault(chosen, ttl_ms, &owner, &labels);
        if let Err(rejection) = split(self.check_new_session(fault, chosen, &caller.principal))? {
            return Ok(self.refuse_in(AuditOp::SessionCreate, chosen.map(waker), caller, rejection));
        }
        self.take_revision()?;
        let id = chosen.unwrap_or(SessionId(self.vars.revision));
        let expires_at = self.vars.clock.saturating_add(ttl_ms);
        let created = self.vars.wall;
        let (principal, armed_at) = (caller.principal.clone(), expires_at);
        let row = SessionRow { ttl_ms, expires_at, armed_at, owner, labels, created, attached: 0, bytes: 0, principal };
        self.overlay.insert_new(session::row_key(id), codec::encode(&row))?;
        self.arm(expires_at, TimerKind::Session, &id.0.to_be_bytes())?;
        self.vars.sessions += 1;
        let one = PrincipalUse { sessions: 1, locks: 0 };
        self.count_for_principal(&caller.principal, PrincipalUse::default(), one)?;
        self.record(AuditOp::SessionCreate, Some(waker(id)), caller, AuditEffect::Beside);
        Ok(Outcome::Session(SessionReply::Created { id, expires_at }))
    }

    /// Whether there may be one more session, of this id if one was chosen. `fault` is what is wrong with it in every state.
    fn check_new_session(&mut self, fault: Option<String>, chosen: Option<SessionId>, principal: &str) -> Tried<()> {
        if let Some(why) = fault {
            return Err(Rejection::Unsupported(why).into());
        }
        if let Some(id) = chosen
            && self.is_in_use(id)?
        {
            return Err(Rejection::SessionExists(id).into());
        }
        let limit = limits::SESSIONS_MAX;
        if self.vars.sessions >= limit {
            return Err(Rejection::TooMany { what: Bounded::Sessions, limit }.into());
        }
        self.check_principal(principal, Counted::Sessions)
    }

    /// Whether a session lives, or ended and something still hangs on it: claims that are given back later, or what was set aside.
    /// Until that is gone nothing may hang on another one of its id.
    fn is_in_use(&mut self, id: SessionId) -> Result<bool, Fault> {
        let (start, end) = session::attached_to(id);
        Ok(self.session_row(id)?.is_some() || !self.overlay.scan(&start, &end, 1)?.is_empty())
    }

    /// A session that is past its end and has not been ended yet goes on, too: it is over when it was ended.
    fn renew_sessions(&mut self, ids: &[SessionId]) -> Result<Outcome, Fault> {
        if ids.len() > limits::SESSIONS_RENEWED_MAX {
            let why = format!("{} sessions renewed at once; at most {}", ids.len(), limits::SESSIONS_RENEWED_MAX);
            return Ok(Outcome::Rejected(Rejection::Unsupported(why)));
        }
        let mut renewed = Vec::with_capacity(ids.len());
        for &id in ids {
            let Some(mut row) = self.session_row(id)? else {
                renewed.push(None);
                continue;
            };
            if !Mutant::RenewalsAreForgotten.acts() {
                row.expires_at = row.expires_at.max(self.vars.clock.saturating_add(row.ttl_ms));
            }
            renewed.push(Some((row.ttl_ms, row.expires_at)));
            self.put_session(id, &row)?;
        }
        Ok(Outcome::Session(SessionReply::Renewed(renewed)))
    }

    /// The row of a session that lives.
    pub(in crate::machine) fn session_row(&mut self, id: SessionId) -> Result<Option<SessionRow>, Fault> {
        let row_key = session::row_key(id);
        let row = self.overlay.get(&row_key)?;
        row.map(|row| codec::decode(row).map_err(|error| Fault::row(&row_key, error))).transpose()
    }

    pub(in crate::machine) fn put_session(&mut self, id: SessionId, row: &SessionRow) -> Result<(), Fault> {
        assert!(row.armed_at <= row.expires_at, "the timer of session {id} would be late: {row:?}");
        self.overlay.replace(&session::row_key(id), Some(codec::encode(row))).map(|_| ())
    }

    /// Whether one more thing may hang on a session.
    pub(in crate::machine) fn check_session(&mut self, id: SessionId) -> Tried<SessionRow> {
        let limit = limits::SESSION_ATTACHED_MAX;
        let row = self.session_row(id)?.ok_or(Rejection::SessionExpired(id))?;
        if row.attached >= limit {
            return Err(Rejection::TooMany { what: Bounded::Attached, limit: limit.into() }.into());
        }
        Ok(row)
    }

    /// How many things more may hang on a session; at least one.
    pub(in crate::machine) fn room_on_session(&mut self, id: SessionId) -> Tried<u32> {
        Ok(limits::SESSION_ATTACHED_MAX - self.check_session(id)?.attached)
    }

    /// Hangs something on a session that lives.
    pub(in crate::machine) fn attach(
        &mut self,
        id: SessionId,
        kind: AttachedKind,
        subject: &[u8],
        value: Vec<u8>,
    ) -> Result<(), Fault> {
        self.overlay.insert_absent(session::attached_key(id, kind, subject), value)?;
        let row = self.session_row(id)?;
        let mut row = row.ok_or_else(|| Fault::Invariant(format!("{kind:?} hung on session {id}, which is none")))?;
        row.attached += 1;
        if kind == AttachedKind::Lock {
            let place = PrincipalUse { sessions: 0, locks: 1 };
            self.count_for_principal(&row.principal, PrincipalUse::default(), place)?;
        }
        self.put_session(id, &row)
    }

    /// Takes something off a session, which may be about to end.
    pub(in crate::machine) fn detach(
        &mut self,
        id: SessionId,
        kind: AttachedKind,
        subject: &[u8],
    ) -> Result<(), Fault> {
        self.overlay.take(&session::attached_key(id, kind, subject))?;
        match self.session_row(id)? {
            None => Ok(()),
            Some(mut row) => {
                let counted = row.attached.checked_sub(1);
                row.attached = counted.ok_or_else(|| Fault::Invariant(format!("nothing hung on session {id}")))?;
                if kind == AttachedKind::Lock {
                    let place = PrincipalUse { sessions: 0, locks: 1 };
                    self.count_for_principal(&row.principal, place, PrincipalUse::default())?;
                }
                self.put_session(id, &row)
            }
        }
    }

    /// Whether an entry of so many bytes instead of so many may go with a session.
    pub(in crate::machine) fn check_session_bytes(&mut self, id: SessionId, before: usize, after: usize) -> Tried<()> {
        let bytes = self.session_row(id)?.map_or(0, |row| row.bytes);
        let (what, limit) = (Bounded::AttachedBytes, limits::SESSION_BYTES_MAX);
        let fits = after <= before || bytes.saturating_sub(before as u64) + after as u64 <= limit;
        if fits { Ok(()) } else { Err(Rejection::TooMany { what, limit }.into()) }
    }

    /// Counts the bytes of an entry that goes with a session, which may be about to end.
    pub(in crate::machine) fn count_session_bytes(
        &mut self,
        id: SessionId,
        before: usize,
        after: usize,
    ) -> Result<(), Fault> {
        let Some(mut row) = self.session_row(id)? else { return Ok(()) };
        let Some(others) = row.bytes.checked_sub(before as u64) else {
            return Err(Fault::Invariant(format!("session {id} has fewer bytes than an entry: {row:?}")));
        };
        row.bytes = others + after as u64;
        self.put_session(id, &row)
    }

    /// The timer of a session: it ends, or was renewed since.
    pub(in crate::machine) fn fire_session(&mut self, at: ClusterMillis, subject: &[u8]) -> Result<(), Fault> {
        let id = session::decode_id(subject)?;
        match self.session_row(id)? {
            Some(mut row) if row.armed_at == at => {
                let early = u64::from(Mutant::SessionsEndEarly.acts());
                if row.expires_at <= self.vars.clock + early {
                    return self.end_session(id, AuditOp::SessionExpire, Caller::default());
                }
                row.armed_at = row.expires_at;
                self.put_session(id, &row)?;
                self.arm(row.armed_at, TimerKind::Session, subject)
            }
            row => Err(Fault::Invariant(format!("the timer of session {id} at {at}, which is {row:?}"))),
        }
    }

    /// Ends a session whose timer is gone: all that hangs on it goes in one revision, then locks are granted to others. Claims
    /// of tasks and grants that the batch has no room for follow in the next ones.
    pub(in crate::machine) fn end_session(&mut self, id: SessionId, op: AuditOp, caller: Caller) -> Result<(), Fault> {
        let mut locks = self.take_session(id, op, caller)?;
        locks.retain(|_| !Mutant::EndedSessionsGrantNothing.acts());
        locks.iter().try_for_each(|lock: &LockName| self.grant_waiting(lock))
    }

    /// Ends a session, and gives the locks that this may have made free.
    pub(in crate::machine) fn take_session(
        &mut self,
        id: SessionId,
        op: AuditOp,
        caller: Caller,
    ) -> Result<Vec<LockName>, Fault> {
        let (start, end) = session::attached_to(id);
        let attached = self.overlay.scan(&start, &end, usize::MAX)?;
        let mut locks = Vec::new();
        let mut has_tasks_left = false;
        self.sharing_revision(|applier| {
            applier.take_revision()?;
            applier.record(op, Some(waker(id)), caller.clone(), AuditEffect::Beside);
            let row = applier.overlay.take(&session::row_key(id))?;
            applier.uncount_session(id, &row, &attached)?;
            for (row_key, value) in attached {
                // What faults is set aside: the session ends, and all else that hangs on it goes with it.
                match applier.at_savepoint(|applier| applier.take_attached(&row_key, &value, op, &caller))? {
                    Ok(Taken::Gone) => {}
                    Ok(Taken::Lock(lock)) => locks.push(lock),
                    Ok(Taken::Later) => has_tasks_left = true,
                    Err(fault) => applier.park(&row_key, fault)?,
                }
            }
            Ok(())
        })?;
        self.vars.sessions -= 1;
        self.wake(waker(id));
        if has_tasks_left {
            self.go_on_later(TimerKind::SessionTasks, &id.0.to_be_bytes())?;
        }
        Ok(locks)
    }

    /// A session that ends counts for its principal no more, nor do its places in locks.
    pub(in crate::machine) fn uncount_session(
        &mut self,
        id: SessionId,
        row: &[u8],
        attached: &[Row],
    ) -> Result<(), Fault> {
        let row: SessionRow = codec::decode(row).map_err(|error| Fault::row(&session::row_key(id), error))?;
        let locks = locks_among(attached.iter().map(|(row_key, _)| row_key.as_slice()));
        let had = PrincipalUse { sessions: 1, locks };
        self.count_for_principal(&row.principal, had, PrincipalUse::default())
    }

    /// Takes one thing away with its session.
    fn take_attached(&mut self, row_key: &[u8], value: &[u8], op: AuditOp, caller: &Caller) -> Result<Taken, Fault> {
        let damaged = |error| Fault::row(row_key, error);
        let (id, kind, subject) = session::decode_attached(row_key).map_err(damaged)?;
        match kind {
            AttachedKind::Entry => self.remove_attached(subject, op, caller.clone())?,
            AttachedKind::Lock => {
                let lock = lock_queue::lock_of(subject).map_err(damaged)?;
                let at: PartyAt = codec::decode(value).map_err(damaged)?;
                self.drop_party(&lock, at, op, caller.clone())?;
                return Ok(Taken::Lock(lock));
            }
            AttachedKind::Task if self.has_taken_its_part() => return Ok(Taken::Later),
            AttachedKind::Task => self.task_session_over(subject, caller)?,
            AttachedKind::Barrier if Mutant::EndedSessionsStayInBarriers.acts() => {}
            AttachedKind::Barrier => self.leave_barrier(&gates::name_of(subject).map_err(damaged)?, id)?,
        }
        Ok(Taken::Gone)
    }

    /// Tries again to take away what was left of a session that ended.
    pub(in crate::machine) fn take_parked(&mut self, row_key: &[u8]) -> Result<(), Fault> {
        let Some(value) = self.overlay.peek(row_key)?.map(Cow::into_owned) else { return Ok(()) };
        let (id, ..) = session::decode_attached(row_key).map_err(|error| Fault::row(row_key, error))?;
        let take = |applier: &mut Self| {
            applier.take_revision()?;
            applier.record(AuditOp::SessionEnd, Some(waker(id)), Caller::default(), AuditEffect::Beside);
            applier.take_attached(row_key, &value, AuditOp::SessionEnd, &Caller::default())
        };
        match self.sharing_revision(take)? {
            Taken::Lock(lock) => self.grant_waiting(&lock),
            Taken::Gone => Ok(()),
            Taken::Later => self.go_on_later(TimerKind::SessionTasks, &id.0.to_be_bytes()),
        }
    }

    /// The timer of a session that ended with more claims of tasks than a batch had room for. Until then a task counts as claimed.
    pub(in crate::machine) fn fire_session_tasks(&mut self, subject: &[u8]) -> Result<(), Fault> {
        let id = session::decode_id(subject)?;
        // All claims were given up before their turn came, and the id is that of a new session: what hangs on it stays.
        if self.session_row(id)?.is_some() {
            return Ok(());
        }
        let (start, end) = session::attached_to(id);
        let attached = self.overlay.scan(&start, &end, usize::MAX)?;
        let has_tasks_left = self.sharing_revision(|applier| {
            for (row_key, _) in attached {
                if applier.has_taken_its_part() {
                    return Ok(true);
                }
                let (_, kind, subject) =
                    session::decode_attached(&row_key).map_err(|error| Fault::row(&row_key, error))?;
                // Anything else that is still there was set aside.
                if kind == AttachedKind::Task && !applier.is_parked(&row_key)? {
                    applier.work_on_row(&row_key, |applier| applier.task_session_over(subject, &Caller::default()))?;
                }
            }
            Ok(false)
        })?;
        if has_tasks_left {
            self.go_on_later(TimerKind::SessionTasks, subject)?;
        }
        Ok(())
    }

    /// Removes an entry whose session ends.
    fn remove_attached(&mut self, key: &[u8], op: AuditOp, caller: Caller) -> Result<(), Fault> {
        let row_key = entry::row_key(key);
        let newest = self.vars.revision;
        let Some(row) = self.overlay.get(&row_key)? else {
            return Err(Fault::Invariant(format!("no entry {} hangs on a session", key.escape_ascii())));
        };
        let meta = decode_current(&row_key, row, newest)?.meta;
        self.remove_as(stored_key(key)?, &row_key, &meta, op, caller)
    }
}

/// What became of something that hung on a session.
enum Taken {
    /// It is gone.
    Gone,
    /// It is gone, and others may want the lock.
    Lock(LockName),
    /// The batch had no room for it.
    Later,
}

/// Under what the end of a session is waited for, and noted.
fn waker(id: SessionId) -> Key {
    Waker::Session.of(id.to_string())
}

/// What is wrong with a new session whatever the state.
fn session_fault(chosen: Option<SessionId>, ttl_ms: u64, owner: &str, labels: &[(String, String)]) -> Option<String> {
    let (min, max) = (limits::SESSION_TTL_MS_MIN, limits::SESSION_TTL_MS_MAX);
    let longest = labels.iter().map(|(name, value)| name.len().max(value.len())).max().unwrap_or(0);
    if !(min..=max).contains(&ttl_ms) {
        Some(format!("a session of {ttl_ms} ms; {min} to {max} ms are possible"))
    } else if owner.len() > limits::SESSION_OWNER_BYTES_MAX {
        Some(format!("an owner of {} bytes; at most {}", owner.len(), limits::SESSION_OWNER_BYTES_MAX))
    } else if labels.len() > limits::SESSION_LABELS_MAX {
        Some(format!("{} labels; at most {}", labels.len(), limits::SESSION_LABELS_MAX))
    } else if longest > limits::SESSION_LABEL_BYTES_MAX {
        Some(format!("a label of {longest} bytes; at most {}", limits::SESSION_LABEL_BYTES_MAX))
    } else if !labels.is_sorted_by(|a, b| a.0 < b.0) {
        Some("labels that are not in order of their names, or twice the same".into())
    } else {
        chosen.filter(|id| !id.is_chosen()).map(|id| format!("the id {id} is not one to choose"))
    }
}
