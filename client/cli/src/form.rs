//! The form of the output.

use serde::{Deserialize, Serialize};

/// The environment variable that names it.
pub const OUTPUT_ENV: &str = "QUORATE_OUTPUT";

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Lines for people.
    Text,
    /// What the API says, for programs; what comes one by one, a line each.
    Json,
    /// The same as YAML; what comes one by one, a document each.
    Yaml,
    /// The same in columns; of one thing, a field a line.
    Table,
}

impl Form {
    /// The form for programs; `None` where people read.
    pub fn data(self) -> Option<Self> {
        (self != Self::Text).then_some(self)
    }

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Table => "table",
        }
    }
}
