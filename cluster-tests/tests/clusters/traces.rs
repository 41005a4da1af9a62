//! Requests as spans: a collector gets those it shall see, and one that hangs holds up nobody.

use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster_harness::ports::{Ports, free_addresses};
use cluster_harness::{PATIENCE, Request, eventually, write_secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::guide::{built, command};

/// Ends a node that a failed test leaves behind.
struct Running {
    child: Child,
    /// The node's until it has ended.
    _ports: Ports,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A node that tells `collector` of this many of a hundred requests, and where its clients connect.
fn node(collector: std::net::SocketAddr, percent: u32) -> (Running, std::net::SocketAddr) {
    node_with(collector, percent, &[])
}

fn node_with(collector: std::net::SocketAddr, percent: u32, more: &[&str]) -> (Running, std::net::SocketAddr) {
    let addresses = free_addresses(2);
    let mut command = command(built("quorate-node"));
    command.args(["--dev", "--client-listen", &addresses[0].to_string(), "--peer-listen", &addresses[1].to_string()]);
    command.args(["--otlp-endpoint", &format!("http://{collector}"), "--trace-percent", &percent.to_string()]);
    command.args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let client = addresses[0];
    (Running { child: command.spawn().expect("the node starts"), _ports: addresses }, client)
}

async fn wait_ready(client: std::net::SocketAddr) {
    eventually("the node is ready", PATIENCE, async || {
        let answer = Request::get("/readyz").send_within(client, Duration::from_secs(2)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.is_success() { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

/// Takes every message, with head; each connection brings one.
fn collect(listener: TcpListener) -> Arc<Mutex<Vec<u8>>> {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut message = Vec::new();
            let mut piece = [0; 4096];
            while !is_whole(&message) {
                match stream.read(&mut piece).await {
                    Ok(count) if count > 0 => message.extend_from_slice(&piece[..count]),
                    _ => break,
                }
            }
            shared.lock().expect("no test panics while it holds it").extend_from_slice(&message);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.expect("the node reads the answer");
        }
    });
    taken
}

/// Whether a request is there with all of its body.
fn is_whole(message: &[u8]) -> bool {
    let text = String::from_utf8_lossy(message).to_lowercase();
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    message.len() >= head.len() + 4 + length.unwrap_or(0)
}

fn holds(message: &[u8], part: &[u8]) -> bool {
    message.windows(part.len()).any(|window| window == part)
}

/// A node as it is run, and a collector at its port.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_the_spans_of_sampled_traces_and_no_others() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let taken = collect(listener);
    let (_node, client) = node(address, 0);
    wait_ready(client).await;
    let trace = [0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36];
    let hex: String = trace.iter().map(|byte: &u8| format!("{byte:02x}")).collect();
    let put = |id: &str, sampled: &str| {
        let parent = format!("00-{hex}-00f067aa0ba902b7-{sampled}");
        Request::put("secret-key", "\"secret-value\"").request_id(id).header("traceparent", parent)
    };
    put("not-sampled", "00").send(client).await.expect("an answer").expect_success();
    Request::put("secret-key", "1")
        .request_id("left-to-chance")
        .send(client)
        .await
        .expect("an answer")
        .expect_success();
    put("sampled-id", "01").send(client).await.expect("an answer").expect_success();
    let message = eventually("the collector has the span", PATIENCE, async || {
        let message = taken.lock().expect("no test panics while it holds it").clone();
        if holds(&message, b"sampled-id") { Ok(message) } else { Err(format!("{} bytes", message.len())) }
    })
    .await;
    assert!(message.starts_with(b"POST /v1/traces HTTP/1.1\r\n"), "{}", String::from_utf8_lossy(&message));
    for part in [&trace[..], b"PUT /v1/kv/{key}", b"quorate.log_ms", b"service.name"] {
        assert!(holds(&message, part), "{} is missing", part.escape_ascii());
    }
    for part in ["not-sampled", "left-to-chance", "secret-key", "secret-value"] {
        assert!(!holds(&message, part.as_bytes()), "{part} was told");
    }
}

/// A span costs the node and the collector something: who is not known cannot have one made for each request, nor add to traces of others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_who_is_known_decides_that_a_request_is_told() {
    const ROOT: &str = "9c1d3c0b6a6f4a0cb7a2f5e1c9d8b7a65f0d3c0b6a6f4a0c";
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("root-token");
    write_secret(&file, ROOT);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let taken = collect(listener);
    let file = file.display().to_string();
    let (_node, client) = node_with(address, 0, &["--auth", "required", "--root-token-file", &file]);
    wait_ready(client).await;
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let stranger = async |path: &str| {
        Request::get(path).header("traceparent", PARENT).send(client).await.expect("an answer").status
    };
    assert_eq!([stranger("/livez").await, stranger("/v1/locks").await], [200, 401]);
    let known = Request::put("k", "1").request_id("known-id").header("traceparent", PARENT);
    known.header("authorization", format!("Bearer {ROOT}")).send(client).await.expect("an answer").expect_success();
    let message = eventually("the collector has the span", PATIENCE, async || {
        let message = taken.lock().expect("no test panics while it holds it").clone();
        if holds(&message, b"known-id") { Ok(message) } else { Err(format!("{} bytes", message.len())) }
    })
    .await;
    for route in ["GET /livez", "GET /v1/locks"] {
        assert!(!holds(&message, route.as_bytes()), "{route} was told");
    }
}

/// Fault: a collector that takes connections and reads nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_hangs_holds_up_neither_requests_nor_the_end() {
    // Connections are accepted by the system and nobody ever reads from them.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (mut node, client) = node(listener.local_addr().expect("bound"), 100);
    wait_ready(client).await;
    for _ in 0..300 {
        let put = |number: usize| async move {
            let put = Request::put(&format!("k{number}"), "1").send_within(client, Duration::from_secs(5)).await;
            put.expect("an answer").expect_success();
        };
        futures::future::join_all((0..10).map(put)).await;
    }
    // SAFETY: takes no pointers; the child was not waited for, so the id is its.
    assert_eq!(unsafe { libc::kill(node.child.id() as libc::pid_t, libc::SIGTERM) }, 0);
    let end = eventually("it ends when it is told to", PATIENCE, async || {
        node.child.try_wait().expect("a child can be waited for").ok_or_else(|| "it runs".to_owned())
    });
    assert!(end.await.success());
}
