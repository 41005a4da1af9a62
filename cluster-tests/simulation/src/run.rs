//! One seed, from an empty directory to the verdicts.
//!
//! Owns the phases, and what of a run the seed decides. Never repeats anything: the seed does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cluster_harness::drive::client::{Manner, Nodes, Process};
use cluster_harness::drive::crossing::ApiClients;
use cluster_harness::drive::driver::{Shift, Staff, employ, put_mark, read_last, resolve_unknown};
use cluster_harness::{Connection, Request};
use cluster_histories::check::Report;
use cluster_histories::file::Header;
use cluster_histories::workload::Workload;
use cluster_histories::workload::accounts::Accounts;
use cluster_histories::workload::counters::Counters;
use cluster_histories::workload::fleeting::Fleeting;
use cluster_histories::workload::locks::Locks;
use cluster_histories::workload::registers::Registers;
use cluster_histories::workload::set::Set;
use cluster_histories::workload::tasks::Tasks;
use cluster_histories::{History, Recorder};
use futures::FutureExt;
use quorate_machine::machine::Bounds;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinHandle;

use crate::address::{CLIENTS, address};
use crate::clock;
use crate::host_network;
use crate::lowered;
use crate::outcome::Outcome;
use crate::scenario::archive;
use crate::watch::{Last, Watch};
use crate::world::{CLIENT_PORT, Sizes, World};
use crate::wound::{WOUNDS, Wound};

/// How long a cluster may take to come up, or to come back once nothing is wrong, milliseconds of virtual time.
const UP_MAX: u64 = 20_000;
/// How long clients may take to end once they are told to: longer than all their tries.
const END_MAX: u64 = 120_000;
/// How long a client rests between two operations, microseconds.
const THINK: std::ops::Range<u64> = 2_000..20_000;
/// How long nothing is wrong at first and in the end, and how long in the end of some seeds: what has a time of its own, as sessions
/// and tasks do, comes to it then, and no fault is an excuse.
const QUIET: u64 = 250;
const CALM: u64 = 8_000;
/// One of so many seeds ends so.
const CALM_IN: u32 = 8;
/// One of so many seeds has API clients, and how long each of them rests.
const VISITED_IN: u32 = 8;
const VISITORS_REST: Duration = Duration::from_millis(12);

/// One of so many seeds, those with this remainder, has an archive: so none but those is another one by it. How long it may take in the end
/// until all is archived, milliseconds: a base that failed is tried again after a minute.
const ARCHIVED_IN: u64 = 8;
const ARCHIVED: u64 = 3;
const ARCHIVED_MAX: u64 = 90_000;

/// What the seed decides before anything happens.
struct Plan {
    nodes: u8,
    sizes: Sizes,
    wounds: Vec<Wound>,
    /// Whether there are tasks among what clients do.
    has_tasks: bool,
    /// Longest pause between two, milliseconds.
    rest: u64,
    during: u64,
    /// How long nothing is wrong in the end, milliseconds.
    calm: u64,
    staff: Vec<Staff>,
    watches: u64,
    /// Who asks everything there is to ask, beside the others.
    api_clients: usize,
}

impl Plan {
    fn draw(dice: &mut StdRng) -> Self {
        let nodes = *[3, 3, 3, 3, 5].choose(dice).expect("not empty");
        let snapshot_every = *[20, 100, 1_000, 100_000].choose(dice).expect("not empty");
        let keep_log = *[0, 10, 1_000].choose(dice).expect("not empty");
        let sizes = Sizes { snapshot_every, keep_log, bounds: Bounds::default() };
        // Few kinds at a time get further than all at once.
        let count = dice.random_range(1..=6);
        let wounds: Vec<Wound> = WOUNDS.sample(dice, count).copied().collect();
        let (rest, during) = (dice.random_range(60..700), dice.random_range(600..2_500));
        let count = dice.random_range(1..=3);
        let staff = (0..=TASKS).collect::<Vec<_>>().sample(dice, count).copied().collect::<Vec<u8>>();
        // Tasks are due by the wall clock of a majority: where that jumps, they may come at any time.
        let has_tasks = staff.contains(&TASKS);
        let staff = staff.into_iter().map(|kind| work(kind, dice)).collect();
        let calm = if dice.random_ratio(1, CALM_IN) { CALM } else { QUIET };
        let watches = dice.random_range(0..=3);
        let api_clients = if dice.random_ratio(1, VISITED_IN) { 2 } else { 0 };
        Self { nodes, sizes, wounds, has_tasks, rest, during, calm, staff, watches, api_clients }
    }
}

