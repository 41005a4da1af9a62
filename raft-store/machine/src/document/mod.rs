//! Documents: JSON values as the state machine reads, judges and changes them.
//!
//! Owns what a field path names, when a condition holds and what a patch does, as functions of their arguments alone.
//! Knows no clock (the batch's wall clock is an argument), no randomness, no I/O and no hash-map order, and no rows or
//! keys of the store either: the machine brings the value and its metadata, and writes what comes back.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

// Values: text to tree and back, with numbers kept as they were written.
mod json;
mod number;
mod parse;
mod write;

// Counts the work on documents.
mod steps;

pub mod order;
pub mod path;
pub mod time;

// Conditions.
mod criteria;
mod evaluate;
mod like;
mod name;

// Views.
mod project;
mod sort;

// Changes.
mod json_patch;
mod merge;
mod patch;
mod patch_fault;
mod update;

// The written forms, as they stand in requests.
mod read;

pub use criteria::{Criteria, CriteriaError, Operand, Operator, Predicate, PredicateError, Term, Value};
pub use evaluate::{ReadyCriteria, Subject, Unmet};
pub use json::{Json, Object};
pub use json_patch::JsonPatchOp;
pub use like::{LikeError, matches as like_matches};
pub use merge::merge;
pub use number::{Number, Numeric};
pub use parse::JsonError;
pub use patch::Patch;
pub use patch_fault::{PatchError, PatchFault, PatchRefusal};
pub use project::Projection;
pub use read::{Fault, FaultKind};
pub(crate) use read::{Faults, Members, read_list};
pub use sort::{Order, OrderField};
pub use steps::{Steps, TooDear};
pub use update::{TimeForm, UpdateAction, UpdateOp};
pub use write::Excerpt;
