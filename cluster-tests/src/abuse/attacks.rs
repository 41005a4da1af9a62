//! What hostile clients do.
//!
//! Owns one function for each kind: what a single connection does until it is cut. Never looks at what it is told.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};

use crate::abuse::frames;
use cluster_harness::http::{Connection, Request};

/// Addresses of this machine that attacks come from.
const SOURCES: u8 = 8;
/// How long a connection that was refused or cut waits before the next one.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// Bytes that a slow reader takes at a time, and how often.
const DROP: usize = 512;
const DROP_EVERY: Duration = Duration::from_secs(1);
/// Threads of an attack.
const THREADS: usize = 2;
/// By this its threads get about a tenth of the processors that nodes get, where both want them.
pub const NICENESS: u8 = 10;

/// Whom it is directed at.
#[derive(Debug, Clone)]
pub struct Target {
    /// Client ports of all nodes.
    pub clients: Vec<SocketAddr>,
    /// Peer ports of all nodes.
    pub peers: Vec<SocketAddr>,
    /// What a user that turns hostile shows, where nodes ask who is there.
    pub token: Option<String>,
}

/// One of many hostile connections.
#[derive(Debug, Clone)]
struct Hostile {
    target: Arc<Target>,
    number: usize,
    answered: Arc<AtomicU64>,
}

/// A kind of attack.
#[derive(Clone, Copy)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// What a connection of it does.
    pub what: &'static str,
    /// Whether it is directed at nodes that ask who is there.
    pub is_guarded: bool,
    run: fn(Hostile) -> BoxFuture<'static, io::Result<()>>,
}

macro_rules! attacks {
    ($($name:literal, $what:literal => $run:path $(, guarded: $guarded:literal)?;)*) => {
        /// All kinds.
        pub const ATTACKS: &[Attack] = &[$(Attack {
            name: $name,
            what: $what,
            is_guarded: false $(|| $guarded)?,
            run: |hostile| Box::pin($run(hostile)),
        }),*];
    };
}

attacks! {
    "silent", "connects and says nothing" => silent;
    "churn", "connects and closes again" => churn;
    "slow-head", "sends a request head byte by byte" => slow_head;
    "slow-body", "sends a body byte by byte" => slow_body;
    "peers-silent", "connects to the peer port and says nothing" => peers_silent;
    "peers-noise", "sends noise to the peer port" => peers_noise;
    "pages-unread", "asks for pages of 4 MB and reads none of them" => pages_unread;
    "pages-by-drops", "asks for pages of 4 MB and reads 512 bytes a second" => pages_by_drops;
    "h2-no-window", "opens 200 streams of HTTP/2 for pages and gives them no window" => h2_no_window;
    "h2-reset", "opens streams of HTTP/2 and takes them back at once" => h2_reset;
    "watch-unread", "watches large changes and reads none" => watch_unread;
    "ops-unread", "sends 1,024 operations in a stream and reads no answer" => ops_unread;
    "renewals", "renews a thousand sessions that there are not" => renewals;
    "sessions", "opens sessions of a day, as fast as it can" => sessions;
    "locks", "waits for a lock that is held" => locks;
    "puts", "writes 1 KB, as fast as it can" => puts;
    "puts-large", "writes 1 MB, as fast as it can" => puts_large;
    "bulks", "writes 10,000 entries at once" => bulks;
    "deletes", "removes what is not there under a new request id" => deletes;
    "finds", "searches 10,000 entries" => finds;
    "updates-where", "changes what matches among 10,000 entries" => updates_where;
    "parameters", "gives 2,000 query parameters" => parameters;
    "audit", "reads the audit trail of a key" => audit;
    "deep-json", "sends JSON as deep as it may be" => deep_json;
    "grpc-heads", "opens 256 streams over gRPC and sends no message" => grpc_heads, guarded: true;
    "grpc-bodies", "sends 8 MB over gRPC, in messages that lack a byte" => grpc_bodies, guarded: true;
    "bad-tokens", "asks with tokens that there are not" => bad_tokens, guarded: true;
    "user-sessions", "is a user, and opens sessions of a day, as fast as it can" => user_sessions, guarded: true;
    "user-bodies", "is a user, and sends bodies of 1.5 MB that lack a byte" => user_bodies, guarded: true;
    "user-puts", "is a user, and writes 1 KB, as fast as it can" => user_puts, guarded: true;
}

/// The address that a connection comes from.
pub fn source(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 1, 1 + u8::try_from(number % usize::from(SOURCES)).expect("a few"))
}

