//! The renewals of all sessions of one client: a task that lives as long as there is one.
//!
//! Owns when it wakes, and that sessions which are due about the same time go in one request. When a session is due, and what
//! an answer means for it, is its [`super::lease`]'s.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::Shared;
use super::lease::Loss;
use crate::api::{RenewAnswer, RenewRequest, Renewal, SESSIONS_RENEWED_MAX};
use crate::client::Client;
use crate::endpoints::Preference;
use crate::error::Error;
use crate::request::{Call, Intent, json_body};

/// The sessions of a client that are renewed.
#[derive(Debug, Default)]
pub(crate) struct Renewals {
    members: Mutex<Members>,
    /// Wakes the task: a session came or went.
    news: Notify,
}

#[derive(Debug, Default)]
struct Members {
    sessions: Vec<Weak<Shared>>,
    /// May have ended with the runtime that it was on.
    task: Option<JoinHandle<()>>,
}

/// What the task does next.
struct Plan {
    /// Sessions to renew now.
    due: Vec<Arc<Shared>>,
    /// When to look again, if nothing happens before.
    wake_at: Option<Instant>,
}

impl Renewals {
    /// Renews this session from now on, on the task that runs on `runtime` if there is none.
    pub fn add(&self, session: &Arc<Shared>, runtime: &Handle) {
        let mut members = self.members.lock();
        members.sessions.push(Arc::downgrade(session));
        if members.task.as_ref().is_none_or(JoinHandle::is_finished) {
            members.task = Some(runtime.spawn(run(session.client.clone())));
        }
        drop(members);
        self.news.notify_one();
    }

    /// Looks at the sessions again: one is over.
    pub fn on_over(&self) {
        self.news.notify_one();
    }

    /// `None` once there is no session left: the task ends, and the next session starts another.
    fn plan(&self, now: Instant) -> Option<Plan> {
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
fn choose(live: Vec<Arc<Shared>>, now: Instant) -> Plan {
    let renewal_at = |session: &Arc<Shared>| session.lease.lock().renewal_at();
    if !live.iter().filter_map(renewal_at).any(|at| at <= now) {
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
    Plan { due: due.collect(), wake_at: Some(now) }
}

/// The task.
async fn run(client: Client) {
    let mut flights = FuturesUnordered::new();
    loop {
        let Some(plan) = client.renewals().plan(Instant::now()) else { return };
        for batch in plan.due.chunks(SESSIONS_RENEWED_MAX) {
            let sessions: Vec<_> = batch.iter().map(Arc::downgrade).collect();
            flights.push(renew(client.clone(), ids(batch), round(batch), sessions));
        }
        // Not to keep alive until then what nobody else holds.
        drop(plan.due);
        tokio::select! {
            () = sleep_until(plan.wake_at) => {}
            () = client.renewals().news.notified() => {}
            Some(()) = flights.next(), if !flights.is_empty() => {}
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => pending().await,
    }
}

fn ids(batch: &[Arc<Shared>]) -> Vec<String> {
    batch.iter().map(|session| session.id.clone()).collect()
}

/// As long as the most hurried of them can wait.
fn round(batch: &[Arc<Shared>]) -> Duration {
    batch.iter().map(|session| session.lease.lock().round()).min().unwrap_or_default()
}

/// One request. Whatever comes of it, all its sessions hear.
async fn renew(client: Client, ids: Vec<String>, round: Duration, sessions: Vec<Weak<Shared>>) {
    let sent = Instant::now();
    let answer = ask(&client, ids, round).await;
    let expired: Option<BTreeSet<&str>> = answer.as_ref().ok().map(|answer| {
        let expired = answer.sessions.iter().filter_map(|renewal| match renewal {
            Renewal::Expired(gone) => Some(gone.session.as_str()),
            Renewal::Renewed(_) => None,
        });
        expired.collect()
    });
    for session in sessions.iter().filter_map(Weak::upgrade) {
        let now = Instant::now();
        match &expired {
            None => session.lease.lock().on_failed(now),
            Some(expired) if expired.contains(session.id.as_str()) => session.lease.lock().on_over(Loss::Expired, now),
            Some(_) => session.lease.lock().on_confirmed(sent, now),
        }
        session.changed.notify_waiters();
    }
}

/// Renews these once; half of the time for one node, so that another can be asked.
pub(super) async fn ask(client: &Client, sessions: Vec<String>, round: Duration) -> Result<RenewAnswer, Error> {
    let body = json_body(&RenewRequest { sessions })?;
    // To renew twice is as good as once.
    let mut call = Call::post("/v1/sessions/renew", body, Intent::Read, Preference::Leader);
    call.timeout = Some(round);
    call.attempt = Some(round / 2);
    client.fetch(call).await
}
