//! A run: clients at work, watches, and something that hurts the cluster, from the first operation to the verdicts.
//!
//! Owns the phases (before, during and after the faults), asking again for what is not known, the last reads through each node, and
//! what is left of a run that failed. Never decides whether a rule holds.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::{Manner, Nodes, Process};
use super::nemesis::Nemesis;
use super::watcher::{self, Last};
use super::{Next, Script, THINK, Workload};
use crate::cluster::{Cluster, PATIENCE};
use crate::history::check::Report;
use crate::history::file::{Demand, Header};
use crate::history::operation::{Operation, Write};
use crate::history::{History, Recorder};

/// How long a leader may take to be replaced on a busy machine, in milliseconds.
const FAILOVER_MS: u64 = 3_000;

/// Clients of one workload.
pub struct Staff {
    /// What they do.
    pub workload: Box<dyn Workload>,
    /// How many there are.
    pub clients: usize,
    /// How they send it.
    pub manner: Manner,
}

/// What is to be done.
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// Who works.
    pub staff: Vec<Staff>,
    /// What is watched, by prefix.
    pub watches: Vec<&'static str>,
    /// How long nothing is wrong at first.
    pub before: Duration,
    /// How long faults are caused.
    pub during: Duration,
    /// How long nothing is wrong in the end.
    pub after: Duration,
    /// Successes of a kind that each phase needs.
    pub demands: Vec<(&'static str, u64)>,
    /// Fewest faults.
    pub faults_min: u64,
}

/// What a run left.
#[derive(Debug)]
pub struct Run {
    /// All that happened.
    pub history: History,
    /// What the checkers say.
    pub report: Report,
    /// Where the history stands.
    pub path: PathBuf,
}

impl Plan {
    fn header(&self, seed: u64) -> Header {
        let demand = |(kind, at_least): &(&str, u64)| Demand { kind: (*kind).into(), at_least: *at_least };
        let demands = self.demands.iter().map(demand).collect();
        Header { name: self.name.into(), seed, failover_ms: FAILOVER_MS, demands, faults_min: self.faults_min }
    }

    /// Carries it out on a cluster that is ready. The history stands in `QUORATE_HISTORIES`, or the directory for temporary files.
    pub async fn run(&self, cluster: &mut Cluster, nemesis: &mut impl Nemesis, dice: &mut StdRng) -> Run {
        let seed: u64 = dice.random();
        let dir = std::env::var_os("QUORATE_HISTORIES").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = dir.join(format!("quorate-{}-{seed}.jsonl", self.name));
        let recorder = Recorder::begin(&path, self.header(seed)).expect("the file of a history can be made");
        let nodes: Nodes =
            Arc::new(cluster.ids().into_iter().map(|id| (id, cluster.client_address_over_network(id))).collect());
        let mut dice = StdRng::seed_from_u64(seed);

        let mut hand = Process::new(recorder.clone(), nodes.clone(), 0, Manner::Persistent);
        let first = put_mark(&mut hand, "mark/first", &mut dice).await;
        let last = Last::default();
        let watches = self.watch(cluster, &recorder, first, &last);
        let is_over = Arc::new(AtomicBool::new(false));
        let clients = self.employ(&recorder, &nodes, &is_over, &mut dice);
        tokio::time::sleep(self.before).await;
        let until = Instant::now() + self.during;
        while Instant::now() < until {
            nemesis.strike(cluster, &recorder, &mut dice).await;
        }
        cluster.wait_all_ready().await;
        cluster.leader().await;
        recorder.healed();
        tokio::time::sleep(self.after).await;
        is_over.store(true, Ordering::Relaxed);
        clients.join_all().await;

        let history = recorder.history().expect("a history can be read back");
        for record in history.records.into_iter().filter(|record| record.is_unknown() && record.operation.is_kept()) {
            hand.resolve(record).await;
        }
        self.read_last(&recorder, &nodes, &mut dice).await;
        last.set(put_mark(&mut hand, "mark/last", &mut dice).await);
        let watched = tokio::time::timeout(PATIENCE, watches.join_all()).await;
        watched.unwrap_or_else(|_| panic!("watches do not come to their end; the history is {}", path.display()));
        cluster.assert_agreement().await;
        let history = recorder.history().expect("a history can be read back");
        Run { report: Report::of(&history), history, path }
    }

