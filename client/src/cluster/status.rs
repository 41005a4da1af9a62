//! Questions to the cluster about itself, and the outcome of requests.

use std::time::{Duration, Instant};

use crate::api::{ErrorCode, LeaderAnswer, LeaderRequest, RequestAnswer, StatusAnswer};
use crate::call::endpoints::ClusterId;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, RequestId, segment_path, status_call};
use crate::client::Client;

/// How long a node may take to tell its status; it needs no other node for that.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two looks at the nodes while waiting for them.
const READY_PAUSE: Duration = Duration::from_millis(50);

/// One endpoint and what the node behind it says of the cluster.
#[derive(Debug)]
#[non_exhaustive]
pub struct NodeStatus {
    /// `host:port`
    pub address: String,
    /// Its view, or why there is none.
    pub status: Result<StatusAnswer, Error>,
}

impl Client {
    /// The cluster as one node sees it.
    pub async fn status(&self) -> Result<StatusAnswer, Error> {
        self.fetch(status_call()?).await
    }

    /// The cluster as each endpoint sees it, in the order given.
    pub async fn status_of_all(&self) -> Result<Vec<NodeStatus>, Error> {
        let call = status_call()?;
        let addresses: Vec<String> = self.endpoints().map(str::to_owned).collect();
        let asked = addresses.into_iter().enumerate().map(|(node, address)| {
            let call = &call;
            async move { NodeStatus { address, status: self.fetch_from(node, call, STATUS_TIMEOUT).await } }
        });
        let mut statuses = futures::future::join_all(asked).await;
        let told = |node: &NodeStatus| ClusterId::parse(&node.status.as_ref().ok()?.cluster_id);
        // All have a say before any is judged.
        for (node, status) in statuses.iter().enumerate() {
            drop(self.check_cluster(node, told(status)));
        }
        for (node, status) in statuses.iter_mut().enumerate() {
            if let Err(foreign) = self.check_cluster(node, told(status)) {
                status.status = Err(self.strange_answer(node, foreign.reason()));
            }
        }
        Ok(statuses)
    }

    /// Hands leadership to node `to`, or to the best follower. Is not repeated once it may have happened.
    pub async fn transfer_leader(&self, to: Option<u64>) -> Result<LeaderAnswer, Error> {
        self.fetch(Call::post_to("/v1/cluster/leader".into(), &LeaderRequest { to }, Intent::Once)?).await
    }

    /// Reads the outcome of a write. `None`: it was never decided, its outcome is no longer kept (it is for 15 minutes at least), or it is
    /// still on its way and may be decided after this answer. Only the same write under the same id makes sure.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use quorate_client::RequestId;
    /// # use quorate_client::Value;
    /// # async fn example(client: &quorate_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let id: RequestId = "o62-create".parse()?;
    /// client.insert("orders/o62", Value::json("new")?).request_id(id.clone()).await?;
    /// println!("{:?}", client.request_outcome(&id).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn request_outcome(&self, id: &RequestId) -> Result<Option<RequestAnswer>, Error> {
        let target = segment_path("/v1/requests/", id.as_str(), "", "a request id")?;
        match self.read(target).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the nodes would answer a linearizable read: all of the endpoints, or with `any` one of them. Returns
    /// the last look; ready or not is for the caller to see.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// // At the start of a program that needs the cluster.
    /// let nodes = client.wait_ready(true, Duration::from_secs(30)).await?;
    /// assert!(nodes.iter().any(|node| node.is_ready()), "no node is ready");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_ready(&self, any: bool, timeout: Duration) -> Result<Vec<NodeStatus>, Error> {
        let started = Instant::now();
        loop {
            let nodes = self.status_of_all().await?;
            let ready = nodes.iter().filter(|node| node.is_ready()).count();
            if ready == nodes.len() || (any && ready > 0) || started.elapsed() >= timeout {
                return Ok(nodes);
            }
            tokio::time::sleep(READY_PAUSE).await;
        }
    }
}

impl NodeStatus {
    /// Whether the node answered and says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.status.as_ref().is_ok_and(|status| status.ready)
    }
}
