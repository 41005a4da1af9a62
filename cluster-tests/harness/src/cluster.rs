//! A cluster of `quorate-node` processes in a temporary directory.
//!
//! Owns addresses, data directories and logs of its nodes, and the faults a test can cause. Never talks to a node but over
//! HTTP, and never repairs what a test broke.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use quorate_client::Client;
use quorate_client::api::{DigestAnswer, Role, StatusAnswer};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::coordination::Caller;
use crate::eventually::{eventually, sooner_than};
use crate::host::{Host, build_library};
use crate::http::Request;
use crate::network::Network;
use crate::node_process::{NodeProcess, describe};
use crate::ports::{Ports, free_addresses};
use crate::secret::write_secret;
use crate::stalls;
use crate::turns::Turn;

/// Long enough for anything that works at all on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long a question about the state of a node may take before it counts as no answer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// Lines of each log that a failed test prints.
const LOG_LINES: usize = 40;
/// Ports of a node and of its proxies.
const PORTS: usize = 4;
/// How often new ports are tried when another program was faster.
const PORT_TRIES: usize = 5;
/// Has a node know the feature level after the newest one.
const NEXT_LEVEL: &str = "QUORATE_NEXT_LEVEL";

/// How the nodes of a cluster are configured, beside what tells them apart.
#[derive(Debug, Clone)]
pub struct Settings {
    ids: Vec<u64>,
    flags: BTreeMap<String, String>,
    data_home: Option<PathBuf>,
    /// Whether nodes reach each other, and clients them, through proxies.
    has_proxies: bool,
    /// Whether disks and wall clocks of nodes can be hurt.
    has_hosts: bool,
    /// Network namespaces of the nodes by number, with the address of each.
    namespaces: BTreeMap<u64, (PathBuf, IpAddr)>,
    /// Addresses of nodes by number, for clients and for peers, where they are not any that are free.
    addresses: BTreeMap<u64, (SocketAddr, SocketAddr)>,
    /// The root token, where nodes ask who is there.
    root_token: Option<String>,
    /// Whether no other test may use the machine meanwhile.
    is_alone: bool,
}

impl Default for Settings {
    /// Three nodes with the defaults of the server, but for a small ballast file.
    fn default() -> Self {
        Self::with_ids([1, 2, 3])
    }
}

impl Settings {
    /// Nodes with these ids.
    pub fn with_ids(ids: impl IntoIterator<Item = u64>) -> Self {
        let flags = BTreeMap::from([("--ballast-bytes".into(), "1048576".into())]);
        let ids = ids.into_iter().collect();
        let (namespaces, addresses) = Default::default();
        Self {
            ids,
            flags,
            data_home: None,
            has_proxies: false,
            has_hosts: false,
            namespaces,
            addresses,
            root_token: None,
            is_alone: false,
        }
    }

    /// With the data directories of all nodes below this directory; their logs stay where they are.
    pub fn data_home(mut self, dir: &Path) -> Self {
        self.data_home = Some(dir.to_owned());
        self
    }

    /// With a network that can be hurt: see [`Cluster::network`].
    pub fn proxied(mut self) -> Self {
        self.has_proxies = true;
        self
    }

    /// With disks and wall clocks that can be hurt: see [`Cluster::host`].
    pub fn hosted(mut self) -> Self {
        self.has_hosts = true;
        self
    }

    /// With this node in a network namespace of its own, where it has this address.
    pub fn namespace(mut self, id: u64, namespace: &Path, address: IpAddr) -> Self {
        self.namespaces.insert(id, (namespace.to_owned(), address));
        self
    }

    /// With this node at these addresses, for clients and for peers. Nobody else may have them.
    pub fn at(mut self, id: u64, client: SocketAddr, peer: SocketAddr) -> Self {
        self.addresses.insert(id, (client, peer));
        self
    }

    /// With authentication. This root token is what [`Cluster`] itself shows to its nodes.
    pub fn guarded(mut self, root_token: &str) -> Self {
        self.root_token = Some(root_token.to_owned());
        self
    }

