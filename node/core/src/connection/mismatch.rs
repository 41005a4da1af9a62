//! What is said where one side speaks TLS and the other does not, and where a handshake fails.
//!
//! Owns those words, and that a crowd of such connections does not fill the log. Never reads a request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use crate::limits;
use crate::millis::wall_now;
use crate::net::{PeerAddress, Stream};

/// How long there is no other line of a failed handshake.
const QUIET: Duration = Duration::from_secs(5);

/// Tells somebody who speaks plain HTTP to a port with TLS what to do.
pub async fn say_https(mut stream: Stream, deadline: Instant) {
    const BODY: &str = r#"{"type":"/errors/invalid_argument","title":"Invalid request","status":400,"detail":"this port speaks TLS: say https:// and give the client the CA of its certificate (quorate --ca FILE, curl --cacert FILE)","code":"invalid_argument","applied":"no","retry":"never","request_id":""}"#;
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close";
    let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len());
    let told = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await?;
        // A close with the request unread would take the answer back.
        let mut scratch = [0u8; 4_096];
        let mut swallowed = 0;
        while swallowed < limits::LINGER_BYTES {
            match stream.read(&mut scratch).await? {
                0 => break,
                count => swallowed += count,
            }
        }
        std::io::Result::Ok(())
    };
    let until = deadline.min(Instant::now() + Duration::from_millis(limits::LINGER_MS));
    // Whoever does not take it has gone: there is nobody left to tell.
    let _told = timeout_at(until, told).await;
}

/// A line in the log, unless there was one just now.
pub fn say_handshake_failed(peer: PeerAddress, reason: &str) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let (now, quiet) = (wall_now(), QUIET.as_millis() as u64);
    let last = LAST.load(Ordering::Relaxed);
    let is_mine = || LAST.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if now.abs_diff(last) >= quiet && is_mine() {
        tracing::warn!(%peer, reason, "a TLS handshake with a client failed");
    } else {
        crate::debug!(%peer, reason, "a TLS handshake with a client failed");
    }
}
