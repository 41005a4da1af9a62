//! How far a long verb is. Only on a terminal, on standard error; otherwise nothing is shown.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two lines.
const EVERY: Duration = Duration::from_millis(200);

/// One line that is written over and over.
pub struct Progress {
    what: &'static str,
    is_shown: bool,
    said: Instant,
}

impl Progress {
    /// Of something with this name.
    pub fn new(what: &'static str) -> Self {
        Self { what, is_shown: std::io::stderr().is_terminal(), said: Instant::now() }
    }

    /// So many bytes are done, of so many.
    pub fn at(&mut self, done: u64, of: u64) {
        if self.is_shown && (self.said.elapsed() >= EVERY || done == of) {
            self.said = Instant::now();
            let percent = done.saturating_mul(100) / of.max(1);
            self.write(&format!("\r{} {percent:>3}% of {of} bytes", self.what));
        }
    }

    /// So many of something are done.
    pub fn counted(&mut self, what: &str, count: u64) {
        if self.is_shown && self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            self.write(&format!("\r\x1b[K{}: {count} {what}", self.what));
        }
    }

    /// A step, on a line of its own; always shown.
    pub fn step(&self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    fn write(&self, text: &str) {
        // Nobody is told of progress where standard error is closed.
        let _closed = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            self.write("\r\x1b[K");
        }
    }
}
