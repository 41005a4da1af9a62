//! A client that records all it does.
//!
//! Owns sending an operation, again where that makes sense, and what is known of it afterwards. Every try of an operation has
//! the same request id, where the protocol has one. Goes over one HTTP connection to each node, whose addresses may as well be those of proxies.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::task::JoinSet;

use super::{etcd_wire, wire};
use crate::cluster::Cluster;
use crate::http::{Answer, Connection, Request};
use cluster_histories::Recorder;
use cluster_histories::operation::Operation;
use cluster_histories::record::{Outcome, Record, Try};

/// How long one try may take.
const TRY_MAX: Duration = Duration::from_millis(1_000);
/// How long an operation is tried.
const OPERATION_MAX: Duration = Duration::from_secs(4);
/// Pause behind a try that failed.
const PAUSE: Duration = Duration::from_millis(15);

/// How a node is connected to.
pub type Dial = dyn Fn(SocketAddr) -> BoxFuture<'static, io::Result<Connection>> + Send + Sync;

/// The nodes by number, and where and how each is reached. All clones are the same.
#[derive(Clone)]
pub struct Nodes {
    addresses: Arc<Mutex<Vec<(u64, SocketAddr)>>>,
    dial: Arc<Dial>,
}

impl Nodes {
    /// These nodes, by TCP.
    pub fn of(cluster: &Cluster) -> Self {
        let nodes = Self::over(Vec::new(), Arc::new(|address| Connection::open(address).boxed()));
        nodes.update(cluster);
        nodes
    }

    /// Nodes that are reached in this way.
    pub fn over(addresses: Vec<(u64, SocketAddr)>, dial: Arc<Dial>) -> Self {
        Self { addresses: Arc::new(Mutex::new(addresses)), dial }
    }

    /// From now on those that the cluster has now.
    pub fn update(&self, cluster: &Cluster) {
        let nodes = cluster.ids().into_iter().map(|id| (id, cluster.client_address_over_network(id)));
        *self.addresses.lock().unwrap_or_else(PoisonError::into_inner) = nodes.collect();
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The one in this place, counted round and round.
    pub fn at(&self, place: usize) -> (u64, SocketAddr) {
        let nodes = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        nodes[place % nodes.len()]
    }

    /// Sends a request over the connection that is open, or a new one. The answer, and the connection where it can be used again; `None`
    /// where no answer came within this time.
    pub async fn exchange(
        &self,
        address: SocketAddr,
        open: Option<Connection>,
        request: &Request,
        within: Duration,
    ) -> Option<(Answer, Option<Connection>)> {
        let exchange = async {
            let mut connection = match open {
                Some(open) => open,
                None => self.connect(address).await?,
            };
            let answer = connection.exchange(request).await?;
            io::Result::Ok((answer, connection))
        };
        let (answer, connection) = tokio::time::timeout(within, exchange).await.ok()?.ok()?;
        let is_kept = answer.header("connection") != Some("close");
        Some((answer, is_kept.then_some(connection)))
    }

    /// Connects to the one that is reached there.
    pub fn connect(&self, address: SocketAddr) -> BoxFuture<'static, io::Result<Connection>> {
        (self.dial)(address)
    }
}

/// How a client sends what it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Asks one node only, and never again what it sent.
    Pinned,
    /// Goes on at the next node under the same request id, until it knows.
    Persistent,
    /// Sends each write several times at once, to different nodes, and again later.
    Storming,
    /// Asks over etcd's JSON gateway, which knows no request ids: goes on at the next node, but never asks again for what may have
    /// been carried out.
    Etcd,
}

impl Manner {
    fn request_of(self, operation: &Operation, request_id: Option<&str>) -> Request {
        match self {
            Self::Etcd => etcd_wire::request_of(operation),
            _ => wire::request_of(operation, request_id),
        }
    }

    fn outcome_of(self, operation: &Operation, answer: &Answer) -> Outcome {
        match self {
            Self::Etcd => etcd_wire::outcome_of(operation, answer),
            _ => wire::outcome_of(operation, answer),
        }
    }
}

/// A client.
pub struct Process {
    recorder: Recorder,
    nodes: Nodes,
    manner: Manner,
    /// The place of the node that is asked next.
    next: usize,
    number: u64,
    connections: BTreeMap<u64, Connection>,
}

impl Process {
    /// A client that asks the node of this place first.
    pub fn new(recorder: Recorder, nodes: Nodes, first: usize, manner: Manner) -> Self {
        let number = recorder.next_process();
        Self { recorder, nodes, manner, next: first, number, connections: BTreeMap::new() }
    }

