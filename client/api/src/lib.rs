//! The public JSON of HTTP API v1. A field added here is a promise; one removed or renamed is a new version.
//!
//! Owns the wire types and the error catalogue. Never used on disk.
//!
//! Answers and errors grow: their types are not exhaustive, and what a newer node says more is passed over. Requests are built with
//! `..Default::default()`, so that a field more is no trouble. The feature `exhaustive` is for Quorate's own programs, which change with
//! this library: with it any release may break who uses it.
//!
//! Fields have the same names in JSON as here, but for four: `where` is `criteria` here, `if` is `condition` or `checks`, `else` is
//! `otherwise`, and `type` is `kind` or `type_uri`. Words of an enum are in lower case, `"get_and_lock"`; moments in answers are RFC 3339,
//! `"2026-11-21T08:00:00.000Z"`; numbers that are handed back or compared are strings, `"43"`, see [`decimal`].
//!
//! # Examples
//!
//! ```
//! use quorate_api::{SequenceNext, SequenceRequest};
//!
//! // A request, as it goes to `POST /v1/sequences/tickets`.
//! let request = SequenceRequest { count: Some(10), ..Default::default() };
//! assert_eq!(serde_json::to_string(&request)?, r#"{"count":10}"#);
//! // Its answer. What a newer node says more is passed over.
//! let answer: SequenceNext = serde_json::from_str(
//!     r#"{"name":"tickets","first":1,"last":10,"revision":"43","index":51,"colour":"red"}"#,
//! )?;
//! assert_eq!((answer.first, answer.last), (1, 10));
//! # Ok::<(), serde_json::Error>(())
//! ```

#![warn(missing_docs)]

mod access;
mod answers;
mod audit;
mod barriers;
mod bulk;
mod cas;
mod claim;
mod cluster;
mod collections;
pub mod decimal;
mod elections;
mod error;
mod error_code;
mod export;
mod faults;
mod find;
mod invitations;
mod kv;
mod latches;
mod locks;
mod members;
mod moments;
mod name;
mod node;
mod other_code;
pub mod path;
mod quotas;
mod sequences;
mod sessions;
mod stream;
mod strict;
mod tasks;
mod txn;
mod typed;
mod watch;

pub use access::*;
pub use audit::*;
pub use barriers::*;
pub use bulk::*;
pub use cas::{Cas, CasError};
pub use claim::*;
pub use cluster::*;
pub use collections::*;
pub use elections::*;
pub use error::*;
pub use error_code::*;
pub use export::*;
pub use faults::*;
pub use find::*;
pub use invitations::*;
pub use kv::*;
pub use latches::*;
pub use locks::*;
pub use members::*;
pub use moments::*;
pub use name::Name;
pub use node::*;
pub use other_code::OtherCode;
pub use quotas::*;
pub use sequences::*;
pub use sessions::*;
pub use stream::*;
pub use strict::Object;
pub use tasks::*;
pub use txn::*;
pub use typed::*;
pub use watch::*;

/// The example of the page that a registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
