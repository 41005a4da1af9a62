//! The renewals of all sessions of one client: a task that lives as long as there is one.
//!
//! Owns when it wakes, and that sessions which are due about the same time go in one request. When a session is due, and what
//! an answer means for it, is its [`crate::client::lease`]'s.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::api::{RenewAnswer, RenewRequest, Renewal, SESSIONS_RENEWED_MAX, SessionExpired, SessionRenewed};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::loss::Loss;
use crate::call::moment::Moment;
use crate::call::request::{Call, Intent, json_body};
use crate::client::Client;
use crate::client::registry::Renewed;

/// At least so often it looks: while the machine is suspended, sleep stands still as well, and what is due by then is seen a moment after it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The task.
pub(super) async fn run(client: Client) {
    let mut flights = FuturesUnordered::new();
    loop {
        let Some(plan) = client.renewals().plan(Moment::now()) else { return };
        for batch in plan.due.chunks(SESSIONS_RENEWED_MAX) {
            let sessions: Vec<_> = batch.iter().map(Arc::downgrade).collect();
            flights.push(renew(client.clone(), ids(batch), round(batch), sessions));
        }
        // Not to keep alive until then what nobody else holds.
        drop(plan.due);
        let look_at = Instant::now() + LOOK_EVERY;
        let wake_at = plan.wake_at.map_or(look_at, |at| at.min(look_at));
        tokio::select! {
            () = tokio::time::sleep_until(wake_at.into()) => {}
            () = client.renewals().news() => {}
            Some(()) = flights.next(), if !flights.is_empty() => {}
        }
    }
}

fn ids(batch: &[Arc<Renewed>]) -> Vec<String> {
    batch.iter().map(|session| session.id.clone()).collect()
}

/// As long as the most hurried of them can wait.
fn round(batch: &[Arc<Renewed>]) -> Duration {
    batch.iter().map(|session| session.lease.lock().round()).min().unwrap_or_default()
}

/// One request. Whatever comes of it, all its sessions hear.
async fn renew(client: Client, ids: Vec<String>, round: Duration, sessions: Vec<Weak<Renewed>>) {
    let sent = Moment::now();
    let answer = ask(&client, ids, round).await;
    let named: BTreeMap<&str, &Renewal> =
        answer.iter().flat_map(|answer| &answer.sessions).filter_map(by_session).collect();
    for session in sessions.iter().filter_map(Weak::upgrade) {
        let now = Moment::now();
        let mut lease = session.lease.lock();
        match named.get(session.id.as_str()) {
            Some(Renewal::Renewed(_)) => lease.on_confirmed(sent, now),
            Some(Renewal::Expired(_)) => lease.on_over(Loss::Expired, now),
            // Nothing is known of one that the answer does not name, or in a way that this version does not know.
            _ => lease.on_failed(now),
        }
        drop(lease);
        session.changed.notify_waiters();
    }
}

/// Without a match over all kinds: another version of the API's types may have more.
fn by_session(renewal: &Renewal) -> Option<(&str, &Renewal)> {
    if let Renewal::Renewed(SessionRenewed { session, .. }) = renewal {
        return Some((session, renewal));
    }
    if let Renewal::Expired(SessionExpired { session, .. }) = renewal {
        return Some((session, renewal));
    }
    None
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
