//! Every node serves every route.

use cluster_tests::{Answer, Cluster, Request};
use quorate_client::api::{
    ClaimAnswer, DigestAnswer, EntryView, LimitsAnswer, ListAnswer, RequestAnswer, RequestState, SequenceAnswer,
    StatusAnswer, VersionAnswer, WhereAnswer,
};
use quorate_client::api::{Role, WriteAnswer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_writes_every_node_reads_and_replaces() {
    let mut cluster = Cluster::start().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_answers_on_every_node() {
    let mut cluster = Cluster::start().await;
    for id in cluster.ids() {
        let node = Node { cluster: &cluster, id };
        node.service_routes().await;
        node.cluster_routes().await;
        node.key_routes().await;
        node.operations().await;
        node.commands().await;
        node.requests().await;
        let client = cluster.client_without(None);
        assert!(client.exists(&format!("requests/{id}")).await.expect("an answer"));
        assert!(!client.exists(&format!("no/such/key/{id}")).await.expect("an answer"));
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

    async fn service_routes(&self) {
        self.ok(Request::get("/livez")).await;
        self.ok(Request::get("/readyz")).await;
        let version: VersionAnswer = self.ok(Request::get("/version")).await.json();
        assert!(!version.version.is_empty());
        let limits: LimitsAnswer = self.ok(Request::get("/v1/limits")).await.json();
        assert_eq!(limits.bulk_operations, quorate_client::api::BULK_OPS_MAX as u64);
        let long = |bytes: u64| format!("/v1/kv/{}", "k".repeat(bytes as usize));
        let read =
            async |key| Request::get(key).send(self.cluster.client_address(self.id)).await.expect("an answer").status;
        assert_eq!((read(long(limits.key_bytes)).await, read(long(limits.key_bytes + 1)).await), (404, 413));
        let metrics = self.ok(Request::get("/metrics")).await.text();
        assert!(metrics.lines().any(|line| line.starts_with("# TYPE quorate")), "no metric of Quorate in:\n{metrics}");
        let document: serde_json::Value = self.ok(Request::get("/openapi.json")).await.json();
        for path in ["/v1/kv/{key}", "/v1/kv", "/v1/ops", "/v1/requests/{id}", "/v1/cluster/status"] {
            assert!(document["paths"].get(path).is_some(), "openapi.json does not describe {path}");
        }
    }

    async fn cluster_routes(&self) {
        let status: StatusAnswer = self.ok(Request::get("/v1/cluster/status")).await.json();
        assert_eq!((status.node_id, status.members.len()), (self.id, 3));
        assert!(matches!(status.role, Role::Leader | Role::Follower), "a ready node is {:?}", status.role);
        assert!(status.ready && status.members.iter().all(|member| member.voter));
        let digest: DigestAnswer = self.ok(Request::get("/v1/cluster/digest")).await.json();
        assert_eq!((digest.node_id, digest.digest.len()), (self.id, 32));
    }

    async fn key_routes(&self) {
        let key = format!("/v1/kv/routes/{}", self.id);
        let put = self.ok(Request::new("PUT", &key).json(r#"{"a":1}"#).header("If-None-Match", "*")).await;
        for name in ["quorate-revision", "quorate-term", "quorate-leader", "x-request-id"] {
            assert!(put.header(name).is_some(), "no header {name} on a write");
        }
        let status: StatusAnswer = self.ok(Request::get("/v1/cluster/status")).await.json();
        assert_eq!(put.header("quorate-cluster"), Some(status.cluster_id.as_str()));
        let patch = Request::new("PATCH", &key).header("Content-Type", "application/merge-patch+json");
        self.ok(patch.body(r#"{"b":2}"#.into())).await;
        let entry: EntryView = self.ok(Request::get(&key)).await.json();
        assert_eq!(entry.value.expect("JSON is shown").0.get(), r#"{"a":1,"b":2}"#);
        let etag = format!("\"{}\"", entry.cas.expect("an unlocked entry has a token"));
        let head = self.ok(Request::new("HEAD", &key)).await;
        assert_eq!(head.header("etag"), Some(etag.as_str()));
        let unchanged =
            Request::get(&key).header("If-None-Match", etag).send(self.cluster.client_address(self.id)).await;
        assert_eq!(unchanged.unwrap().status, 304);
        let listed: ListAnswer = self.ok(Request::get(format!("/v1/kv?prefix=routes/{}", self.id))).await.json();
        assert_eq!(listed.count, 1);
        self.conditions_and_preferences(&key, head.header("etag").expect("checked above")).await;
        self.ok(Request::new("DELETE", &key)).await;
        let gone = Request::get(&key).send(self.cluster.client_address(self.id)).await.unwrap();
        assert_eq!(gone.status, 404, "{}", gone.text());
    }

    /// Lists of tags, and answers that show what was written. `etag` is that of the entry now.
    async fn conditions_and_preferences(&self, key: &str, etag: &str) {
        let list = format!("\"1\", {etag}");
        let patch = || Request::new("PATCH", key).json(r#"{"c":3}"#).header("Prefer", "return=representation");
        let written = self.ok(patch().header("If-Match", &list)).await;
        assert_eq!(written.header("preference-applied"), Some("return=representation"));
        let shown: EntryView = written.json();
        assert_eq!(shown.value.expect("JSON is shown").0.get(), r#"{"a":1,"b":2,"c":3}"#);
        let tag = format!("\"{}\"", shown.cas.expect("an unlocked entry has a token"));
        for (request, status) in [
            (patch().header("If-Match", &list), 412),
            (patch().header("If-None-Match", format!("{etag}, {tag}")), 412),
            (Request::get(key).header("If-Match", &list), 412),
            (Request::get(key).header("If-None-Match", format!("{etag}, {tag}")), 304),
            (Request::get(key).header("If-Match", format!("{etag}, {tag}")), 200),
            (patch().header("If-None-Match", &list), 200),
            (Request::new("PUT", key).json("1").header("Prefer", "return=minimal"), 204),
        ] {
            let answer = request.send(self.cluster.client_address(self.id)).await.unwrap();
            assert_eq!(answer.status, status, "{}", answer.text());
        }
    }

    async fn operations(&self) {
        let id = self.id;
        for body in [
            format!(r#"{{"op":"insert","key":"ops/{id}","value":{{"n":1}}}}"#),
            format!(r#"{{"op":"get","key":"ops/{id}"}}"#),
            format!(r#"{{"op":"upsert","key":"ops/{id}","value_base64":"AAH/"}}"#),
            format!(r#"{{"op":"replace","key":"ops/{id}","value":{{"n":2}},"prev":true}}"#),
            format!(r#"{{"op":"update","key":"ops/{id}","patch":{{"m":3}}}}"#),
            format!(r#"{{"op":"touch","key":"ops/{id}","ttl_ms":600000}}"#),
            format!(r#"{{"op":"remove","key":"ops/{id}"}}"#),
        ] {
            self.ok(Request::post("/v1/ops", body)).await;
        }
    }

    /// What is not about one entry.
    async fn commands(&self) {
        let (id, name) = (self.id, format!("/v1/collections/smoke-{}", self.id));
        self.ok(Request::new("PUT", &name).json(r#"{"indexes":[["n"]]}"#)).await;
        self.ok(Request::get(&name)).await;
        self.ok(Request::get("/v1/collections")).await;
        for n in 0..3 {
            self.ok(Request::put(&format!("smoke-{id}/{n}"), format!("{{\"n\":{n}}}"))).await;
        }
        let update = format!(r#"{{"prefix":"smoke-{id}/","where":[],"patch":{{"seen":true}}}}"#);
        assert_eq!(self.ok(Request::post("/v1/update_where", update)).await.json::<WhereAnswer>().applied, 3);
        let claim = format!(r#"{{"prefix":"smoke-{id}/","order_by":["-n"]}}"#);
        let claimed: ClaimAnswer = self.ok(Request::post("/v1/claim", claim)).await.json();
        assert_eq!((claimed.count, claimed.index_used), (1, Some(vec!["n".to_owned()])));
        let delete = format!(r#"{{"prefix":"smoke-{id}/","where":[]}}"#);
        let deleted: WhereAnswer = self.ok(Request::post("/v1/delete_where", delete)).await.json();
        assert_eq!((deleted.applied, deleted.failed), (2, 1), "one is locked");
        self.ok(Request::new("DELETE", &name)).await;
        let sequence = format!("/v1/sequences/smoke-{id}");
        self.ok(Request::post(&sequence, r#"{"count":5}"#)).await;
        assert_eq!(self.ok(Request::get(&sequence)).await.json::<SequenceAnswer>().value, 5);
    }

    async fn requests(&self) {
        let request_id = format!("smoke-{}", self.id);
        let put = Request::put(&format!("requests/{}", self.id), "1").request_id(&request_id);
        let written: WriteAnswer = self.ok(put).await.json();
        let kept: RequestAnswer = self.ok(Request::get(format!("/v1/requests/{request_id}"))).await.json();
        assert_eq!(
            (kept.state, kept.decided_revision, kept.cas),
            (RequestState::Applied, written.revision, written.cas)
        );
    }
}
