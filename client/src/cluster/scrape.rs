//! The numbers of a node, as its `/metrics` gives them.
//!
//! Owns the reading of that text, sums over labels, and quantiles of histograms. Never knows what a metric is about.

use std::collections::BTreeMap;

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Goes up and down.
    Gauge,
    /// Only goes up, from 0 at the start of the process; its samples end with `_total`.
    Counter,
    /// Counts by size; its samples end with `_bucket`, `_sum` and `_count`.
    Histogram,
}

/// What is said of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricFamily {
    /// Its name, without the endings of its samples.
    pub name: String,
    /// What kind of number.
    pub kind: MetricKind,
    /// A sentence.
    pub help: Option<String>,
    /// Said for names that end with one, such as `seconds`.
    pub unit: Option<String>,
}

/// A number with its labels.
#[derive(Debug, Clone, PartialEq)]
struct Sample {
    labels: Labels,
    value: f64,
}

/// All numbers of a node at one moment.
///
/// # Examples
///
/// ```
/// use quorate_client::Scrape;
///
/// // As `GET /metrics` of a node answers.
/// let text = "# TYPE q_requests counter\n\
///     q_requests_total{code=\"2xx\"} 7\n\
///     q_requests_total{code=\"5xx\"} 1\n";
/// let scrape = Scrape::parse(text)?;
/// assert_eq!(scrape.value("q_requests_total"), Some(8.0));
/// assert_eq!(scrape.sum_where("q_requests_total", |labels| labels["code"] == "5xx"), 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scrape {
    families: Vec<MetricFamily>,
    samples: BTreeMap<String, Vec<Sample>>,
}

/// The labels of a sample: name and value.
pub type Labels = BTreeMap<String, String>;

impl Scrape {
    /// Reads the text. An error names the line that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut scrape = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let read = match line.strip_prefix("# ") {
                Some(said) => scrape.describe(said),
                None => scrape.add(line),
            };
            read.ok_or_else(|| format!("not a line of metrics: `{line}`"))?;
        }
        Ok(scrape)
    }

    fn describe(&mut self, said: &str) -> Option<()> {
        let mut words = said.splitn(3, ' ');
        let (what, name, rest) = (words.next()?, words.next(), words.next());
        if what == "EOF" {
            return Some(());
        }
        let name = name?;
        if self.families.last().is_none_or(|family| family.name != name) {
            let (kind, help, unit) = (MetricKind::Gauge, None, None);
            self.families.push(MetricFamily { name: name.to_owned(), kind, help, unit });
        }
        let family = self.families.last_mut()?;
        match what {
            "HELP" => family.help = Some(rest?.to_owned()),
            "UNIT" => family.unit = Some(rest?.to_owned()),
            "TYPE" => family.kind = kind_of(rest?)?,
            _ => return None,
        }
        Some(())
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (name, labels, value) = match line.split_once('{') {
            Some((name, rest)) => {
                let (labels, value) = read_labels(rest)?;
                (name, labels, value)
            }
            None => {
                let (name, value) = line.split_once(' ')?;
                (name, Labels::new(), value)
            }
        };
        let value = value.split_whitespace().next()?.parse().ok()?;
        self.samples.entry(name.to_owned()).or_default().push(Sample { labels, value });
        Some(())
    }

    /// What is described, in order.
    pub fn families(&self) -> &[MetricFamily] {
        &self.families
    }

    /// The names of all samples.
    pub fn sample_names(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }

    /// The labels that the samples of a name have.
    pub fn label_names(&self, name: &str) -> impl Iterator<Item = &str> {
        self.samples.get(name).into_iter().flatten().flat_map(|sample| sample.labels.keys().map(String::as_str))
    }

    /// The one number of a name, if there is one; of several with labels the sum.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.samples.get(name).map(|samples| samples.iter().map(|sample| sample.value).sum())
    }

    /// The sum of the samples for which something holds of their labels.
    pub fn sum_where(&self, name: &str, holds: impl Fn(&Labels) -> bool) -> f64 {
        let samples = self.samples.get(name).into_iter().flatten();
        samples.filter(|sample| holds(&sample.labels)).map(|sample| sample.value).sum()
    }

    /// A histogram: the sum of those for which something holds of their labels.
    pub fn histogram_where(&self, name: &str, holds: impl Fn(&Labels) -> bool) -> Spread {
        let mut spread = Spread::default();
        for sample in self.samples.get(&format!("{name}_bucket")).into_iter().flatten() {
            let bound = sample.labels.get("le").and_then(|bound| bound.parse::<f64>().ok());
            let Some(bound) = bound.filter(|_| holds(&sample.labels)) else { continue };
            match spread.cumulative.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, count)) => *count += sample.value,
                None => spread.cumulative.push((bound, sample.value)),
            }
        }
        spread.cumulative.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        spread
    }
}

