//! How far a load is. Only on a terminal, on standard error; otherwise nothing is shown.

use indicatif::ProgressBar;

use super::lines::Position;
use crate::said;

/// A bar over the bytes of the input; without end for one of unknown length.
pub struct Progress {
    bar: ProgressBar,
    lines: std::cell::Cell<u64>,
}

impl Progress {
    /// Of an input that is done up to a place.
    pub fn new(length: Option<u64>, at: Position) -> Self {
        let template = match length {
            Some(_) => "loading [{bar:40}] {percent:>3}%  {msg}  {bytes_per_sec}, {eta} left",
            None => "loading {bytes}  {msg}  {bytes_per_sec}",
        };
        let bar = said::bar(length, template);
        bar.set_position(at.offset);
        bar.reset_eta();
        Self { bar, lines: at.line.into() }
    }

    /// So much more is done.
    pub fn advance(&self, bytes: u64, lines: u64) {
        self.lines.set(self.lines.get() + lines);
        self.bar.set_message(format!("{} lines", self.lines.get()));
        self.bar.inc(bytes);
    }

    /// Writes a line above the bar.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| say!("{text}"));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
