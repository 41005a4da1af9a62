//! Where the time of a request went, as far as the parts it passes say so.
//!
//! Owns the notes of one request, which travel with its task. Noting costs two looks at the clock; what is done outside of a
//! request is noted nowhere. Never decides what is slow.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

tokio::task_local! {
    static NOTES: Notes;
}

/// A part of the way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Part {
    /// Its body came in.
    Body,
    /// A command was on its way through the log.
    Log,
    /// The leader confirmed that a read is fresh, and this node applied up to there.
    Freshness,
    /// It waited for a change, for as long as its caller wished.
    Wait,
}

const PARTS: usize = 4;

#[derive(Debug, Default)]
struct Notes([Cell<Duration>; PARTS]);

/// Time by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings([Duration; PARTS]);

impl Timings {
    /// What went into one part.
    pub fn on(&self, part: Part) -> Duration {
        self.0[part as usize]
    }
}

/// Does the work of a request; gives with its result where the time went. It stays where it is pinned: to move it costs a copy each time.
pub async fn of<T>(work: Pin<&mut impl Future<Output = T>>) -> (T, Timings) {
    let noted = async {
        let done = work.await;
        (done, NOTES.with(|notes| Timings(std::array::from_fn(|part| notes.0[part].get()))))
    };
    NOTES.scope(Notes::default(), noted).await
}

/// Does a part of it, and notes how long that took.
pub async fn on<T>(part: Part, work: impl Future<Output = T>) -> T {
    let begin = Instant::now();
    let done = work.await;
    // What the node does by itself is no request, and has no notes.
    let _ = NOTES.try_with(|notes| {
        let noted = &notes.0[part as usize];
        noted.set(noted.get() + begin.elapsed());
    });
    done
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn each_part_is_noted_for_its_own_request() {
        let pause = Duration::from_millis(5);
        let work = async {
            on(Part::Log, tokio::time::sleep(pause)).await;
            on(Part::Log, tokio::time::sleep(pause)).await;
            on(Part::Body, async {}).await;
            7
        };
        let (work, sleep) = (pin!(work), pin!(tokio::time::sleep(pause)));
        let ((done, timings), (_, other)) = tokio::join!(of(work), of(sleep));
        assert_eq!(done, 7);
        assert!(timings.on(Part::Log) >= 2 * pause && timings.on(Part::Body) < pause, "{timings:?}");
        assert_eq!(other, Timings::default());
        on(Part::Wait, async {}).await;
    }
}
