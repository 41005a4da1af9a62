//! Watches of a simulation, as a careful client follows them.
//!
//! Owns going on at another node, from the last revision that was shown whole. Never judges what it is shown.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cluster_harness::drive::client::Nodes;
use cluster_harness::drive::crossing::is_of_api_clients;
use cluster_harness::drive::wire::event_of;
use cluster_harness::{Connection, Request};
use cluster_histories::Recorder;
use cluster_histories::record::{Event, Moment, Shown};
use quorate_client::api::{WatchEnd, WatchEndCode, WatchEvent, WatchProgress};

/// A watch that is silent for so long is given up.
const SILENCE_MAX: Duration = Duration::from_millis(1_500);
const PAUSE: Duration = Duration::from_millis(40);

/// The revision at which all watches end; 0 while it is not known.
pub type Last = Arc<AtomicU64>;

/// One watch of everything below a prefix.
pub struct Watch {
    pub recorder: Recorder,
    pub nodes: Nodes,
    pub number: u64,
    pub prefix: &'static str,
    /// The first revision that it is to show.
    pub from: u64,
    pub last: Last,
}

/// A server-sent event.
#[derive(Debug, Default)]
struct Message {
    event: String,
    data: String,
    id: Option<u64>,
}

/// How far a watch has come.
struct Position {
    /// Everything up to this revision was shown.
    shown: u64,
    /// What is known of the one behind it.
    pending: Vec<Event>,
}

impl Watch {
    /// Follows it to the last revision.
    pub async fn follow(self) {
        self.put(Shown::Begun { prefix: self.prefix.into(), from: self.from });
        let mut place = Position { shown: self.from - 1, pending: Vec::new() };
        for node in self.number as usize.. {
            match self.follow_at(node, &mut place).await {
                Ok(Some(why)) => return self.put(Shown::Ended(why)),
                Ok(None) => return self.put(Shown::Progress(place.shown)),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn put(&self, shown: Shown) {
        self.recorder.moment(Moment { watch: self.number, at: self.recorder.now(), shown });
    }

    /// Until the end: with a reason where there has to be none. An error is one of the connection or the node.
    async fn follow_at(&self, node: usize, place: &mut Position) -> io::Result<Option<String>> {
        place.pending.clear();
        let (_, address) = self.nodes.at(node);
        let mut connection = in_time(self.nodes.connect(address)).await?;
        let (prefix, from) = (self.prefix, place.shown + 1);
        let target = format!("/v1/watch?prefix={prefix}&from={from}&heartbeat_ms=500");
        connection.send(&Request::get(target).to_bytes()).await?;
        let head = in_time(connection.head()).await?;
        if !head.is_success() {
            return Err(io::Error::other(format!("status {}", head.status)));
        }
        let mut text = String::new();
        loop {
            while let Some(message) = next_message(&mut text) {
                if let Some(end) = self.take(&message, place)? {
                    return Ok(Some(end));
                }
            }
            let last = self.last.load(Ordering::Relaxed);
            if last != 0 && place.shown >= last {
                return Ok(None);
            }
            text.push_str(&read_some(&mut connection).await?);
        }
    }

    /// Takes a message. Gives why the watch cannot go on, if that is so.
    fn take(&self, message: &Message, place: &mut Position) -> io::Result<Option<String>> {
        match message.event.as_str() {
            "put" | "delete" => {
                let event: WatchEvent = serde_json::from_str(&message.data)?;
                if !event.key.text().is_some_and(is_of_api_clients) {
                    match event_of(event) {
                        Ok(event) => place.pending.push(event),
                        Err(why) => return Ok(Some(why)),
                    }
                }
            }
            "end" => {
                let end: WatchEnd = serde_json::from_str(&message.data)?;
                return match end.code {
                    WatchEndCode::NoLeader | WatchEndCode::Stopping => Err(io::Error::other(end.to_string())),
                    _ => Ok(Some(end.to_string())),
                };
            }
            "progress" | "synced" => {
                let progress: WatchProgress = serde_json::from_str(&message.data)?;
                place.shown = place.shown.max(progress.revision);
            }
            other => return Ok(Some(format!("it was sent `{other}`"))),
        }
        if let Some(id) = message.id {
            place.shown = place.shown.max(id);
            place.pending.drain(..).for_each(|event| self.put(Shown::Event(event)));
        }
        Ok(None)
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::time::timeout(SILENCE_MAX, work).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

async fn read_some(connection: &mut Connection) -> io::Result<String> {
    let chunk = in_time(connection.chunk()).await?;
    if chunk.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    String::from_utf8(chunk).map_err(io::Error::other)
}

/// Takes the first whole message off the text.
fn next_message(text: &mut String) -> Option<Message> {
    loop {
        let end = text.find("\n\n")?;
        let block: String = text.drain(..end + 2).collect();
        let mut message = Message::default();
        for line in block.lines() {
            match line.split_once(':') {
                Some(("event", value)) => message.event = value.trim().to_owned(),
                Some(("data", value)) => message.data.push_str(value.trim()),
                Some(("id", value)) => message.id = value.trim().parse().ok(),
                _ => {}
            }
        }
        if !message.event.is_empty() {
            return Some(message);
        }
    }
}