    /// Alone on the machine: another test at the same time would change what is measured. `alone` lists the tests with this.
    pub fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// With this flag on all nodes.
    pub fn flag(mut self, name: &str, value: impl ToString) -> Self {
        self.flags.insert(name.into(), value.to_string());
        self
    }
}

/// One member and what is known of its process.
#[derive(Debug)]
struct Node {
    client: SocketAddr,
    peer: SocketAddr,
    /// Where peers reach it: its own port, or that of a proxy.
    peer_reached: SocketAddr,
    /// Where clients that the network counts for reach it.
    client_reached: SocketAddr,
    process: Option<NodeProcess>,
    paused: bool,
    /// Flags of this node alone; they win over those of all nodes.
    flags: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    /// What it runs; `None` for the program of this build.
    program: Option<PathBuf>,
    host: Option<Host>,
    /// No other test has these, even while the node is down.
    _ports: Ports,
}

impl Node {
    /// A node at these addresses: its ports, and those of its proxies if it has any.
    fn at(addresses: &[SocketAddr], ports: Ports, has_proxies: bool) -> Self {
        let (client, peer) = (addresses[0], addresses[1]);
        let (peer_reached, client_reached) = if has_proxies { (addresses[2], addresses[3]) } else { (peer, client) };
        let (flags, environment) = Default::default();
        Self {
            client,
            peer,
            peer_reached,
            client_reached,
            process: None,
            paused: false,
            flags,
            environment,
            program: None,
            host: None,
            _ports: ports,
        }
    }
}

/// A cluster. Dropping it kills its nodes; in a test that panics it prints the ends of their logs.
#[derive(Debug)]
pub struct Cluster {
    home: TempDir,
    settings: Settings,
    nodes: BTreeMap<u64, Node>,
    network: Network,
    /// The highest id that any node ever had.
    newest: u64,
    /// Digests seen so far by log index, with the node that showed it.
    digests: BTreeMap<u64, (u64, String)>,
    /// Whether nodes may meet a bug.
    expects_faults: bool,
    /// Given back once the nodes are gone.
    _turn: Turn,
}

impl Cluster {
    /// Three nodes that are ready.
    pub async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    /// Nodes with these settings that are ready.
    pub async fn start_with(settings: Settings) -> Self {
        for _ in 1..PORT_TRIES {
            let mut cluster = Self::new(settings.clone());
            cluster.start_all();
            match cluster.all_ready_or_port_taken().await {
                Ok(()) => return cluster,
                Err(taken) => println!("trying other ports: {taken}"),
            }
        }
        panic!("other programs took the ports of the nodes {PORT_TRIES} times");
    }

    /// Addresses and directories; nothing runs yet.
    pub fn new(mut settings: Settings) -> Self {
        let turn = if settings.is_alone { Turn::alone() } else { Turn::shared() };
        let home = tempfile::Builder::new().prefix("quorate-test-").tempdir().expect("a temporary directory");
        if let Some(token) = &settings.root_token {
            let file = home.path().join("root-token");
            write_secret(&file, token);
            settings = settings.flag("--auth", "required").flag("--root-token-file", file.display());
        }
        let ids = settings.ids.clone();
        let (nodes, network) = (BTreeMap::new(), Network::default());
        let mut cluster = Self {
            home,
            settings,
            nodes,
            network,
            newest: 0,
            digests: BTreeMap::new(),
            expects_faults: false,
            _turn: turn,
        };
        for id in ids {
            cluster.put_node(id);
        }
        cluster
    }