/// The number of the workload of tasks, which is the last.
const TASKS: u8 = 7;

fn work(kind: u8, dice: &mut StdRng) -> Staff {
    let manner = *[Manner::Persistent, Manner::Persistent, Manner::Storming].choose(dice).expect("not empty");
    let clients = dice.random_range(1..=4);
    let staff = |workload: Box<dyn Workload>, manner| Staff { workload, clients, manner };
    match kind {
        0 => staff(Box::new(Registers { name: "registers" }), manner),
        1 => staff(Box::new(Registers { name: "pinned" }), Manner::Pinned),
        2 => staff(Box::new(Accounts), manner),
        3 => staff(Box::new(Set), manner),
        4 => staff(Box::new(Locks), manner),
        5 => staff(Box::new(Fleeting), Manner::Persistent),
        6 => staff(Box::new(Counters), manner),
        _ => staff(Box::new(Tasks), manner),
    }
}

/// A run and all it is made of.
struct Run {
    world: World,
    nodes: Nodes,
    recorder: Recorder,
    dice: StdRng,
    faults: u64,
    kinds: BTreeSet<String>,
    api_clients: ApiClients,
}

/// How many clients of the API ask beside the others in a seed.
pub fn api_clients(seed: u64) -> usize {
    Plan::draw(&mut StdRng::seed_from_u64(seed)).api_clients
}

/// Runs a seed in this directory. With `tell`, says on stderr what happens.
pub fn run(seed: u64, dir: &Path, tell: bool) -> (Outcome, Option<History>) {
    clock::simulate(seed);
    quorate_threads::background::simulate_on_this_thread();
    let mut dice = StdRng::seed_from_u64(seed);
    let mut plan = Plan::draw(&mut dice);
    // Drawn apart, so that each seed does the same as ever but for this.
    plan.sizes.bounds = lowered::by_chance(seed);
    let mut world = World::new(dir.to_owned(), plan.nodes, plan.sizes, &mut dice);
    if plan.has_tasks {
        world.keep_clocks_of_a_majority();
    }
    let addresses: Vec<_> = world.founders().iter().map(|id| (u64::from(*id), address(*id, CLIENT_PORT))).collect();
    let network = host_network::of(&world.net, CLIENTS);
    let nodes = Nodes::over(
        addresses,
        Arc::new(move |to| network.connect(&to.to_string()).map(|stream| stream.map(Connection::over)).boxed()),
    );
    if is_archived(seed) {
        archive::archive_beside(&mut world, StdRng::seed_from_u64(seed));
    }
    let header = Header { name: "simulation".into(), seed, failover_ms: 3_000, ..Header::default() };
    let recorder = world.clients.at_once(async { Recorder::in_memory(header) });
    let mut run =
        Run { world, nodes, recorder, dice, faults: 0, kinds: BTreeSet::new(), api_clients: ApiClients::repeatable() };
    let broken = run.go(&plan, is_archived(seed), tell).err();
    run.judge(seed, &plan, broken)
}

