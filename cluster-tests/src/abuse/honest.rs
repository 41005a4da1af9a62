//! Honest clients: sessions that are renewed in time, and writes and reads at their pace.
//!
//! Owns what they lived to see: writes done, sessions lost, the terms they were told. They ask another node where one refuses or does not
//! answer, as every client of ours does, and never ask for more than their pace.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::abuse::asker::{Asker, Told};
use crate::abuse::errands;
use crate::abuse::way::Way;
use cluster_harness::http::Request;

/// The first of the addresses that no attack comes from.
pub const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Time to live of their sessions, milliseconds; renewed at a third of it.
pub const TTL_MS: u64 = 5_000;
/// How long one waits for an answer before it asks another node.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);
/// The time from one write of a client with a modest pace to the next.
const WRITE_EVERY: Duration = Duration::from_millis(40);

/// What honest clients lived to see.
#[derive(Debug, Default)]
pub struct Seen {
    /// Writes that were acknowledged.
    pub writes: AtomicU64,
    /// Writes without a confirmation in time, and reads without an answer.
    pub missed: AtomicU64,
    /// Reads that were answered.
    pub reads: AtomicU64,
    /// Sessions that ended although they were to be renewed, or could not be opened.
    pub lost: AtomicU64,
    /// The highest term that an answer named; before the first, 1, the first of a cluster.
    pub term: AtomicU64,
    /// Microseconds that acknowledged writes took together.
    pub micros: AtomicU64,
}

/// How much honest clients ask for, and how.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// Their addresses, and the token that is shown from each where nodes ask who is there. They take turns with them, client by client.
    pub callers: &'a [(Ipv4Addr, Option<&'a str>)],
    /// All nodes.
    pub nodes: &'a [SocketAddr],
    /// The protocols that they take turns with, client by client.
    pub ways: &'a [Way],
    /// How many keep a session.
    pub sessions: usize,
    /// How many write.
    pub writers: usize,
    /// How many read what others write.
    pub readers: usize,
    /// The time from one write or read of a client to the next.
    pub every: Duration,
}

impl Load<'_> {
    /// Begins.
    pub fn start(&self) -> Honest {
        let (seen, mut tasks) = (Arc::new(Seen { term: AtomicU64::new(1), ..Seen::default() }), JoinSet::new());
        let client = |number: usize| {
            let (caller, way) = places(number, self.callers.len(), self.ways.len());
            let (from, token) = self.callers[caller];
            Client {
                from,
                nodes: self.nodes.to_vec(),
                way: self.ways[way],
                token: token.map(str::to_owned),
                next: number,
                connection: None,
                seen: Arc::clone(&seen),
            }
        };
        for number in 0..self.sessions {
            tasks.spawn(keep_session(client(number)));
        }
        for number in 0..self.writers {
            tasks.spawn(write(client(self.sessions + number), number, self.every));
        }
        for number in 0..self.readers {
            tasks.spawn(read(client(self.sessions + self.writers + number), number, self.every));
        }
        Honest { seen, _tasks: tasks }
    }
}

/// The places of a client's caller and of its protocol, by its number among all clients. Clients with neighbouring numbers have different callers
/// and protocols as far as there are so many, and with each turn of the protocols callers move on by one: few writers do not all share one caller,
/// and no caller keeps to one protocol.
fn places(number: usize, callers: usize, ways: usize) -> (usize, usize) {
    ((number + number / ways) % callers, number % ways)
}

