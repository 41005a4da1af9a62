//! Numbers that are asked for at the time of a scrape, and their way into the text.
//!
//! Owns the types of such numbers and the list of who has some. Never counts anything itself.

use std::fmt;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// A number as it is at a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Name without the `quorate_` prefix and without `_total`, snake case, unit last.
    pub name: &'static str,
    /// A sentence without its full stop.
    pub help: &'static str,
    /// Which of those that share the name; they have to come one after the other.
    pub label: Option<(&'static str, &'static str)>,
    /// The number.
    pub value: Value,
}

/// What kind of number, and the number.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Goes up and down.
    Gauge(f64),
    /// Only goes up, from 0 at the start of the process.
    Counter(u64),
    /// Time in seconds, which only goes up.
    Seconds(f64),
    /// How often something had which size.
    Histogram {
        /// Of all sizes.
        sum: f64,
        /// Upper bound, and how many were above the bound before and not above this one. The last bound is infinite.
        buckets: Vec<(f64, u64)>,
    },
}

impl Sample {
    /// A number that goes up and down.
    pub fn gauge(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, label: None, value: Value::Gauge(value as f64) }
    }

    /// Time that goes up and down, or a moment.
    pub fn seconds(name: &'static str, help: &'static str, seconds: f64) -> Self {
        Self { name, help, label: None, value: Value::Gauge(seconds) }
    }

    /// A number that only goes up.
    pub fn counter(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, label: None, value: Value::Counter(value) }
    }

    /// One of several with the same name.
    pub fn labelled(self, key: &'static str, value: &'static str) -> Self {
        Self { label: Some((key, value)), ..self }
    }
}

impl Value {
    fn kind(&self) -> MetricType {
        match self {
            Self::Gauge(_) => MetricType::Gauge,
            Self::Counter(_) | Self::Seconds(_) => MetricType::Counter,
            Self::Histogram { .. } => MetricType::Histogram,
        }
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Gauge(value) => encoder.encode_gauge(value),
            Self::Counter(value) => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
            Self::Seconds(seconds) => encoder.encode_counter::<NoLabelSet, _, u64>(seconds, None),
            Self::Histogram { sum, buckets } => {
                // Not a count of its own: it has to be that of the buckets, also where more came in between.
                let count = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

/// Something that has numbers to show at each scrape (log store, proposer, RocksDB, ...).
pub trait MetricsSource: Send + Sync + 'static {
    /// Appends them. Runs where blocking for some milliseconds is allowed.
    fn sample(&self, out: &mut Vec<Sample>);
}

/// Everybody who has numbers.
#[derive(Default)]
pub(super) struct Sources {
    list: Mutex<Vec<Box<dyn MetricsSource>>>,
    status: Mutex<Vec<Sample>>,
}

impl Sources {
    pub fn add(&self, source: impl MetricsSource) {
        self.list.lock().push(Box::new(source));
    }

    /// Sets what the next scrape shows of the node's view of itself.
    pub fn set_status(&self, samples: Vec<Sample>) {
        *self.status.lock() = samples;
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut samples = self.status.lock().clone();
        for source in &*self.list.lock() {
            source.sample(&mut samples);
        }
        for family in samples.chunk_by(|one, next| one.name == next.name) {
            let Sample { name, help, value, .. } = &family[0];
            let mut described = encoder.encode_descriptor(name, help, None, value.kind())?;
            for sample in family {
                match sample.label {
                    Some(label) => sample.value.encode(&mut described.encode_family(&[label])?)?,
                    None => sample.value.encode(&mut described)?,
                }
            }
        }
        Ok(())
    }
}
