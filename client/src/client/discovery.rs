//! Discovery of the nodes of a cluster, from their own answers.
//!
//! Owns when nodes are asked who they are, the discovery of members that were not given, and what is made of a node of another cluster.

use std::time::{Duration, Instant};

use super::Client;
use crate::api::{MemberView, StatusAnswer};
use crate::call::endpoints::{ClusterId, Endpoint, Foreign, INTRODUCTION_PAUSE, LeaderHint, socket_of};
use crate::call::error::{Failure, FailureKind};
use crate::call::request::status_call;

/// How long a node may take to say who it is.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(1);

impl Client {
    /// Notes the cluster that a node names; an error where that is another one than ours.
    pub(crate) fn check_cluster(&self, node: usize, cluster: Option<ClusterId>) -> Result<(), FailureKind> {
        let Some(cluster) = cluster else { return Ok(()) };
        let Err(Foreign { theirs, ours, is_news }) =
            self.inner.endpoints.lock().on_cluster(node, cluster, Instant::now())
        else {
            return Ok(());
        };
        self.inner.transport.leave(node, ours);
        if is_news {
            let endpoint = &*self.inner.transport.address(node);
            tracing::warn!(endpoint, %theirs, %ours, "a node of another cluster is among the endpoints; it is not believed");
        }
        Err(other_cluster(Foreign { theirs, ours, is_news }))
    }

    /// Takes in what a node says of the cluster with an answer.
    pub(super) fn learn(&self, node: usize, hint: LeaderHint) {
        let introduce = {
            let (mut endpoints, now) = (self.inner.endpoints.lock(), Instant::now());
            endpoints.on_answer(node, hint);
            let is_stranger = endpoints.begin_introduction(now);
            endpoints.begin_discovery(now) || is_stranger
        };
        if introduce {
            tokio::spawn(self.clone().introduce_all());
        }
    }

    /// An attempt failed: where a node of another cluster is known, all say who they are now and then.
    pub(super) fn look_around(&self) {
        if self.inner.endpoints.lock().begin_introduction(Instant::now()) {
            tokio::spawn(self.clone().introduce_all());
        }
    }

    /// The failure that a call ends with: while in doubt, that a given node is of another cluster.
    pub(super) fn unless_in_doubt(&self, failure: Failure) -> Failure {
        let doubted = self.inner.endpoints.lock().doubted();
        doubted.map_or(failure, |(node, foreign)| self.failure(node, other_cluster(foreign)))
    }

    /// Something came from a node that is no answer to a call, as on a stream that goes on for days.
    pub(crate) fn on_sign_of_life(&self, node: usize) {
        self.learn(node, LeaderHint::default());
    }

    /// Asks every node who it is. While others than ours answer it goes on, so that their words come without gaps until the doubt is over.
    async fn introduce_all(self) {
        while !self.introduce_each().await && self.inner.endpoints.lock().is_in_doubt(Instant::now()) {
            tokio::time::sleep(INTRODUCTION_PAUSE).await;
            // Another round has begun meanwhile, and goes on in place of this.
            if !self.inner.endpoints.lock().begin_introduction(Instant::now()) {
                return;
            }
        }
    }

    /// Asks every node who it is, and from what they say finds members that are not among them. One that does not answer stays unknown
    /// until the next round. Whether any of ours answered.
    async fn introduce_each(&self) -> bool {
        let asked = (0..self.inner.transport.len()).map(|node| self.introduce(node));
        let statuses = futures::future::join_all(asked).await;
        let (ours, discovers) = {
            let endpoints = self.inner.endpoints.lock();
            (endpoints.cluster(), endpoints.discovers())
        };
        let is_ours = |status: &StatusAnswer| ClusterId::parse(&status.cluster_id) == ours;
        let latest = statuses.into_iter().flatten().filter(is_ours).max_by_key(|status| status.applied_index);
        let is_heard = latest.is_some();
        if let Some(latest) = latest.filter(|status| discovers && !status.cluster_id.is_empty()) {
            self.discover(latest).await;
        }
        is_heard
    }

