//! The sessions of a client that are renewed.
//!
//! Owns when each is due. Never sends anything.

use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::call::moment::Moment;
use crate::client::lease::Lease;

/// What is known of a session that is renewed.
#[derive(Debug)]
pub(crate) struct Renewed {
    pub id: String,
    pub lease: Mutex<Lease>,
    /// Told after each change of the lease, and by the session of changes of its own.
    pub changed: Notify,
}

/// The sessions of a client that are renewed.
#[derive(Debug, Default)]
pub(crate) struct Renewals {
    members: Mutex<Members>,
    /// Wakes the task: a session came or went.
    news: Notify,
}

#[derive(Debug, Default)]
struct Members {
    sessions: Vec<Weak<Renewed>>,
    /// May have ended with the runtime that it was on.
    task: Option<JoinHandle<()>>,
}

/// What the task does next.
pub(crate) struct Plan {
    /// Sessions to renew now.
    pub due: Vec<Arc<Renewed>>,
    /// When to look again, if nothing happens before.
    pub wake_at: Option<Instant>,
}

impl Renewals {
    /// Renews this session from now on, by the task that `start` starts if there is none.
    pub fn add(&self, session: &Arc<Renewed>, start: impl FnOnce() -> JoinHandle<()>) {
        let mut members = self.members.lock();
        members.sessions.push(Arc::downgrade(session));
        if members.task.as_ref().is_none_or(JoinHandle::is_finished) {
            members.task = Some(start());
        }
        drop(members);
        self.news.notify_one();
    }

    /// Looks at the sessions again: one is over, or due before it was to be.
    pub fn look(&self) {
        self.news.notify_one();
    }

    /// Something came or went.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    /// `None` once there is no session left: the task ends, and the next session starts another.
    pub fn plan(&self, now: Moment) -> Option<Plan> {
        let mut members = self.members.lock();
        members.sessions.retain(|session| session.strong_count() > 0);
        let mut live: Vec<_> = members.sessions.iter().filter_map(Weak::upgrade).collect();
        live.retain(|session| session.lease.lock().loss(now).is_none());
        members.sessions = live.iter().map(Arc::downgrade).collect();
        if live.is_empty() {
            members.task = None;
            return None;
        }
        drop(members);
        Some(choose(live, now))
    }
}

/// Which sessions to renew: if one is due, with it those that soon will be.
fn choose(live: Vec<Arc<Renewed>>, now: Moment) -> Plan {
    let renewal_at = |session: &Arc<Renewed>| session.lease.lock().renewal_at(now);
    if !live.iter().filter_map(renewal_at).any(|at| at <= now.monotonic) {
        // Also to notice in time that one is lost.
        let wake_at = live.iter().filter_map(|session| renewal_at(session).or(session.lease.lock().changes_at(now)));
        return Plan { due: Vec::new(), wake_at: wake_at.min() };
    }
    let due = live.into_iter().filter(|session| {
        let mut lease = session.lease.lock();
        let joins = lease.may_join(now);
        if joins {
            lease.on_sent();
        }
        joins
    });
    Plan { due: due.collect(), wake_at: Some(now.monotonic) }
}
