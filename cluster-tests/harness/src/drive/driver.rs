//! A run: clients at work, watches, and something that hurts the cluster, from the first operation to the verdicts.
//!
//! Owns the phases (before, during and after the faults), asking again for what is not known, the last reads through each node, and
//! what is left of a run that failed. Never decides whether a rule holds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::{Manner, Nodes, Process};
use super::crossing::ApiClients;
use super::large::LargeClients;
use super::nemesis::Nemesis;
use super::progress::Progress;
use super::times::TimeClients;
use super::watcher::{self, Last};
use crate::cluster::{Cluster, PATIENCE};
use cluster_histories::check::Report;
use cluster_histories::file::{Header, Requirement};
use cluster_histories::operation::{Operation, Write};
use cluster_histories::record::{Fault, Micros, Outcome};
use cluster_histories::workload::{Next, Script, Workload};
use cluster_histories::{History, Recorder};

/// How often it is looked whether a phase may end.
const LOOK: Duration = Duration::from_millis(50);
/// How long a leader may take to be replaced on a busy machine, in milliseconds.
const FAILOVER_MS: u64 = 3_000;
/// How long an API client rests between two requests.
const VISITORS_REST: Duration = Duration::from_millis(20);
/// Most keys that one of the last reads lists; a page may hold twice as many.
const LIST_MAX: usize = 500;

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
    /// How many ask everything there is to ask, beside them.
    pub api_clients: usize,
    /// How many write much, beside them.
    pub large_clients: usize,
    /// How many have the cluster tell the time, beside them. No two wall clocks may be wrong at a time.
    pub time_clients: usize,
    /// What is watched, by prefix.
    pub watches: Vec<&'static str>,
    /// How long nothing is wrong at first, at least.
    pub before: Duration,
    /// How long faults are caused, at least.
    pub during: Duration,
    /// How long nothing is wrong in the end, at least.
    pub after: Duration,
    /// How much longer a phase may take until what is demanded of it has happened.
    pub grace: Duration,
    /// What is added to the time that the cluster may take to go on after the faults.
    pub slack: Duration,
    /// Successes of a kind that each phase needs.
    pub requirements: Vec<(&'static str, u64)>,
    /// Fewest faults.
    pub faults_min: u64,
    /// Whether nodes come and go; the first one stays.
    pub has_churn: bool,
    /// How long a client does nothing between two operations.
    pub think: Range<Micros>,
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
        let requirement = |(kind, at_least): &(&str, u64)| Requirement { kind: (*kind).into(), at_least: *at_least };
        let requirements = self.requirements.iter().map(requirement).collect();
        let (name, slack_ms) = (self.name.into(), self.slack.as_millis() as u64);
        Header { name, seed, failover_ms: FAILOVER_MS, slack_ms, requirements, faults_min: self.faults_min }
    }

    /// Carries it out on a cluster that is ready. The history stands in `QUORATE_HISTORIES`, or the directory for temporary files.
    pub async fn run(&self, cluster: &mut Cluster, nemesis: &mut impl Nemesis, dice: &mut StdRng) -> Run {
        let seed: u64 = dice.random();
        let dir = std::env::var_os("QUORATE_HISTORIES").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = dir.join(format!("quorate-{}-{seed}.jsonl", self.name));
        let recorder = Recorder::begin(&path, self.header(seed)).expect("the file of a history can be made");
        let nodes = Nodes::of(cluster);
        let mut dice = StdRng::seed_from_u64(seed);

        let mut hand = Process::new(recorder.clone(), nodes.clone(), 0, Manner::Persistent);
        let first = put_mark(&mut hand, "mark/first", &mut dice).await;
        let last = Last::default();
        let watches = self.watch(cluster, &recorder, first, &last);
        let shift = Shift::new(recorder.clone(), self.think.clone());
        let clients = employ(&self.staff, &shift, &nodes, &mut dice);
        let api_clients = ApiClients::default();
        let visiting = api_clients.start(self.api_clients, &nodes, &mut dice, VISITORS_REST);
        let large_clients = LargeClients::default();
        let writing = large_clients.start(self.large_clients, &nodes, &mut dice);
        let time_clients = TimeClients::default();
        let asking = time_clients.start(self.time_clients, &nodes, &mut dice);
        let progress = &shift.progress;
        self.rest(progress, self.before).await;
        self.hurt(cluster, nemesis, &recorder, &nodes, progress, &mut dice).await;
        progress.begin(recorder.now());
        self.rest(progress, self.after).await;
        shift.end();
        api_clients.end();
        large_clients.end();
        time_clients.end();
        clients.join_all().await;
        visiting.join_all().await;
        writing.join_all().await;
        asking.join_all().await;
        let mut wrong = api_clients.wrong();
        if self.large_clients > 0 {
            wrong.extend(large_clients.wrong());
        }
        if self.time_clients > 0 {
            wrong.extend(time_clients.wrong());
        }
        assert!(wrong.is_empty(), "{}; the history is {}", wrong.join("\n"), path.display());

        resolve_unknown(&recorder, &mut hand).await;
        let reads: Vec<_> = self.staff.iter().flat_map(|staff| staff.workload.last_reads()).collect();
        read_last(&reads, &recorder, &nodes, &mut dice).await;
        last.set(put_mark(&mut hand, "mark/last", &mut dice).await);
        let watched = tokio::time::timeout(PATIENCE, watches.join_all()).await;
        watched.unwrap_or_else(|_| panic!("watches do not come to their end; the history is {}", path.display()));
        cluster.assert_agreement().await;
        let history = recorder.history().expect("a history can be read back");
        Run { report: Report::of(&history), history, path }
    }

    /// A phase without faults: so long, and until what is demanded has happened.
    async fn rest(&self, progress: &Progress, at_least: Duration) {
        tokio::time::sleep(at_least).await;
        let until = Instant::now() + self.grace;
        while !progress.has(&self.requirements) && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The phase of the faults: so long, and until there were enough of them and what is demanded has happened. In the end the
    /// cluster is whole.
    async fn hurt(
        &self,
        cluster: &mut Cluster,
        nemesis: &mut impl Nemesis,
        recorder: &Recorder,
        nodes: &Nodes,
        progress: &Progress,
        dice: &mut StdRng,
    ) {
        let begun = Instant::now();
        let (mut strikes, mut has_all) = (0, false);
        loop {
            let is_enough = strikes >= self.faults_min && has_all;
            let at_most = if is_enough { self.during } else { self.during + self.grace };
            if begun.elapsed() >= at_most {
                return;
            }
            nemesis.rest(dice).await;
            if strikes == 0 {
                progress.begin(recorder.now());
            }
            let fault = nemesis.strike(cluster, recorder, dice).await;
            // Which is the last shows only later, and the last one said counts. A majority is up by now, so that the time to
            // recover runs from here, and not from when all nodes are well.
            recorder.healed();
            // What is called from here on would be called after the faults.
            has_all = progress.has(&self.requirements);
            nodes.update(cluster);
            cluster.wait_all_ready().await;
            cluster.leader().await;
            recorder.fault(Fault { end: recorder.now(), ..fault });
            strikes += 1;
        }
    }

    fn watch(&self, cluster: &Cluster, recorder: &Recorder, first: u64, last: &Last) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        let ids = cluster.ids();
        // A node that stays must be among those that a watch knows.
        let unknown = |number: usize| (!self.has_churn).then(|| ids[number % ids.len()]);
        for (number, prefix) in self.watches.iter().enumerate() {
            let client = cluster.client_without(unknown(number));
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
}

/// Sets all clients to work until it is over.
pub fn employ(all: &[Staff], shift: &Shift, nodes: &Nodes, dice: &mut StdRng) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    let mut hired: BTreeMap<&str, usize> = BTreeMap::new();
    for staff in all {
        let name = staff.workload.name();
        let of = all.iter().filter(|other| other.workload.name() == name).map(|other| other.clients).sum();
        // Clients of one workload have different numbers, however they send.
        let first = hired.entry(name).or_default();
        for number in *first..*first + staff.clients {
            let process = Process::new(shift.recorder.clone(), nodes.clone(), number, staff.manner);
            let script = staff.workload.script(number, of);
            let dice = StdRng::seed_from_u64(dice.random());
            clients.spawn(work(script, process, shift.clone(), dice));
        }
        *first += staff.clients;
    }
    clients
}