    async fn introduce(&self, node: usize) -> Option<StatusAnswer> {
        let call = status_call().ok()?;
        let answer = self.inner.transport.send(node, &call, INTRODUCTION_TIMEOUT).await.ok()?;
        // A refusal names the cluster, too.
        self.check_cluster(node, answer.hint.cluster).ok()?;
        let status: StatusAnswer = serde_json::from_slice(&answer.body).ok()?;
        let cluster = ClusterId::parse(&status.cluster_id);
        let hint = LeaderHint { cluster, term: status.term, leader_id: status.leader_id };
        self.check_cluster(node, cluster).ok()?;
        self.inner.endpoints.lock().introduce(node, status.node_id, hint);
        Some(status)
    }

    /// Asks the members that are not known for who they are, and adds those that answer as they should.
    async fn discover(&self, view: StatusAnswer) {
        let ids: Vec<u64> = view.members.iter().map(|member| member.id).collect();
        let unknown: Vec<_> = {
            let mut endpoints = self.inner.endpoints.lock();
            endpoints.retain(&ids);
            view.members.iter().filter(|member| !endpoints.is_known(member.id)).collect()
        };
        let asked = unknown.into_iter().filter(|member| is_reachable(&member.client_addr, &self.inner.given));
        let asked = asked.map(|member| self.make_acquaintance(member, &view.cluster_id));
        futures::future::join_all(asked).await;
    }

    /// Adds the member, if it is there and is who the others say.
    async fn make_acquaintance(&self, member: &MemberView, cluster_id: &str) {
        let transport = &self.inner.transport;
        let endpoint = Endpoint { address: member.client_addr.clone(), is_tls: transport.is_tls() };
        let (Ok(node), Ok(call)) = (transport.prepare(&endpoint), status_call()) else { return };
        let Ok(answer) = transport.send_new(&node, &call, INTRODUCTION_TIMEOUT).await else { return };
        let Ok(status) = serde_json::from_slice::<StatusAnswer>(&answer.body) else { return };
        if status.node_id != member.id || status.cluster_id != cluster_id {
            return;
        }
        let cluster = ClusterId::parse(&status.cluster_id);
        let mut endpoints = self.inner.endpoints.lock();
        // Another round may have been faster, and the client may have gone over since.
        if !endpoints.is_known(member.id) && cluster == endpoints.cluster() {
            let place = transport.add(node);
            endpoints.add(member.id);
            if let Some(cluster) = cluster {
                endpoints.on_cluster(place, cluster, Instant::now()).expect("it is that of the client");
            }
            tracing::debug!(node_id = member.id, endpoint = member.client_addr.as_str(), "a member was discovered");
        }
    }
}

/// Whether an address that a member advertises can mean the same to us. One of the node's own machine does not, unless ours is that.
fn is_reachable(address: &str, given: &[String]) -> bool {
    let host = |address: &str| address.rsplit_once(':').map_or_else(String::new, |(host, _)| host.to_owned());
    let ip = |host: &str| host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().ok();
    let is_local = |host: &str| host == "localhost" || ip(host).is_some_and(|ip| ip.is_loopback());
    let advertised = host(address);
    if advertised.is_empty() || ip(&advertised).is_some_and(|ip| ip.is_unspecified()) {
        return false;
    }
    let is_ours = |given: &String| socket_of(given).is_some() || is_local(&host(given));
    !is_local(&advertised) || given.iter().any(is_ours)
}

fn other_cluster(Foreign { theirs, ours, .. }: Foreign) -> FailureKind {
    FailureKind::OtherCluster { theirs: theirs.to_string(), ours: ours.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_nodes_own_machine_is_ours_only_where_we_are_on_it() {
        let given = |address: &str| vec![address.to_owned()];
        for (address, endpoint, reachable) in [
            ("10.0.0.4:7100", "db.example.org:7100", true),
            ("127.0.0.1:7104", "127.0.0.1:7101", true),
            ("[::1]:7104", "localhost:7101", true),
            ("127.0.0.1:7104", "unix:/run/quorate/clients", true),
            ("127.0.0.1:7100", "db.example.org:7100", false),
            ("localhost:7100", "10.0.0.1:7100", false),
            ("0.0.0.0:7100", "127.0.0.1:7101", false),
            ("", "127.0.0.1:7101", false),
        ] {
            assert_eq!(is_reachable(address, &given(endpoint)), reachable, "{address} from {endpoint}");
        }
    }
}
