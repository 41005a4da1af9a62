//! A simulated cluster: its hosts, its network, its clients' machine, and the time that they share.
//!
//! Owns the order in which things happen within a millisecond of virtual time, and what is under way: hosts that will start, links
//! that will heal. Every number that could be otherwise comes from the seed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cluster_harness::{Answer, Connection, Request};
use cluster_histories::Recorder;
use cluster_histories::record::Fault;
use quorate_machine::machine::Bounds;
use quorate_node::config::{Args, Config};
use quorate_node_replica::app::archive::ArchiveSettings;
use quorate_store::quarantine::{self, Cause, Quarantine};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::JoinHandle;

use crate::address::{CLIENTS, HostId, address};
use crate::cure::Cure;
use crate::disk::Disk;
use crate::facts::Facts;
use crate::host::{End, Host, Machine, Parts};
use crate::network::{Link, Net};
use crate::objects::Objects;
use crate::{clock, host_network, socket};

/// Where clients connect.
pub const CLIENT_PORT: u16 = 7_100;
const PEER_PORT: u16 = 7_200;
/// How often logs are compared, in milliseconds.
const COMPARE_LOGS_EVERY: u64 = 250;
/// A node that ended by itself is started again after this, in milliseconds.
const RESTART_AFTER: std::ops::Range<u64> = 50..1_500;
/// What a node says whose log lost its disk, and one that is no member any more.
const DISK_FAILED: &str = "the simulated disk failed a sync";
const REMOVED: &str = "was removed from its cluster";
/// For one request about members, and between two.
const MEMBERS_ASK: Duration = Duration::from_secs(5);
const MEMBERS_PAUSE: Duration = Duration::from_millis(200);

/// Where clients reach a host.
pub fn client_address(id: HostId) -> String {
    address(id, CLIENT_PORT).to_string()
}

/// How large things may get before something is done about it.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Entries between two snapshots.
    pub snapshot_every: u64,
    /// Entries kept behind a snapshot.
    pub keep_log: u64,
    /// What every node applies entries within, from its first start on.
    pub bounds: Bounds,
}

/// See the top of the file.
pub struct World {
    /// Milliseconds of virtual time.
    pub now: u64,
    /// What connects the hosts.
    pub net: Net,
    /// The machine of all clients.
    pub clients: Machine,
    /// What was seen of the nodes.
    pub facts: Facts,
    /// Groups of logs of which a crash left some sectors.
    pub torn: u64,
    /// Where nodes keep their archive, in stories that have one.
    pub objects: Arc<Objects>,
    hosts: BTreeMap<HostId, Host>,
    founders: Vec<HostId>,
    /// Whether no two wall clocks are wrong at a time.
    one_wrong_clock: bool,
    /// The wrong clock in that case, and its error in nanoseconds.
    wrong_clock: Option<(HostId, i64)>,
    archive: Option<ArchiveSettings>,
    sizes: Sizes,
    dir: PathBuf,
    dice: StdRng,
    /// What heals when.
    due: BTreeMap<(u64, u64), Cure>,
    number: u64,
    /// Nodes that the cluster was asked to take in, and whether it said that it has.
    came: BTreeMap<HostId, Arc<AtomicBool>>,
    /// Nodes that are to end by themselves for good, and what they say then.
    doomed: BTreeMap<HostId, &'static str>,
    /// Nodes that it was asked to remove, and whether it said that it has.
    left: BTreeMap<HostId, Arc<AtomicBool>>,
}

impl World {
    /// So many hosts, their nodes off.
    pub fn new(dir: PathBuf, nodes: u8, sizes: Sizes, dice: &mut StdRng) -> Self {
        let founders: Vec<HostId> = (1..=nodes).collect();
        let mut world = Self {
            now: 0,
            net: Net::new(StdRng::seed_from_u64(dice.random()), socket::open),
            clients: Machine::new(0),
            facts: Facts::default(),
            torn: 0,
            objects: Arc::default(),
            hosts: BTreeMap::new(),
            founders: founders.clone(),
            one_wrong_clock: false,
            wrong_clock: None,
            archive: None,
            sizes,
            dir,
            dice: StdRng::seed_from_u64(dice.random()),
            due: BTreeMap::new(),
            number: 0,
            came: BTreeMap::new(),
            doomed: BTreeMap::new(),
            left: BTreeMap::new(),
        };
        founders.into_iter().for_each(|id| world.add_host(id));
        world
    }