/// Honest clients at work; dropping them ends them.
pub struct Honest {
    /// The record of what they have seen.
    pub seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

impl Honest {
    /// Starts sessions and writers at an address, over HTTP/1.1 and at a modest pace. They send this token to nodes with authentication.
    pub fn start(from: Ipv4Addr, nodes: &[SocketAddr], token: Option<&str>, sessions: usize, writers: usize) -> Self {
        let (callers, ways) = (&[(from, token)], &[Way::Http1]);
        Load { callers, nodes, ways, sessions, writers, readers: 0, every: WRITE_EVERY }.start()
    }
}

/// A client that knows all nodes.
struct Client {
    from: Ipv4Addr,
    nodes: Vec<SocketAddr>,
    way: Way,
    token: Option<String>,
    next: usize,
    connection: Option<Asker>,
    seen: Arc<Seen>,
}

impl Client {
    /// Asks the node that answered last, and others after it, until one decides or the time is over.
    async fn ask(&mut self, request: Request, until: Instant) -> Option<Told> {
        let request = self.way.by(request, self.token.as_deref());
        while Instant::now() < until {
            if let Ok(Ok(told)) = tokio::time::timeout(ANSWER_WITHIN, self.exchange(&request)).await {
                self.seen.term.fetch_max(told.term.unwrap_or(0), Ordering::Relaxed);
                if !told.is_refusal() {
                    return Some(told);
                }
            }
            self.connection = None;
            self.next += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        None
    }

    async fn exchange(&mut self, request: &Request) -> std::io::Result<Told> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Asker::open(self.way, self.from, self.nodes[self.next % self.nodes.len()]).await?,
        };
        let told = connection.ask(request).await?;
        self.connection = Some(connection);
        Ok(told)
    }
}

/// Opens a session and renews it for as long as it lives; then opens the next.
async fn keep_session(mut client: Client) {
    let ttl = Duration::from_millis(TTL_MS);
    loop {
        let created = client.ask(errands::begin_session(client.way, TTL_MS), Instant::now() + ttl).await;
        let Some(id) = created.and_then(|told| errands::id_of(client.way, &told)) else {
            client.seen.lost.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(ttl / 3).await;
            continue;
        };
        let renew = errands::renew(client.way, &id);
        loop {
            tokio::time::sleep(ttl / 3).await;
            match client.ask(renew.clone(), Instant::now() + ttl).await {
                Some(told) if errands::is_renewed(client.way, &told) => {}
                _ => break,
            }
        }
        client.seen.lost.fetch_add(1, Ordering::Relaxed);
    }
}

/// The key that a writer writes.
fn key_of(writer: usize) -> String {
    format!("honest/{writer}")
}

/// Reads at its pace what the writer of its number writes.
async fn read(mut client: Client, number: usize, every: Duration) {
    let read = errands::read(client.way, &key_of(number));
    loop {
        tokio::time::sleep(every).await;
        let told = client.ask(read.clone(), Instant::now() + Duration::from_secs(5)).await;
        let is_read = told.as_ref().is_some_and(errands::is_read);
        let count = if is_read { &client.seen.reads } else { &client.seen.missed };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes at its pace.
async fn write(mut client: Client, number: usize, every: Duration) {
    let mut due = Instant::now();
    for round in 0u64.. {
        // Who is late does not hurry after it: a client that waits for an answer asks for less.
        due = (due + every).max(Instant::now());
        tokio::time::sleep_until(due.into()).await;
        let put = errands::write(client.way, &key_of(number), round);
        let begin = Instant::now();
        match client.ask(put, begin + Duration::from_secs(5)).await {
            Some(told) if told.is_success() => {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn neighbours_have_different_callers_and_each_caller_comes_to_every_protocol() {
        let (callers, ways) = (8, 4);
        for begin in 0..callers * ways {
            let neighbours = (begin..begin + ways).map(|number| places(number, callers, ways));
            let (from, by): (BTreeSet<_>, BTreeSet<_>) = neighbours.unzip();
            assert_eq!((from.len(), by.len()), (ways, ways), "from client {begin}");
        }
        let all: BTreeSet<_> = (0..callers * ways).map(|number| places(number, callers, ways)).collect();
        assert_eq!(all.len(), callers * ways);
        assert_eq!(places(5, 1, 1), (0, 0));
    }
}
