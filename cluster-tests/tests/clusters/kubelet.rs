//! What Kubernetes does to the pods of the StatefulSet, done to processes: they are killed, moved, lose their volumes, are scaled, and
//! are asked by probes all the while.
//!
//! Runs the command that stands in `scripts/deploy/kubernetes/base/statefulset.yaml`, each pod in a network namespace of its own and with
//! names that lead to where it is now. Needs root, `ip`, `unshare` and `mount`, and says so where they are missing. The nodes have
//! certificates as in the manifest; clients come without.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use cluster_harness::{PATIENCE, Request, eventually, write_secret};
use quorate_client::Client;
use quorate_client::api::MemberRole;
use quorate_node::EXIT_REMOVED;

use super::guide::{built, command};

/// As the manifest has it.
const FOUNDERS: u64 = 3;
/// Networks made so far.
static NETWORKS: AtomicU8 = AtomicU8::new(0);
/// Pods that there are at most.
const PODS: u64 = 5;
/// How long a liveness probe waits for an answer, and how often in a row it may have none: `base/statefulset.yaml`.
const LIVENESS_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs a program, and says why where it fails.
pub fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program} {}: {said}", arguments.join(" "))) }
}

pub fn ip(line: &str) -> Result<(), String> {
    run("ip", &line.split(' ').collect::<Vec<_>>())
}

/// A pod that runs.
struct Pod {
    process: Child,
    space: String,
    address: IpAddr,
}

/// The machines, their network and the names in it. Dropping it ends and removes everything.
struct Kubelet {
    name: String,
    /// The first three numbers of all addresses.
    network: String,
    dir: tempfile::TempDir,
    command: String,
    pods: BTreeMap<u64, Pod>,
    /// Where each name leads.
    names: BTreeMap<u64, IpAddr>,
    /// Addresses given so far: none is given twice.
    addresses: u8,
    /// Whether a certificate is all that a newcomer needs.
    is_open: bool,
}

/// The command of the container: the folded block below `- >-`, whose lines are one.
fn command_of_manifest() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/deploy/kubernetes/base/statefulset.yaml");
    let text = fs::read_to_string(path).expect("the manifest");
    let (_, block) = text.split_once("            - >-\n").expect("a command");
    let lines = block.lines().take_while(|line| line.starts_with("              "));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

