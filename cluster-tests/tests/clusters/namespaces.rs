//! Packets that are dropped in one direction between two nodes, each in a network namespace of its own.
//!
//! Needs root, `ip` and `nft`, and says so where they are missing. The proxies of the other tests only hold bytes back; here
//! acknowledgements are lost, too, as with a real filter or cable.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use cluster_harness::load::{Load, assert_durable};
use cluster_harness::{Cluster, Request, Settings, eventually};

use crate::kubelet::{ip, run};

/// Terms that a cut in one direction may cost.
const TERMS_MAX: u64 = 6;

/// A bridge and three namespaces on it. Dropping it removes them.
struct Lan {
    name: String,
}

fn address(node: u64) -> String {
    format!("10.213.77.{node}")
}

impl Lan {
    fn make() -> Result<Self, String> {
        run("nft", &["--version"])?;
        let lan = Self { name: format!("q{}", std::process::id() % 1_000_000) };
        let bridge = &lan.name;
        ip(&format!("link add {bridge} type bridge"))?;
        ip(&format!("addr add {}/24 dev {bridge}", address(254)))?;
        ip(&format!("link set {bridge} up"))?;
        for node in 1..=3 {
            let (space, outer) = (lan.space(node), format!("{bridge}-{node}"));
            ip(&format!("netns add {space}"))?;
            ip(&format!("link add {outer} type veth peer name eth0 netns {space}"))?;
            ip(&format!("link set {outer} master {bridge} up"))?;
            ip(&format!("-n {space} addr add {}/24 dev eth0", address(node)))?;
            ip(&format!("-n {space} link set eth0 up"))?;
            ip(&format!("-n {space} link set lo up"))?;
        }
        Ok(lan)
    }

    fn space(&self, node: u64) -> String {
        format!("{}n{node}", self.name)
    }

    fn nft(&self, node: u64, rule: &str) {
        let space = self.space(node);
        run("ip", &["netns", "exec", &space, "nft", rule]).expect("a rule of the filter");
    }

    /// From now on `to` gets no packet from `from`.
    fn drop_packets(&self, from: u64, to: u64) {
        self.nft(to, "add table ip cut");
        self.nft(to, "add chain ip cut in { type filter hook input priority 0 ; }");
        self.nft(to, &format!("add rule ip cut in ip saddr {} drop", address(from)));
    }

    fn heal(&self, node: u64) {
        self.nft(node, "delete table ip cut");
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        // Each is tried, also where not all of them were made.
        let spaces = (1..=3).map(|node| format!("netns del {}", self.space(node)));
        for line in spaces.chain([format!("link del {}", self.name)]) {
            if let Err(error) = ip(&line) {
                println!("left behind: {error}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_dropped_in_one_direction_cost_few_terms_and_no_write() {
    let lan = match Lan::make() {
        Ok(lan) => lan,
        Err(why) => {
            println!("skipped: needs root, ip and nft: {why}");
            return;
        }
    };
    let settings = (1..=3).fold(Settings::default(), |settings, node| {
        let space = PathBuf::from("/run/netns").join(lan.space(node));
        settings.namespace(node, &space, address(node).parse::<IpAddr>().expect("an address"))
    });
    let mut cluster = Cluster::start_with(settings).await;
    let load = Load::start(&cluster, 4, "packets");
    load.wait_for_more(50).await;
    for round in 0..3 {
        let leader = cluster.leader().await;
        let others = cluster.live_but(leader);
        let term = cluster.status(leader).await.unwrap().term;
        // To the leader from a follower, from the leader to a follower, from the leader to all.
        let cut = match round {
            0 => vec![(others[0], leader)],
            1 => vec![(leader, others[0])],
            _ => vec![(leader, others[0]), (leader, others[1])],
        };
        cut.iter().for_each(|(from, to)| lan.drop_packets(*from, *to));
        tokio::time::sleep(Duration::from_secs(3)).await;
        // Whoever leads, a node with a majority around it takes writes.
        eventually("a write through one of the others", Duration::from_secs(10), async || {
            let put = Request::put(&format!("cut/{round}"), "1");
            let answer = put.send_within(cluster.client_address(others[1]), Duration::from_secs(2)).await;
            let answer = answer.map_err(|error| error.to_string())?;
            if answer.is_success() { Ok(()) } else { Err(answer.text()) }
        })
        .await;
        let mut hurt: Vec<u64> = cut.iter().map(|(_, to)| *to).collect();
        hurt.dedup();
        hurt.into_iter().for_each(|node| lan.heal(node));
        let now = cluster.leader().await;
        let terms = cluster.status(now).await.unwrap().term - term;
        println!("round {round}: {terms} terms, node {leader} led, now node {now}");
        assert!(terms <= TERMS_MAX, "{terms} terms in 3 s");
    }
    let history = load.finish().await.history;
    cluster.assert_agreement().await;
    for node in cluster.ids() {
        assert_durable(&cluster, node, &history).await;
    }
}