    /// Makes room for a node, at ports of its own.
    fn put_node(&mut self, id: u64) {
        let ports = free_addresses(PORTS);
        let address = self.settings.namespaces.get(&id).map(|(_, address)| *address);
        let addresses: Vec<_> =
            ports.iter().map(|port| address.map_or(*port, |address| SocketAddr::new(address, port.port()))).collect();
        let mut node = Node::at(&addresses, ports, self.settings.has_proxies);
        if let Some((client, peer)) = self.settings.addresses.get(&id) {
            (node.client, node.client_reached, node.peer, node.peer_reached) = (*client, *client, *peer, *peer);
        }
        if address.is_some() {
            node.environment.insert("QUORATE_INSECURE".into(), "true".into());
        }
        if self.settings.has_proxies {
            let peers = self.network.open_to_peers(node.peer_reached, node.peer, id);
            let opened = peers.and_then(|()| self.network.open_to_clients(node.client_reached, node.client, id));
            opened.unwrap_or_else(|error| panic!("a proxy of node {id}: {error}"));
        }
        if self.settings.has_hosts {
            let library = self.home.path().join("host.so");
            if !library.exists() {
                build_library(self.home.path());
            }
            let host = Host::new(&self.home.path().join(id.to_string()), &self.data_dir(id), &library);
            node.environment.extend(host.environment());
            node.host = Some(host);
        }
        self.newest = self.newest.max(id);
        let before = self.nodes.insert(id, node);
        assert!(before.is_none(), "there is a node {id}");
    }

    async fn all_ready_or_port_taken(&mut self) -> Result<(), String> {
        let outcome = sooner_than(PATIENCE, async || match self.look_for_taken_port() {
            Some(taken) => Ok(Err(taken)),
            None => self.all_live_ready().await.map(Ok),
        });
        outcome.await.unwrap_or_else(|reason| panic!("a new cluster is not ready after {PATIENCE:?}: {reason}"))
    }

    fn look_for_taken_port(&mut self) -> Option<String> {
        for (id, node) in &mut self.nodes {
            let Some(process) = &mut node.process else { continue };
            let Some(end) = process.try_end() else { continue };
            let log = process.log_text();
            assert!(
                log.contains("the address is in use"),
                "node {id} ended at its first start with {}:\n{log}",
                describe(end)
            );
            return Some(log);
        }
        None
    }

    // --- who is who -------------------------------------------------------------------------------------------------

    /// All node ids.
    pub fn ids(&self) -> Vec<u64> {
        self.nodes.keys().copied().collect()
    }

    /// The ids of nodes that run and are not paused.
    pub fn live(&self) -> Vec<u64> {
        self.nodes.iter().filter(|(_, node)| node.process.is_some() && !node.paused).map(|(id, _)| *id).collect()
    }

    /// The live nodes but this one.
    pub fn live_but(&self, id: u64) -> Vec<u64> {
        self.live().into_iter().filter(|other| *other != id).collect()
    }

    /// Where clients reach a node.
    pub fn client_address(&self, id: u64) -> SocketAddr {
        self.node(id).client
    }

    /// The network between the nodes, and between clients and nodes; it can be hurt where the settings say [`Settings::proxied`].
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The disk and the wall clock of a node; they can be hurt where the settings say [`Settings::hosted`].
    pub fn host(&self, id: u64) -> &Host {
        self.node(id).host.as_ref().expect("the settings of this cluster say `hosted`")
    }

    /// Where clients reach a node over the network that can be hurt; without one, where they reach it anyway.
    pub fn client_address_over_network(&self, id: u64) -> SocketAddr {
        self.node(id).client_reached
    }

    /// Where peers reach a node.
    pub fn peer_address(&self, id: u64) -> SocketAddr {
        self.node(id).peer
    }

    /// A client that knows all nodes, live or not, but for `unknown`. What the unknown node leads it reaches through the
    /// others, so that clients which leave out different nodes send over all of them.
    pub fn client_without(&self, unknown: Option<u64>) -> Client {
        let known = self.nodes.iter().filter(|(id, _)| Some(**id) != unknown || self.nodes.len() == 1);
        let endpoints: Vec<_> = known.map(|(_, node)| node.client.to_string()).collect();
        // What is left out stays so, and a network that is hurt is not gone round.
        let mut builder = Client::builder().endpoints(endpoints.join(",")).discover_members(false);
        if let Some(token) = &self.settings.root_token {
            builder = builder.token(token);
        }
        builder.build().expect("addresses are endpoints")
    }