fn kind_of(word: &str) -> Option<MetricKind> {
    match word {
        "gauge" => Some(MetricKind::Gauge),
        "counter" => Some(MetricKind::Counter),
        "histogram" => Some(MetricKind::Histogram),
        _ => None,
    }
}

/// Reads what stands behind `{`: the labels, and the rest behind `}`. The values of ours hold no quotes.
fn read_labels(text: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    let mut rest = text;
    while !rest.starts_with('}') {
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        labels.insert(name.trim_start_matches(',').to_owned(), value.to_owned());
        rest = after;
    }
    Some((labels, rest[1..].trim_start()))
}

/// How often something had which size.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Spread {
    /// Upper bound, and how many were not above it, in order of bounds; the last bound is infinite.
    cumulative: Vec<(f64, f64)>,
}

impl Spread {
    /// What came since an earlier look at the same; all of it where the process began anew meanwhile.
    pub fn since(&self, earlier: &Self) -> Self {
        if earlier.count() > self.count() || earlier.cumulative.len() != self.cumulative.len() {
            return self.clone();
        }
        let pairs = self.cumulative.iter().zip(&earlier.cumulative);
        Self { cumulative: pairs.map(|((bound, now), (_, before))| (*bound, (now - before).max(0.0))).collect() }
    }

    /// How many there were.
    pub fn count(&self) -> f64 {
        self.cumulative.last().map_or(0.0, |(_, count)| *count)
    }

    /// The size that so much of them (0 to 1) did not exceed, reckoned within its bucket; `None` where there were none. What
    /// lies in the last bucket counts as its lower bound.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = self.count() * share;
        let mut below = (0.0, 0.0);
        for (bound, count) in self.cumulative.iter().copied().filter(|_| self.count() > 0.0) {
            if count >= wanted && count > below.1 {
                let part = (wanted - below.1) / (count - below.1);
                return Some(if bound.is_finite() { below.0 + (bound - below.0) * part } else { below.0 });
            }
            below = (bound, count);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP q_requests Requests.
# TYPE q_requests counter
q_requests_total{route=\"/v1/kv/{key}\",code=\"2xx\"} 7
q_requests_total{route=\"/v1/kv/{key}\",code=\"5xx\"} 1
# HELP q_took_seconds Time.
# TYPE q_took_seconds histogram
# UNIT q_took_seconds seconds
q_took_seconds_sum 1.5
q_took_seconds_count 4
q_took_seconds_bucket{le=\"0.1\"} 2
q_took_seconds_bucket{le=\"0.5\"} 4
q_took_seconds_bucket{le=\"+Inf\"} 4
# HELP q_free_bytes Free.
# TYPE q_free_bytes gauge
q_free_bytes 12.5
# EOF
";

    #[test]
    fn a_scrape_is_read_with_kinds_labels_and_buckets() {
        let scrape = Scrape::parse(TEXT).expect("valid");
        assert_eq!(scrape.value("q_requests_total"), Some(8.0));
        assert_eq!(scrape.sum_where("q_requests_total", |labels| labels["code"] == "5xx"), 1.0);
        assert_eq!(scrape.value("q_free_bytes"), Some(12.5));
        let kinds: Vec<_> = scrape.families().iter().map(|family| (family.kind, family.unit.as_deref())).collect();
        let expected =
            [(MetricKind::Counter, None), (MetricKind::Histogram, Some("seconds")), (MetricKind::Gauge, None)];
        assert_eq!(kinds, expected);
        let took = scrape.histogram_where("q_took_seconds", |_| true);
        assert_eq!((took.count(), took.quantile(0.5), took.quantile(1.0)), (4.0, Some(0.1), Some(0.5)));
        assert!(Scrape::parse("q_free_bytes").is_err() && Scrape::parse("# WHAT a b").is_err());
    }

    #[test]
    fn what_came_since_an_earlier_look_is_the_difference_unless_the_process_is_another() {
        let of = |low: f64, all: f64| Spread { cumulative: vec![(0.1, low), (f64::INFINITY, all)] };
        assert_eq!(of(5.0, 9.0).since(&of(2.0, 4.0)), of(3.0, 5.0));
        assert_eq!(of(1.0, 1.0).since(&of(2.0, 4.0)), of(1.0, 1.0));
        assert_eq!(of(0.0, 0.0).quantile(0.5), None);
        assert_eq!(of(0.0, 3.0).quantile(0.5), Some(0.1), "nothing is known above the last bound");
    }
}
