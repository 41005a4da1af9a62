//! Every node serves, and reports itself and the cluster. `crossing` asks every route in every state.

use cluster_harness::{Answer, Cluster, Request};
use quorate_client::api::{DigestAnswer, EntryView, LimitsAnswer, Role, StatusAnswer, VersionAnswer, WriteAnswer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_writes_every_node_reads_and_replaces() {
    let mut cluster = Cluster::start().await;
    for id in cluster.ids() {
        let node = Node { cluster: &cluster, id };
        node.tells_of_itself().await;
        node.has_the_limits_that_it_tells().await;
    }
    for writer in cluster.ids() {
        let key = format!("smoke/{writer}");
        let request = Request::put(&key, format!("{{\"by\":{writer}}}"));
        let written: WriteAnswer = request.send(cluster.client_address(writer)).await.unwrap().expect_success().json();
        let mut cas = written.cas.expect("a write of a value gives a token");
        for reader in cluster.ids() {
            let at = cluster.client_address(reader);
            let entry: EntryView =
                Request::get(format!("/v1/kv/{key}")).send(at).await.unwrap().expect_success().json();
            assert_eq!(entry.cas, Some(cas), "node {reader} reads what node {writer} wrote");
            let replace = Request::put(&key, format!("{{\"by\":{reader}}}")).header("If-Match", format!("\"{cas}\""));
            let replaced: WriteAnswer = replace.send(at).await.unwrap().expect_success().json();
            cas = replaced.cas.expect("a write of a value gives a token");
        }
    }
    cluster.assert_agreement().await;
}

/// One node of a running cluster.
struct Node<'a> {
    cluster: &'a Cluster,
    id: u64,
}

impl Node<'_> {
    /// Sends a request that must succeed.
    async fn ok(&self, request: Request) -> Answer {
        let said = format!("node {}: {} {}", self.id, request.method, request.target);
        let answer =
            request.send(self.cluster.client_address(self.id)).await.unwrap_or_else(|error| panic!("{said}: {error}"));
        assert!(answer.is_success(), "{said}: status {}: {}", answer.status, answer.text());
        answer
    }

    async fn tells_of_itself(&self) {
        let version: VersionAnswer = self.ok(Request::get("/version")).await.json();
        assert!(!version.version.is_empty());
        let status: StatusAnswer = self.ok(Request::get("/v1/cluster/status")).await.json();
        assert_eq!((status.node_id, status.members.len()), (self.id, 3));
        assert!(matches!(status.role, Role::Leader | Role::Follower), "a ready node is {:?}", status.role);
        assert!(status.ready && status.members.iter().all(|member| member.voter));
        let digest: DigestAnswer = self.ok(Request::get("/v1/cluster/digest")).await.json();
        assert_eq!((digest.node_id, digest.digest.len()), (self.id, 32));
        let put = self.ok(Request::put(&format!("told/{}", self.id), "1")).await;
        for name in ["quorate-revision", "quorate-term", "quorate-leader", "x-request-id"] {
            assert!(put.header(name).is_some(), "no header {name} on a write");
        }
        assert_eq!(put.header("quorate-cluster"), Some(status.cluster_id.as_str()));
    }

    async fn has_the_limits_that_it_tells(&self) {
        let limits: LimitsAnswer = self.ok(Request::get("/v1/limits")).await.json();
        assert_eq!(limits.bulk_operations, quorate_client::api::BULK_OPS_MAX as u64);
        let long = |bytes: u64| format!("/v1/kv/{}", "k".repeat(bytes as usize));
        let read =
            async |key| Request::get(key).send(self.cluster.client_address(self.id)).await.expect("an answer").status;
        assert_eq!((read(long(limits.key_bytes)).await, read(long(limits.key_bytes + 1)).await), (404, 413));
    }
}
