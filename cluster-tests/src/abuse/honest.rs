//! Honest clients: sessions that are renewed in time, and writes at a modest pace.
//!
//! Owns what they lived to see: writes done, sessions lost, the terms they were told. They ask another node where one refuses or does not
//! answer, as every client of ours does, and never ask for more than their pace.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::http::{Answer, Connection, Request};

/// An address that no attack comes from.
pub const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Time to live of their sessions, milliseconds; renewed at a third of it.
pub const TTL_MS: u64 = 5_000;
/// How long one waits for an answer before it asks another node.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);
/// From one write of a client to the next.
const WRITE_EVERY: Duration = Duration::from_millis(40);

/// What honest clients lived to see.
#[derive(Debug, Default)]
pub struct Seen {
    /// Writes that were acknowledged.
    pub writes: AtomicU64,
    /// Writes of which no node said in time that they were done.
    pub missed: AtomicU64,
    /// Sessions that ended although they were to be renewed.
    pub lost: AtomicU64,
    /// The highest term that an answer named; before the first, 1, the first of a cluster.
    pub term: AtomicU64,
    /// Microseconds that acknowledged writes took together.
    pub micros: AtomicU64,
}

/// Honest clients at work; dropping them ends them.
pub struct Honest {
    /// What they have seen.
    pub seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

impl Honest {
    /// Begins at an address with so many sessions and so many writers over these nodes, which show this token where nodes ask who is
    /// there.
    pub fn start(from: Ipv4Addr, nodes: &[SocketAddr], token: Option<&str>, sessions: usize, writers: usize) -> Self {
        let (seen, mut tasks) = (Arc::new(Seen { term: AtomicU64::new(1), ..Seen::default() }), JoinSet::new());
        let client = |number| Client {
            from,
            nodes: nodes.to_vec(),
            token: token.map(|token| format!("Bearer {token}")),
            next: number,
            connection: None,
            seen: Arc::clone(&seen),
        };
        for number in 0..sessions {
            tasks.spawn(keep_session(client(number)));
        }
        for number in 0..writers {
            tasks.spawn(write(client(number), number));
        }
        Self { seen, _tasks: tasks }
    }
}

/// A client that knows all nodes.
struct Client {
    from: Ipv4Addr,
    nodes: Vec<SocketAddr>,
    token: Option<String>,
    next: usize,
    connection: Option<Connection>,
    seen: Arc<Seen>,
}

impl Client {
    /// Asks the node that answered last, and others after it, until one decides or the time is over.
    async fn ask(&mut self, request: Request, until: Instant) -> Option<Answer> {
        let request = match &self.token {
            Some(token) => request.header("Authorization", token.clone()),
            None => request,
        };
        while Instant::now() < until {
            if let Ok(Ok(answer)) = tokio::time::timeout(ANSWER_WITHIN, self.exchange(&request)).await {
                let term = answer.header("quorate-term").and_then(|term| term.parse().ok()).unwrap_or(0);
                self.seen.term.fetch_max(term, Ordering::Relaxed);
                if !matches!(answer.status, 429 | 500..) {
                    return Some(answer);
                }
            }
            self.connection = None;
            self.next += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        None
    }

    async fn exchange(&mut self, request: &Request) -> std::io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open_from(self.from, self.nodes[self.next % self.nodes.len()]).await?,
        };
        let answer = connection.exchange(request).await?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

/// Opens a session and renews it for as long as it lives; then opens the next.
async fn keep_session(mut client: Client) {
    let ttl = Duration::from_millis(TTL_MS);
    loop {
        let create = Request::post("/v1/sessions", format!("{{\"ttl_ms\":{TTL_MS}}}"));
        let Some(created) = client.ask(create, Instant::now() + ttl).await else {
            client.seen.lost.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let created: Value = created.expect_success().json();
        let id = created["session"].as_str().expect("the id of a session").to_owned();
        let renew = Request::post(format!("/v1/sessions/{id}/renew"), "{}");
        loop {
            tokio::time::sleep(ttl / 3).await;
            match client.ask(renew.clone(), Instant::now() + ttl).await {
                Some(answer) if answer.is_success() => {}
                _ => break,
            }
        }
        client.seen.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes at its pace.
async fn write(mut client: Client, number: usize) {
    let mut due = Instant::now();
    for round in 0u64.. {
        // Who is late does not hurry after it: a client that waits for an answer asks for less.
        due = (due + WRITE_EVERY).max(Instant::now());
        tokio::time::sleep_until(due.into()).await;
        let put = Request::put(&format!("honest/{number}"), round.to_string());
        let begin = Instant::now();
        match client.ask(put, begin + Duration::from_secs(5)).await {
            Some(answer) if answer.is_success() => {
                client.seen.writes.fetch_add(1, Ordering::Relaxed);
                let took = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
                client.seen.micros.fetch_add(took, Ordering::Relaxed);
            }
            _ => {
                client.seen.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
