//! The same request again and again, at a cluster in which nothing is left to chance.
//!
//! Owns what is asked and how often. Measures nothing: a run with more rounds and one with fewer differ in what the rounds cost, and
//! `scripts/instructions` counts that.

use std::io;
use std::path::Path;

use clap::ValueEnum;
use cluster_harness::{Answer, Connection, Request};
use quorate_machine::machine::Bounds;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::JoinHandle;

use crate::clock;
use crate::outcome::Outcome;
use crate::world::{Sizes, World};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Load {
    /// A put of 256 bytes over an entry.
    Put,
    /// The same where the entry is the one that was seen last.
    Cas,
    /// A linearizable get of an entry of 256 bytes.
    Get,
}

/// Clients that ask at the same time, each on a connection of its own and for a key of its own.
const CLIENTS: usize = 64;
const VALUE_BYTES: usize = 256;
/// How long anything may take, milliseconds.
const PATIENCE: u64 = 20_000;

/// Asks the leader in so many rounds.
pub fn carry(load: Load, rounds: u64, seed: u64, dir: &Path) -> Outcome {
    clock::simulate(seed);
    quorate_threads::background::simulate_on_this_thread();
    let mut dice = StdRng::seed_from_u64(seed);
    // No snapshot in between.
    let sizes = Sizes { snapshot_every: 1_000_000, keep_log: 1_000_000, bounds: Bounds::default() };
    let mut world = World::new(dir.to_owned(), 3, sizes, &mut dice);
    let carried = ask_again_and_again(&mut world, load, rounds);
    let operations = rounds * CLIENTS as u64;
    Outcome { seed, millis: world.now, operations, broken: carried.err().into_iter().collect(), ..Outcome::default() }
}

fn ask_again_and_again(world: &mut World, load: Load, rounds: u64) -> Result<(), String> {
    world.start_all();
    world.until(PATIENCE, "nobody leads", |world| world.is_up() && world.leader().is_some())?;
    let leader = world.leader().ok_or("nobody leads")?;
    let connecting = (0..CLIENTS).map(|_| world.spawn(world.connect(leader))).collect();
    let connections = answers(world, connecting)?.into_iter().enumerate();
    let mut clients = connections.map(|(number, connection)| Client::new(number, connection)).collect();
    clients = round(world, clients, Load::Put)?;
    for _ in 0..rounds {
        clients = round(world, clients, load)?;
    }
    Ok(())
}

/// One that asks, between two requests.
struct Client {
    key: String,
    connection: Connection,
    /// The tag of the entry that it saw last.
    seen: String,
}

impl Client {
    fn new(number: usize, connection: Connection) -> Self {
        Self { key: format!("load/{number}"), connection, seen: String::new() }
    }

    async fn ask(mut self, load: Load) -> io::Result<(Self, Answer)> {
        let put = || Request::put(&self.key, format!("\"{}\"", "v".repeat(VALUE_BYTES - 2)));
        let request = match load {
            Load::Put => put(),
            Load::Cas => put().header("If-Match", &*self.seen),
            Load::Get => Request::get(format!("/v1/kv/{}", self.key)),
        };
        let answer = self.connection.exchange(&request).await?;
        Ok((self, answer))
    }
}

/// Each client asks once, all at the same time.
fn round(world: &mut World, clients: Vec<Client>, load: Load) -> Result<Vec<Client>, String> {
    let asked = clients.into_iter().map(|client| world.spawn(client.ask(load))).collect();
    let answered = answers(world, asked)?.into_iter();
    answered.map(|(client, answer)| Ok(Client { seen: tag(&answer)?, ..client })).collect()
}

/// What all of these come to.
fn answers<T: Send + 'static>(world: &mut World, asked: Vec<JoinHandle<io::Result<T>>>) -> Result<Vec<T>, String> {
    world.until(PATIENCE, "no answer", |_| asked.iter().all(JoinHandle::is_finished))?;
    let answer = |asked: JoinHandle<io::Result<T>>| match world.clients.at_once(asked) {
        Ok(answered) => answered.map_err(|error| format!("no answer: {error}")),
        Err(panic) => Err(panic.to_string()),
    };
    asked.into_iter().map(answer).collect()
}

fn tag(answer: &Answer) -> Result<String, String> {
    match answer.header("etag") {
        Some(tag) if answer.is_success() => Ok(tag.to_owned()),
        _ => Err(format!("status {}: {}", answer.status, answer.text())),
    }
}