impl Kubelet {
    fn new(is_open: bool) -> Result<Self, String> {
        for program in ["unshare", "mount"] {
            run(program, &["--version"])?;
        }
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        // Tests of one process run side by side.
        let nth = NETWORKS.fetch_add(1, Ordering::Relaxed);
        let (name, network) = (format!("k{}x{nth}", std::process::id() % 100_000), format!("10.213.{}", 80 + nth));
        let (pods, names) = (BTreeMap::new(), BTreeMap::new());
        let kubelet = Self { name, network, dir, command: command_of_manifest(), pods, names, addresses: 0, is_open };
        let (bridge, network) = (&kubelet.name, &kubelet.network);
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {network}.254/24 dev {bridge}"))?;
        ip(&format!("link set {bridge} up"))?;
        kubelet.make_certificates();
        Ok(kubelet)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// For each pod one with its names, as the guide makes them.
    fn make_certificates(&self) {
        let pki = |arguments: &[&str]| {
            let done = Command::new(built("quorate-node")).arg("pki").args(arguments).output().expect("it runs");
            assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        };
        let dir = self.path("pki").display().to_string();
        pki(&["init", &dir]);
        for pod in 1..=PODS {
            let spare: String = (1..=9).map(|nth| format!("node-{pod}0{nth}.quorate,")).collect();
            pki(&["node", &dir, "--id", &pod.to_string(), "--host", &format!("{spare}node-{pod}.quorate-peers")]);
        }
    }

    /// A network namespace with an address that nobody had before, to which the name of the pod leads from now on.
    fn make_space(&mut self, pod: u64) -> (String, IpAddr) {
        self.addresses += 1;
        let (space, nth) = (format!("{}n{}", self.name, self.addresses), self.addresses);
        let (outer, bridge, network) = (format!("{}-{nth}", self.name), self.name.clone(), &self.network);
        let made = ip(&format!("netns add {space}"))
            .and_then(|()| ip(&format!("link add {outer} type veth peer name eth0 netns {space}")))
            .and_then(|()| ip(&format!("link set {outer} master {bridge} up")))
            .and_then(|()| ip(&format!("-n {space} addr add {network}.{nth}/24 dev eth0")))
            .and_then(|()| ip(&format!("-n {space} link set eth0 up")))
            .and_then(|()| ip(&format!("-n {space} link set lo up")));
        made.expect("a namespace");
        let address: IpAddr = format!("{network}.{nth}").parse().expect("an address");
        self.names.insert(pod, address);
        self.tell_names();
        (space, address)
    }

    /// What all pods take for `/etc/hosts`, changed in place.
    fn tell_names(&self) {
        let line = |(pod, address): (&u64, &IpAddr)| format!("{address} node-{pod}.quorate-peers\n");
        let text: String = self.names.iter().map(line).collect();
        fs::write(self.path("hosts"), format!("127.0.0.1 localhost\n{text}")).expect("it can be written");
    }

    /// The container of a pod, on its volume, which is made where it is missing.
    fn spawn(&self, pod: u64, space: &str) -> Child {
        let volume = self.path(&format!("data-node-{pod}"));
        fs::create_dir_all(&volume).expect("it can be made");
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path(pod)).expect("a log");
        let programs = built("quorate-node").parent().expect("a directory").display().to_string();
        let pki = |name: &str| self.path("pki").join(name);
        let mut command = command("unshare");
        command.args(["--mount", "sh", "-c", "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"", "sh"]);
        command.arg(self.path("hosts")).args(["ip", "netns", "exec", space, "sh", "-c", &self.command]);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{programs}:{path}")).env("POD_NAME", format!("node-{pod}"));
        command.env("QUORATE_DATA_DIR", volume.join("data")).env("QUORATE_INSECURE", "true");
        command.env("QUORATE_PEER_TLS_CERT", pki(&format!("node-{pod}.crt")));
        command.env("QUORATE_PEER_TLS_KEY", pki(&format!("node-{pod}.key")));
        command.env("QUORATE_PEER_TLS_CA", pki("ca.crt"));
        if self.is_open {
            command.env("QUORATE_JOIN_POLICY", "open");
        }
        command.env("QUORATE_JOIN_TOKEN_FILE", self.path("join-token"));
        command.env("QUORATE_BALLAST_BYTES", "0").env("QUORATE_MIN_FREE_BYTES", "0");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a descriptor")).stderr(log);
        // SAFETY: prctl is a plain system call; nothing is allocated or locked between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        command.spawn().expect("the container starts")
    }

    fn log_path(&self, pod: u64) -> PathBuf {
        self.path(&format!("node-{pod}.log"))
    }

    fn log(&self, pod: u64) -> String {
        fs::read_to_string(self.log_path(pod)).unwrap_or_default()
    }

    /// The pods that there are to be: those beyond are stopped, in the order of a StatefulSet, and those that are missing started.
    fn scale(&mut self, replicas: u64) {
        for pod in (replicas + 1..=PODS).rev() {
            self.remove_pod(pod);
        }
        let missing: Vec<u64> = (1..=replicas).filter(|pod| !self.pods.contains_key(pod)).collect();
        let spaces: Vec<_> = missing.into_iter().map(|pod| (pod, self.make_space(pod))).collect();
        for (pod, (space, address)) in spaces {
            let process = self.spawn(pod, &space);
            self.pods.insert(pod, Pod { process, space, address });
        }
    }

    /// Takes a pod away, with a moment to end by itself.
    fn remove_pod(&mut self, pod: u64) {
        let Some(mut gone) = self.pods.remove(&pod) else { return };
        let ends = |gone: &mut Pod| gone.process.try_wait().expect("a child can be waited for").is_some();
        if !ends(&mut gone) {
            // SAFETY: takes no pointers; the child was not waited for, so the id is its.
            unsafe { libc::kill(gone.process.id() as libc::pid_t, libc::SIGTERM) };
        }
        let until = std::time::Instant::now() + PATIENCE;
        while !ends(&mut gone) {
            assert!(std::time::Instant::now() < until, "node-{pod} does not stop:\n{}", self.log(pod));
            std::thread::sleep(Duration::from_millis(10));
        }
        ip(&format!("netns del {}", gone.space)).expect("it was made");
    }

    /// Puts the pod on another machine: the same volume and name, another address.
    fn move_pod(&mut self, pod: u64) {
        self.remove_pod(pod);
        let (space, address) = self.make_space(pod);
        let process = self.spawn(pod, &space);
        self.pods.insert(pod, Pod { process, space, address });
    }

    /// The container ends at once.
    fn kill(&mut self, pod: u64) {
        let process = &mut self.pods.get_mut(&pod).expect("it runs").process;
        process.kill().expect("it runs");
        process.wait().expect("a child can be waited for");
    }

    /// Starts the container again, in the same pod.
    fn restart(&mut self, pod: u64) {
        let process = self.spawn(pod, &self.pods[&pod].space);
        self.pods.get_mut(&pod).expect("it is there").process = process;
    }

    /// Ends the container, takes its volume and starts it on an empty one.
    fn lose_volume(&mut self, pod: u64) {
        self.kill(pod);
        self.delete_volume(pod);
        self.restart(pod);
    }

    fn delete_volume(&self, pod: u64) {
        fs::remove_dir_all(self.path(&format!("data-node-{pod}"))).expect("it was there");
    }

    fn end_of(&mut self, pod: u64) -> Option<ExitStatus> {
        let process = &mut self.pods.get_mut(&pod).expect("it is there").process;
        process.try_wait().expect("a child can be waited for")
    }

    fn address(&self, pod: u64) -> SocketAddr {
        SocketAddr::new(self.pods[&pod].address, 7100)
    }

    /// Asks a pod as a probe does, at its port for administration.
    async fn probe(&self, pod: u64, path: &str) -> Result<u16, String> {
        let at = SocketAddr::new(self.pods[&pod].address, 7300);
        let answer = Request::get(path).send_within(at, LIVENESS_TIMEOUT).await;
        answer.map(|answer| answer.status).map_err(|error| error.to_string())
    }

    async fn wait_ready(&mut self, pods: impl IntoIterator<Item = u64>) {
        for pod in pods {
            eventually(&format!("node-{pod} is ready"), 2 * PATIENCE, async || {
                if let Some(end) = self.end_of(pod) {
                    return Err(format!("it ended with {end}:\n{}", self.log(pod)));
                }
                match self.probe(pod, "/readyz").await {
                    Ok(200) => Ok(()),
                    other => Err(format!("{other:?}\n{}", self.log(pod))),
                }
            })
            .await;
        }
    }

    fn client(&self) -> Client {
        let endpoints: Vec<_> = self.pods.keys().map(|pod| self.address(*pod).to_string()).collect();
        let builder = Client::builder().endpoints(endpoints.join(",")).discover_members(false).timeout(PATIENCE);
        builder.build().expect("endpoints")
    }

    /// Waits until exactly these are members, and vote.
    async fn wait_members(&self, wanted: &[u64]) {
        eventually(&format!("{wanted:?} are the members"), 2 * PATIENCE, async || {
            let seen = self.client().members().list().await.map_err(|error| error.to_string())?;
            let ids: Vec<_> = seen.members.iter().map(|member| member.id).collect();
            let all_vote = seen.members.iter().all(|member| member.role == MemberRole::Voter);
            if all_vote && !seen.changing && ids == wanted { Ok(()) } else { Err(format!("{seen:?}")) }
        })
        .await;
    }

    async fn write(&self, key: &str) {
        let put = async || self.client().put(key, quorate_client::Value::json(&1).expect("JSON")).await;
        eventually("a write", PATIENCE, async || put().await.map(|_| ()).map_err(|error| error.to_string())).await;
    }

    /// What was written is on each node.
    async fn assert_has(&self, keys: &[&str]) {
        for (pod, key) in self.pods.keys().flat_map(|pod| keys.iter().map(move |key| (*pod, *key))) {
            // By its address: that is a name that the node answers to.
            let builder = Client::builder().endpoints(self.address(pod).to_string()).discover_members(false);
            let found = builder.timeout(PATIENCE).build().expect("an endpoint").get(key).await.expect("an answer");
            assert!(found.is_some(), "node-{pod} has no {key}");
        }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        for pod in self.pods.values_mut() {
            // Both fail only where it has ended already.
            let _ = pod.process.kill();
            let _ = pod.process.wait();
        }
        let spaces = self.pods.values().map(|pod| format!("netns del {}", pod.space));
        for line in spaces.chain([format!("link del {}", self.name)]) {
            if let Err(error) = ip(&line) {
                println!("left behind: {error}");
            }
        }
    }
}

/// Pods of a cluster that has founded itself.
async fn three_pods(is_open: bool) -> Option<Kubelet> {
    let mut kubelet = match Kubelet::new(is_open) {
        Ok(kubelet) => kubelet,
        Err(why) => {
            println!("skipped: needs root, ip, unshare and mount: {why}");
            return None;
        }
    };
    kubelet.scale(FOUNDERS);
    kubelet.wait_ready(1..=FOUNDERS).await;
    kubelet.wait_members(&[1, 2, 3]).await;
    Some(kubelet)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_are_killed_moved_and_scaled_and_liveness_lets_them() {
    let Some(mut kubelet) = three_pods(true).await else { return };
    pods_that_are_killed_or_moved_come_back_as_themselves(&mut kubelet).await;
    pods_are_scaled_to_five_and_back_by_members(&mut kubelet).await;
}

async fn pods_that_are_killed_or_moved_come_back_as_themselves(kubelet: &mut Kubelet) {
    kubelet.write("before").await;
    kubelet.kill(1);
    kubelet.restart(1);
    kubelet.wait_ready([1]).await;

    // One is left: it serves nobody, and must not be killed for that.
    kubelet.kill(2);
    kubelet.kill(3);
    eventually("the last one is not ready", PATIENCE, async || match kubelet.probe(1, "/readyz").await {
        Ok(503) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!(kubelet.probe(1, "/livez").await, Ok(200), "a node without a quorum lives");
    // Neither does one that waits for the others after its start.
    kubelet.kill(1);
    kubelet.restart(1);
    eventually("it lives", PATIENCE, async || match kubelet.probe(1, "/livez").await {
        Ok(200) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert_eq!(kubelet.probe(1, "/readyz").await, Ok(503), "alone it is not ready");
    kubelet.restart(2);
    kubelet.restart(3);
    kubelet.wait_ready(1..=FOUNDERS).await;

    for pod in 1..=FOUNDERS {
        kubelet.move_pod(pod);
        kubelet.wait_ready(1..=FOUNDERS).await;
    }
    kubelet.wait_members(&[1, 2, 3]).await;
    kubelet.write("after").await;
    kubelet.assert_has(&["before", "after"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_lost_its_volume_takes_its_own_place_under_another_id() {
    let Some(mut kubelet) = three_pods(true).await else { return };
    kubelet.write("one").await;
    kubelet.lose_volume(3);
    kubelet.wait_members(&[1, 2, 301]).await;
    kubelet.wait_ready(1..=FOUNDERS).await;
    // It keeps that id, until the next volume is lost.
    kubelet.kill(3);
    kubelet.restart(3);
    kubelet.wait_ready([3]).await;
    kubelet.wait_members(&[1, 2, 301]).await;
    // In the end all founders are gone, and the list of the founders is what it was. No id comes twice.
    for (pod, members) in [(3, [1, 2, 302]), (1, [2, 101, 302]), (2, [101, 201, 302])] {
        kubelet.lose_volume(pod);
        kubelet.wait_members(&members).await;
        kubelet.wait_ready(1..=FOUNDERS).await;
    }
    kubelet.write("two").await;
    kubelet.wait_ready(1..=FOUNDERS).await;
    for pod in 1..=FOUNDERS {
        kubelet.kill(pod);
    }
    for pod in 1..=FOUNDERS {
        kubelet.restart(pod);
    }
    kubelet.wait_ready(1..=FOUNDERS).await;
    kubelet.assert_has(&["one", "two"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_cluster_wants_an_invitation_a_pod_without_its_volume_waits_for_one() {
    let Some(mut kubelet) = three_pods(false).await else { return };
    kubelet.write("one").await;
    kubelet.lose_volume(2);
    eventually("it says what it waits for", PATIENCE, async || match kubelet.log(2) {
        log if log.contains("this node is not taken in; it asks again") => Ok(()),
        log => Err(log),
    })
    .await;
    assert_eq!(kubelet.probe(2, "/livez").await, Ok(200), "nobody is to restart it for that");
    let invited = kubelet.client().members().invite().await.expect("an invitation");
    write_secret(kubelet.path("join-token"), invited.token.0);
    kubelet.wait_members(&[1, 3, 201]).await;
    kubelet.wait_ready(1..=FOUNDERS).await;
    kubelet.assert_has(&["one"]).await;
}

async fn pods_are_scaled_to_five_and_back_by_members(kubelet: &mut Kubelet) {
    kubelet.write("three").await;
    kubelet.scale(5);
    kubelet.wait_ready(1..=5).await;
    kubelet.wait_members(&[1, 2, 3, 4, 5]).await;
    kubelet.write("five").await;
    for pod in [5, 4] {
        let removed = kubelet.client().members().remove(pod).await.expect("it costs no quorum");
        assert!(!removed.voters.contains(&pod), "{removed:?}");
        let end = eventually("it ends", PATIENCE, async || kubelet.end_of(pod).ok_or("it runs".into())).await;
        assert_eq!(end.code(), Some(EXIT_REMOVED), "{}", kubelet.log(pod));
        // Until it is scaled down, the container is started again, and ends again.
        kubelet.restart(pod);
        let end = eventually("it ends", PATIENCE, async || kubelet.end_of(pod).ok_or("it runs".into())).await;
        assert_eq!(end.code(), Some(EXIT_REMOVED), "{}", kubelet.log(pod));
    }
    kubelet.scale(FOUNDERS);
    [4, 5].into_iter().for_each(|pod| kubelet.delete_volume(pod));
    kubelet.wait_ready(1..=FOUNDERS).await;
    kubelet.wait_members(&[1, 2, 3]).await;
    kubelet.assert_has(&["three", "five"]).await;

    // On new volumes they are others than those that were removed.
    kubelet.scale(5);
    kubelet.wait_members(&[1, 2, 3, 401, 501]).await;
    kubelet.wait_ready(1..=5).await;
    kubelet.assert_has(&["three", "five"]).await;
}