    /// Somebody who asks node `first`, and any other one where that does not decide.
    pub fn caller(&self, first: u64) -> Caller {
        let mut ids = self.ids();
        ids.sort_by_key(|id| (*id != first, *id));
        Caller::new(ids.into_iter().map(|id| self.client_address(id)).collect(), PATIENCE)
    }

    /// The data directory of a node.
    pub fn data_dir(&self, id: u64) -> PathBuf {
        self.settings.data_home.as_deref().unwrap_or(self.home.path()).join(id.to_string()).join("data")
    }

    /// Processor time that a running node has taken since its last start, all threads, in seconds.
    pub fn cpu_seconds(&self, id: u64) -> f64 {
        self.process(id).cpu_seconds()
    }

    /// The process id of a running node.
    pub fn process_id(&self, id: u64) -> u32 {
        self.process(id).id()
    }

    /// What a running node wrote since its last start.
    pub fn log_text(&self, id: u64) -> String {
        self.process(id).log_text()
    }

    fn node(&self, id: u64) -> &Node {
        self.nodes.get(&id).unwrap_or_else(|| panic!("there is no node {id}"))
    }

    fn node_mut(&mut self, id: u64) -> &mut Node {
        self.nodes.get_mut(&id).unwrap_or_else(|| panic!("there is no node {id}"))
    }

    fn process(&self, id: u64) -> &NodeProcess {
        self.node(id).process.as_ref().unwrap_or_else(|| panic!("node {id} does not run"))
    }

    /// This test makes nodes meet a bug.
    pub fn expect_faults(&mut self) {
        self.expects_faults = true;
    }

    /// Fails where a node met a bug, even one that it contained.
    fn assert_no_bugs(&self) {
        if self.expects_faults {
            return;
        }
        for id in self.ids() {
            // A node that was never started has no log.
            let text = std::fs::read_to_string(self.home.path().join(id.to_string()).join("log")).unwrap_or_default();
            let mut bugs = text.lines().filter(|line| BUGS.iter().any(|words| line.contains(words)));
            let bug = bugs.find(|line| !stalls::excuse(line));
            assert!(bug.is_none(), "node {id} met a bug: {}", bug.unwrap_or_default());
        }
    }

    /// From its next start on a node runs this program, or the one of this build.
    pub fn set_program(&mut self, id: u64, program: Option<PathBuf>) {
        self.node_mut(id).program = program;
    }

    /// Starts a node with this environment variable from now on.
    pub fn set_environment(&mut self, id: u64, name: &str, value: &str) {
        self.node_mut(id).environment.insert(name.into(), value.into());
    }

    /// From its next start on a node is a build that comes after this one, as far as feature levels go, or this one again; see
    /// `quorate_machine::level::NEXT`.
    pub fn set_next_build(&mut self, id: u64, is_next: bool) {
        match is_next {
            true => self.set_environment(id, NEXT_LEVEL, "1"),
            false => _ = self.node_mut(id).environment.remove(NEXT_LEVEL),
        }
    }

    // --- starting and hurting ---------------------------------------------------------------------------------------

    /// Starts a node on its directory. Returns at once; whether it comes up is for the test to see.
    pub fn start_node(&mut self, id: u64) {
        let arguments = self.arguments(id);
        let dir = self.home.path().join(id.to_string());
        std::fs::create_dir_all(&dir).expect("the directory of a node can be made");
        assert!(self.node(id).process.is_none(), "node {id} runs already");
        let namespace = self.settings.namespaces.get(&id).map(|(namespace, _)| namespace.as_path());
        let Node { program, environment, .. } = self.node(id);
        let process = NodeProcess::start(program.as_deref(), &arguments, environment, &dir.join("log"), namespace);
        let process = process.unwrap_or_else(|error| panic!("node {id} cannot be started: {error}"));
        self.network.note_process(id, process.id());
        self.node_mut(id).process = Some(process);
    }

