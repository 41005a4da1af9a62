//! A cluster that is made ready for all attacks.
//!
//! Owns what attacks find there: users, entries, sessions, a lock that is held, and what can be asked for. Never attacks.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::combination::Caller;
use super::gauges::Rest;
use super::operations::{HELD, LARGE, Operation, PREFIX, operations};
use crate::abuse::honest::FROM;
use crate::abuse::user::{create_powerless, create_tenant, create_user};
use cluster_harness::cluster::Cluster;
use cluster_harness::http::{Answer, Request};

/// How long what was held may take to be given back once who held it is gone.
const GIVEN_BACK_WITHIN: Duration = Duration::from_secs(25);
/// How long sessions of tenants live.
const TTL_MS: u64 = 86_400_000;
/// Honest users.
const HONEST: usize = 8;
/// Addresses of theirs.
const ADDRESSES: u32 = 4;
/// Small entries of one request.
const AT_ONCE: usize = 1_000;

/// The number and the length of the entries that can be asked for.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    /// Entries with long values.
    pub large: usize,
    /// How long these are.
    pub large_bytes: usize,
    /// Small entries.
    pub small: usize,
}

/// A cluster that is made ready.
pub struct Field {
    /// Client ports of all nodes.
    pub nodes: Vec<SocketAddr>,
    /// The tokens of honest users, which may write and lock everything. They are several: no caller can have more than its share, so one alone
    /// could keep no more beside an attacker than half.
    honest: Vec<String>,
    /// Everything that can be asked for.
    pub operations: Vec<Arc<Operation>>,
    root: String,
    powerless: String,
    tenant: String,
}

impl Field {
    /// Makes a cluster ready whose nodes ask who is there; `root` is the token of root.
    pub async fn prepare(cluster: &Cluster, root: &str, amount: Amount, dice: &mut StdRng) -> Self {
        let nodes: Vec<_> = cluster.ids().into_iter().map(|id| cluster.client_address(id)).collect();
        let mut honest = Vec::new();
        for number in 0..HONEST {
            honest.push(create_user(cluster, &format!("honest-{number}")).await);
        }
        let powerless = create_powerless(cluster, "hostile-powerless").await;
        let tenant = create_tenant(cluster, "hostile-tenant", PREFIX).await;
        let to = nodes[0];
        fill(to, root, amount).await;
        let mut sessions = Vec::new();
        for _ in 0..2 {
            let create = Request::post("/v1/sessions", json!({ "ttl_ms": TTL_MS }).to_string());
            let created: Value = send(to, &tenant, create).await.json();
            sessions.push(created["session"].as_str().expect("the id of a session").to_owned());
        }
        let holder = sessions.pop().expect("there are two");
        let acquire = json!({ "session": holder, "wait_ms": 0 }).to_string();
        send(to, &tenant, Request::post(format!("/v1/locks/{HELD}/acquire"), acquire)).await;
        let document: Value = send(to, root, Request::get("/openapi.json")).await.json();
        let operations = operations(&document, &sessions[0], dice);
        Self { nodes, honest, operations, root: root.to_owned(), powerless, tenant }
    }

    /// The address and the token of each honest user.
    pub fn honest(&self) -> Vec<(Ipv4Addr, Option<&str>)> {
        let addresses = (0..ADDRESSES).cycle().map(|number| Ipv4Addr::from_bits(FROM.to_bits() + number));
        addresses.zip(self.honest.iter().map(|token| Some(token.as_str()))).collect()
    }

    /// Gives the token that a caller shows, if it has one.
    pub fn token_of(&self, caller: Caller) -> Option<&str> {
        match caller {
            Caller::Stranger => None,
            Caller::Powerless => Some(&self.powerless),
            Caller::Tenant => Some(&self.tenant),
        }
    }

    /// Looks for this long at what is held, before anybody attacks.
    pub async fn rest(&self, time: Duration) -> Rest {
        Rest::over(time, &self.nodes, &self.root).await.unwrap_or_else(|error| panic!("the metrics of a node: {error}"))
    }

    /// Waits until no more is held than at rest. Otherwise, what is.
    pub async fn comes_back(&self, rest: &Rest) -> Result<(), String> {
        rest.comes_back(GIVEN_BACK_WITHIN, &self.nodes, &self.root).await
    }

    /// The token of root, for looks at the nodes.
    pub(super) fn root(&self) -> &str {
        &self.root
    }
}

async fn send(to: SocketAddr, token: &str, request: Request) -> Answer {
    let request = request.header("Authorization", format!("Bearer {token}"));
    request.send(to).await.expect("an answer").expect_success()
}

async fn fill(to: SocketAddr, root: &str, amount: Amount) {
    let large = json!("v".repeat(amount.large_bytes)).to_string();
    for number in 0..amount.large {
        send(to, root, Request::put(&format!("{LARGE}{number}"), large.clone())).await;
    }
    for begin in (0..amount.small).step_by(AT_ONCE) {
        let op = |number| json!({"op": "upsert", "key": format!("x/small/{number:06}"), "value": {"n": number}});
        let ops: Vec<_> = (begin..amount.small.min(begin + AT_ONCE)).map(op).collect();
        send(to, root, Request::post("/v1/bulk", json!({ "ops": ops }).to_string())).await;
    }
}
