//! What is counted.
//!
//! Owns when clients begin something new, how long what they did took, and the report. Never knows what they did.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::args::{Args, name};
use crate::work::Step;

/// When clients begin something new, and what of it counts.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// What began before is not counted.
    begin: Option<Instant>,
    /// Nothing begins afterwards.
    end: Option<Instant>,
}

impl Window {
    /// Clients end by themselves, and nothing is counted.
    pub const ALWAYS: Self = Self { begin: None, end: None };

    pub fn after(warmup: Duration, measured: Duration) -> Self {
        let begin = Instant::now() + warmup;
        Self { begin: Some(begin), end: Some(begin + measured) }
    }

    /// Whether something new may begin.
    pub fn is_open(&self, now: Instant) -> bool {
        self.end.is_none_or(|end| now < end)
    }

    fn counts(&self, begun: Instant) -> bool {
        self.begin.is_some_and(|begin| begun >= begin) && self.is_open(begun)
    }
}

/// What all clients saw. They share it: a histogram for each of a thousand would not fit into any cache.
pub struct Meter {
    pub window: Window,
    seen: Mutex<Seen>,
}

struct Seen {
    micros: Histogram<u64>,
    /// How often a compare-and-swap was refused.
    mismatches: u64,
    /// What was answered in each whole second of the window, whenever it began.
    per_second: Vec<u64>,
}

impl Meter {
    pub fn new(window: Window) -> Self {
        let micros = Histogram::new_with_max(600_000_000, 3).expect("three digits up to ten minutes are possible");
        let seconds = match window {
            Window { begin: Some(begin), end: Some(end) } => (end - begin).as_secs() as usize,
            _ => 0,
        };
        Self { window, seen: Mutex::new(Seen { micros, mismatches: 0, per_second: vec![0; seconds] }) }
    }

    /// Takes in what clients did that were answered at this time.
    pub fn note(&self, steps: impl IntoIterator<Item = Step>, answered: Instant) {
        let Some(begin) = self.window.begin else { return };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let second = answered.checked_duration_since(begin).map(|since| since.as_secs() as usize);
        for step in steps {
            let (Step::Done(begun) | Step::Mismatch(begun)) = step else { continue };
            let is_done = matches!(step, Step::Done(_));
            if let Some(count) = second.and_then(|second| seen.per_second.get_mut(second)) {
                *count += u64::from(is_done);
            }
            match (self.window.counts(begun), is_done) {
                (true, true) => seen.micros.saturating_record((answered - begun).as_micros().max(1) as u64),
                (true, false) => seen.mismatches += 1,
                (false, _) => {}
            }
        }
    }

    /// The form of `quorate --output json bench`; times in microseconds.
    pub fn report(&self, args: &Args) -> Value {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, ops) = (name(&args.op), seen.micros.len());
        let ops_per_s = ops as f64 / args.seconds;
        json!({
            "protocol": name(&args.protocol),
            "clients": args.clients,
            "mix": format!("{kind}=100"),
            "value_size": args.value_size,
            "keys": args.keys,
            "seconds": args.seconds,
            "ops": ops,
            "ops_per_s": ops_per_s,
            "per_second": seen.per_second,
            "mismatches": seen.mismatches,
            "errors": {},
            "kinds": { kind: latencies(&seen.micros, ops_per_s) },
        })
    }
}

fn latencies(micros: &Histogram<u64>, ops_per_s: f64) -> Value {
    let at = |quantile: f64| micros.value_at_quantile(quantile);
    json!({
        "ops": micros.len(),
        "ops_per_s": ops_per_s,
        "mean": micros.mean(),
        "p50": at(0.5),
        "p90": at(0.9),
        "p99": at(0.99),
        "p999": at(0.999),
        "p9999": at(0.9999),
        "max": micros.max(),
    })
}