    /// Starts all nodes that do not run.
    pub fn start_all(&mut self) {
        for id in self.ids() {
            if self.node(id).process.is_none() {
                self.start_node(id);
            }
        }
    }

    /// Starts a node on its directory and waits until it is ready.
    pub async fn bring_up(&mut self, id: u64) {
        self.start_node(id);
        self.wait_ready(id).await;
    }

    /// An id that no node of this cluster ever had.
    pub fn new_id(&self) -> u64 {
        self.newest + 1
    }

    /// A node beside the founding members, which is started with their join list. It does not run yet.
    pub fn add_node(&mut self, id: u64) {
        self.put_node(id);
    }

    /// Forgets a node that was removed from the cluster and has ended. No other ever has its id.
    pub fn forget(&mut self, id: u64) {
        let node = self.nodes.remove(&id).unwrap_or_else(|| panic!("there is no node {id}"));
        assert!(node.process.is_none(), "node {id} runs");
    }

    /// The same of a standby.
    pub fn add_standby(&mut self, id: u64) {
        self.add_node(id);
        self.node_mut(id).environment.insert("QUORATE_STANDBY".into(), "true".into());
    }

    /// From its next start on this node has this flag, whatever the others have.
    pub fn set_flag(&mut self, id: u64, name: &str, value: impl ToString) {
        self.node_mut(id).flags.insert(name.to_owned(), value.to_string());
    }

    /// From its next start on this node is configured as the others are.
    pub fn unset_flags(&mut self, id: u64) {
        self.node_mut(id).flags.clear();
    }

    /// The command line of a node: the same on every start, but for flags set meanwhile.
    pub fn arguments(&self, id: u64) -> Vec<String> {
        let join: Vec<_> =
            self.join_list(id).into_iter().map(|id| format!("{id}={}", self.node(id).peer_reached)).collect();
        let node = self.node(id);
        let mut flags = BTreeMap::from([
            ("--node-id".to_owned(), id.to_string()),
            ("--data-dir".to_owned(), self.data_dir(id).display().to_string()),
            ("--client-listen".to_owned(), node.client.to_string()),
            ("--peer-listen".to_owned(), node.peer.to_string()),
            ("--peer-advertise".to_owned(), node.peer_reached.to_string()),
            ("--join".to_owned(), join.join(",")),
        ]);
        flags.extend(self.settings.flags.clone());
        flags.extend(node.flags.clone());
        flags.into_iter().flat_map(|(name, value)| [name, value]).collect()
    }

    /// The founding members; once one of them was forgotten, those that are left and all others but the node itself.
    fn join_list(&self, id: u64) -> Vec<u64> {
        let is_founder = |id: &u64| self.settings.ids.contains(id);
        let are_all_there = self.settings.ids.iter().all(|id| self.nodes.contains_key(id));
        self.ids().into_iter().filter(|other| is_founder(other) || (!are_all_there && *other != id)).collect()
    }

    /// SIGKILL, and waits until the process is gone.
    pub async fn kill(&mut self, id: u64) {
        self.end(id, libc::SIGKILL).await;
    }

    /// SIGKILL to all live nodes at once, before the first of them is waited for.
    pub async fn kill_all(&mut self) {
        let live = self.live();
        for id in &live {
            self.process(*id).signal(libc::SIGKILL);
        }
        for id in live {
            self.kill_signalled(id).await;
        }
    }

    /// SIGTERM, and waits for the end, which must be a success.
    pub async fn stop(&mut self, id: u64) {
        let tail = self.process(id).log_tail(LOG_LINES);
        let end = self.end(id, libc::SIGTERM).await;
        assert!(end.success(), "node {id} ended a graceful stop with {}; its log before:\n{tail}", describe(end));
    }

    async fn end(&mut self, id: u64, signal: libc::c_int) -> ExitStatus {
        self.process(id).signal(signal);
        self.kill_signalled(id).await
    }