    fn ids(&self) -> Vec<HostId> {
        self.hosts.keys().copied().collect()
    }

    /// Numbers of those that can be hurt: their nodes run.
    pub fn awake(&self) -> Vec<HostId> {
        self.hosts.values().filter(|host| host.is_awake(self.now)).map(|host| host.id).collect()
    }

    /// Whether the node of every host runs.
    pub fn are_all_awake(&self) -> bool {
        self.hosts.values().all(|host| host.is_awake(self.now))
    }

    /// Numbers of those that clients know.
    pub fn founders(&self) -> &[HostId] {
        &self.founders
    }

    /// Who leads, as far as can be seen.
    pub fn leader(&self) -> Option<HostId> {
        self.facts.last_leader().filter(|id| self.hosts.contains_key(id))
    }

    fn add_host(&mut self, id: HostId) {
        let disk = Arc::new(Disk::new(StdRng::seed_from_u64(self.dice.random())));
        let host = Host::new(id, self.config(id), disk, self.sizes.bounds);
        self.hosts.insert(id, host);
    }

    fn config(&self, id: HostId) -> Config {
        let join: Vec<String> =
            self.founders.iter().map(|founder| format!("{founder}={}", address(*founder, PEER_PORT))).collect();
        let args = Args {
            node_id: Some(u64::from(id)),
            data_dir: Some(self.dir.join(format!("node-{id}"))),
            client_listen: Some(address(id, CLIENT_PORT).to_string()),
            peer_listen: Some(address(id, PEER_PORT).to_string()),
            peer_advertise: (!self.founders.contains(&id)).then(|| address(id, PEER_PORT).to_string()),
            join: Some(join.join(",")),
            ballast_bytes: Some(0),
            min_free_bytes: Some(0),
            ..Args::default()
        };
        let config = Config::try_from(args).unwrap_or_else(|error| panic!("the settings are fine: {error}"));
        // Far below what the settings allow: what is rare in life has to be frequent here.
        let (snapshot_every_entries, keep_log_entries) = (self.sizes.snapshot_every, self.sizes.keep_log);
        Config { snapshot_every_entries, keep_log_entries, archive: self.archive.clone(), ..config }
    }

    /// One millisecond. An error says what must not be.
    pub fn step(&mut self) -> Result<(), String> {
        self.now += 1;
        let until = self.now;
        self.heal_what_is_due();
        self.objects.advance(until);
        self.net.advance(until * 1_000);
        self.clients.run_until(until);
        for id in self.ids() {
            let host = self.hosts.get_mut(&id).expect("just listed");
            let end = host.run_until(until);
            clock::hide(until * 1_000_000);
            if let Some(end) = end {
                self.take_end(id, end)?;
            }
        }
        self.look(until)
    }

    /// Steps until it is so, so many milliseconds at most.
    pub fn until(&mut self, max: u64, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        for _ in 0..max {
            if is_so(self) {
                return Ok(());
            }
            self.step()?;
        }
        Err(format!("{what}: after {max} ms, {}", self.describe()))
    }

    /// A node ended. That is fine only for the reasons that it was given.
    fn take_end(&mut self, id: HostId, end: End) -> Result<(), String> {
        let cure = self.crash(id, false);
        match end {
            End::Died(why) if why.contains(DISK_FAILED) => {}
            End::Died(why) if self.doomed.get(&id).is_some_and(|words| why.contains(words)) => return Ok(()),
            End::Stopped { was_told: true } => {}
            End::Ended(why) if why.contains(REMOVED) && self.left.contains_key(&id) => return Ok(()),
            End::Died(why) | End::Ended(why) => return Err(format!("node {id} ended by itself: {why}")),
            End::Stopped { was_told: false } => return Err(format!("node {id} stopped, and nobody told it to")),
        }
        let after = self.dice.random_range(RESTART_AFTER);
        self.heal_after(after, cure);
        Ok(())
    }

    fn look(&mut self, now: u64) -> Result<(), String> {
        self.hosts.values().for_each(|host| self.facts.note_durable(host));
        for host in self.hosts.values() {
            self.facts.look(host)?;
            if now % COMPARE_LOGS_EVERY == u64::from(host.id)
                && let (Some(parts), Some(machine)) = (host.parts(), host.machine(now))
            {
                machine.at_once(self.facts.compare_log(host.id, parts))?;
                clock::hide(now * 1_000_000);
            }
        }
        Ok(())
    }

