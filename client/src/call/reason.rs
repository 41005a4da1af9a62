//! Why an attempt failed: words, and the error behind them.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Why an attempt failed, in words. The error that said so, where there is one, is the source of the [`crate::Failure`].
#[derive(Debug, Clone)]
pub struct Reason {
    words: Arc<str>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Reason {
    /// The error itself, with its own words and those of its sources, outermost first.
    pub(crate) fn of(error: impl StdError + Send + Sync + 'static) -> Self {
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            words.push_str(": ");
            words.push_str(&inner.to_string());
            source = inner.source();
        }
        Self { words: words.into(), source: Some(Arc::new(error)) }
    }

    /// An error that these words explain better than its own.
    pub(crate) fn explained(words: String, error: impl StdError + Send + Sync + 'static) -> Self {
        Self { words: words.into(), source: Some(Arc::new(error)) }
    }

    /// The words.
    pub fn as_str(&self) -> &str {
        &self.words
    }

    pub(crate) fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.words)
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self { words: words.into(), source: None }
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self { words: words.into(), source: None }
    }
}
