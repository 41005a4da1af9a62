//! A log that nobody reads holds up nobody, and what is slow is found again on the other node.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use cluster_harness::ports::free_addresses;
use cluster_harness::{Cluster, PATIENCE, Request, Settings, eventually};
use quorate_client::Scrape;

use super::dev::Running;
use super::guide::{built, command};

/// Both ends of a pipe that takes not one byte more.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let mut ends = [0; 2];
    // SAFETY: the call fills the two descriptors, which nobody else owns.
    let (read, write) = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    let set_flags = |flags: libc::c_int| {
        // SAFETY: takes no pointers.
        assert_eq!(unsafe { libc::fcntl(write.as_raw_fd(), libc::F_SETFL, flags) }, 0);
    };
    set_flags(libc::O_NONBLOCK);
    let mut file = std::fs::File::from(write.try_clone().expect("another descriptor"));
    while file.write(&[b'x'; 4096]).is_ok() {}
    while file.write(b"x").is_ok() {}
    // The flag belongs to the pipe's end, which the node gets: its writes shall block as those to any pipe.
    set_flags(0);
    (read, write)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_log_nobody_reads_goes_on_and_counts_the_lines_it_left_out() {
    let (_unread, stderr) = full_pipe();
    let addresses = free_addresses(2);
    let mut command = command(built("quorate-node"));
    command.args(["--dev", "--log", "debug", "--client-listen", &addresses[0].to_string()]);
    command.args(["--peer-listen", &addresses[1].to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(stderr));
    let mut node = Running(command.spawn().expect("the node starts"));
    let look = Duration::from_secs(2);
    let is_ready = async || {
        let answer =
            Request::get("/readyz").send_within(addresses[0], look).await.map_err(|error| error.to_string())?;
        if answer.is_success() { Ok(()) } else { Err(answer.text()) }
    };
    eventually("the node is ready although its first line never left it", PATIENCE, is_ready).await;
    // In a debug build each of these is some lines of log; the queue for them holds a megabyte.
    let mut slowest = Duration::ZERO;
    let dropped = eventually("lines are left out", PATIENCE, async || {
        for number in 0..200 {
            let begin = Instant::now();
            let put = Request::put(&format!("log/{number}"), "1").send_within(addresses[0], look).await;
            put.map_err(|error| format!("a write was not answered: {error}"))?.expect_success();
            slowest = slowest.max(begin.elapsed());
        }
        let text = Request::get("/metrics").send(addresses[0]).await.expect("an answer").text();
        let scrape = Scrape::parse(&text)?;
        let dropped = scrape.value("quorate_logging_dropped_lines_total").ok_or("no such metric")?;
        if dropped > 0.0 { Ok(dropped) } else { Err(format!("{:?}", scrape.value("quorate_logging_lines_total"))) }
    })
    .await;
    println!("{dropped} lines left out; the slowest write took {slowest:?}");
    eventually("the node is still ready", PATIENCE, is_ready).await;
    // SAFETY: takes no pointers; the child was not waited for, so the id is its.
    assert_eq!(unsafe { libc::kill(node.0.id() as libc::pid_t, libc::SIGTERM) }, 0);
    let end = eventually("it ends when it is told to", PATIENCE, async || {
        node.0.try_wait().expect("a child can be waited for").ok_or_else(|| "it runs".to_owned())
    });
    assert!(end.await.success(), "a graceful stop does not wait for a reader of its log");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_write_has_the_same_request_id_in_the_logs_of_both_nodes() {
    let settings = Settings::default().flag("--slow-request-ms", 1).flag("--log-format", "json");
    let mut cluster = Cluster::start_with(settings).await;
    let mut number = 0;
    let (leader, follower, here, there) = eventually("both nodes log the same write", PATIENCE, async || {
        let leader = cluster.leader().await;
        let follower = cluster.live_but(leader)[0];
        number += 1;
        let id = format!("slow-{number}");
        let put = Request::put(&format!("slow%0A%1B/{}", "k".repeat(500)), "1").request_id(&id);
        let answer = put.send(cluster.client_address(follower)).await.map_err(|error| error.to_string())?;
        if !answer.is_success() {
            return Err(answer.text());
        }
        let here = line_with(&cluster.log_text(follower), &id).ok_or("not slow where it came")?;
        let there = line_with(&cluster.log_text(leader), &id).ok_or("not slow at the leader")?;
        Ok((leader, follower, here, there))
    })
    .await;
    let (here, there) = (&here["fields"], &there["fields"]);
    assert_eq!((&here["route"], &here["method"]), (&"/v1/kv/{key}".into(), &"PUT".into()));
    assert!(here["status"] == 200 || here["status"] == 201, "{here}");
    assert_eq!((&here["node"], &here["leader"]), (&follower.into(), &leader.into()));
    assert!(here["ms"].as_u64() >= here["log_ms"].as_u64() && here["bytes_in"] == 1, "{here}");
    assert_eq!(
        (&there["message"], &there["from"], &there["node"]),
        (&"slow forwarded write".into(), &follower.into(), &leader.into())
    );
    let path = here["path"].as_str().expect("a path");
    assert!(path.starts_with("/v1/kv/slow%0A%1B/kkk") && path.len() < 120 && path.ends_with('…'), "{path}");
    cluster.assert_agreement().await;
}

/// The line of a JSON log that names this request id.
fn line_with(log: &str, id: &str) -> Option<serde_json::Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.into_iter().find(|line| line["fields"]["request_id"].as_str() == Some(id))
}