    /// Whether every host that should has a running node.
    pub fn is_up(&self) -> bool {
        let should = |host: &&Host| !self.left.contains_key(&host.id);
        self.hosts.values().filter(should).all(|host| host.parts().is_some())
    }

    /// Whether every change of members that was asked for was made.
    pub fn has_its_members(&self) -> bool {
        self.came.values().chain(self.left.values()).all(|is_done| is_done.load(Ordering::Relaxed))
    }

    /// How many such changes were made.
    pub fn member_changes(&self) -> u64 {
        self.came.values().chain(self.left.values()).filter(|is_done| is_done.load(Ordering::Relaxed)).count() as u64
    }

    /// Whether all members have applied the same, and it is this much at least.
    pub fn agrees(&self) -> bool {
        let members: Vec<&Host> = self.hosts.values().filter(|host| !self.left.contains_key(&host.id)).collect();
        let state = |host: &&Host| host.parts().map(|parts| parts.app.state().applied());
        let states: Vec<_> = members.iter().filter_map(state).collect();
        states.len() == members.len()
            && states.iter().all(|state| state.at.index >= self.facts.applied() && state.digest == states[0].digest)
    }

    /// What every node has applied, for people.
    pub fn describe(&self) -> String {
        let of = |host: &Host| {
            let state = host.parts().map(|parts| parts.app.state().position());
            format!("node {}: {:?}", host.id, state.map(|state| (state.index, state.revision)))
        };
        self.hosts.values().map(of).collect::<Vec<_>>().join(", ")
    }

    // --- what a scenario stages ------------------------------------------------------------------------------------------

    /// Changes the settings of a host's node from its next start on.
    pub fn configure(&mut self, id: HostId, change: impl FnOnce(&mut Config)) {
        change(&mut self.hosts.get_mut(&id).expect("hosts stay").config);
    }

    /// All nodes have this archive, from their next start on.
    pub fn archive_to(&mut self, settings: &ArchiveSettings) {
        self.archive = Some(settings.clone());
        self.ids().into_iter().for_each(|id| self.configure(id, |config| config.archive = Some(settings.clone())));
    }

    /// One more host, whose node takes part by itself.
    pub fn bring_standby(&mut self) -> HostId {
        let id = self.hosts.keys().max().map_or(1, |last| last + 1);
        self.add_host(id);
        self.configure(id, |config| config.standby = true);
        self.heal(Cure::Start(id));
        id
    }

    /// The cluster is about to be asked to let a node go, which may end by itself from now on, for that reason.
    pub fn expect_gone(&mut self, id: HostId) {
        self.left.insert(id, Arc::default());
    }

    /// A node is about to end by itself, with these words, and is not started again.
    pub fn expect_death(&mut self, id: HostId, words: &'static str) {
        self.doomed.insert(id, words);
    }

    /// Where the data of a node are.
    pub fn data_dir(&self, id: HostId) -> PathBuf {
        self.dir.join(format!("node-{id}"))
    }

    /// The network as clients see it.
    pub fn client_network(&self) -> Arc<dyn quorate_node_core::net::Network> {
        host_network::of(&self.net, CLIENTS)
    }

    /// A node restarts and does not trust its state from then on, which is in truth that of the others.
    pub fn distrust(&mut self, id: HostId) {
        let start = self.crash(id, false);
        let mark = Quarantine { index: 1, cause: Cause::Contradicted, reason: "a scenario wants it so".into() };
        let dir = self.dir.join(format!("node-{id}"));
        quarantine::write(&dir, &mark).expect("the mark can be written");
        self.heal(start);
    }

    /// What can be seen of a node, if it runs.
    pub fn parts(&self, id: HostId) -> Option<&Parts> {
        self.hosts.get(&id)?.parts()
    }

    /// So many bytes are free on its disk.
    pub fn set_free(&mut self, id: HostId, free: u64) {
        self.hosts[&id].disk.set_free(free);
    }

    /// Sends a request to a host.
    pub fn request(&self, to: HostId, request: Request) -> JoinHandle<std::io::Result<Answer>> {
        let connecting = self.connect(to);
        self.spawn(async move { connecting.await?.exchange(&request).await })
    }

