//! The result of a benchmark, for people and for programs.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::mix::Kind;
use super::tally::Tally;
use super::{Args, Span, Way};

/// Everything measured. Its JSON is what scripts read: times in microseconds unless the name says otherwise.
#[derive(Debug, Serialize)]
pub struct Report {
    pub seed: u64,
    pub clients: u32,
    pub(super) protocol: Way,
    pub mix: String,
    pub value_size: u32,
    pub keys: u64,
    /// Length of the measurement.
    pub seconds: f64,
    /// Operations that succeeded in it.
    pub ops: u64,
    pub ops_per_s: f64,
    /// Cas operations that lost their race; they count neither as operations nor as errors.
    pub mismatches: u64,
    /// Failed operations, by code.
    pub errors: BTreeMap<String, u64>,
    /// Processor time of the load generator for each operation.
    pub client_cpu_us_per_op: Option<f64>,
    pub kinds: BTreeMap<&'static str, KindReport>,
}

/// Latencies of one kind of operation, microseconds.
#[derive(Debug, Serialize)]
pub struct KindReport {
    pub ops: u64,
    pub ops_per_s: f64,
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

impl KindReport {
    fn new(latencies: &Histogram<u64>, seconds: f64) -> Self {
        let at = |quantile| latencies.value_at_quantile(quantile);
        let ops = latencies.len();
        Self {
            ops,
            ops_per_s: ops as f64 / seconds,
            mean: latencies.mean(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: latencies.max(),
        }
    }
}

impl Report {
    /// Adds up what the clients counted.
    pub(super) fn new(args: &Args, seed: u64, span: Span, tally: &Tally) -> Self {
        let totals = tally.totals();
        let seconds = span.wall.as_secs_f64().max(f64::EPSILON);
        let used = Kind::ALL.into_iter().zip(&totals.latencies).filter(|(_, latencies)| !latencies.is_empty());
        let kinds: BTreeMap<_, _> =
            used.map(|(kind, latencies)| (kind.name(), KindReport::new(latencies, seconds))).collect();
        let ops: u64 = kinds.values().map(|kind| kind.ops).sum();
        let worked = (ops + totals.mismatches).max(1) as f64;
        Self {
            seed,
            clients: args.clients,
            protocol: args.protocol,
            mix: args.mix.to_string(),
            value_size: args.value_size,
            keys: args.keys,
            seconds,
            ops,
            ops_per_s: ops as f64 / seconds,
            mismatches: totals.mismatches,
            errors: totals.errors,
            client_cpu_us_per_op: span.cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / worked),
            kinds,
        }
    }

    /// For people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} clients over {}, {} of {} keys, {}-byte values, {:.1} s: {:.0} operations/s",
            self.clients,
            self.protocol.name(),
            self.mix,
            self.keys,
            self.value_size,
            self.seconds,
            self.ops_per_s
        )];
        if !self.kinds.is_empty() {
            let heading = ["", "ops/s", "p50", "p90", "p99", "p99.9", "max"];
            lines.push(columns(heading.map(str::to_owned)));
        }
        for (name, kind) in &self.kinds {
            let times = [kind.p50, kind.p90, kind.p99, kind.p999, kind.max].map(time);
            let [p50, p90, p99, p999, max] = times;
            lines.push(columns([(*name).to_owned(), format!("{:.0}", kind.ops_per_s), p50, p90, p99, p999, max]));
        }
        if self.mismatches > 0 {
            lines.push(format!("lost races: {}", self.mismatches));
        }
        lines.extend(self.errors.iter().map(|(code, count)| format!("errors: {count} {code}")));
        if self.errors.is_empty() {
            lines.push("errors: none".into());
        }
        lines.extend(self.client_cpu_us_per_op.map(|cpu| format!("load generator: {cpu:.1} us CPU/operation")));
        lines
    }
}

fn columns(cells: [String; 7]) -> String {
    let [first, rest @ ..] = cells;
    rest.iter().fold(format!("{first:<4}"), |line, cell| format!("{line}{cell:>10}"))
}

/// Microseconds as people read them.
fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

/// Processor time of this process so far, from `/proc`; `None` on systems without it.
pub(super) fn cpu_time() -> Option<Duration> {
    /// Linux shows times in hundredths of a second on all architectures that we run on.
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may contain anything; utime and stime are the 12th and 13th field after it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u32 = fields.get(11)?.parse::<u32>().ok()?.checked_add(fields.get(12)?.parse().ok()?)?;
    TICK.checked_mul(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        assert_eq!([time(999), time(1_500), time(2_500_000)], ["999 us", "1.50 ms", "2.50 s"]);
    }

    #[test]
    fn quantiles_come_from_the_histogram() {
        let mut latencies = Histogram::new(3).expect("valid");
        (1..=1_000_u64).for_each(|micros| latencies.record(micros).expect("in bounds"));
        let report = KindReport::new(&latencies, 2.0);
        assert_eq!((report.ops, report.ops_per_s, report.p50, report.p99), (1_000, 500.0, 500, 990));
        assert_eq!(report.max, 1_000);
    }
}
