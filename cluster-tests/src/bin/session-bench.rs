//! What it costs a cluster to keep many sessions alive.
//!
//! Owns a fresh cluster, sessions that are each renewed by a request of their own at a third of their time, and the
//! processor time of each node meanwhile. Measures and prints; never judges. `QUORATE_NODE` names the server to measure.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use cluster_harness::{Cluster, Connection, Request};
use serde_json::Value;

/// Measures the renewal of sessions on a fresh cluster of three nodes.
#[derive(Debug, Clone, Parser)]
struct Args {
    /// Sessions alive at the same time
    #[arg(long, default_value_t = 10_000)]
    sessions: usize,
    /// Time to live of each, milliseconds; renewed at a third of it
    #[arg(long, default_value_t = 10_000)]
    ttl_ms: u64,
    /// Connections, spread over the nodes; each renews its share of the sessions, one after the other
    #[arg(long, default_value_t = 300)]
    connections: usize,
    /// Seconds to measure
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args = Args::parse();
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let addresses: Vec<SocketAddr> = cluster.ids().iter().map(|id| cluster.client_address(*id)).collect();
    let (renewals, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..args.connections {
        let share = args.sessions / args.connections + usize::from(number < args.sessions % args.connections);
        let connection = Connection::open(addresses[number % addresses.len()]).await.expect("a node takes connections");
        let renewer = Renewer { connection, share, ttl_ms: args.ttl_ms };
        tasks.push(tokio::spawn(renewer.run(Arc::clone(&renewals), Arc::clone(&is_over))));
    }
    // The first renewals begin at a third of the time; a whole time later all is as it will go on.
    tokio::time::sleep(Duration::from_millis(args.ttl_ms)).await;
    println!("{} sessions of {} ms after {:?}", args.sessions, args.ttl_ms, began.elapsed());
    let cpu = |id: u64| cluster.cpu_seconds(id);
    let before: Vec<_> = cluster.ids().into_iter().map(|id| (id, cpu(id))).collect();
    let (renewed_before, since) = (renewals.load(Ordering::Relaxed), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(args.seconds)).await;
    let (renewed, took) = (renewals.load(Ordering::Relaxed) - renewed_before, since.elapsed().as_secs_f64());
    println!("{:.0} renewals/s", renewed as f64 / took);
    for (id, before) in before {
        let role = if id == leader { "leader" } else { "follower" };
        let share = (cpu(id) - before) / took * 100.0;
        println!("node {id} ({role}): {share:.1} % of a core");
    }
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no session ended");
    }
}

/// Keeps some sessions alive over one connection.
struct Renewer {
    connection: Connection,
    share: usize,
    ttl_ms: u64,
}

impl Renewer {
    async fn run(mut self, renewals: Arc<AtomicU64>, is_over: Arc<AtomicBool>) {
        let every = Duration::from_millis(self.ttl_ms / 3);
        let mut sessions = Vec::with_capacity(self.share);
        for _ in 0..self.share {
            let request = Request::post("/v1/sessions", format!("{{\"ttl_ms\":{}}}", self.ttl_ms));
            let created: Value = self.connection.exchange(&request).await.expect("an answer").expect_success().json();
            let id = created["session"].as_str().expect("the id of a session").to_owned();
            sessions.push((Instant::now() + every, id));
        }
        while !is_over.load(Ordering::Relaxed) {
            for (due, id) in &mut sessions {
                tokio::time::sleep_until((*due).into()).await;
                *due = Instant::now() + every;
                let renew = Request::post(format!("/v1/sessions/{id}/renew"), "{}");
                self.connection.exchange(&renew).await.expect("an answer").expect_success();
                renewals.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}
