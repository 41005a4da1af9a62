//! Messages for people on standard error.
//!
//! Owns that nobody has to listen: where the other end is closed, as that of a logger that ended, words are lost and nothing else. A command
//! at work, a worker above all, goes on. Never writes output, whose reader is waited for.

use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Says a line, for people.
macro_rules! say {
    ($($text:tt)*) => { $crate::said::line(&format!($($text)*)) };
}

/// See `say!`.
pub fn line(text: &str) {
    raw(format!("{text}\n").as_bytes());
}

/// A bar that shows how far something is, as this template says. Draws nothing where standard error is no terminal.
pub fn bar(length: Option<u64>, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("templates are constants that parse");
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    bar.set_style(style.progress_chars("=> "));
    bar
}

/// Passes bytes on as they are.
pub fn raw(bytes: &[u8]) {
    let _nobody_listens = std::io::stderr().write_all(bytes);
}
