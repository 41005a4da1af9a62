//! The form of the output.

/// The form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}
