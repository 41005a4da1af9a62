//! One node, asked about itself: nothing here is passed on to another.
//!
//! Owns the calls. What of a node leaves it is the node's to say.

use std::time::Duration;

use http::Method;

use crate::api::{
    NodeCallersAnswer, NodeConfigAnswer, NodeLogAnswer, NodeLogLinesAnswer, NodeLogRequest, StatusAnswer,
};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, push_query, status_call};
use crate::client::Client;

const LOG: &str = "/v1/node/log";
/// How long a node may take to tell something of itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// One node, from [`Client::node`].
#[derive(Debug)]
pub struct NodeClient(Client);

impl Client {
    /// The node at this address, with the settings of this client.
    pub fn node(&self, address: &str) -> Result<NodeClient, Error> {
        self.of_node_at(address).map(NodeClient)
    }
}

impl NodeClient {
    /// How it sees itself and the cluster.
    pub async fn status(&self) -> Result<StatusAnswer, Error> {
        self.0.fetch_from(0, &status_call()?, PATIENCE).await
    }

    /// What it logs.
    pub async fn log(&self) -> Result<NodeLogAnswer, Error> {
        self.read(LOG.to_owned()).await
    }

    /// Has it log something else: a level, or levels of modules, like `quorate_node=debug,info`; `None` for what is configured. After
    /// `time` it is as configured again; without a time it stays so until the node starts again.
    pub async fn set_log(&self, filter: Option<&str>, time: Option<Duration>) -> Result<NodeLogAnswer, Error> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let request = NodeLogRequest { filter: filter.map(str::to_owned), for_ms: time.map(millis) };
        // The same again changes nothing.
        let mut call = Call::post_to(LOG.to_owned(), &request, Intent::Read)?;
        call.method = Method::PUT;
        self.0.fetch_from(0, &call, PATIENCE).await
    }

    /// The last lines of its log, oldest first; names and values of entries are left out of them.
    pub async fn log_lines(&self, count: usize) -> Result<NodeLogLinesAnswer, Error> {
        let mut target = format!("{LOG}/lines");
        push_query(&mut target, "limit", count);
        self.read(target).await
    }

    /// How it is configured, without secrets.
    pub async fn config(&self) -> Result<NodeConfigAnswer, Error> {
        self.read("/v1/node/config".to_owned()).await
    }

    /// Reads which accounts hold most of each of its resources: waits, watches, memory, connections and so on.
    pub async fn callers(&self) -> Result<NodeCallersAnswer, Error> {
        self.read("/v1/node/callers".to_owned()).await
    }

    /// Its metrics, as OpenMetrics text.
    pub async fn metrics(&self) -> Result<String, Error> {
        let call = Call::new(Method::GET, "/metrics".to_owned(), Intent::Read, Preference::Any)?;
        self.0.text_from(0, &call, PATIENCE).await
    }

    async fn read<A: serde::de::DeserializeOwned>(&self, target: String) -> Result<A, Error> {
        let call = Call::new(Method::GET, target, Intent::Read, Preference::Any)?;
        self.0.fetch_from(0, &call, PATIENCE).await
    }
}
