//! Lines of the level debug, which are there in release builds too.
//!
//! Owns the macro [`crate::debug`]. The macros of `tracing` leave that level out of release builds for all crates at once, since
//! openraft's hot path is full of it; those of the crate `log` do not, and cost one load of a number where nobody wants the line.

use std::fmt::{self, Write};

/// Fields and message of a line, as `tracing` would write them.
#[derive(Debug, Default)]
pub struct Text {
    message: &'static str,
    fields: String,
}

impl Text {
    /// Adds a field.
    pub fn field(&mut self, name: &str, value: fmt::Arguments<'_>) {
        let _infallible = write!(self.fields, " {name}={value}");
    }

    /// Says what happened.
    pub fn message(&mut self, message: &'static str) {
        self.message = message;
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)?;
        f.write_str(if self.message.is_empty() { self.fields.trim_start() } else { &self.fields })
    }
}

/// A line of the level debug: `debug!(node = id, %error, ?took, "what happened")`, as with `tracing::debug!`.
#[macro_export]
macro_rules! debug {
    (@ $text:ident) => {};
    (@ $text:ident $message:literal $(,)?) => { $text.message($message); };
    (@ $text:ident % $name:ident $(, $($rest:tt)*)?) => {
        $text.field(stringify!($name), format_args!("{}", $name));
        $crate::debug!(@ $text $($($rest)*)?);
    };
    (@ $text:ident ? $name:ident $(, $($rest:tt)*)?) => {
        $text.field(stringify!($name), format_args!("{:?}", $name));
        $crate::debug!(@ $text $($($rest)*)?);
    };
    (@ $text:ident $name:ident = % $value:expr $(, $($rest:tt)*)?) => {
        $text.field(stringify!($name), format_args!("{}", $value));
        $crate::debug!(@ $text $($($rest)*)?);
    };
    (@ $text:ident $name:ident = ? $value:expr $(, $($rest:tt)*)?) => {
        $text.field(stringify!($name), format_args!("{:?}", $value));
        $crate::debug!(@ $text $($($rest)*)?);
    };
    (@ $text:ident $name:ident = $value:expr $(, $($rest:tt)*)?) => {
        $text.field(stringify!($name), format_args!("{:?}", $value));
        $crate::debug!(@ $text $($($rest)*)?);
    };
    (@ $text:ident $name:ident $(, $($rest:tt)*)?) => {
        $text.field(stringify!($name), format_args!("{:?}", $name));
        $crate::debug!(@ $text $($($rest)*)?);
    };
    ($($line:tt)+) => {
        if log::log_enabled!(log::Level::Debug) {
            let mut text = $crate::logging::Text::default();
            $crate::debug!(@ text $($line)+);
            log::debug!("{text}");
        }
    };
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn a_line_is_written_as_tracing_does() {
        let (mut text, error, took) = (Text::default(), "broken", std::time::Duration::from_millis(5));
        crate::debug!(@ text node = 3, %error, ?took, addr = %"a:1", kind = "x", "it happened");
        assert_eq!(text.to_string(), "it happened node=3 error=broken took=5ms addr=a:1 kind=\"x\"");
        let mut text = Text::default();
        crate::debug!(@ text took);
        assert_eq!(text.to_string(), "took=5ms");
    }
}