impl Run {
    fn go(&mut self, plan: &Plan, is_archived: bool, tell: bool) -> Result<(), String> {
        let say = |now: u64, what: &str| {
            if tell {
                eprintln!("{now:>7} ms  {what}")
            }
        };
        say(0, &format!("{} nodes, {:?}, {:?}, {} API clients", plan.nodes, plan.sizes, plan.wounds, plan.api_clients));
        self.world.start_all();
        self.until_ready()?;
        say(self.world.now, "all nodes are ready");
        let last: Last = Arc::default();
        let watches = self.watch(plan, &last)?;
        let shift = Shift::new(self.recorder.clone(), THINK);
        let clients = self.employ(plan, &shift);
        let visiting = self.visit(plan);
        self.steps(QUIET)?;
        let until = self.world.now + plan.during;
        while self.world.now < until {
            let rest = self.dice.random_range(0..plan.rest);
            self.steps(rest)?;
            let wound = *plan.wounds.choose(&mut self.dice).expect("there is one at least");
            let Some((node, lasts, cure)) = wound.cause(&mut self.world, &mut self.dice) else { continue };
            say(self.world.now, &format!("{wound:?} of {node} for {lasts} ms"));
            self.world.heal_after(lasts, cure);
            self.world.record(&self.recorder, format!("{wound:?}"), node, lasts);
            self.faults += 1;
            self.kinds.insert(format!("{wound:?}"));
        }
        self.world.heal_all();
        let recorder = self.recorder.clone();
        self.world.clients.at_once(async { recorder.healed() });
        self.until_ready()?;
        say(self.world.now, "all nodes are ready again");
        self.until(UP_MAX, "the members are not those that were asked for", World::has_its_members)?;
        self.steps(plan.calm)?;
        shift.end();
        self.api_clients.end();
        self.until(END_MAX, "the clients do not end", |_| clients.is_finished() && visiting.is_finished())?;
        if let Some(wrong) = self.api_clients.wrong().first() {
            return Err(wrong.clone());
        }
        let reading = self.last_reads(plan, last);
        self.until(END_MAX, "the last reads do not end", |_| reading.is_finished())?;
        self.until(END_MAX, "watches do not come to their end", |_| watches.iter().all(JoinHandle::is_finished))?;
        self.until(UP_MAX, "the nodes do not agree", World::agrees)?;
        if is_archived {
            self.restore_archived()?;
        }
        say(self.world.now, "over");
        Ok(())
    }

    /// Waits until all is archived, and restores some of it.
    fn restore_archived(&mut self) -> Result<(), String> {
        let until = self.world.now + ARCHIVED_MAX;
        while !archive::is_archived(&self.world)? {
            if self.world.now > until {
                return Err(format!("not all is archived: after {ARCHIVED_MAX} ms, {}", self.world.describe()));
            }
            self.steps(50)?;
        }
        archive::restore_some(&self.world, &mut self.dice)
    }

    fn steps(&mut self, count: u64) -> Result<(), String> {
        (0..count).try_for_each(|_| self.world.step())
    }

    fn until(&mut self, max: u64, what: &str, mut is_so: impl FnMut(&World) -> bool) -> Result<(), String> {
        for _ in 0..max {
            if is_so(&self.world) {
                return Ok(());
            }
            self.world.step()?;
        }
        Err(format!("{what}: after {max} ms, {}", self.world.describe()))
    }

    fn employ(&mut self, plan: &Plan, shift: &Shift) -> JoinHandle<()> {
        let (nodes, dice) = (&self.nodes, &mut self.dice);
        let clients = self.world.clients.at_once(async { employ(&plan.staff, shift, nodes, dice) });
        self.world.clients.spawn(async move {
            clients.join_all().await;
        })
    }

    fn visit(&mut self, plan: &Plan) -> JoinHandle<()> {
        let (nodes, dice, api_clients) = (&self.nodes, &mut self.dice, &self.api_clients);
        let start = async { api_clients.start(plan.api_clients, nodes, dice, VISITORS_REST) };
        let visiting = self.world.clients.at_once(start);
        self.world.clients.spawn(async move {
            visiting.join_all().await;
        })
    }