    /// A connection of a client to a host.
    pub fn connect(&self, to: HostId) -> impl Future<Output = std::io::Result<Connection>> + Send + 'static {
        let connecting = host_network::of(&self.net, CLIENTS).connect(&address(to, CLIENT_PORT).to_string());
        async move { Ok(Connection::over(connecting.await?)) }
    }

    /// Something that a client does.
    pub fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        let begun = self.clients.spawn(work);
        clock::hide(self.now * 1_000_000);
        begun
    }

    // --- harm and healing ------------------------------------------------------------------------------------------------

    /// Starts all nodes.
    pub fn start_all(&mut self) {
        self.founders.clone().into_iter().for_each(|id| self.heal(Cure::Start(id)));
    }

    /// Heals this in so many milliseconds.
    pub fn heal_after(&mut self, millis: u64, cure: Cure) {
        self.number += 1;
        self.due.insert((self.now + millis, self.number), cure);
    }

    /// Everything that is under way heals now.
    pub fn heal_all(&mut self) {
        std::mem::take(&mut self.due).into_values().for_each(|cure| self.heal(cure));
        self.net.heal();
        for host in self.hosts.values_mut() {
            host.disk.heal();
            host.paused_until = host.paused_until.min(self.now + 1);
        }
    }

    fn heal_what_is_due(&mut self) {
        while let Some(first) = self.due.first_entry().filter(|first| first.key().0 <= self.now) {
            let cure = first.remove();
            self.heal(cure);
        }
    }

    /// Heals this at once.
    pub fn heal(&mut self, cure: Cure) {
        match cure {
            Cure::Start(id) => {
                let host = self.hosts.get_mut(&id).expect("hosts stay");
                if host.running.is_none() {
                    self.facts.forget(id);
                    host.start(&self.net, self.now);
                    clock::hide(self.now * 1_000_000);
                }
            }
            Cure::Links(links) => {
                links.into_iter().for_each(|(from, to)| self.net.change(from, to, |link| *link = Link::default()));
            }
            Cure::Disk(id) => self.hosts[&id].disk.heal(),
            Cure::None => {}
        }
    }

    /// A node is gone in this moment.
    pub fn crash(&mut self, id: HostId, silent: bool) -> Cure {
        let host = self.hosts.get_mut(&id).expect("hosts stay");
        self.facts.note_durable(host);
        let torn = host.disk.torn();
        host.crash(&self.net, silent);
        self.torn += host.disk.torn() - torn;
        clock::hide(self.now * 1_000_000);
        Cure::Start(id)
    }

    /// A node is asked to stop. It is started again when it has.
    pub fn stop(&mut self, id: HostId) {
        self.facts.is_handed_over = true;
        self.hosts[&id].stop();
    }

    /// A node stands still for so many milliseconds.
    pub fn pause(&mut self, id: HostId, millis: u64) {
        self.hosts.get_mut(&id).expect("hosts stay").paused_until = self.now + millis;
    }

    /// Changes these directions.
    pub fn change_links(&mut self, links: Vec<(HostId, HostId)>, change: impl Fn(&mut Link)) -> Cure {
        links.iter().for_each(|(from, to)| self.net.change(*from, *to, &change));
        Cure::Links(links)
    }

    /// Its syncs take up to so many microseconds.
    pub fn slow_disk(&mut self, id: HostId, slowest: u64) -> Cure {
        self.hosts[&id].disk.slow_down(slowest);
        Cure::Disk(id)
    }

    /// Its next sync fails.
    pub fn fail_disk(&mut self, id: HostId) -> Cure {
        self.hosts[&id].disk.fail_next();
        Cure::Disk(id)
    }

    /// From now on one wall clock is wrong at a time: those of a majority are right.
    pub fn keep_clocks_of_a_majority(&mut self) {
        self.one_wrong_clock = true;
    }

    /// A wall clock jumps by this many nanoseconds. If one clock may be wrong at a time, the one that was wrong is set right at the same moment,
    /// before any node knows.
    pub fn jump_wall(&mut self, id: HostId, nanos: i64) -> Cure {
        if self.one_wrong_clock {
            if let Some((wrong, by)) = self.wrong_clock.take() {
                self.shift_wall(wrong, -by);
            }
            self.wrong_clock = Some((id, nanos));
        }
        self.shift_wall(id, nanos)
    }

    /// Its wall clock jumps by so many nanoseconds.
    pub fn shift_wall(&mut self, id: HostId, nanos: i64) -> Cure {
        self.hosts.get_mut(&id).expect("hosts stay").shift_wall(nanos);
        Cure::None
    }

    /// So many of its milliseconds are a thousand of ours, from now on.
    pub fn set_pace(&mut self, id: HostId, pace: u64) -> Cure {
        self.hosts.get_mut(&id).expect("hosts stay").set_pace(pace, self.now);
        Cure::None
    }

    /// The leader is asked to hand over to this node. Whether it does is its business.
    pub fn hand_over(&mut self, to: HostId) -> Cure {
        self.facts.is_handed_over = true;
        if let Some(leader) = self.leader() {
            self.ask(leader, Request::post("/v1/cluster/leader", format!("{{\"to\":{to}}}")));
        }
        Cure::None
    }

    /// A node is asked for a snapshot.
    pub fn snapshot(&mut self, id: HostId) -> Cure {
        let host = &self.hosts[&id];
        if let (Some(parts), Some(machine)) = (host.parts(), host.machine(self.now)) {
            let raft = parts.app.raft().clone();
            // An answer would only say that it is under way.
            machine.spawn(async move { raft.trigger().snapshot().await.is_ok() });
            clock::hide(self.now * 1_000_000);
        }
        Cure::None
    }

    /// A leader is told to take the vote from a node, past all that our own changes of the members see to.
    pub fn take_vote_from(&mut self, leader: HostId, from: HostId) {
        let host = &self.hosts[&leader];
        if let (Some(parts), Some(machine)) = (host.parts(), host.machine(self.now)) {
            let raft = parts.app.raft().clone();
            let change = openraft::ChangeMembers::RemoveVoters([u64::from(from)].into());
            // Whether it comes to anything is seen in the members.
            machine.spawn(async move { raft.change_membership(change, true).await.is_ok() });
            clock::hide(self.now * 1_000_000);
        }
    }

    /// One more node with a vote, or one that came so less; `None` while an earlier change is under way.
    pub fn change_members(&mut self) -> Option<Cure> {
        if !self.has_its_members() {
            return None;
        }
        let is_done = Arc::new(AtomicBool::new(false));
        match self.hosts.keys().copied().find(|id| self.came.contains_key(id) && !self.left.contains_key(id)) {
            Some(guest) => {
                self.left.insert(guest, Arc::clone(&is_done));
                // One that leads hands over before it goes.
                self.facts.is_handed_over = true;
                self.ask_until_done(Request::new("DELETE", format!("/v1/cluster/members/{guest}")), is_done);
            }
            None => {
                let guest = self.hosts.keys().max().map_or(1, |last| last + 1);
                self.add_host(guest);
                self.heal(Cure::Start(guest));
                let body =
                    format!("{{\"id\":{guest},\"peer_addr\":\"{}\",\"promote\":true}}", address(guest, PEER_PORT));
                self.came.insert(guest, Arc::clone(&is_done));
                self.ask_until_done(Request::post("/v1/cluster/members", body), is_done);
            }
        }
        Some(Cure::None)
    }

    /// Asks one founder after the other until one says that it was done. Who is gone already was removed by an earlier try.
    fn ask_until_done(&mut self, request: Request, is_done: Arc<AtomicBool>) {
        let network = host_network::of(&self.net, CLIENTS);
        let founders = self.founders.clone();
        let first = self.dice.random_range(0..founders.len());
        self.clients.spawn(async move {
            for place in first.. {
                let to = address(founders[place % founders.len()], CLIENT_PORT).to_string();
                let asking = async { Connection::over(network.connect(&to).await?).exchange(&request).await };
                let answer = tokio::time::timeout(MEMBERS_ASK, asking).await;
                if let Ok(Ok(answer)) = answer
                    && (answer.is_success() || request.method == "DELETE" && answer.status == 404)
                {
                    return is_done.store(true, Ordering::Relaxed);
                }
                tokio::time::sleep(MEMBERS_PAUSE).await;
            }
        });
        clock::hide(self.now * 1_000_000);
    }

    /// Sends a request and lets it be.
    fn ask(&self, host: HostId, request: Request) {
        let connecting = host_network::of(&self.net, CLIENTS).connect(&address(host, CLIENT_PORT).to_string());
        self.clients.spawn(async move {
            let mut connection = Connection::over(connecting.await?);
            connection.exchange(&request).await
        });
        clock::hide(self.now * 1_000_000);
    }

    /// Writes down what was done.
    pub fn record(&mut self, recorder: &Recorder, kind: String, node: HostId, lasts: u64) {
        let begin = self.clients.at_once(async { recorder.now() });
        clock::hide(self.now * 1_000_000);
        recorder.fault(Fault { kind, node: u64::from(node), begin, end: begin + lasts * 1_000 });
    }
}
