//! The cluster at a glance: every member, and the numbers of each.
//!
//! Owns who is asked: the endpoints, and members that no endpoint names. Never waits for a node longer than for its answer.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;

use crate::api::StatusAnswer;
use crate::client::Client;
use crate::cluster::NodeStatus;
use crate::endpoints::Preference;
use crate::error::Error;
use crate::request::{Call, Intent};
use crate::scrape::Scrape;

/// How long a node may take to tell its numbers.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(2);

/// One endpoint and the numbers of the node behind it.
#[derive(Debug)]
pub struct NodeMetrics {
    /// `host:port`
    pub address: String,
    /// The numbers, or why there are none.
    pub scrape: Result<Scrape, Error>,
}

/// A member and what it says of itself.
#[derive(Debug)]
pub struct MemberStatus {
    /// Its id; `None` for an endpoint that did not answer while nobody could tell who is there.
    pub node_id: Option<u64>,
    /// `host:port`
    pub address: String,
    /// Its view, or why there is none.
    pub status: Result<StatusAnswer, Error>,
}

impl Client {
    /// Every member as it sees the cluster, in order of ids. Members that no endpoint leads to are asked at the address that
    /// they advertise; one that does not answer is there with the reason. Where no endpoint answers: the endpoints.
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
        let missing: Vec<(u64, String)> = known
            .members
            .iter()
            .filter(|member| !answered.contains(&member.id))
            .map(|member| (member.id, member.client_addr.clone()))
            .collect();
        let mut members: Vec<MemberStatus> = asked.into_iter().filter_map(answering).collect();
        let others = missing.into_iter().map(|(id, address)| self.ask_member(id, address));
        members.extend(futures::future::join_all(others).await);
        members.sort_by_key(|member| member.node_id);
        members.dedup_by_key(|member| member.node_id);
        Ok(members)
    }

    async fn ask_member(&self, id: u64, address: String) -> MemberStatus {
        let status = match Self::new(address.clone()) {
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
                let scrape = text.and_then(|text| Scrape::parse(&text).map_err(|why| self.strange_stream(node, why)));
                NodeMetrics { address, scrape }
            }
        });
        Ok(futures::future::join_all(asked).await)
    }
}

fn answering(node: NodeStatus) -> Option<MemberStatus> {
    let node_id = Some(node.status.as_ref().ok()?.node_id);
    Some(MemberStatus { node_id, address: node.address, status: node.status })
}
