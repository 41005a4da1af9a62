//! Why a patch cannot be, and why it could not be applied.
//!
//! Owns the faults of all three forms of patches, and the bound of depth that they share. Never reads or changes a document.

use bincode::{Decode, Encode};

use super::json::Json;
use super::path::Path;
use super::steps::{Steps, TooDear};
use super::write::Excerpt;
use crate::limits;

/// Why parts do not make a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// A merge patch that is not an object would replace the document by something else.
    #[error("a merge patch is an object, this is a value of type {0}")]
    NotAnObject(&'static str),
    /// Too many operations; holds how many.
    #[error("a patch has at most {max} operations, this one has {0}", max = limits::PATCH_OPERATIONS_MAX)]
    TooMany(usize),
    /// A value cannot move into itself.
    #[error("`from` lies above `path`")]
    IntoItself,
    /// The whole document: it is removed by removing the entry.
    #[error("the whole document cannot be taken out or updated; name a field")]
    WholeDocument,
    /// An operator on something it cannot have.
    #[error("`{operator}` takes {expected}")]
    Operand {
        /// As written.
        operator: &'static str,
        /// What it takes.
        expected: &'static str,
    },
}

/// Why a patch was not applied. Nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PatchRefusal {
    /// JSON pointer to the operation, such as `/patch/3`; to the patch itself where no single operation is to blame.
    pub pointer: String,
    /// JSON pointer into the document to where it failed.
    pub path: String,
    /// What is wrong there.
    pub fault: PatchFault,
}

/// What is wrong at a place of a document.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum PatchFault {
    /// The value is not a JSON object, or would not be one any more.
    NotADocument,
    /// Nothing there.
    Missing,
    /// A scalar, where the path goes on.
    IntoScalar {
        /// It.
        actual: Excerpt,
    },
    /// The name after an array is no index, or none that it has.
    OutOfRange {
        /// Elements of the array.
        length: u64,
    },
    /// `test` found another value.
    TestFailed {
        /// It; `None` where there is none.
        actual: Option<Excerpt>,
    },
    /// `inc`, `max`, `min` or `append` on a field of another type.
    WrongType {
        /// The field.
        actual: Excerpt,
    },
    /// The sum has no place in 64 bits, or in a double.
    Overflow {
        /// The number as it is.
        actual: Excerpt,
    },
    /// The document would be nested too deep.
    TooDeep,
    /// The document would be too large, or the patch copies too much on the way.
    TooLarge {
        /// Most bytes allowed.
        limit: u64,
        /// Bytes it would have had.
        actual: u64,
    },
    /// All that has to be looked at and moved takes too many steps.
    TooDear(TooDear),
}

/// A fault, and where in the document.
pub(super) struct FaultAt {
    pub(super) path: String,
    pub(super) fault: PatchFault,
}
pub(super) fn too_large(limit: usize, actual: usize) -> PatchFault {
    PatchFault::TooLarge { limit: limit as u64, actual: actual as u64 }
}

/// Refuses a patch that takes too many steps; the last ones were for work at this place.
pub(super) fn check_steps(path: &Path, steps: &Steps) -> Result<(), FaultAt> {
    steps.judge(()).map_err(|dear| FaultAt { path: path.to_string(), fault: PatchFault::TooDear(dear) })
}

/// Refuses a value that would reach too deep at this place.
pub(super) fn check_depth(path: &Path, value: &Json<'_>) -> Result<(), FaultAt> {
    check_levels(path, path.names().len() + value.depth())
}

/// Refuses a value that would reach too deep as an element of the array at this place.
pub(super) fn check_depth_below(path: &Path, value: &Json<'_>) -> Result<(), FaultAt> {
    check_levels(path, path.names().len() + 1 + value.depth())
}

fn check_levels(path: &Path, levels: usize) -> Result<(), FaultAt> {
    if levels <= limits::JSON_DEPTH_MAX {
        return Ok(());
    }
    Err(FaultAt { path: path.to_string(), fault: PatchFault::TooDeep })
}

/// The fault of a path that ends `depth` names down.
pub(super) fn fault_at(path: &Path, depth: usize, fault: PatchFault) -> FaultAt {
    FaultAt {
        path: path.names()[..depth].iter().map(|name| format!("/{}", super::path::escape(name))).collect(),
        fault,
    }
}
