//! One machine of a simulation: a runtime with a clock of its own, and on it a node or clients.
//!
//! Owns the pace of its clock, its start, and its sudden end. Never decides when either happens.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quorate_machine::machine::Bounds;
use quorate_node::config::Config;
use quorate_node::server::{self, Ended, Surroundings};
use quorate_node_replica::app::App;
use quorate_store::log::{LogOptions, LogStore};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::address::HostId;
use crate::clock::{self, HostClock};
use crate::disk::Disk;
use crate::host_network;
use crate::network::Net;

/// Bytes of a segment of the log: small, so that there are many.
const SEGMENT_BYTES: u64 = 256 * 1024;
/// How long the state may be behind the log on disk.
const FLUSH_EVERY: Duration = Duration::from_secs(4);

/// A runtime whose clock moves only when it is told to.
pub struct Machine {
    runtime: Runtime,
    first: Instant,
    clock: HostClock,
    /// Milliseconds that its clock has gone.
    gone: u64,
}

impl Machine {
    /// A machine that is switched on at `now` nanoseconds of virtual time.
    pub fn new(now: u64) -> Self {
        clock::hide(now);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without I/O can be made");
        let first = runtime.block_on(async { Instant::now() });
        Self { runtime, first, clock: HostClock::new(first, now), gone: 0 }
    }

    /// Runs what there is to run until its clock has gone so many milliseconds.
    pub fn run_until(&mut self, millis: u64) {
        self.clock.show();
        while self.gone < millis {
            self.gone += 1;
            let until = self.first + Duration::from_millis(self.gone);
            self.runtime.block_on(async move { tokio::time::sleep_until(until).await });
        }
    }

    /// Its clock jumps: everything stood still meanwhile.
    pub fn jump_to(&mut self, millis: u64) {
        self.clock.show();
        if millis > self.gone {
            let by = Duration::from_millis(millis - self.gone);
            self.gone = millis;
            self.runtime.block_on(async move { tokio::time::advance(by).await });
        }
    }

    /// Starts something on it.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.clock.show();
        self.runtime.spawn(work)
    }

    /// Runs something on it that waits for nothing.
    pub fn at_once<T>(&self, work: impl Future<Output = T>) -> T {
        self.clock.show();
        self.runtime.block_on(work)
    }

    /// Its clocks.
    pub fn clock(&mut self) -> &mut HostClock {
        &mut self.clock
    }
}

/// What can be seen of a running node.
pub struct Parts {
    /// All it can do.
    pub app: App,
    /// Its log.
    pub log: LogStore,
}

/// A node that runs.
pub struct Running {
    machine: Machine,
    main: JoinHandle<Result<(), Ended>>,
    started: oneshot::Receiver<Parts>,
    parts: Option<Parts>,
    stop: CancellationToken,
    /// Why its log failed: not another word from it.
    fault: Arc<OnceLock<String>>,
    speed: Speed,
}

/// How fast a machine's clock goes, and since when.
#[derive(Clone, Copy)]
struct Speed {
    /// Virtual time since when it goes so fast, milliseconds.
    since: u64,
    /// Milliseconds that it had gone by then.
    gone: u64,
    /// How many of its milliseconds are a thousand of the simulation's.
    pace: u64,
}

impl Speed {
    /// What its clock has gone at this virtual time.
    fn at(self, now: u64) -> u64 {
        self.gone + (now - self.since) * self.pace / 1_000
    }
}

/// A place for a node, with the disk that stays when it is gone.
pub struct Host {
    /// Its number, and that of its node.
    pub id: HostId,
    /// How its node is told to run.
    pub config: Config,
    /// Its disk.
    pub disk: Arc<Disk>,
    /// What its node applies entries within.
    bounds: Bounds,
    /// The node on it, if one runs.
    pub running: Option<Running>,
    /// Stands still until then, milliseconds of virtual time.
    pub paused_until: u64,
    /// By which its wall clock is off, nanoseconds; outlives its node.
    pub wall_offset: i64,
    /// How many of its milliseconds are a thousand of the simulation's.
    pace: u64,
}

/// What a node did that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Its log failed for this reason, and it said no more.
    Died(String),
    /// It ended, and says why.
    Ended(String),
    /// It stopped, and whether it was told to.
    Stopped { was_told: bool },
}

impl Host {
    /// A host that is switched off.
    pub fn new(id: HostId, config: Config, disk: Arc<Disk>, bounds: Bounds) -> Self {
        Self { id, config, disk, bounds, running: None, paused_until: 0, wall_offset: 0, pace: 1_000 }
    }

