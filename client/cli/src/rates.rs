//! What two looks at the numbers of the nodes tell about the time between them.
//!
//! Owns which metrics stand for what. Pure: asks nobody and knows no clock.

use std::time::Instant;

use quorate_client::{Labels, Scrape};
use serde_json::{Value, json};

const REQUESTS: &str = "quorate_http_requests_total";
const DURATIONS: &str = "quorate_http_request_duration_seconds";

/// The nodes at one moment: address, and numbers or why there are none.
pub struct Look {
    /// When.
    pub at: Instant,
    /// In the order of the endpoints.
    pub nodes: Vec<(String, Result<Scrape, String>)>,
}

/// A node between two looks.
pub struct Rates {
    /// `host:port`
    pub address: String,
    /// What it did, or why that is not known.
    pub numbers: Result<Numbers, String>,
}

/// What a node did, by the second, and how it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    pub leads: bool,
    pub ready: bool,
    /// Requests for entries and transactions a second; each line of an operation stream is one.
    pub entries: f64,
    /// Listings, finds, counts and changes by criteria a second.
    pub search: f64,
    /// Sessions, locks, elections, barriers and latches, a second.
    pub coordination: f64,
    /// Requests about tasks a second.
    pub tasks: f64,
    /// Requests that failed through no fault of the caller, a second.
    pub errors: f64,
    pub p50_seconds: Option<f64>,
    pub p99_seconds: Option<f64>,
    /// Entries applied elsewhere and not here.
    pub lag_entries: f64,
    pub watches: f64,
    pub sessions: f64,
    pub queued_writes: f64,
    /// Of one core.
    pub cpu_share: f64,
    pub memory_bytes: f64,
}

/// What kind of work a route is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Entries,
    Search,
    Coordination,
    Tasks,
    /// About the node, or endless.
    Other,
}

fn work_of(route: &str) -> Work {
    let Some(rest) = route.strip_prefix("/v1/") else { return Work::Other };
    match rest.split('/').next().unwrap_or(rest) {
        "kv" if rest == "kv" => Work::Search,
        "kv" | "ops" | "bulk" | "txn" | "claim" | "sequences" | "requests" => Work::Entries,
        "find" | "count" | "update_where" | "delete_where" | "collections" => Work::Search,
        "sessions" | "locks" | "elections" | "barriers" | "latches" => Work::Coordination,
        "tasks" => Work::Tasks,
        _ => Work::Other,
    }
}

impl Look {
    /// What happened since an earlier look at the same nodes.
    pub fn since(&self, earlier: &Self) -> Vec<Rates> {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64().max(1e-3);
        let applied = |scrape: &Scrape| scrape.value("quorate_raft_applied_index").unwrap_or(0.0);
        let furthest =
            self.nodes.iter().filter_map(|(_, scrape)| scrape.as_ref().ok()).map(applied).fold(0.0, f64::max);
        let pairs = self.nodes.iter().zip(&earlier.nodes);
        let rates = pairs.map(|((address, now), (_, before))| {
            let numbers = match (now, before) {
                (Ok(now), Ok(before)) => Ok(numbers(now, before, seconds, furthest - applied(now))),
                (Err(why), _) => Err(why.clone()),
                (Ok(_), Err(_)) => Err("it answers again".to_owned()),
            };
            Rates { address: address.clone(), numbers }
        });
        rates.collect()
    }
}

