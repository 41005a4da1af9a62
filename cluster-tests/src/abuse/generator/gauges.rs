//! The resources of all nodes that callers hold, by the nodes' metrics.
//!
//! Owns which metrics tell of it, and the comparison of what was held at rest with what is held now. A resource that is new joins by itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use cluster_harness::http::Request;

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
/// The time from one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a look may take.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// The metrics of all nodes together at one moment, by name and labels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gauges(BTreeMap<String, f64>);

impl Gauges {
    /// Reads the metrics of all nodes with this token.
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
        for (name, value) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = most.max(*value);
        }
    }

    fn value(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }
}

/// The most that was held of each where nobody attacked.
#[derive(Debug, Clone, Default)]
pub struct Rest(Gauges);

impl Rest {
    /// Looks for this long.
    pub async fn over(time: Duration, nodes: &[SocketAddr], token: &str) -> Result<Self, String> {
        let (begun, mut most) = (Instant::now(), Gauges::of(nodes, token).await?);
        while begun.elapsed() < time {
            tokio::time::sleep(LOOK_EVERY).await;
            most.raise(&Gauges::of(nodes, token).await?);
        }
        Ok(Self(most))
    }

    /// Lists the gauges that are higher than at rest, with their values.
    pub fn pressed<'a>(&'a self, seen: &'a Gauges) -> impl Iterator<Item = (&'a str, f64)> {
        let all = seen.0.iter().map(|(name, value)| (name.as_str(), *value));
        all.filter(move |(name, value)| *value > self.0.value(name))
    }

    /// Looks until each gauge was seen to be no more than at rest. After `within`, what was never given back.
    pub async fn comes_back(&self, within: Duration, nodes: &[SocketAddr], token: &str) -> Result<(), String> {
        let begun = Instant::now();
        // Those that were more at each look, as they are now. Nothing is known of any before the first look.
        let mut left: Option<BTreeMap<String, f64>> = None;
        loop {
            let failed = match Gauges::of(nodes, token).await {
                Ok(seen) => {
                    let more = self.pressed(&seen);
                    let more = more.filter(|(name, _)| left.as_ref().is_none_or(|left| left.contains_key(*name)));
                    left = Some(more.map(|(name, value)| (name.to_owned(), value)).collect());
                    None
                }
                Err(why) => Some(why),
            };
            if left.as_ref().is_some_and(BTreeMap::is_empty) {
                return Ok(());
            }
            if begun.elapsed() > within {
                let told = left.iter().flatten();
                let told = told.map(|(name, value)| format!("{name} is {value}, and was {}", self.0.value(name)));
                return Err(told.chain(failed).collect::<Vec<_>>().join("; "));
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
        let rest = Rest(gauges.clone());
        assert_eq!(rest.pressed(&gauges).count(), 0);
        gauges.add("quorate_http_resource_taken{resource=\"waits\"} 1\n");
        assert_eq!(rest.pressed(&gauges).collect::<Vec<_>>(), [(waits, 5.0)]);
    }
}
