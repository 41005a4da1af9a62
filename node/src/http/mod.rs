//! The public HTTP API.