    /// Does something, records it, and gives the record.
    pub async fn perform(&mut self, operation: Operation, dice: &mut StdRng) -> Record {
        let id = self.recorder.next_record();
        let request_id = (operation.is_kept() && self.manner != Manner::Etcd).then(|| format!("h{id}"));
        let call = self.recorder.now();
        let request = self.manner.request_of(&operation, request_id.as_deref());
        let tries = match self.manner {
            Manner::Storming if operation.is_kept() => self.storm(&operation, &request, dice).await,
            _ => self.insist(&operation, &request).await,
        };
        let outcome = Outcome::of(&tries, !operation.is_read());
        let mut record = Record { id, process: self.number, operation, request_id, call, end: call, outcome, tries };
        record.end = end_of(&record);
        if record.is_unknown() {
            self.number = self.recorder.next_process();
        }
        self.recorder.operation(record.clone());
        record
    }

    /// Asks again for what became of an operation of unknown outcome, under its request id, until it is known. Gives the record as it
    /// is then.
    pub async fn resolve(&mut self, mut record: Record) -> Record {
        let request = self.manner.request_of(&record.operation, record.request_id.as_deref());
        record.tries.extend(self.insist(&record.operation, &request).await);
        record.outcome = Outcome::of(&record.tries, true);
        record.end = end_of(&record);
        self.recorder.operation(record.clone());
        record
    }

    /// Sends it until it is decided, as far as the manner allows.
    async fn insist(&mut self, operation: &Operation, request: &Request) -> Vec<Try> {
        let begun = Instant::now();
        let mut tries = Vec::new();
        loop {
            let to = self.nodes.at(self.next);
            let (node, open) = (to.0, self.connections.remove(&to.0));
            let way = (&self.recorder, &self.nodes, self.manner);
            let (connection, tried) = send(way, to, open, operation, request).await;
            if let Some(connection) = connection {
                self.connections.insert(node, connection);
            }
            let is_known = matches!(tried.outcome, Outcome::Decided(_) | Outcome::Absurd(_));
            let is_open = matches!(tried.outcome, Outcome::Unknown(_));
            tries.push(tried);
            if !is_known && self.manner != Manner::Pinned {
                self.next += 1;
            }
            let has_one_try = matches!(self.manner, Manner::Pinned | Manner::Etcd);
            if is_known || begun.elapsed() > OPERATION_MAX || (is_open && has_one_try) {
                return tries;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Sends it up to four times at nearly the same time, over connections of their own.
    async fn storm(&mut self, operation: &Operation, request: &Request, dice: &mut StdRng) -> Vec<Try> {
        let mut sending = JoinSet::new();
        for turn in 0..dice.random_range(1..=4) {
            let to = self.nodes.at(dice.random_range(0..self.nodes.count()));
            let (recorder, nodes) = (self.recorder.clone(), self.nodes.clone());
            let (operation, request, manner) = (operation.clone(), request.clone(), self.manner);
            let delay = Duration::from_millis(dice.random_range(0..=turn * 15));
            sending.spawn(async move {
                tokio::time::sleep(delay).await;
                send((&recorder, &nodes, manner), to, None, &operation, &request).await.1
            });
        }
        let mut tries = sending.join_all().await;
        tries.sort_by_key(|each| each.call);
        if !tries.iter().any(|each| each.outcome.decided().is_some()) {
            tries.extend(self.insist(operation, request).await);
        }
        tries
    }
}

/// When an operation was over: with the first answer that decided it, since all tries are one.
fn end_of(record: &Record) -> u64 {
    let decided = record.tries.iter().filter(|each| each.outcome.decided().is_some()).map(|each| each.end).min();
    decided.or(record.tries.iter().map(|each| each.end).max()).unwrap_or(record.call)
}

/// Sends a request once. Gives the connection back where it can be used again.
async fn send(
    (recorder, nodes, manner): (&Recorder, &Nodes, Manner),
    (node, address): (u64, SocketAddr),
    connection: Option<Connection>,
    operation: &Operation,
    request: &Request,
) -> (Option<Connection>, Try) {
    let call = recorder.now();
    let exchange = async {
        let mut connection = match connection {
            Some(connection) => connection,
            None => match nodes.connect(address).await {
                Ok(connection) => connection,
                Err(error) => return (None, Outcome::Failed(format!("cannot connect: {error}"))),
            },
        };
        match connection.exchange(request).await {
            Ok(answer) => {
                let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
                ((!closes).then_some(connection), manner.outcome_of(operation, &answer))
            }
            Err(error) => (None, Outcome::Unknown(format!("the connection broke: {error}"))),
        }
    };
    let (connection, outcome) = match tokio::time::timeout(TRY_MAX, exchange).await {
        Ok(done) => done,
        Err(_) => (None, Outcome::Unknown(format!("no answer in {TRY_MAX:?}"))),
    };
    (connection, Try { node, call, end: recorder.now(), outcome })
}