fn numbers(now: &Scrape, before: &Scrape, seconds: f64, lag_entries: f64) -> Numbers {
    // A process that began anew counts from 0.
    let grown = |of: &dyn Fn(&Scrape) -> f64| {
        (of(now) - Some(of(before)).filter(|was| *was <= of(now)).unwrap_or(0.0)) / seconds
    };
    let is_work = |labels: &Labels, work: Work| labels.get("route").is_some_and(|route| work_of(route) == work);
    let requests = |work: Work| grown(&|scrape| scrape.sum_where(REQUESTS, |labels| is_work(labels, work)));
    let fails = |labels: &Labels| labels.get("code").is_some_and(|code| code == "5xx");
    let is_data = |labels: &Labels| !is_work(labels, Work::Other);
    let spread = now.histogram_where(DURATIONS, is_data).since(&before.histogram_where(DURATIONS, is_data));
    let gauge = |name: &str| now.value(name).unwrap_or(0.0);
    Numbers {
        leads: gauge("quorate_raft_is_leader") == 1.0,
        ready: gauge("quorate_ready") == 1.0,
        entries: requests(Work::Entries),
        search: requests(Work::Search),
        coordination: requests(Work::Coordination),
        tasks: requests(Work::Tasks),
        errors: grown(&|scrape| scrape.sum_where(REQUESTS, fails)),
        p50_seconds: spread.quantile(0.5),
        p99_seconds: spread.quantile(0.99),
        lag_entries,
        watches: gauge("quorate_watches"),
        sessions: gauge("quorate_sessions"),
        queued_writes: gauge("quorate_write_queue_commands"),
        cpu_share: grown(&|scrape| scrape.value("quorate_process_cpu_seconds_total").unwrap_or(0.0)),
        memory_bytes: gauge("quorate_process_resident_memory_bytes"),
    }
}

impl Rates {
    /// For programs.
    pub fn json(&self) -> Value {
        match &self.numbers {
            Err(why) => json!({"endpoint": self.address, "error": why}),
            Ok(now) => json!({
                "endpoint": self.address, "leads": now.leads, "ready": now.ready,
                "requests_per_second": {
                    "entries": now.entries, "search": now.search, "coordination": now.coordination, "tasks": now.tasks,
                },
                "errors_per_second": now.errors, "p50_seconds": now.p50_seconds, "p99_seconds": now.p99_seconds,
                "lag_entries": now.lag_entries, "watches": now.watches, "sessions": now.sessions,
                "queued_writes": now.queued_writes, "cpu_share": now.cpu_share, "memory_bytes": now.memory_bytes,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn scrape(puts: u32, fails: u32, slow: u32, applied: u32) -> Scrape {
        let all = puts + slow;
        let text = format!(
            "quorate_http_requests_total{{route=\"/v1/kv/{{key}}\",code=\"2xx\"}} {puts}\n\
             quorate_http_requests_total{{route=\"/v1/locks/{{name}}\",code=\"5xx\"}} {fails}\n\
             quorate_http_requests_total{{route=\"/metrics\",code=\"2xx\"}} 1000\n\
             quorate_http_request_duration_seconds_bucket{{route=\"/v1/kv/{{key}}\",le=\"0.01\"}} {puts}\n\
             quorate_http_request_duration_seconds_bucket{{route=\"/v1/kv/{{key}}\",le=\"0.1\"}} {all}\n\
             quorate_http_request_duration_seconds_bucket{{route=\"/v1/kv/{{key}}\",le=\"+Inf\"}} {all}\n\
             quorate_http_request_duration_seconds_bucket{{route=\"/metrics\",le=\"0.01\"}} 0\n\
             quorate_raft_applied_index {applied}\n"
        );
        Scrape::parse(&text).expect("valid")
    }

    #[test]
    fn two_looks_give_rates_and_lag() {
        let at = Instant::now();
        let before = Look { at, nodes: vec![("a".into(), Ok(scrape(10, 0, 0, 5))), ("b".into(), Err("down".into()))] };
        let nodes = vec![("a".into(), Ok(scrape(110, 4, 100, 9))), ("b".into(), Ok(scrape(0, 0, 0, 12)))];
        let rates = Look { at: at + Duration::from_secs(2), nodes }.since(&before);
        let now = rates[0].numbers.as_ref().expect("both answered");
        assert_eq!((now.entries, now.coordination, now.errors, now.lag_entries), (50.0, 2.0, 2.0, 3.0));
        assert_eq!(now.p50_seconds, Some(0.01));
        assert!(now.p99_seconds.is_some_and(|p99| p99 > 0.09), "{now:?}");
        assert!(rates[1].numbers.is_err(), "one look is not enough");
    }

    #[test]
    fn a_node_that_began_anew_is_not_shown_with_negative_rates() {
        let at = Instant::now();
        let before = Look { at, nodes: vec![("a".into(), Ok(scrape(500, 0, 0, 5)))] };
        let now = Look { at: at + Duration::from_secs(1), nodes: vec![("a".into(), Ok(scrape(20, 0, 0, 5)))] };
        assert_eq!(now.since(&before)[0].numbers.as_ref().map(|now| now.entries), Ok(20.0));
    }
}