    /// Waits until each node says that it is ready.
    fn until_ready(&mut self) -> Result<(), String> {
        let begun = self.world.now;
        self.until(UP_MAX, "not all nodes have started", World::is_up)?;
        let nodes = self.nodes.clone();
        let asking = self.world.clients.spawn(async move {
            for place in 0..nodes.count() {
                while !is_ready(&nodes, nodes.at(place).1).await {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
        let rest = (begun + UP_MAX).saturating_sub(self.world.now);
        self.until(rest, "not all nodes become ready", |_| asking.is_finished())
    }

    /// Begins watches, from a key on that is written first.
    fn watch(&mut self, plan: &Plan, last: &Last) -> Result<Vec<JoinHandle<()>>, String> {
        let (recorder, nodes) = (self.recorder.clone(), self.nodes.clone());
        let mut dice = StdRng::seed_from_u64(self.dice.random());
        let mut first = self.world.clients.spawn(async move {
            let mut hand = Process::new(recorder, nodes, 0, Manner::Persistent);
            put_mark(&mut hand, "mark/first", &mut dice).await
        });
        self.until(UP_MAX, "not even a first write succeeds", |_| first.is_finished())?;
        let from = self.world.clients.at_once(&mut first).expect("it did not panic");
        let begin = |number| {
            let watch = Watch {
                recorder: self.recorder.clone(),
                nodes: self.nodes.clone(),
                number,
                prefix: if number == 1 { "registers/" } else { "" },
                from,
                last: last.clone(),
            };
            self.world.clients.spawn(watch.follow())
        };
        Ok((0..plan.watches).map(begin).collect())
    }

    fn last_reads(&mut self, plan: &Plan, last: Last) -> JoinHandle<()> {
        let (recorder, nodes) = (self.recorder.clone(), self.nodes.clone());
        let mut dice = StdRng::seed_from_u64(self.dice.random());
        let reads: Vec<_> = plan.staff.iter().flat_map(|staff| staff.workload.last_reads()).collect();
        self.world.clients.spawn(async move {
            let mut hand = Process::new(recorder.clone(), nodes.clone(), 0, Manner::Persistent);
            resolve_unknown(&recorder, &mut hand).await;
            read_last(&reads, &recorder, &nodes, &mut dice).await;
            last.store(put_mark(&mut hand, "mark/last", &mut dice).await, Ordering::Relaxed);
        })
    }

    fn judge(self, seed: u64, plan: &Plan, stopped: Option<String>) -> (Outcome, Option<History>) {
        let history = self.recorder.history().expect("it is in memory");
        let (mut broken, mut undecided): (Vec<String>, Vec<String>) = (stopped.into_iter().collect(), Vec::new());
        // A run that was stopped has operations that never ended: the rules were made for whole ones.
        if broken.is_empty() {
            let report = Report::of(&history);
            if !report.broken().is_empty() {
                broken.push(report.describe(&history));
            }
            undecided.extend(report.unknown().into_iter().map(str::to_owned));
        }
        let outcome = Outcome {
            seed,
            operations: history.records.len() as u64,
            unknown: history.records.iter().filter(|record| record.is_unknown()).count() as u64,
            faults: self.faults,
            torn: self.world.torn,
            member_changes: self.world.member_changes(),
            millis: self.world.now,
            api_clients: plan.api_clients,
            trace: self.world.net.trace() ^ self.world.facts.trace.rotate_left(32) ^ self.world.net.bytes(),
            kinds: self.kinds,
            broken,
            undecided,
            long_steps: BTreeMap::new(),
        };
        let is_broken = !outcome.broken.is_empty();
        (outcome, is_broken.then_some(history))
    }
}

fn is_archived(seed: u64) -> bool {
    seed % ARCHIVED_IN == ARCHIVED
}

async fn is_ready(nodes: &Nodes, address: std::net::SocketAddr) -> bool {
    let asked = async {
        let mut connection = nodes.connect(address).await?;
        connection.exchange(&Request::get("/readyz")).await
    };
    matches!(tokio::time::timeout(Duration::from_millis(800), asked).await, Ok(Ok(answer)) if answer.is_success())
}
