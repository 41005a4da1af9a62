//! etcd's protocol on the client port, as its clients speak it: gRPC, and JSON below `/v3`.
//!
//! Decisions of a single node are tested on one node. Most of them are in the cases that are compared with what a real etcd answered.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use etcd_conformance::cases;
use etcd_conformance::client::Etcd;
use etcd_conformance::compare::{compare as compare_cases, flat, kept};
use futures::StreamExt;
use quorate_etcd_api::auth::{
    AuthRoleAddRequest, AuthRoleAddResponse, AuthRoleGetRequest, AuthRoleGetResponse, AuthRoleGrantPermissionRequest,
    AuthRoleGrantPermissionResponse, AuthUserAddRequest, AuthUserAddResponse, AuthUserGrantRoleRequest,
    AuthUserGrantRoleResponse, AuthenticateRequest, AuthenticateResponse, Permission, PermissionType,
};
use quorate_etcd_api::election::{CampaignRequest, CampaignResponse};
use quorate_etcd_api::header::ResponseHeader;
use quorate_etcd_api::kv::{
    CompactionRequest, CompactionResponse, Compare, CompareCompareResult, CompareCompareTarget, CompareTargetUnion,
    DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, RangeRequestSortOrder,
    RangeResponse, RangeStreamResponse, RequestOp, RequestOpRequest, TxnRequest, TxnResponse,
};
use quorate_etcd_api::lease::{LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse};
use quorate_etcd_api::lock::{LockRequest, LockResponse, UnlockRequest, UnlockResponse};
use quorate_etcd_api::maintenance::{
    DefragmentRequest, DefragmentResponse, HashKVRequest, HashKVResponse, MoveLeaderRequest, MoveLeaderResponse,
    SnapshotRequest, SnapshotResponse,
};
use quorate_etcd_api::watch::{
    WatchCancelRequest, WatchCreateRequest, WatchRequest, WatchRequestRequestUnion, WatchResponse,
};
use serde_json::{Value, json};
use tonic::{Code, Status};

/// Calls that most tests make.
trait Calls {
    async fn put(&mut self, key: &str, value: &str) -> PutResponse;
    async fn range(&mut self, request: RangeRequest) -> Result<RangeResponse, Status>;
    async fn txn(&mut self, request: TxnRequest) -> Result<TxnResponse, Status>;
    async fn grant(&mut self, ttl: i64) -> i64;
}

impl Calls for Etcd {
    async fn put(&mut self, key: &str, value: &str) -> PutResponse {
        self.call("/etcdserverpb.KV/Put", put(key, value)).await.expect("it is written")
    }

    async fn range(&mut self, request: RangeRequest) -> Result<RangeResponse, Status> {
        self.call("/etcdserverpb.KV/Range", request).await
    }

    async fn txn(&mut self, request: TxnRequest) -> Result<TxnResponse, Status> {
        self.call("/etcdserverpb.KV/Txn", request).await
    }