    async fn kill_signalled(&mut self, id: u64) -> ExitStatus {
        let node = self.node_mut(id);
        let mut process = node.process.take().expect("it was signalled, so it runs");
        node.paused = false;
        process.wait(PATIENCE).await
    }

    /// Waits for a node to end by itself. Returns how, and what it wrote in this run.
    pub async fn wait_end(&mut self, id: u64, within: Duration) -> (ExitStatus, String) {
        let mut process = self.node_mut(id).process.take().unwrap_or_else(|| panic!("node {id} does not run"));
        let end = process.wait(within).await;
        (end, process.log_text())
    }

    /// How a node ended and what it wrote, if it has ended.
    pub fn try_end(&mut self, id: u64) -> Option<(ExitStatus, String)> {
        let process = self.node_mut(id).process.as_mut()?;
        let end = process.try_end()?;
        let log = process.log_text();
        self.node_mut(id).process = None;
        Some((end, log))
    }

    /// Whether a node has ended by itself, and nobody looked yet.
    pub fn has_ended(&mut self, id: u64) -> bool {
        self.node_mut(id).process.as_mut().is_some_and(|process| process.try_end().is_some())
    }

    /// SIGSTOP: the node stands still but keeps its connections.
    pub fn pause(&mut self, id: u64) {
        self.process(id).signal(libc::SIGSTOP);
        self.node_mut(id).paused = true;
    }

    /// SIGCONT.
    pub fn resume(&mut self, id: u64) {
        self.process(id).signal(libc::SIGCONT);
        self.node_mut(id).paused = false;
    }

    /// Deletes the data of a node that does not run.
    pub fn wipe(&mut self, id: u64) {
        assert!(self.node(id).process.is_none(), "node {id} runs; kill it before its data is deleted");
        std::fs::remove_dir_all(self.data_dir(id)).expect("the data of a node can be deleted");
    }

    // --- looking ----------------------------------------------------------------------------------------------------

    /// The status of a node as it says it itself.
    pub async fn status(&self, id: u64) -> Result<StatusAnswer, String> {
        self.look(id, "/v1/cluster/status").await
    }

    /// The digest of a node at its applied index.
    pub async fn digest(&self, id: u64) -> Result<DigestAnswer, String> {
        self.look(id, "/v1/cluster/digest").await
    }

