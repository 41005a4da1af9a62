//! The cluster in one view: every member, and the numbers of each.
//!
//! Owns who is asked: the endpoints, and members that no endpoint names. Never waits for a node longer than for its answer.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;

use crate::api::StatusAnswer;
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent};
use crate::client::Client;
use crate::cluster::scrape::Scrape;
use crate::cluster::status::NodeStatus;

/// How long a node may take to tell its numbers.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(2);

/// One endpoint and the numbers of the node behind it.
#[derive(Debug)]
#[non_exhaustive]
pub struct NodeMetrics {
    /// `host:port`
    pub address: String,
    /// The numbers, or why there are none.
    pub scrape: Result<Scrape, Error>,
}

/// A member and what it says of itself.
#[derive(Debug)]
#[non_exhaustive]
pub struct MemberStatus {
    /// Its id; `None` for an endpoint that did not answer and that no member names as its own.
    pub node_id: Option<u64>,
    /// `host:port`
    pub address: String,
    /// Its view, or why there is none.
    pub status: Result<StatusAnswer, Error>,
}

impl From<NodeStatus> for MemberStatus {
    /// The member behind an endpoint, by what it says of itself.
    fn from(NodeStatus { address, status }: NodeStatus) -> Self {
        let node_id = status.as_ref().ok().map(|status| status.node_id);
        Self { node_id, address, status }
    }
}

impl Client {
    /// Every member as it sees the cluster, in order of ids. Members that no endpoint leads to are asked at the address that
    /// they advertise; one that does not answer is there with the reason, and so is an endpoint that nobody knows.
    pub async fn overview(&self) -> Result<Vec<MemberStatus>, Error> {
        let asked = self.status_of_all().await?;
        let known = asked.iter().filter_map(|node| node.status.as_ref().ok()).max_by_key(|status| status.applied_index);
        let Some(known) = known else {
            let nameless =
                |node: NodeStatus| MemberStatus { node_id: None, address: node.address, status: node.status };
            return Ok(asked.into_iter().map(nameless).collect());
        };
        let answered: BTreeSet<u64> =
            asked.iter().filter_map(|node| node.status.as_ref().ok()).map(|status| status.node_id).collect();
        let missing: Vec<_> = known.members.iter().filter(|member| !answered.contains(&member.id)).collect();
        let id_at = |address: &str| missing.iter().find(|member| member.client_addr == address).map(|member| member.id);
        let is_asked = |address: &str| asked.iter().any(|node| node.address == address);
        let others: Vec<_> = missing
            .iter()
            .filter(|member| !is_asked(&member.client_addr))
            .map(|member| self.ask_member(member.id, member.client_addr.clone()))
            .collect();
        let mut members = futures::future::join_all(others).await;
        let ids: Vec<_> = asked
            .iter()
            .map(|node| node.status.as_ref().map_or_else(|_| id_at(&node.address), |status| Some(status.node_id)))
            .collect();
        let of_endpoints = asked.into_iter().zip(ids);
        members.extend(of_endpoints.map(|(NodeStatus { address, status }, node_id)| MemberStatus {
            node_id,
            address,
            status,
        }));
        members.sort_by_key(|member| (member.node_id.is_none(), member.node_id));
        members.dedup_by(|one, other| one.node_id.is_some() && one.node_id == other.node_id);
        Ok(members)
    }

    async fn ask_member(&self, id: u64, address: String) -> MemberStatus {
        let status = match self.of_node_at(&address) {
            Ok(client) => {
                client.status_of_all().await.map(|mut asked| asked.remove(0).status).and_then(|status| status)
            }
            Err(error) => Err(error),
        };
        MemberStatus { node_id: Some(id), address, status }
    }

    /// The numbers of each endpoint, in the order given.
    pub async fn metrics_of_all(&self) -> Result<Vec<NodeMetrics>, Error> {
        let call = Call::new(Method::GET, "/metrics".into(), Intent::Read, Preference::Any)?;
        let addresses: Vec<String> = self.endpoints().map(str::to_owned).collect();
        let asked = addresses.into_iter().enumerate().map(|(node, address)| {
            let call = &call;
            async move {
                let text = self.text_from(node, call, SCRAPE_TIMEOUT).await;
                let scrape = text.and_then(|text| Scrape::parse(&text).map_err(|why| self.strange_answer(node, why)));
                NodeMetrics { address, scrape }
            }
        });
        Ok(futures::future::join_all(asked).await)
    }
}