/// Asks once more for what is not known, until it is; without a request id that would be done again.
pub async fn resolve_unknown(recorder: &Recorder, hand: &mut Process) {
    let history = recorder.history().expect("a history can be read back");
    for record in history.records.into_iter().filter(|record| record.is_unknown() && record.request_id.is_some()) {
        hand.resolve(record).await;
    }
}

/// Reads everything through each node, lists in parts that fit a page. Panics where one of these reads is not decided: without
/// them nobody knows what is lost.
pub async fn read_last(reads: &[Operation], recorder: &Recorder, nodes: &Nodes, dice: &mut StdRng) {
    let reads = in_parts(reads, recorder);
    for place in 0..nodes.count() {
        let mut reader = Process::new(recorder.clone(), nodes.clone(), place, Manner::Pinned);
        for operation in &reads {
            read_until_decided(&mut reader, operation, dice).await;
        }
    }
}

/// Reads again until there is an answer. Whether an absurd one is held against somebody, the rules say.
async fn read_until_decided(reader: &mut Process, operation: &Operation, dice: &mut StdRng) {
    let begun = Instant::now();
    loop {
        let record = reader.perform(operation.clone(), dice).await;
        if matches!(record.outcome, Outcome::Decided(_) | Outcome::Absurd(_)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "a last read is not decided after {PATIENCE:?}: {record}");
        tokio::time::sleep(LOOK).await;
    }
}

