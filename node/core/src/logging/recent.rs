//! The last lines of the log, in memory, for whoever asks a node for them.
//!
//! Owns what of a line is told there: nothing that could show a name or a value of an entry, since such lines leave the machine. So it
//! writes its lines by itself, and leaves out the fields that hold what came from outside.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Most bytes of all lines: some thousands of them.
const BYTES_MAX: usize = 512 * 1024;
/// Longest line; a backtrace is longer, and cut.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Fields that may show a name: the path of a request, a row of the state, what a contained fault says of one, and who asks.
const LEFT_OUT: [&str; 5] = ["path", "fault", "work", "key", "account"];
/// Where such a field is a file of the operator's.
const OF_FILES: [&str; 3] = ["quorate_node_replica::app", "quorate_node::config", "quorate_node_core::unix_socket"];
/// What a line begins with that goes on with the words of a bug: those may name what it was about.
const OF_BUGS: &str = "a bug ";

/// The lines. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct RecentLines(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl RecentLines {
    fn take(&self, mut line: String) {
        if line.len() > LINE_BYTES_MAX {
            // A line ends between characters: three bytes further back there is such a place at the latest.
            let end = (LINE_BYTES_MAX - 3..=LINE_BYTES_MAX).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(end.unwrap_or(0));
            line.push('…');
        }
        let mut kept = self.0.lock();
        kept.bytes += line.len();
        kept.lines.push_back(line);
        while kept.bytes > BYTES_MAX
            && let Some(oldest) = kept.lines.pop_front()
        {
            kept.bytes -= oldest.len();
        }
    }

    /// The last `count` lines, oldest first.
    pub fn last(&self, count: usize) -> Vec<String> {
        let kept = self.0.lock();
        let from = kept.lines.len().saturating_sub(count);
        kept.lines.range(from..).cloned().collect()
    }
}

impl<S: Subscriber> Layer<S> for RecentLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line =
            Line { text: String::new(), of_files: OF_FILES.iter().any(|of| metadata.target().starts_with(of)) };
        let mut told = Target(None);
        event.record(&mut told);
        // What came by the crate `log` has its own target in a field.
        let target = told.0.as_deref().unwrap_or(metadata.target());
        let _infallible = write!(line.text, "{:.3} {:5} {target}:", Timestamp::now(), metadata.level().as_str());
        event.record(&mut line);
        self.take(line.text);
    }
}

/// Finds the target of a line that came by the crate `log`.
struct Target(Option<String>);

impl Visit for Target {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

struct Line {
    text: String,
    of_files: bool,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let name = field.name();
        if name.starts_with("log.") {
            return;
        }
        let begin = self.text.len();
        let _infallible = match name {
            "message" => write!(self.text, " {value:?}"),
            name if LEFT_OUT.contains(&name) && !self.of_files => write!(self.text, " {name}=(left out)"),
            name => write!(self.text, " {name}={value:?}"),
        };
        if name == "message" && self.text[begin..].trim_start().starts_with(OF_BUGS) {
            let end = self.text[begin..].find(": ").map_or(self.text.len(), |at| begin + at);
            self.text.truncate(end);
        }
        // One event, one line.
        if self.text[begin..].contains('\n') {
            let lines = self.text.split_off(begin).replace('\n', "\\n");
            self.text.push_str(&lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn told(tell: impl FnOnce()) -> Vec<String> {
        let recent = RecentLines::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(recent.clone()), tell);
        recent.last(10)
    }

    #[test]
    fn a_line_tells_what_happened_and_no_name_of_an_entry() {
        let lines = told(|| {
            tracing::info!(node = 3, why = "one\ntwo", "it happened");
            tracing::warn!(path = "/v1/kv/secret", ms = 700, "slow request");
            tracing::error!(fault = %"row secret", work = %"secret", "a command faulted");
            tracing::warn!(account = "user secret", holds = 7, "an account has its share");
            tracing::error!("a bug was met and contained: at secret\nsecret");
            tracing::info!(target: "quorate_node_replica::app::backup_schedule", path = %"/backups/x", "took a backup");
        });
        let is = |line: usize, end: &str| assert!(lines[line].ends_with(end), "{}", lines[line]);
        is(0, "quorate_node_core::logging::recent::tests: it happened node=3 why=one\\ntwo");
        is(1, "slow request path=(left out) ms=700");
        is(2, "a command faulted fault=(left out) work=(left out)");
        is(3, "an account has its share account=(left out) holds=7");
        is(4, "a bug was met and contained");
        is(5, "took a backup path=/backups/x");
        assert!(!lines.concat().contains("secret"), "{lines:?}");
    }

    #[test]
    fn old_lines_go_and_long_ones_are_cut() {
        let lines = RecentLines::default();
        for number in 0..2_000 {
            lines.take(format!("{number:04} {}", "x".repeat(1_000)));
        }
        let kept = lines.last(usize::MAX);
        assert!((400..600).contains(&kept.len()), "{} lines", kept.len());
        assert!(kept.last().is_some_and(|line| line.starts_with("1999 ")));
        assert_eq!(lines.last(1).len(), 1);
        lines.take("é".repeat(LINE_BYTES_MAX));
        assert!(lines.last(1)[0].len() <= LINE_BYTES_MAX + '…'.len_utf8());
    }
}