    async fn grant(&mut self, ttl: i64) -> i64 {
        let granted: LeaseGrantResponse =
            self.call("/etcdserverpb.Lease/LeaseGrant", LeaseGrantRequest { ttl, id: 0 }).await.expect("a lease");
        granted.id
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn put(key: &str, value: &str) -> PutRequest {
    PutRequest { key: bytes(key), value: bytes(value), ..PutRequest::default() }
}

/// The keys from `key` to `end`.
fn range(key: &str, end: &str) -> RangeRequest {
    RangeRequest { key: bytes(key), range_end: bytes(end), ..RangeRequest::default() }
}

fn keys(answer: &RangeResponse) -> Vec<&str> {
    answer.kvs.iter().map(|kv| std::str::from_utf8(&kv.key).expect("text")).collect()
}

fn op(request: RequestOpRequest) -> RequestOp {
    RequestOp { request: Some(request) }
}

fn compare(key: &str, target: CompareCompareTarget, result: CompareCompareResult, with: CompareTargetUnion) -> Compare {
    let (target, result) = (target.into(), result.into());
    Compare { key: bytes(key), target, result, target_union: Some(with), ..Compare::default() }
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Status>) -> (Code, String) {
    let status = answer.expect_err("it is refused");
    (status.code(), status.message().to_owned())
}

fn watch(request: WatchCreateRequest) -> WatchRequest {
    WatchRequest { request_union: Some(WatchRequestRequestUnion::CreateRequest(request)) }
}

/// Some writers, a watch on another node, and leaders that are killed: every change once, in order, whole revisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_see_every_change_once_while_leaders_are_killed() {
    let mut cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let follower = cluster.ids().into_iter().find(|id| *id != leader).expect("three nodes");
    let mut etcd = Etcd::of(cluster.client_address(follower)).await;
    let from = etcd.put("w/0", "0").await.header.expect("a header").revision;
    let (asking, mut answers) = etcd.exchange::<WatchRequest, WatchResponse>("/etcdserverpb.Watch/Watch").await;
    let prefix = WatchCreateRequest {
        key: bytes("w/"),
        range_end: bytes("w0"),
        start_revision: from,
        prev_kv: true,
        ..Default::default()
    };
    asking.unbounded_send(watch(prefix)).expect("asked");
    assert!(answers.next().await.expect("an answer").expect("no error").created);
    let mut last = from;
    for round in 0..3 {
        for n in 1..=20 {
            let txn = ["w/a", "w/b"].map(|key| op(RequestOpRequest::RequestPut(put(key, &format!("{round}.{n}")))));
            eventually("a transaction", PATIENCE, async || {
                let mut etcd = Etcd::of(cluster.client_address(follower)).await;
                let txn = TxnRequest { success: txn.to_vec(), ..TxnRequest::default() };
                etcd.txn(txn).await.map_err(|status| status.to_string())
            })
            .await;
        }
        if round < 2 {
            let leader = cluster.leader().await;
            if leader != follower {
                cluster.kill(leader).await;
                cluster.bring_up(leader).await;
            }
        }
    }
    let end = etcd.put("w/end", "").await.header.expect("a header").revision;
    let mut seen = Vec::new();
    while last < end {
        let answer = answers.next().await.expect("an answer").expect("no error");
        assert!(!answer.canceled && answer.watch_id == 0, "{answer:?}");
        let revisions: Vec<_> =
            answer.events.iter().map(|event| event.kv.as_ref().expect("an entry").mod_revision).collect();
        assert!(
            revisions.first().is_some_and(|first| *first > last || seen.is_empty()),
            "{revisions:?} after {last}: split"
        );
        assert!(revisions.is_sorted(), "{revisions:?}");
        last = *revisions.last().expect("events");
        seen.extend(answer.events);
    }
    let written = |key: &str| {
        let of = seen.iter().filter(move |event| event.kv.as_ref().is_some_and(|kv| kv.key == key));
        of.map(|event| event.kv.clone().expect("an entry").version).collect::<Vec<_>>()
    };
    // Versions grow by one: nothing is missing, nothing comes twice. A transaction of unknown outcome that was repeated is one more.
    for key in ["w/a", "w/b"] {
        let versions = written(key);
        assert!(versions.len() >= 60 && versions.iter().copied().eq(1..=versions.len() as i64), "{key}: {versions:?}");
    }
    assert!(
        seen.iter().skip(3).all(|event| event.prev_kv.is_some() || event.kv.as_ref().is_some_and(|kv| kv.version == 1))
    );

    // Streams take no place in a class of requests, however many there are.
    let mut streams = Vec::new();
    for _ in 0..250 {
        let (asking, mut answers) = etcd.exchange::<WatchRequest, WatchResponse>("/etcdserverpb.Watch/Watch").await;
        asking.unbounded_send(watch(WatchCreateRequest { key: bytes("w/a"), ..Default::default() })).expect("asked");
        assert!(answers.next().await.expect("an answer").expect("no error").created);
        streams.push((asking, answers));
        if streams.len() == 100 {
            etcd = Etcd::of(cluster.client_address(follower)).await;
        }
    }
    drop(streams);
    cluster.assert_agreement().await;
}

/// A stream may have many watches: each of them is one of those that its account may have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_has_its_watches_whatever_they_come_in() {
    let cluster = Cluster::start_with(Settings::with_ids([1]).flag("--account-watches-max", 3)).await;
    let mut etcd = Etcd::of(cluster.client_address(1)).await;
    let (asking, mut answers) = etcd.exchange::<WatchRequest, WatchResponse>("/etcdserverpb.Watch/Watch").await;
    let create =
        || asking.unbounded_send(watch(WatchCreateRequest { key: bytes("k"), ..Default::default() })).expect("asked");
    for refused in [false, false, false, true] {
        create();
        let answer = answers.next().await.expect("an answer").expect("no error");
        assert_eq!(
            (answer.created, answer.canceled, answer.cancel_reason.is_empty()),
            (true, refused, !refused),
            "{answer:?}"
        );
    }
    let cancel = WatchRequestRequestUnion::CancelRequest(WatchCancelRequest { watch_id: 1 });
    asking.unbounded_send(WatchRequest { request_union: Some(cancel) }).expect("asked");
    assert!(answers.next().await.expect("an answer").expect("no error").canceled);
    create();
    let answer = answers.next().await.expect("an answer").expect("no error");
    assert!(answer.created && !answer.canceled, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_are_those_of_http_and_the_gateway_speaks_json_as_that_of_etcd() {
    let mut cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let node = cluster.client_address(1);
    let mut etcd = Etcd::of(node).await;
    etcd.put("doc", r#"{"n": 1}"#).await;
    let patch = Request::new("PATCH", "/v1/kv/doc")
        .header("Content-Type", "application/merge-patch+json")
        .body(br#"{"n":2}"#.to_vec());
    patch.send(node).await.expect("an answer").expect_success();
    let read = etcd.range(range("doc", "")).await.expect("a document");
    assert_eq!(serde_json::from_slice::<Value>(&read.kvs[0].value).expect("JSON"), json!({"n": 2}));
    // A lock on a document holds, whoever writes.
    let lock = Request::post("/v1/ops", r#"{"op":"lock","key":"doc","lock_ms":30000}"#);
    lock.send(node).await.expect("an answer").expect_success();
    let locked = etcd.call::<_, PutResponse>("/etcdserverpb.KV/Put", put("doc", "{}")).await;
    assert_eq!(refused(locked).0, Code::FailedPrecondition);
    let every = DeleteRangeRequest { key: bytes("a"), range_end: bytes("z"), prev_kv: true };
    let locked = etcd.call::<_, DeleteRangeResponse>("/etcdserverpb.KV/DeleteRange", every).await;
    assert_eq!(refused(locked).0, Code::FailedPrecondition);

    let ask = async |path: &str, body: Value| {
        let answer = Request::post(path, body.to_string()).send(node).await.expect("an answer");
        (answer.status, serde_json::from_slice::<Value>(&answer.body).expect("JSON"))
    };
    let put = json!({"key": "Zm9v", "value": "YmFy"});
    let (status, answer) = ask("/v3/kv/put", put).await;
    assert_eq!((status, answer["header"]["member_id"].as_str()), (200, Some("1")), "{answer}");
    let (_, answer) = ask("/v3/kv/range", json!({"key": "Zm9v"})).await;
    let revision = answer["kvs"][0]["mod_revision"].clone();
    let entry =
        json!({"key": "Zm9v", "value": "YmFy", "create_revision": revision, "mod_revision": revision, "version": "1"});
    assert_eq!((&answer["kvs"], &answer["count"]), (&json!([entry]), &json!("1")));
    // As Patroni writes it.
    let txn = json!({
        "compare": [{"key": "Zm9v", "target": "CREATE", "create_revision": 0}],
        "success": [{"request_put": {"key": "Zm9v", "value": "eA=="}}],
        "failure": [{"request_txn": {"compare": [{"target": "VALUE", "key": "Zm9v", "value": "YmFy"}], "success": [{"request_range": {"key": "Zm9v"}}]}}],
    });
    let (_, answer) = ask("/v3/kv/txn", txn).await;
    assert_eq!(answer.get("succeeded"), None, "{answer}");
    assert_eq!(answer["responses"][0]["response_txn"]["responses"][0]["response_range"]["kvs"], json!([entry]));
    let (status, answer) = ask("/v3/kv/lease/revoke", json!({"ID": "7"})).await;
    let text = "etcdserver: requested lease not found";
    assert_eq!((status, answer), (404, json!({"error": text, "code": 5, "message": text})));
    let (_, answer) = ask("/v3/lease/keepalive", json!({"ID": 7})).await;
    assert_eq!((answer["result"]["ID"].as_str(), answer["result"].get("TTL")), (Some("7"), None), "{answer}");
    let (status, answer) = ask("/v3/kv/range", json!({"key": "not base64!"})).await;
    assert_eq!((status, answer["code"].as_i64()), (400, Some(3)), "{answer}");
    // As Patroni asks for it.
    let version = Request::new("GET", "/version").json("{}").send(node).await.expect("an answer");
    let version: Value = version.expect_success().json();
    assert!(
        version["etcdserver"].as_str().is_some_and(|text| text.split('.').all(|part| part.parse::<u32>().is_ok())),
        "{version}"
    );
    cluster.assert_agreement().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_hold_whatever_the_protocol() {
    const ROOT: &str = "7c1d3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a0c";
    let mut cluster = Cluster::new(Settings::with_ids([1]).guarded(ROOT));
    cluster.start_all();
    cluster.wait_all_ready().await;
    let node = cluster.client_address(1);
    eventually("a write", PATIENCE, async || {
        let mut etcd = Etcd::of(node).await;
        etcd.token = Some(ROOT.to_owned());
        etcd.call::<_, PutResponse>("/etcdserverpb.KV/Put", put("secret/1", "x"))
            .await
            .map_err(|status| status.to_string())
    })
    .await;
    let as_root = async |method, path: &str, body: &str| {
        Request::new(method, path).json(body).header("Authorization", format!("Bearer {ROOT}")).send(node).await
    };
    let grants = r#"{"grants":[{"permission":"write","prefix":"app/"}]}"#;
    as_root("PUT", "/v1/access/roles/app", grants).await.expect("an answer").expect_success();
    as_root("PUT", "/v1/access/users/app", r#"{"roles":["app"]}"#).await.expect("an answer").expect_success();
    let token: Value =
        as_root("POST", "/v1/access/tokens", r#"{"user":"app"}"#).await.expect("an answer").expect_success().json();

    let mut etcd = Etcd::of(node).await;
    let nobody = etcd.range(range("app/1", "")).await;
    assert_eq!(refused(nobody), (Code::InvalidArgument, "etcdserver: user name is empty".to_owned()));
    etcd.token = Some("qt_00c0ffee00c0ffee_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned());
    let nobody = etcd.range(range("app/1", "")).await;
    assert_eq!(refused(nobody), (Code::Unauthenticated, "etcdserver: invalid auth token".to_owned()));
    etcd.token = None;
    let token = token["token"].as_str().expect("a token");
    let wrong = (Code::InvalidArgument, "etcdserver: authentication failed, invalid user ID or password".to_owned());
    for (name, password) in [("app", "x"), ("root", token), ("", "")] {
        let asked = AuthenticateRequest { name: name.to_owned(), password: password.to_owned() };
        let refusal = refused(etcd.call::<_, AuthenticateResponse>("/etcdserverpb.Auth/Authenticate", asked).await);
        assert_eq!(refusal, wrong, "{name}");
    }
    let asked = AuthenticateRequest { name: "app".to_owned(), password: token.to_owned() };
    let logged_in: AuthenticateResponse =
        etcd.call("/etcdserverpb.Auth/Authenticate", asked).await.expect("it is the user's");
    etcd.token = Some(logged_in.token);
    etcd.put("app/1", "x").await;
    let denied = (Code::PermissionDenied, "etcdserver: permission denied".to_owned());
    assert_eq!(refused(etcd.range(range("secret/1", "")).await), denied);
    assert_eq!(refused(etcd.range(range("a", "z")).await), denied);
    assert_eq!(keys(&etcd.range(range("app/", "app0")).await.expect("its own")), ["app/1"]);
    // A lease that nobody has is told of where a put with it is carried out, and there alone.
    let unmet =
        compare("app/2", CompareCompareTarget::Version, CompareCompareResult::Equal, CompareTargetUnion::Version(7));
    let leased = op(RequestOpRequest::RequestPut(PutRequest { lease: 5, ..put("app/2", "x") }));
    let not_taken = TxnRequest { compare: vec![unmet], success: vec![leased.clone()], ..TxnRequest::default() };
    assert!(!etcd.txn(not_taken).await.expect("nothing is put").succeeded);
    let taken = TxnRequest { success: vec![leased], ..TxnRequest::default() };
    assert_eq!(refused(etcd.txn(taken).await).1, "etcdserver: requested lease not found");
    // What a transaction compares, removes or reads, however deep, is asked for as well.
    let of_secret = RequestOpRequest::RequestRange(range("secret/1", ""));
    let inner = TxnRequest { failure: vec![op(of_secret)], ..TxnRequest::default() };
    let hidden = TxnRequest { success: vec![op(RequestOpRequest::RequestTxn(inner))], ..TxnRequest::default() };
    assert_eq!(refused(etcd.txn(hidden).await), denied);
    let compared =
        compare("secret/1", CompareCompareTarget::Version, CompareCompareResult::Equal, CompareTargetUnion::Version(1));
    assert_eq!(refused(etcd.txn(TxnRequest { compare: vec![compared], ..TxnRequest::default() }).await), denied);
    let every = DeleteRangeRequest { key: bytes("a"), range_end: bytes("z"), prev_kv: true };
    assert_eq!(refused(etcd.call::<_, DeleteRangeResponse>("/etcdserverpb.KV/DeleteRange", every).await), denied);
    let add = AuthUserAddRequest { name: "other".to_owned(), ..Default::default() };
    assert_eq!(refused(etcd.call::<_, AuthUserAddResponse>("/etcdserverpb.Auth/UserAdd", add.clone()).await), denied);
    let compact = CompactionRequest { revision: 2, physical: false };
    assert_eq!(refused(etcd.call::<_, CompactionResponse>("/etcdserverpb.KV/Compact", compact).await), denied);

    // Users and roles, as etcdctl makes them; permissions that ours have no word for are refused.
    etcd.token = Some(ROOT.to_owned());
    let _: AuthUserAddResponse = etcd.call("/etcdserverpb.Auth/UserAdd", add.clone()).await.expect("a user");
    let twice = refused(etcd.call::<_, AuthUserAddResponse>("/etcdserverpb.Auth/UserAdd", add).await);
    assert_eq!(twice, (Code::FailedPrecondition, "etcdserver: user name already exists".to_owned()));
    let add = AuthRoleAddRequest { name: "reader".to_owned() };
    let _: AuthRoleAddResponse = etcd.call("/etcdserverpb.Auth/RoleAdd", add).await.expect("a role");
    let grant = |key: &str, end: &str, kind: PermissionType| AuthRoleGrantPermissionRequest {
        name: "reader".to_owned(),
        perm: Some(Permission { perm_type: kind.into(), key: bytes(key), range_end: bytes(end) }),
    };
    const GRANT: &str = "/etcdserverpb.Auth/RoleGrantPermission";
    let _: AuthRoleGrantPermissionResponse =
        etcd.call(GRANT, grant("app/", "app0", PermissionType::Read)).await.expect("granted");
    for more_than_asked in [grant("app", "", PermissionType::Read), grant("app/", "app0", PermissionType::Write)] {
        let refusal = refused(etcd.call::<_, AuthRoleGrantPermissionResponse>(GRANT, more_than_asked).await);
        assert!(refusal.0 == Code::FailedPrecondition && refusal.1.starts_with("quorate: "), "{refusal:?}");
    }
    let give = AuthUserGrantRoleRequest { user: "other".to_owned(), role: "reader".to_owned() };
    let _: AuthUserGrantRoleResponse = etcd.call("/etcdserverpb.Auth/UserGrantRole", give).await.expect("given");
    let seen: AuthRoleGetResponse = etcd
        .call("/etcdserverpb.Auth/RoleGet", AuthRoleGetRequest { role: "reader".to_owned() })
        .await
        .expect("a role");
    assert_eq!(seen.perm, grant("app/", "app0", PermissionType::Read).perm.into_iter().collect::<Vec<_>>());
    let token: Value =
        as_root("POST", "/v1/access/tokens", r#"{"user":"other"}"#).await.expect("an answer").expect_success().json();
    etcd.token = Some(token["token"].as_str().expect("a token").to_owned());
    assert_eq!(keys(&etcd.range(range("app/", "app0")).await.expect("it may read")), ["app/1"]);
    let write = etcd.call::<_, PutResponse>("/etcdserverpb.KV/Put", put("app/1", "y")).await;
    assert_eq!(refused(write), denied);
    tokio::time::timeout(Duration::from_secs(10), cluster.stop(1)).await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_compacted_is_gone_once_that_is_answered() {
    let mut cluster = Cluster::start().await;
    let (mut one, mut other) = (Etcd::of(cluster.client_address(1)).await, Etcd::of(cluster.client_address(2)).await);
    let mut revision = 0;
    for n in 0..40 {
        revision = one.put("k", &n.to_string()).await.header.expect("a header").revision;
    }
    const COMPACT: &str = "/etcdserverpb.KV/Compact";
    let at = |revision: i64| CompactionRequest { revision, physical: true };
    let _: CompactionResponse = one.call(COMPACT, at(revision - 5)).await.expect("it is compacted");
    let past = |revision: i64| RangeRequest { revision, ..range("k", "") };
    assert_eq!(other.range(past(revision - 5)).await.expect("the oldest").kvs[0].value, "34");
    let gone = (Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted".to_owned());
    assert_eq!(refused(other.range(past(revision - 6)).await), gone);
    assert_eq!(refused(other.call::<_, CompactionResponse>(COMPACT, at(revision - 5)).await), gone);
    let future = refused(other.call::<_, CompactionResponse>(COMPACT, at(revision + 1)).await);
    assert_eq!(future.1, "etcdserver: mvcc: required revision is a future revision");

    // A watch that begins before is told from where it can.
    let (asking, mut answers) = one.exchange::<WatchRequest, WatchResponse>("/etcdserverpb.Watch/Watch").await;
    let request = WatchCreateRequest { key: bytes("k"), start_revision: revision - 9, ..Default::default() };
    asking.unbounded_send(watch(request)).expect("asked");
    let mut answer = answers.next().await.expect("an answer").expect("no error");
    while !answer.canceled {
        answer = answers.next().await.expect("an answer").expect("no error");
    }
    assert_eq!(answer.compact_revision, revision - 4, "the first from which a watch can begin");

    // Nodes that hold the same say the same hash of it.
    let mut hashes = Vec::new();
    for id in cluster.ids() {
        let mut etcd = Etcd::of(cluster.client_address(id)).await;
        let hash: HashKVResponse =
            etcd.call("/etcdserverpb.Maintenance/HashKV", HashKVRequest { revision }).await.expect("a hash");
        hashes.push((hash.hash, hash.hash_revision, hash.compact_revision));
    }
    assert!(hashes.iter().all(|hash| *hash == (hashes[0].0, revision, revision - 5)), "{hashes:?}");
    cluster.assert_agreement().await;
}

/// The header of an answer of a stream.
fn at(header: Option<ResponseHeader>) -> i64 {
    header.expect("a header").revision
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_was_never_compacted_has_compacted_nothing() {
    let cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let mut etcd = Etcd::of(cluster.client_address(1)).await;
    let put_at = at(etcd.put("k", "first").await.header);
    for start_revision in [1, 2] {
        let (asking, mut answers) = etcd.exchange::<WatchRequest, WatchResponse>("/etcdserverpb.Watch/Watch").await;
        let request = WatchCreateRequest { key: bytes("k"), start_revision, ..Default::default() };
        asking.unbounded_send(watch(request)).expect("asked");
        let created = answers.next().await.expect("an answer").expect("no error");
        assert!(created.created && !created.canceled, "from {start_revision}: {created:?}");
        let seen = answers.next().await.expect("an answer").expect("no error");
        let changed = seen.events.iter().filter_map(|event| event.kv.as_ref()).map(|kv| kv.mod_revision);
        assert_eq!(changed.collect::<Vec<_>>(), [put_at], "from {start_revision}");
    }
    let first = etcd.range(RangeRequest { revision: 1, ..range("k", "") }).await.expect("it can be read");
    assert_eq!(first.count, 0, "there was nothing yet");
    const COMPACT: &str = "/etcdserverpb.KV/Compact";
    let first = CompactionRequest { revision: 1, physical: true };
    let _: CompactionResponse = etcd.call(COMPACT, first).await.expect("nothing is older");
    let changes = Request::get("/v1/watch?key=k&from=1");
    let changes = changes.send(cluster.client_address(1));
    // It has no end, and is refused at once or not at all.
    assert!(tokio::time::timeout(Duration::from_millis(500), changes).await.is_err(), "the watch was refused");
    let compacted = CompactionRequest { revision: put_at, physical: true };
    let _: CompactionResponse = etcd.call(COMPACT, compacted).await.expect("it is compacted");
    let gone = etcd.call::<_, CompactionResponse>(COMPACT, CompactionRequest { revision: 1, physical: true }).await;
    assert_eq!(refused(gone).1, "etcdserver: mvcc: required revision has been compacted");
}

/// On the leader, too: an answer is given a moment before readers see what it is about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_shows_the_time_before_a_write_that_its_node_confirmed() {
    let cluster = Cluster::start().await;
    for id in cluster.ids() {
        let node = cluster.client_address(id);
        let (mut etcd, mut other) = (Etcd::of(node).await, Etcd::of(node).await);
        let lease = etcd.grant(60).await;
        let (keeping, mut kept) =
            etcd.exchange::<LeaseKeepAliveRequest, LeaseKeepAliveResponse>("/etcdserverpb.Lease/LeaseKeepAlive").await;
        let (asking, mut refusals) = etcd.exchange::<WatchRequest, WatchResponse>("/etcdserverpb.Watch/Watch").await;
        for n in 0..40 {
            let confirmed = at(other.put("k", &n.to_string()).await.header);
            let nothing = WatchCreateRequest { key: bytes("b"), range_end: bytes("a"), ..Default::default() };
            asking.unbounded_send(watch(nothing)).expect("asked");
            let told = at(refusals.next().await.expect("an answer").expect("no error").header);
            assert!(told >= confirmed, "node {id}: a refusal at {told} after a write at {confirmed}");
            let confirmed = at(other.put("k", "again").await.header);
            keeping.unbounded_send(LeaseKeepAliveRequest { id: lease }).expect("asked");
            let told = at(kept.next().await.expect("an answer").expect("no error").header);
            assert!(told >= confirmed, "node {id}: a renewal at {told} after a write at {confirmed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_cannot_be_are_refused_with_the_code_of_what_is_wrong() {
    let cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let mut etcd = Etcd::of(cluster.client_address(1)).await;
    for id in [-1, -5, i64::MIN, 1 << 62, (1 << 62) + (1 << 48) - 1] {
        let granted = etcd
            .call::<_, LeaseGrantResponse>("/etcdserverpb.Lease/LeaseGrant", LeaseGrantRequest { ttl: 30, id })
            .await;
        let (code, text) = refused(granted);
        assert_eq!(code, Code::InvalidArgument, "{id}: {text}");
        assert!(text.contains("2^62"), "{text}");
        let late = etcd.call::<_, PutResponse>("/etcdserverpb.KV/Put", PutRequest { lease: id, ..put("k", "v") }).await;
        assert_eq!(refused(late), (Code::NotFound, "etcdserver: requested lease not found".to_owned()), "{id}");
    }
    let long = "n".repeat(4_097);
    let written = etcd.call::<_, PutResponse>("/etcdserverpb.KV/Put", put(&long, "v")).await;
    assert_eq!(refused(written).0, Code::InvalidArgument);
    let lease = etcd.grant(60).await;
    let locked = LockRequest { name: bytes(&long), lease };
    assert_eq!(refused(etcd.call::<_, LockResponse>("/v3lockpb.Lock/Lock", locked).await).0, Code::InvalidArgument);
    let campaign = CampaignRequest { name: bytes(&long), lease, value: bytes("v") };
    let campaign = etcd.call::<_, CampaignResponse>("/v3electionpb.Election/Campaign", campaign).await;
    assert_eq!(refused(campaign).0, Code::InvalidArgument);
    // What only asks for such a key finds nothing, and a watch of it sees nothing.
    let (asking, mut answers) = etcd.exchange::<WatchRequest, WatchResponse>("/etcdserverpb.Watch/Watch").await;
    let request = WatchCreateRequest { key: bytes(&long), ..Default::default() };
    asking.unbounded_send(watch(request)).expect("asked");
    assert!(!answers.next().await.expect("an answer").expect("no error").canceled);
    let nothing = DeleteRangeRequest { key: bytes(&long), ..DeleteRangeRequest::default() };
    let removed: DeleteRangeResponse =
        etcd.call("/etcdserverpb.KV/DeleteRange", nothing).await.expect("it may be asked");
    assert_eq!(removed.deleted, 0);
    let faults: Value =
        Request::get("/v1/cluster/faults").send(cluster.client_address(1)).await.expect("an answer").json();
    assert_eq!((&faults["commands"], &faults["kept"]), (&json!(0), &json!([])), "{faults}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_may_come_in_parts() {
    let cluster = Cluster::start_with(Settings::with_ids([1])).await;
    let mut etcd = Etcd::of(cluster.client_address(1)).await;
    let value = "x".repeat(500_000);
    for n in 0..12 {
        etcd.put(&format!("p/{n:02}"), &value).await;
    }
    let mut read = async |request: RangeRequest| {
        let (asking, mut answers) =
            etcd.exchange::<RangeRequest, RangeStreamResponse>("/etcdserverpb.KV/RangeStream").await;
        asking.unbounded_send(request).expect("asked");
        drop(asking);
        let mut parts = Vec::new();
        while let Some(part) = answers.next().await {
            parts.push(part.expect("no error").range_response.expect("a part"));
        }
        parts
    };
    for limit in [0, 5, 12] {
        let parts = read(RangeRequest { limit, ..range("p/", "p0") }).await;
        let found: Vec<&str> = parts.iter().flat_map(keys).collect();
        let wanted: Vec<String> = (0..if limit == 5 { 5 } else { 12 }).map(|n| format!("p/{n:02}")).collect();
        assert_eq!(found, wanted);
        assert!(parts.len() > 1, "{}", parts.len());
        assert!(parts[0].header.is_some() && parts[0].count == 12);
        assert_eq!(parts.iter().any(|part| part.more), limit == 5);
    }
    let parts =
        read(RangeRequest { limit: 1, sort_order: RangeRequestSortOrder::Descend.into(), ..range("p/", "p0") }).await;
    assert_eq!(parts.iter().flat_map(keys).collect::<Vec<_>>(), ["p/11"]);
}

/// Who waits asks another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_lock_by_name_and_goes_leaves_nothing_behind() {
    const LOCK: &str = "/v3lockpb.Lock/Lock";
    let mut cluster = Cluster::start().await;
    let (first, second) = (cluster.client_address(1), cluster.client_address(2));
    let mut one = Etcd::of(first).await;
    let lease = one.grant(60).await;
    let ask = |lease| LockRequest { name: bytes("l"), lease };
    let held: LockResponse = one.call(LOCK, ask(lease)).await.expect("it is free");
    assert_eq!(held.key, format!("l/{lease:x}"));

    // Who waits and goes leaves nothing behind; who stays gets it next.
    let line = async |etcd: &mut Etcd| etcd.range(range("l/", "l0")).await.expect("the line").count;
    let gone = tokio::spawn(async move { Etcd::of(second).await.call::<_, LockResponse>(LOCK, ask(0)).await });
    eventually("one waits", PATIENCE, async || match line(&mut Etcd::of(first).await).await {
        2 => Ok(()),
        other => Err(other.to_string()),
    })
    .await;
    gone.abort();
    eventually("it went", PATIENCE, async || match line(&mut Etcd::of(first).await).await {
        1 => Ok(()),
        other => Err(other.to_string()),
    })
    .await;
    let waits = tokio::spawn(async move { Etcd::of(second).await.call::<_, LockResponse>(LOCK, ask(0)).await });
    eventually("one waits", PATIENCE, async || match line(&mut Etcd::of(first).await).await {
        2 => Ok(()),
        other => Err(other.to_string()),
    })
    .await;
    let _: UnlockResponse =
        one.call("/v3lockpb.Lock/Unlock", UnlockRequest { key: held.key.clone() }).await.expect("given back");
    let next = waits.await.expect("it goes on").expect("it has it");
    assert_ne!(next.key, held.key);
    cluster.assert_agreement().await;
}

/// The leader moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_find_what_etcd_has() {
    let cluster = Cluster::start().await;
    let leader = cluster.leader().await;
    let follower = cluster.ids().into_iter().find(|id| *id != leader).expect("three nodes");
    let mut etcd = Etcd::of(cluster.client_address(follower)).await;
    etcd.put("k", "v").await;
    let _: DefragmentResponse =
        etcd.call("/etcdserverpb.Maintenance/Defragment", DefragmentRequest {}).await.expect("done");
    let mut of_leader = Etcd::of(cluster.client_address(leader)).await;
    let _: MoveLeaderResponse = of_leader
        .call("/etcdserverpb.Maintenance/MoveLeader", MoveLeaderRequest { target_id: follower })
        .await
        .expect("it moves");
    assert_eq!(cluster.leader().await, follower);

    let (asking, mut pieces) =
        etcd.exchange::<SnapshotRequest, SnapshotResponse>("/etcdserverpb.Maintenance/Snapshot").await;
    asking.unbounded_send(SnapshotRequest {}).expect("asked");
    drop(asking);
    let mut snapshot = Vec::new();
    while let Some(piece) = pieces.next().await {
        snapshot.extend_from_slice(&piece.expect("no error").blob);
    }
    let backup = Request::get("/v1/cluster/backup").send(cluster.client_address(follower)).await.expect("an answer");
    let bytes = backup.expect_success().body.len();
    assert_eq!(snapshot.len(), bytes.next_multiple_of(512) + 32, "a backup, whole sectors and a checksum");
    quorate_store::backup::BackupReader::open(&snapshot[..]).and_then(|it| it.verify(|_| ())).expect("a backup");
    let health: Value = Request::get("/health").send(cluster.client_address(1)).await.expect("an answer").json();
    assert_eq!(health, json!({"health": "true", "reason": ""}));
}

/// Each answer is the one that a real etcd gave to the same call, but for the differences that are known. `scripts/conformance etcd` runs
/// all groups on three nodes, and etcd beside; here are those that are quick.
async fn answers_are_those_of_etcd(nodes: Settings, groups: &[&str]) {
    let cluster = Cluster::start_with(nodes).await;
    let nodes: Vec<SocketAddr> = cluster.ids().into_iter().map(|id| cluster.client_address(id)).collect();
    let (kept, known) = kept();
    for group in groups {
        let did = flat(cases::run(&nodes, group).await);
        assert!(!did.is_empty(), "{group} has cases");
        let surprises: Vec<String> =
            compare_cases(&kept, &did, &known).into_iter().map(|surprise| surprise.text).collect();
        assert!(surprises.is_empty(), "{}", surprises.join("\n\n"));
    }
}

/// One node decides all of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_writes_and_transactions_answer_as_those_of_etcd() {
    answers_are_those_of_etcd(Settings::with_ids([1]), &["txn/", "range/", "put/", "delete/"]).await;
}

/// Cases go to each node in turn: what waits at one is decided at another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_locks_elections_and_watches_answer_as_those_of_etcd() {
    let groups = [
        "lease/",
        "lock/",
        "election/",
        "watch/progress of all",
        "watch/cancels",
        "watch/ranges that are none",
        "watch/a client that sends nothing more",
        "watch/expired leases in one piece",
        "cluster/refuses members that are not there",
        "maintenance/alarms",
        "maintenance/refuses to move the leader",
    ];
    answers_are_those_of_etcd(Settings::default(), &groups).await;
}