/// The same reads, with lists of few enough keys, as far as anybody ever asked to write them.
fn in_parts(reads: &[Operation], recorder: &Recorder) -> Vec<Operation> {
    let history = recorder.history().expect("a history can be read back");
    let writes = history.records.iter().flat_map(|record| record.operation.writes());
    let keys: BTreeSet<&str> = writes.map(|write| write.key.as_str()).collect();
    let parts = |read: &Operation| match read {
        Operation::List { prefix } => lists_below(prefix, &keys),
        other => vec![other.clone()],
    };
    reads.iter().flat_map(parts).collect()
}

/// One list of these keys where they are few enough, else one for each letter that goes on behind the prefix.
fn lists_below(prefix: &str, keys: &BTreeSet<&str>) -> Vec<Operation> {
    let below: BTreeSet<&str> = keys.iter().copied().filter(|key| key.starts_with(prefix)).collect();
    if below.len() <= LIST_MAX {
        return vec![Operation::List { prefix: prefix.to_owned() }];
    }
    let letters: BTreeSet<char> = below.iter().filter_map(|key| key.strip_prefix(prefix)?.chars().next()).collect();
    letters.into_iter().flat_map(|letter| lists_below(&format!("{prefix}{letter}"), &below)).collect()
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
            "{}: {records} operations, {unknown} of unknown outcome, {faults} faults\n{text}",
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

/// Writes a key of our own while nothing is wrong, and gives the revision.
pub async fn put_mark(hand: &mut Process, key: &str, dice: &mut StdRng) -> u64 {
    let record = hand.perform(Operation::Write(Write::put(key, key)), dice).await;
    record.decided().unwrap_or_else(|| panic!("nothing is wrong, yet: {record}")).revision
}

/// What all clients of a run share.
#[derive(Clone)]
pub struct Shift {
    recorder: Recorder,
    is_over: Arc<AtomicBool>,
    progress: Progress,
    think: Range<Micros>,
}

impl Shift {
    /// For clients that rest so long between two operations, in microseconds.
    pub fn new(recorder: Recorder, think: Range<Micros>) -> Self {
        Self { recorder, is_over: Arc::default(), progress: Progress::default(), think }
    }

    /// Lets each client end what it is at, and no more.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// One client until it is over.
async fn work(mut script: Box<dyn Script>, mut process: Process, shift: Shift, mut dice: StdRng) {
    while !shift.is_over.load(Ordering::Relaxed) {
        match script.next(shift.recorder.now(), &mut dice) {
            Next::Pause(pause) => tokio::time::sleep(Duration::from_micros(pause)).await,
            Next::Do(operation) => {
                let record = process.perform(operation, &mut dice).await;
                shift.progress.note(&record);
                script.learn(&record);
                tokio::time::sleep(Duration::from_micros(dice.random_range(shift.think.clone()))).await;
            }
        }
    }
}