    /// Starts its node at so many milliseconds of virtual time.
    pub fn start(&mut self, net: &Net, now: u64) {
        assert!(self.running.is_none(), "host {} runs already", self.id);
        let mut machine = Machine::new(now * 1_000_000);
        *machine.clock() = machine.clock().with_wall_offset(self.wall_offset);
        let (show, started) = oneshot::channel();
        let fault = Arc::new(OnceLock::new());
        let dies = Arc::clone(&fault);
        let disk = Arc::clone(&self.disk);
        let surroundings = Surroundings {
            network: host_network::of(net, self.id),
            log: LogOptions { segment_bytes: SEGMENT_BYTES, disk: Some(self.disk.clone()), ..LogOptions::default() },
            room: Some(Arc::new(move || Ok(disk.room()))),
            flush_every: FLUSH_EVERY,
            bounds: self.bounds,
            client_threads: Vec::new(),
            on_fatal: Arc::new(move |why| {
                // The first reason counts; it is told once only, too.
                let _first = dies.set(why.to_owned());
            }),
            on_started: Box::new(move |app, log| {
                // Nobody listens where the simulation ends this very moment.
                let _shown = show.send(Parts { app: app.clone(), log: log.clone() });
            }),
        };
        let stop = CancellationToken::new();
        let main = machine.spawn(server::run_in(surroundings, self.config.clone(), stop.clone()));
        let speed = Speed { since: now, gone: 0, pace: self.pace };
        self.paused_until = 0;
        self.running = Some(Running { machine, main, started, parts: None, stop, fault, speed });
    }

    /// Lets its node run up to this time, and says how it ended if it did.
    pub fn run_until(&mut self, now: u64) -> Option<End> {
        if now < self.paused_until {
            return None;
        }
        let running = self.running.as_mut()?;
        let due = running.speed.at(now);
        if self.paused_until != 0 {
            self.paused_until = 0;
            running.machine.jump_to(due);
        }
        running.machine.run_until(due);
        if running.parts.is_none() {
            running.parts = running.started.try_recv().ok();
        }
        if let Some(why) = running.fault.get() {
            return Some(End::Died(why.clone()));
        }
        if !running.main.is_finished() {
            return None;
        }
        let main = &mut running.main;
        Some(match running.machine.at_once(main) {
            Ok(Ok(())) => End::Stopped { was_told: running.stop.is_cancelled() },
            Ok(Err(ended)) => End::Ended(ended.to_string()),
            Err(panic) => End::Ended(format!("it panicked: {panic}")),
        })
    }

    /// Its node is gone in this moment, with all it had not made durable.
    pub fn crash(&mut self, net: &Net, silent: bool) {
        if let Some(running) = self.running.take() {
            net.crash(self.id, silent);
            let Running { machine, main, parts, .. } = running;
            machine.clock.show();
            drop((parts, main));
            drop(machine);
        }
        self.paused_until = 0;
    }

    /// Asks its node to stop.
    pub fn stop(&self) {
        self.running.iter().for_each(|running| running.stop.cancel());
    }

    /// The wall clock jumps.
    pub fn shift_wall(&mut self, nanos: i64) {
        self.wall_offset = self.wall_offset.saturating_add(nanos);
        if let Some(running) = &mut self.running {
            running.machine.clock().shift_wall(nanos);
        }
    }

    /// From now on so many of its milliseconds are a thousand of the simulation's.
    pub fn set_pace(&mut self, pace: u64, now: u64) {
        self.pace = pace;
        if let Some(running) = &mut self.running {
            running.speed = Speed { since: now, gone: running.speed.at(now), pace };
        }
    }

    /// How long its node runs, by its own clock.
    pub fn age(&self) -> Duration {
        self.running.as_ref().map_or(Duration::ZERO, |running| Duration::from_millis(running.machine.gone))
    }

    /// Whether its node runs and is not paused.
    pub fn is_awake(&self, now: u64) -> bool {
        self.running.is_some() && now >= self.paused_until
    }

    /// What can be seen of its node, once that has started.
    pub fn parts(&self) -> Option<&Parts> {
        self.running.as_ref()?.parts.as_ref()
    }

    /// The machine of its node, if that runs and is not paused.
    pub fn machine(&self, now: u64) -> Option<&Machine> {
        self.running.as_ref().filter(|_| self.is_awake(now)).map(|running| &running.machine)
    }
}
