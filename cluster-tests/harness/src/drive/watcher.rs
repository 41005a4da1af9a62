//! Watches that are recorded.
//!
//! Owns following one watch of the Rust client until it has shown everything up to a revision. Never judges what it shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_client::{Client, Watched};

use super::crossing;
use super::wire::event_of;
use cluster_histories::Recorder;
use cluster_histories::record::{Moment, Shown};

/// How often it is looked whether a watch is at its end.
const LOOK: Duration = Duration::from_millis(200);

/// The revision at which watches end; not known at first.
#[derive(Debug, Clone, Default)]
pub struct Last(Arc<AtomicU64>);

impl Last {
    /// Says what it is.
    pub fn set(&self, revision: u64) {
        self.0.store(revision, Ordering::Relaxed);
    }

    fn is_reached(&self, revision: Option<u64>) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        last != 0 && revision.is_some_and(|revision| revision >= last)
    }
}

/// Follows a watch of everything below a prefix, from a revision on.
pub async fn follow(recorder: Recorder, client: Client, number: u64, prefix: &'static str, from: u64, last: Last) {
    let put = |shown| recorder.moment(Moment { watch: number, at: recorder.now(), shown });
    let setup = client.watch(prefix).from(from).heartbeat(Duration::from_millis(500));
    let mut watch = match setup.start().await {
        Ok(watch) => watch,
        Err(error) => return put(Shown::Ended(format!("it could not be begun: {error}"))),
    };
    put(Shown::Begun { prefix: prefix.into(), from });
    loop {
        match tokio::time::timeout(LOOK, watch.next()).await {
            // Nothing is held back while nothing comes.
            Err(_) if last.is_reached(watch.revision()) => break,
            Err(_) => {}
            Ok(Ok(Watched::Event(event))) if event.key.text().is_some_and(crossing::is_of_api_clients) => {}
            Ok(Ok(Watched::Event(event))) => match event_of(*event) {
                Ok(event) => put(Shown::Event(event)),
                Err(why) => return put(Shown::Ended(why)),
            },
            Ok(Ok(other)) => return put(Shown::Ended(format!("it showed {other:?}"))),
            Ok(Err(error)) => return put(Shown::Ended(format!("it gave up: {error}"))),
        }
    }
    // Also where nothing was shown: then nothing may have changed.
    if let Some(revision) = watch.revision() {
        put(Shown::Progress(revision));
    }
}
