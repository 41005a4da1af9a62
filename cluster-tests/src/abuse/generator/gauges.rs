//! What callers hold of the resources of all nodes, by their metrics.
//!
//! Owns which metrics tell of it, and the comparison of what was held at rest with what is held now. A resource that is new joins by itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::http::Request;

/// Metrics that go up while somebody holds something and down again when it is given back, with what their names go on with.
const HELD: [&str; 7] = [
    "quorate_http_resource_taken{",
    "quorate_http_class_in_use{",
    "quorate_http_turns_waiting{",
    "quorate_http_connections ",
    "quorate_http_requests_in_flight ",
    "quorate_http_request_bodies_bytes ",
    "quorate_http_answers_bytes ",
];
/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a look may take.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// The metrics of all nodes together at one moment, by name and labels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges(BTreeMap<String, f64>);

impl Gauges {
    /// Asks all nodes as whoever has this token.
    pub async fn of(nodes: &[SocketAddr], token: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for node in nodes {
            let request = Request::get("/metrics").header("Authorization", format!("Bearer {token}"));
            let answer = request.send_within(*node, LOOK_WITHIN).await.map_err(|error| error.to_string())?;
            if !answer.is_success() {
                return Err(answer.text());
            }
            all.add(&answer.text());
        }
        Ok(all)
    }

    fn add(&mut self, metrics: &str) {
        let held = metrics.lines().filter(|line| HELD.iter().any(|name| line.starts_with(name)));
        for (name, value) in held.filter_map(|line| line.rsplit_once(' ')) {
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("`{value}` of {name} is no number"));
            *self.0.entry(name.to_owned()).or_default() += value;
        }
    }

    /// Takes what is more of the other.
    pub fn raise(&mut self, other: &Self) {
        self.merge(other, f64::max);
    }

    fn merge(&mut self, other: &Self, choose: fn(f64, f64) -> f64) {
        for (name, value) in &other.0 {
            let mine = self.0.entry(name.clone()).or_insert(*value);
            *mine = choose(*mine, *value);
        }
    }

    fn value(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }
}

/// What is held where nobody attacks.
#[derive(Debug, Clone, Default)]
pub struct Rest {
    least: Gauges,
    most: Gauges,
}

impl Rest {
    /// Looks for this long.
    pub async fn over(time: Duration, nodes: &[SocketAddr], token: &str) -> Result<Self, String> {
        let (begun, first) = (Instant::now(), Gauges::of(nodes, token).await?);
        let mut rest = Self { least: first.clone(), most: first };
        while begun.elapsed() < time {
            tokio::time::sleep(LOOK_EVERY).await;
            let seen = Gauges::of(nodes, token).await?;
            rest.least.merge(&seen, f64::min);
            rest.most.raise(&seen);
        }
        Ok(rest)
    }

    /// What somebody holds more of than was ever held at rest.
    pub fn pressed<'a>(&'a self, seen: &'a Gauges) -> impl Iterator<Item = &'a str> {
        seen.0.iter().filter(|(name, value)| **value > self.most.value(name)).map(|(name, _)| name.as_str())
    }

    /// How much of a gauge it was at rest. Connections of clients that are at work stay; of all else there are moments when nobody holds any.
    fn bound(&self, name: &str) -> f64 {
        if name.contains("connections") { self.most.value(name) } else { self.least.value(name) }
    }

    /// Looks until each gauge was seen to be no more than at rest. After `within`, what was never given back.
    pub async fn comes_back(&self, within: Duration, nodes: &[SocketAddr], token: &str) -> Result<(), String> {
        let begun = Instant::now();
        let mut left: Option<BTreeMap<String, f64>> = None;
        loop {
            let seen = Gauges::of(nodes, token).await;
            if let Ok(seen) = &seen {
                let more = seen.0.iter().filter(|(name, value)| **value > self.bound(name));
                let more = more.filter(|(name, _)| left.as_ref().is_none_or(|left| left.contains_key(*name)));
                let more: BTreeMap<_, _> = more.map(|(name, value)| (name.clone(), *value)).collect();
                if more.is_empty() {
                    return Ok(());
                }
                left = Some(more);
            }
            if begun.elapsed() > within {
                let Some(left) = left else { return Err(seen.err().unwrap_or_default()) };
                let told = left.iter().map(|(name, value)| format!("{name} is {value}, and was {}", self.bound(name)));
                return Err(told.collect::<Vec<_>>().join("; "));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "# TYPE quorate_http_connections gauge\nquorate_http_connections 3\n\
        quorate_http_resource_taken{resource=\"waits\"} 2.0\nquorate_http_resource_bound{resource=\"waits\"} 9.0\n\
        quorate_http_connections_ended_total{reason=\"idle\"} 7\n";

    #[test]
    fn what_is_held_of_all_nodes_is_added_up() {
        let mut gauges = Gauges::default();
        gauges.add(METRICS);
        gauges.add(METRICS);
        let waits = "quorate_http_resource_taken{resource=\"waits\"}";
        assert_eq!(gauges.0, BTreeMap::from([("quorate_http_connections".into(), 6.0), (waits.into(), 4.0)]));
        let rest = Rest { least: gauges.clone(), most: gauges.clone() };
        assert_eq!(rest.pressed(&gauges).count(), 0);
        gauges.add("quorate_http_resource_taken{resource=\"waits\"} 1\n");
        assert_eq!(rest.pressed(&gauges).collect::<Vec<_>>(), [waits]);
    }
}
