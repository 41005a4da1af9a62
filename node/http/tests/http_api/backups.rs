//! The stream of a backup: whole, bounded, and at the pace of its reader.

use quorate_api::ErrorCode;

use crate::raw::{Server, until};

const PIECE: usize = 64 * 1024;

#[tokio::test]
async fn a_backup_comes_whole_and_a_head_gives_none() {
    let server = Server::start().await;
    server.backend.set_backup_pieces(100);
    let mut raw = server.connect().await;
    raw.send_request("GET", "/v1/cluster/backup", &[], b"").await;
    let response = raw.response(true).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("content-type"), Some("application/vnd.quorate.backup"));
    assert_eq!(response.header("quorate-revision"), Some("1"));
    let mut came = 0;
    loop {
        let chunk = raw.chunk().await;
        if chunk.is_empty() {
            break;
        }
        assert!(chunk.iter().all(|byte| *byte == 7), "other bytes after {came}");
        came += chunk.len();
    }
    assert_eq!(came, 100 * PIECE);
    let head = server.ask("HEAD", "/v1/cluster/backup?consistency=local", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn more_readers_than_a_node_serves_are_told_to_come_later() {
    let server = Server::start().await;
    // More than all buffers on the way hold, so that a reader who does not read holds its place.
    server.backend.set_backup_pieces(2_000);
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut raw = server.connect().await;
        raw.send_request("GET", "/v1/cluster/backup", &[], b"").await;
        slow.push(raw);
    }
    let answer = async || server.ask("HEAD", "/v1/cluster/backup", &[], b"").await.status;
    until("the third of three is served", async || answer().await != 200).await;
    assert_eq!(answer().await, 429);
    drop(slow);
    until("readers who left still hold their places", async || answer().await == 200).await;
}

#[tokio::test]
async fn what_a_backup_does_not_know_is_refused() {
    let server = Server::start().await;
    let problem = server.get("/v1/cluster/backup?compress=yes").await.problem();
    assert_eq!(problem.code, ErrorCode::UnknownField);
    let problem = server.get("/v1/cluster/backup?consistency=maybe").await.problem();
    assert_eq!(problem.code, ErrorCode::InvalidArgument);
    assert_eq!(server.ask("POST", "/v1/cluster/backup", &[], b"").await.status, 405);
}