/// An attack that is under way, on threads of its own: honest clients do not wait for those of hostile ones. Dropping it ends it.
pub struct Running {
    threads: Option<Runtime>,
    answered: Arc<AtomicU64>,
}

impl Attack {
    /// The one of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ATTACKS.iter().find(|attack| attack.name == name)
    }

    /// Begins it with so many connections, on threads that are so much nicer than those of nodes: attackers have processors of their own
    /// as a rule, and here they share those of the nodes. Each connection that is cut or done begins anew.
    pub fn begin(&self, target: &Target, connections: usize, niceness: u8) -> Running {
        let (target, run, threads) = (Arc::new(target.clone()), self.run, threads(niceness));
        let answered = Arc::new(AtomicU64::new(0));
        for number in 0..connections {
            let hostile = Hostile { target: Arc::clone(&target), number, answered: Arc::clone(&answered) };
            threads.spawn(async move {
                loop {
                    // Whatever it was told, it goes on.
                    let _ended = run(hostile.clone()).await;
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        Running { threads: Some(threads), answered }
    }
}

impl Running {
    /// How many of its requests were answered, refusals too, where it asks again and again.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing of it blocks, so nothing is waited for.
        self.threads.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Starts the threads of an attack, with a niceness above that of the nodes.
pub(super) fn threads(niceness: u8) -> Runtime {
    let mut threads = Builder::new_multi_thread();
    threads.worker_threads(THREADS).thread_name("hostile").on_thread_start(move || be_nice(niceness));
    threads.enable_all().build().expect("threads for an attack")
}

/// The thread at hand gets less of the processors than others.
fn be_nice(niceness: u8) {
    // SAFETY: takes no pointers. In Linux 0 is the calling thread.
    let failed = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness.into()) } != 0;
    assert!(!failed, "{}", io::Error::last_os_error());
}

impl Hostile {
    /// The node that it is directed at.
    fn node(&self) -> usize {
        self.number % self.target.clients.len()
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        connect(source(self.number), to).await
    }

    async fn open(&self) -> io::Result<TcpStream> {
        self.connect(self.target.clients[self.node()]).await
    }

    /// Sends the same request again and again.
    async fn repeat(&self, request: impl Fn(usize) -> Request) -> io::Result<()> {
        let mut connection = Connection::over(self.open().await?);
        for round in 0.. {
            connection.exchange(&request(round)).await?;
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The request as one of the hostile user.
    fn by_user(&self, request: Request) -> Request {
        match &self.target.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Sends these bytes, as far as they are taken, and reads nothing.
    async fn send_and_stay(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.open().await?;
        stream.write_all(bytes).await?;
        stay(&stream).await
    }
}

/// A connection from this address of the machine.
pub(super) async fn connect(from: Ipv4Addr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

/// Reads nothing until the far end is gone.
pub(super) async fn stay(stream: &TcpStream) -> io::Result<()> {
    loop {
        tokio::time::sleep(DROP_EVERY).await;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        // A connection that was closed in order is seen by what can be read before its end only.
        let mut byte = [0];
        match tokio::time::timeout(Duration::from_millis(1), stream.peek(&mut byte)).await {
            Ok(Ok(0)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(_)) | Err(_) => {}
        }
    }
}

async fn silent(hostile: Hostile) -> io::Result<()> {
    hostile.send_and_stay(b"").await
}

async fn churn(hostile: Hostile) -> io::Result<()> {
    hostile.open().await.map(drop)
}

async fn by_drops(mut stream: TcpStream, head: &[u8]) -> io::Result<()> {
    stream.write_all(head).await?;
    loop {
        tokio::time::sleep(DROP_EVERY).await;
        stream.write_all(b"x").await?;
    }
}

async fn slow_head(hostile: Hostile) -> io::Result<()> {
    by_drops(hostile.open().await?, b"GET /v1/kv/k HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await
}

async fn slow_body(hostile: Hostile) -> io::Result<()> {
    let head = b"PUT /v1/kv/slow HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n";
    by_drops(hostile.open().await?, head).await
}

async fn peers_silent(hostile: Hostile) -> io::Result<()> {
    stay(&hostile.connect(hostile.target.peers[hostile.node()]).await?).await
}

async fn peers_noise(hostile: Hostile) -> io::Result<()> {
    let mut stream = hostile.connect(hostile.target.peers[hostile.node()]).await?;
    stream.write_all(&[0xa5; 4_096]).await?;
    stay(&stream).await
}

const PAGE: &str = "/v1/kv?prefix=large/";

async fn pages_unread(hostile: Hostile) -> io::Result<()> {
    hostile.send_and_stay(&Request::get(PAGE).to_bytes().repeat(10)).await
}

async fn pages_by_drops(hostile: Hostile) -> io::Result<()> {
    let mut stream = hostile.open().await?;
    stream.write_all(&Request::get(PAGE).to_bytes().repeat(10)).await?;
    let mut drop = [0; DROP];
    while stream.read(&mut drop).await? > 0 {
        tokio::time::sleep(DROP_EVERY).await;
    }
    Ok(())
}

async fn h2_no_window(hostile: Hostile) -> io::Result<()> {
    let mut stream = hostile.open().await?;
    let pages = (0..200u32).flat_map(|n| frames::get(2 * n + 1, PAGE));
    let bytes: Vec<u8> = frames::begin(0).into_iter().chain(frames::open_window(1 << 30)).chain(pages).collect();
    stream.write_all(&bytes).await?;
    let mut heads = [0; 4_096];
    let mut next = 401;
    loop {
        // Reads what there is, and asks for what is always answered, so that the connection is seen to be used.
        match tokio::time::timeout(DROP_EVERY, stream.read(&mut heads)).await {
            Ok(Ok(0)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Ok(Ok(_)) => {}
            Err(_silence) => {
                stream.write_all(&frames::get(next, "/livez")).await?;
                next += 2;
            }
        }
    }
}

async fn h2_reset(hostile: Hostile) -> io::Result<()> {
    let mut stream = hostile.open().await?;
    stream.write_all(&frames::begin(65_535)).await?;
    for n in 0..100_000u32 {
        let bytes = [frames::get(2 * n + 1, PAGE), frames::reset(2 * n + 1)].concat();
        stream.write_all(&bytes).await?;
    }
    Ok(())
}

async fn watch_unread(hostile: Hostile) -> io::Result<()> {
    let watch = Request::get("/v1/watch?prefix=large/&initial=true").to_bytes();
    hostile.send_and_stay(&watch).await
}

async fn ops_unread(hostile: Hostile) -> io::Result<()> {
    let head = "POST /v1/ops HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
    let value = "v".repeat(200);
    let line = |n: usize| {
        let op =
            json!({"op": "upsert", "key": format!("hostile/ops/{}/{n}", hostile.number), "value": value, "prev": true});
        format!("{}\n", json!({"n": n, "op": op}))
    };
    let lines: String = (0..1_024).map(line).collect();
    let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
    let mut stream = hostile.open().await?;
    stream.write_all(head.as_bytes()).await?;
    loop {
        stream.write_all(chunk.as_bytes()).await?;
    }
}

async fn renewals(hostile: Hostile) -> io::Result<()> {
    let ids: Vec<String> = (0..1_000).map(|n| (1_000_000 * (hostile.number + 1) + n).to_string()).collect();
    let body = json!({ "sessions": ids }).to_string();
    hostile.repeat(|_| Request::post("/v1/sessions/renew", body.clone())).await
}

async fn sessions(hostile: Hostile) -> io::Result<()> {
    hostile.repeat(|_| Request::post("/v1/sessions", r#"{"ttl_ms":86400000}"#)).await
}

async fn locks(hostile: Hostile) -> io::Result<()> {
    let mut connection = Connection::over(hostile.open().await?);
    let created = connection.exchange(&Request::post("/v1/sessions", r#"{"ttl_ms":10000}"#)).await?;
    let session = serde_json::from_slice::<serde_json::Value>(&created.body).unwrap_or_default()["session"].clone();
    let acquire = json!({ "session": session, "wait_ms": 60_000 }).to_string();
    let path = format!("/v1/locks/hostile-{}/acquire", hostile.number % 4);
    connection.exchange(&Request::post(path, acquire)).await.map(drop)
}

async fn puts(hostile: Hostile) -> io::Result<()> {
    let value = json!("v".repeat(1_000)).to_string();
    hostile.repeat(|round| Request::put(&format!("hostile/{}/{}", hostile.number, round % 10), value.clone())).await
}

async fn puts_large(hostile: Hostile) -> io::Result<()> {
    let value = json!("v".repeat(1_000_000)).to_string();
    hostile.repeat(|_| Request::put(&format!("hostile/large/{}", hostile.number % 16), value.clone())).await
}

async fn bulks(hostile: Hostile) -> io::Result<()> {
    let op = |n| json!({"op": "upsert", "key": format!("hostile/bulk/{n}"), "value": n});
    let body = json!({ "ops": (0..10_000).map(op).collect::<Vec<_>>() }).to_string();
    hostile.repeat(|_| Request::post("/v1/bulk", body.clone())).await
}

async fn deletes(hostile: Hostile) -> io::Result<()> {
    let absent = |round| Request::new("DELETE", format!("/v1/kv/hostile/absent/{}/{round}", hostile.number));
    hostile.repeat(|round| absent(round).request_id(&format!("hostile-{}-{round}", hostile.number))).await
}

const NEVER: &str = r#""prefix":"doc/","where":[{"field":"n","op":"lt","value":0}]"#;

async fn finds(hostile: Hostile) -> io::Result<()> {
    hostile.repeat(|_| Request::post("/v1/find", format!("{{{NEVER},\"limit\":1}}"))).await
}

async fn updates_where(hostile: Hostile) -> io::Result<()> {
    hostile.repeat(|_| Request::post("/v1/update_where", format!("{{{NEVER},\"patch\":{{\"a\":1}}}}"))).await
}

async fn parameters(hostile: Hostile) -> io::Result<()> {
    let many: Vec<String> = (0..2_000).map(|n| format!("p{n}=1")).collect();
    let target = format!("/v1/kv/k?{}", many.join("&"));
    hostile.repeat(|_| Request::get(target.clone())).await
}

async fn audit(hostile: Hostile) -> io::Result<()> {
    hostile.repeat(|_| Request::get("/v1/audit?key=honest/0")).await
}

async fn deep_json(hostile: Hostile) -> io::Result<()> {
    let body = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    hostile.repeat(|_| Request::put("hostile/deep", body.clone())).await
}

/// A call that may wait for as long as its client does.
const CALL: &str = "/v3lockpb.Lock/Lock";

async fn grpc_heads(hostile: Hostile) -> io::Result<()> {
    let heads = (0..256u32).flat_map(|n| frames::call(2 * n + 1, CALL));
    let bytes: Vec<u8> = frames::begin(65_535).into_iter().chain(heads).collect();
    hostile.send_and_stay(&bytes).await
}

async fn grpc_bodies(hostile: Hostile) -> io::Result<()> {
    /// About the window of a stream; the window of a connection is four times as large.
    const BYTES: u32 = 2 * 1024 * 1024 - 64;
    let mut stream = hostile.open().await?;
    stream.write_all(&frames::begin(65_535)).await?;
    // The windows of the node hold from when its settings were seen on.
    let mut settings = [0; 4_096];
    if stream.read(&mut settings).await? == 0 {
        return Ok(());
    }
    stream.write_all(&frames::acknowledge()).await?;
    let almost = [&[0u8][..], &BYTES.to_be_bytes(), &vec![7; BYTES as usize - 1]].concat();
    for n in 0..4u32 {
        let bytes = [frames::call(2 * n + 1, CALL), frames::data(2 * n + 1, &almost)].concat();
        stream.write_all(&bytes).await?;
    }
    stay(&stream).await
}

async fn user_bodies(hostile: Hostile) -> io::Result<()> {
    const BYTES: usize = 1_500_000;
    let put = Request::new("PUT", "/v1/kv/hostile/half").header("Content-Type", "application/octet-stream");
    let put = put.header("Content-Length", BYTES.to_string()).header("Request-Timeout", "60000");
    hostile.send_and_stay(&[hostile.by_user(put).to_bytes(), vec![7; BYTES - 1]].concat()).await
}

async fn bad_tokens(hostile: Hostile) -> io::Result<()> {
    let token = |round| format!("Bearer {}-{round}-0123456789012345678901234567890123456789", hostile.number);
    hostile.repeat(|round| Request::get("/v1/kv/k").header("Authorization", token(round))).await
}

async fn user_sessions(hostile: Hostile) -> io::Result<()> {
    hostile.repeat(|_| hostile.by_user(Request::post("/v1/sessions", r#"{"ttl_ms":86400000}"#))).await
}

async fn user_puts(hostile: Hostile) -> io::Result<()> {
    let value = json!("v".repeat(1_000)).to_string();
    let put = |round| Request::put(&format!("hostile/{}/{}", hostile.number, round % 10), value.clone());
    hostile.repeat(|round| hostile.by_user(put(round))).await
}