    /// A request of root, where nodes ask who is there.
    pub fn by_root(&self, request: Request) -> Request {
        match &self.settings.root_token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    async fn look<T: DeserializeOwned>(&self, id: u64, target: &str) -> Result<T, String> {
        let answer = self.by_root(Request::get(target)).send_within(self.client_address(id), LOOK_TIMEOUT).await;
        let answer = answer.map_err(|error| format!("node {id}: {target}: {error}"))?;
        if answer.is_success() { Ok(answer.json()) } else { Err(format!("node {id}: {target}: {}", answer.text())) }
    }

    /// Whether a node would serve a linearizable read now.
    pub async fn is_ready(&self, id: u64) -> Result<(), String> {
        let answer = Request::get("/readyz").send_within(self.client_address(id), LOOK_TIMEOUT).await;
        let answer = answer.map_err(|error| format!("node {id}: /readyz: {error}"))?;
        if answer.status == 200 { Ok(()) } else { Err(format!("node {id}: {} {}", answer.status, answer.text())) }
    }

    async fn all_live_ready(&self) -> Result<(), String> {
        for id in self.live() {
            self.is_ready(id).await?;
        }
        Ok(())
    }

    /// Waits until a node is ready.
    pub async fn wait_ready(&self, id: u64) {
        eventually(&format!("node {id} is ready"), PATIENCE, async || self.is_ready(id).await).await;
    }

    /// Waits until all live nodes are ready.
    pub async fn wait_all_ready(&self) {
        eventually("all live nodes are ready", PATIENCE, async || self.all_live_ready().await).await;
    }

    /// Waits until a live node leads and all live nodes say so in the same term. Returns its id.
    pub async fn leader(&self) -> u64 {
        eventually("one leader that all live nodes know", PATIENCE, async || self.agreed_leader().await).await
    }

    async fn agreed_leader(&self) -> Result<u64, String> {
        let mut views = Vec::new();
        for id in self.live() {
            views.push(self.status(id).await?);
        }
        let leading: Vec<_> = views.iter().filter(|view| view.role == Role::Leader).collect();
        let [leader] = leading[..] else { return Err(format!("{} nodes say that they lead", leading.len())) };
        let doubts = views.iter().find(|view| (view.leader_id, view.term) != (Some(leader.node_id), leader.term));
        match doubts {
            None => Ok(leader.node_id),
            Some(view) => Err(format!(
                "node {} leads term {}, but node {} knows {:?} in term {}",
                leader.node_id, leader.term, view.node_id, view.leader_id, view.term
            )),
        }
    }

    /// A live node that does not lead.
    pub async fn follower(&self) -> u64 {
        let leader = self.leader().await;
        *self.live_but(leader).first().expect("a cluster of one has no follower")
    }

    /// Makes this node lead, whichever does now.
    pub async fn hand_leadership_to(&self, id: u64) {
        let ask = Request::post("/v1/cluster/leader", format!("{{\"to\":{id}}}"));
        eventually(&format!("node {id} leads"), PATIENCE, async || {
            let leader = self.agreed_leader().await?;
            if leader == id {
                return Ok(());
            }
            let answer = ask.send_within(self.client_address(leader), LOOK_TIMEOUT).await;
            let answer = answer.map_err(|error| format!("node {leader}: {error}"))?;
            Err(format!("node {leader} was asked: {} {}", answer.status, answer.text()))
        })
        .await;
    }

    /// Leaves data and logs of all nodes where they are when this goes away. Gives where that is.
    pub fn keep(&mut self) -> &Path {
        self.home.disable_cleanup(true);
        self.home.path()
    }

    // --- agreement --------------------------------------------------------------------------------------------------

    /// Waits until all live nodes are at the same index with the same digest. Any two digests ever seen for one index must
    /// be equal; it panics at once where they are not.
    pub async fn assert_agreement(&mut self) {
        let live = self.live();
        let mut seen = std::mem::take(&mut self.digests);
        eventually("all live nodes are at the same index", PATIENCE, async || {
            let mut indexes = Vec::new();
            for id in &live {
                let answer = self.digest(*id).await?;
                indexes.push((*id, answer.index));
                note_digest(&mut seen, answer);
            }
            let equal = indexes.windows(2).all(|pair| pair[0].1 == pair[1].1);
            if equal { Ok(()) } else { Err(format!("nodes and their applied indexes: {indexes:?}")) }
        })
        .await;
        self.digests = seen;
    }
}

/// Remembers the digest, and compares it with what another node showed for the same index.
fn note_digest(seen: &mut BTreeMap<u64, (u64, String)>, answer: DigestAnswer) {
    let (node, digest) = seen.entry(answer.index).or_insert_with(|| (answer.node_id, answer.digest.clone()));
    assert_eq!(
        *digest, answer.digest,
        "at log index {} node {node} and node {} hold different states",
        answer.index, answer.node_id
    );
}

/// What a node logs where it met a bug and went on: in a test that is a failure.
const BUGS: [&str; 5] = [
    "a command faulted",
    "work of the store's own faulted",
    "a bug was met and contained",
    "a request met a bug",
    quorate_threads::watchdog::SAID,
];

impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_no_bugs();
            return;
        }
        for id in self.ids() {
            let path = self.home.path().join(id.to_string()).join("log");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| format!("(no log: {error})"));
            let lines: Vec<_> = text.lines().collect();
            println!("--- end of the log of node {id}");
            println!("{}", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"));
        }
        if std::env::var_os("QUORATE_KEEP").is_some() {
            println!("--- kept for QUORATE_KEEP: {}", self.keep().display());
        } else {
            println!("--- QUORATE_KEEP=1 keeps data and logs of a failed test");
        }
    }
}
