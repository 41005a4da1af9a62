//! A long random run against a plain list: whatever is appended, truncated, purged, voted and reopened, the log holds what
//! the list holds. Segments are so small that most groups meet the end of one.

use crate::log_common::*;
use openraft::storage::{RaftLogReader, RaftLogStorage};
use quorate_store::log::LogStore;
use tempfile::TempDir;

const ROUNDS: u64 = 1_000;
const SEED: &str = "QUORATE_TEST_LOG_SEED";
const SEGMENT_BYTES: u64 = 64 * 1024;

/// What the log must hold.
#[derive(Debug, Default)]
struct Model {
    /// Terms and indexes, in order.
    entries: Vec<(u64, u64)>,
    purged: Option<u64>,
    purged_term: u64,
    vote: u64,
}

impl Model {
    fn next(&self) -> u64 {
        self.entries.last().map(|(_, index)| *index).max(self.purged).map_or(0, |last| last + 1)
    }

    fn term(&self) -> u64 {
        self.entries.last().map_or(self.purged_term, |(term, _)| *term).max(1)
    }

    async fn check(&self, store: &mut LogStore, what: &str) {
        let last = self.entries.last().map(|(_, index)| *index).max(self.purged);
        assert_eq!(bounds(store).await, (self.purged, last), "{what}");
        assert_eq!(content(store).await, self.entries, "{what}");
        assert_eq!(vote_term(store).await.unwrap_or(0), self.vote, "{what}");
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test]
async fn a_thousand_random_operations_leave_what_a_list_would_hold() {
    let seed = std::env::var(SEED).map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("{SEED}={seed}");
    let (dir, mut random, mut model) = (TempDir::new().unwrap(), Random(seed), Model::default());
    let mut store = open_small(dir.path(), SEGMENT_BYTES);
    let mut acks = Vec::new();
    for round in 0..ROUNDS {
        let what = format!("seed {seed}, round {round}");
        match random.below(100) {
            0..60 => {
                let (count, bytes) = (1 + random.below(6), random.below(if round % 50 == 0 { 40_000 } else { 4_000 }));
                let (term, next) = (model.term() + u64::from(random.below(10) == 0), model.next());
                acks.push(submit(&mut store, entries(term, next..next + count, bytes as usize)).await);
                model.entries.extend(ids(term, next..next + count));
            }
            60..75 => {
                // Anything from all of it to nothing, but mostly a few.
                let drop = random.below(if round % 10 == 0 { 200 } else { 8 }).min(model.entries.len() as u64);
                model.entries.truncate(model.entries.len() - drop as usize);
                let purged = model.purged.map(|index| (model.purged_term, index));
                let keep = model.entries.last().copied().or(purged);
                store.truncate_after(keep.map(|(term, index)| id(term, index))).await.unwrap();
            }
            75..83 => {
                let (term, upto) = match random.below(20) {
                    0 => (model.term(), model.next() + random.below(5)),
                    _ if model.entries.is_empty() => continue,
                    _ => model.entries[random.below(model.entries.len() as u64) as usize],
                };
                store.purge(id(term, upto)).await.unwrap();
                model.entries.retain(|(_, index)| *index > upto);
                (model.purged, model.purged_term) = (Some(upto), term);
            }
            83..88 => {
                model.vote += random.below(3);
                vote(&mut store, model.vote).await;
            }
            88..92 => store.set_durable_state_index(random.below(model.next() + 1)),
            92..96 => model.check(&mut store, &what).await,
            _ => {
                drop(store);
                for ack in acks.drain(..) {
                    ack.await.unwrap().unwrap();
                }
                store = open_small(dir.path(), SEGMENT_BYTES << random.below(2));
                model.check(&mut store, &what).await;
                let from = model.purged.map_or(0, |purged| purged + 1) + random.below(20);
                let some = store.get_log_reader().await.limited_get_log_entries(from, from + 30).await.unwrap();
                let expected: Vec<_> =
                    model.entries.iter().filter(|(_, index)| (from..from + 30).contains(index)).copied().collect();
                assert!(expected.starts_with(&some.iter().map(checked_id).collect::<Vec<_>>()), "{what}");
                assert_eq!(expected.is_empty(), some.is_empty(), "{what}");
            }
        }
    }
    model.check(&mut store, &format!("seed {seed}, at the end")).await;
    assert!(segments(dir.path()).first().is_some_and(|oldest| !oldest.ends_with("00000000000000000001.seg")));
}
