//! Sessions, locks and tasks of the simulated store.
//!
//! Owns what ends by itself and what one party holds at a time.

use super::Mutant;
use super::store::{Lock, Session, Store, Task, refused};
use crate::operation::Hold;
use crate::record::{Claimed, Decided, Micros, Seen};

impl Store {
    /// Ends all that is due.
    pub(super) fn end_due(&mut self) {
        let due: Vec<String> =
            self.expiries.iter().filter(|(_, at)| **at <= self.now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.expiries.remove(&key);
            self.remember();
            self.revision += 1;
            self.state.remove(&key);
            self.note(&key, 0);
        }
        let over = |session: &Session| session.ends <= self.now;
        let over: Vec<String> =
            self.sessions.iter().filter(|(_, session)| over(session)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.sessions.remove(&id);
            self.revision += 1;
            self.leave_locks(&id);
        }
    }

    fn lifetime(&mut self, ttl: Micros) -> Micros {
        if self.is(Mutant::SessionEndsEarly) {
            ttl / 2
        } else if self.is(Mutant::SessionNeverEnds) {
            Micros::MAX / 2
        } else {
            ttl
        }
    }

    pub(super) fn open_session(&mut self, ttl: Micros) -> Seen {
        self.revision += 1;
        let (id, ends) = (self.revision.to_string(), self.now + self.lifetime(ttl));
        self.sessions.insert(id.clone(), Session { ttl, ends });
        Seen::Session(id)
    }

    pub(super) fn renew(&mut self, id: &str) -> Seen {
        let Some(ttl) = self.sessions.get(id).map(|session| session.ttl) else { return refused("session_expired") };
        let ends = self.now + self.lifetime(ttl);
        self.sessions.insert(id.to_owned(), Session { ttl, ends });
        Seen::Session(id.to_owned())
    }

    pub(super) fn holds(&self, hold: &Hold, token: u64) -> bool {
        self.locks.get(hold).and_then(|lock| lock.holder.as_ref()).is_some_and(|(held, _)| *held == token)
    }

    pub(super) fn acquire(&mut self, hold: &Hold, session: &str, wait: Micros) -> Seen {
        if !self.sessions.contains_key(session) {
            return refused("session_expired");
        }
        let steals = self.is(Mutant::LockGivenTwice);
        let reuses = self.is(Mutant::TokenReused);
        let until = self.now + wait;
        let lock = self.locks.entry(hold.clone()).or_default();
        match &lock.holder {
            Some((token, holder)) if holder == session => Seen::Held { token: *token },
            Some((token, _)) if reuses => {
                let token = *token;
                lock.holder = Some((token, session.to_owned()));
                Seen::Held { token }
            }
            Some(_) if !steals && wait == 0 => refused("locked"),
            Some(_) if !steals => {
                lock.queue.retain(|(waiting, _)| waiting != session);
                lock.queue.push_back((session.to_owned(), until));
                Seen::Waiting
            }
            _ => {
                self.revision += 1;
                let token = self.revision;
                lock.holder = Some((token, session.to_owned()));
                lock.queue.retain(|(waiting, _)| waiting != session);
                Seen::Held { token }
            }
        }
    }

    pub(super) fn release(&mut self, hold: &Hold, token: u64) -> Decided {
        if !self.holds(hold, token) {
            return self.told(refused("not_lock_holder"));
        }
        self.revision += 1;
        let told = self.told(Seen::Done);
        self.hand_on(hold);
        told
    }

    pub(super) fn leave_locks(&mut self, session: &str) {
        let held = |lock: &Lock| lock.holder.as_ref().is_some_and(|(_, holder)| holder == session);
        let held: Vec<Hold> = self.locks.iter().filter(|(_, lock)| held(lock)).map(|(hold, _)| hold.clone()).collect();
        for lock in self.locks.values_mut() {
            lock.queue.retain(|(waiting, _)| waiting != session);
        }
        held.iter().for_each(|hold| self.hand_on(hold));
    }

    /// Gives the lock to the next in the queue.
    fn hand_on(&mut self, hold: &Hold) {
        let Some(lock) = self.locks.get_mut(hold) else { return };
        lock.queue.retain(|(_, until)| *until > self.now);
        lock.holder = lock.queue.pop_front().map(|(session, _)| {
            self.revision += 1;
            (self.revision, session)
        });
    }

    // --- tasks ------------------------------------------------------------------------------------------------------

    pub(super) fn claim(&mut self, queue: &str, limit: u32, lease: Micros) -> Seen {
        let (early, twice) = (self.is(Mutant::TaskEarly), self.is(Mutant::TaskGivenTwice));
        let (now, token) = (self.now, self.revision + 1);
        let free =
            |task: &Task| !task.is_done && !task.is_lost && (early || task.due <= now) && (twice || task.lease <= now);
        let mut claimed = Vec::new();
        for ((of, id), task) in &mut self.tasks {
            if of == queue && claimed.len() < limit as usize && free(task) {
                task.attempt += 1;
                (task.token, task.lease) = (token, now + lease);
                claimed.push(Claimed { task: id.clone(), token, attempt: task.attempt });
            }
        }
        self.revision += u64::from(!claimed.is_empty());
        Seen::Claimed(claimed)
    }

    pub(super) fn settle(&mut self, queue: &str, id: &str, token: u64, completes: bool) -> Seen {
        let stale = self.is(Mutant::StaleCompletion);
        let now = self.now;
        let Some(task) = self.tasks.get_mut(&(queue.to_owned(), id.to_owned())) else { return refused("not_found") };
        let has = task.token == token && task.lease > now && !task.is_done;
        let is_taken = stale && completes;
        if !has && !is_taken {
            return refused("not_lock_holder");
        }
        self.revision += 1;
        (task.is_done, task.lease) = (completes || task.is_done, 0);
        Seen::Done
    }
}