    fn watch(&self, cluster: &Cluster, recorder: &Recorder, first: u64, last: &Last) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        let ids = cluster.ids();
        for (number, prefix) in self.watches.iter().enumerate() {
            let client = cluster.client_without(Some(ids[number % ids.len()]));
            let (recorder, last, prefix) = (recorder.clone(), last.clone(), *prefix);
            // Some begin with what is past.
            let delay = self.during * u32::try_from(number % 3).expect("small") / 3;
            watches.spawn(async move {
                tokio::time::sleep(delay).await;
                watcher::follow(recorder, client, number as u64, prefix, first, last).await;
            });
        }
        watches
    }

    fn employ(&self, recorder: &Recorder, nodes: &Nodes, is_over: &Arc<AtomicBool>, dice: &mut StdRng) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        let mut hired: BTreeMap<&str, usize> = BTreeMap::new();
        for staff in &self.staff {
            let name = staff.workload.name();
            let of = self.staff.iter().filter(|other| other.workload.name() == name).map(|other| other.clients).sum();
            // Clients of one workload have different numbers, however they send.
            let first = hired.entry(name).or_default();
            for number in *first..*first + staff.clients {
                let process = Process::new(recorder.clone(), nodes.clone(), number, staff.manner);
                let script = staff.workload.script(number, of);
                let dice = StdRng::seed_from_u64(dice.random());
                clients.spawn(work(script, process, recorder.clone(), is_over.clone(), dice));
            }
            *first += staff.clients;
        }
        clients
    }

    async fn read_last(&self, recorder: &Recorder, nodes: &Nodes, dice: &mut StdRng) {
        for place in 0..nodes.len() {
            let mut reader = Process::new(recorder.clone(), nodes.clone(), place, Manner::Pinned);
            for operation in self.staff.iter().flat_map(|staff| staff.workload.last_reads()) {
                reader.perform(operation, dice).await;
            }
        }
    }
}

impl Run {
    /// Panics unless every rule holds, with what contradicts what and the command that shows it again. Removes the history of a
    /// run in which all is well.
    pub fn assert_sound(self) {
        let Self { history, report, path } = self;
        let (records, faults) = (history.records.len(), history.faults.len());
        let unknown = history.records.iter().filter(|record| record.is_unknown()).count();
        let text = report.describe(&history);
        let summary = format!(
            "{}: {records} operations, {unknown} of unknown fate, {faults} faults\n{text}",
            history.header.name
        );
        assert!(
            report.broken().is_empty() && report.unknown().is_empty(),
            "{summary}\nshow it again with: check-history {}",
            path.display()
        );
        println!("{summary}");
        std::fs::remove_file(&path).expect("the history is no longer needed");
    }
}

/// Writes a key of our own, and gives the revision.
async fn put_mark(hand: &mut Process, key: &str, dice: &mut StdRng) -> u64 {
    let record = hand.perform(Operation::Write(Write::put(key, key)), dice).await;
    record.decided().unwrap_or_else(|| panic!("nothing is wrong, yet: {record}")).revision
}

/// One client until it is over.
async fn work(
    mut script: Box<dyn Script>,
    mut process: Process,
    recorder: Recorder,
    is_over: Arc<AtomicBool>,
    mut dice: StdRng,
) {
    while !is_over.load(Ordering::Relaxed) {
        match script.next(recorder.now(), &mut dice) {
            Next::Pause(pause) => tokio::time::sleep(Duration::from_micros(pause)).await,
            Next::Do(operation) => {
                let record = process.perform(operation, &mut dice).await;
                script.learn(&record);
                tokio::time::sleep(Duration::from_micros(dice.random_range(THINK..THINK * 10))).await;
            }
        }
    }
}
