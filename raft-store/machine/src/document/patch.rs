//! Patches: changes of a document that depend on the document.
//!
//! Owns the types that stand in log commands, what they refuse, and the rules that all three kinds share: a patch is
//! applied to a document (a JSON object) and leaves one; all of it takes effect or nothing does; the result is within
//! the bounds of a value. What a patch does not touch keeps its place and its spelling.

use bincode::{Decode, Encode};

use super::json::{Json, Object};
use super::path::Path;
use super::write::Excerpt;
use super::{json_patch, merge, update};
use crate::limits;
use crate::types::WallMillis;

/// A change of a document.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Patch {
    /// RFC 7396: members replace those of the same name, objects merge, `null` removes.
    Merge(Json<'static>),
    /// RFC 6902: operations in order.
    Json(Vec<JsonPatchOp>),
    /// Update operators in order, each on what the one before it left.
    Update(Vec<UpdateOp>),
}

/// An operation of a JSON Patch. An index may be one behind the last in `add` (and as target of `move` and `copy`), and
/// there `-` is the end of the array; any other place has to exist.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum JsonPatchOp {
    /// Sets a member, or inserts an element before the one of that index.
    Add {
        /// Where.
        path: Path,
        /// What.
        value: Json<'static>,
    },
    /// Takes a member or element out; later elements move up.
    Remove {
        /// Which.
        path: Path,
    },
    /// Puts another value in the place of one that exists.
    Replace {
        /// Which.
        path: Path,
        /// By what.
        value: Json<'static>,
    },
    /// Takes a value out and adds it elsewhere, as the document is without it.
    Move {
        /// Which.
        from: Path,
        /// Where to.
        path: Path,
    },
    /// Adds a copy of a value.
    Copy {
        /// Of which.
        from: Path,
        /// Where to.
        path: Path,
    },
    /// Fails the whole patch unless the value is [the same](super::order::same).
    Test {
        /// Which.
        path: Path,
        /// As what.
        value: Json<'static>,
    },
}

/// An update operator on a field.
///
/// All but `unset` make the objects on the way to a field that is missing, and never an array: `a.0` of a document
/// without `a` is the member `0` of a new object. In an array that is there, an index has to exist; `append` is what
/// makes arrays grow. A scalar on the way, `null` too, is refused and not replaced.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct UpdateOp {
    /// The field; at least one name.
    pub path: Path,
    /// What happens to it.
    pub action: UpdateAction,
}

/// What an update operator does to its field.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum UpdateAction {
    /// Adds a number; a missing field counts as 0. Integers stay integers of 64 bits, signed or not, or overflow; where
    /// either side has a fraction or exponent the sum is a double. Any other field, `null` too, is refused.
    Inc(Json<'static>),
    /// Gives it this value.
    Set(Json<'static>),
    /// Takes it out; in an array later elements move up. Nothing happens where there is nothing.
    Unset,
    /// Adds one element to the end of an array; a missing field becomes an array of one.
    Append(Json<'static>),
    /// Gives it this value if that is greater, or if the field is missing. Numbers beside numbers and strings beside
    /// strings; anything else is refused.
    Max(Json<'static>),
    /// Gives it this value if that is less; as `Max` otherwise.
    Min(Json<'static>),
    /// Gives it the batch's wall clock.
    Now(TimeForm),
}

/// How a time is written into a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum TimeForm {
    /// A string: RFC 3339, UTC, milliseconds.
    Rfc3339,
    /// A number: Unix milliseconds.
    UnixMs,
}

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
}

/// A fault, and where in the document.
pub(super) struct FaultAt {
    pub(super) path: String,
    pub(super) fault: PatchFault,
}

impl Patch {
    /// A merge patch.
    pub fn merge(patch: Json<'static>) -> Result<Self, PatchError> {
        if matches!(patch, Json::Object(_)) {
            Ok(Self::Merge(patch))
        } else {
            Err(PatchError::NotAnObject(patch.kind()))
        }
    }

    /// A JSON Patch.
    pub fn json(operations: Vec<JsonPatchOp>) -> Result<Self, PatchError> {
        check_count(operations.len())?;
        operations.iter().try_for_each(JsonPatchOp::check)?;
        Ok(Self::Json(operations))
    }

    /// A list of update operators.
    pub fn update(operations: Vec<UpdateOp>) -> Result<Self, PatchError> {
        check_count(operations.len())?;
        operations.iter().try_for_each(UpdateOp::check)?;
        Ok(Self::Update(operations))
    }

    /// How many operations it has; a merge patch is one.
    pub fn operations(&self) -> usize {
        match self {
            Self::Merge(_) => 1,
            Self::Json(operations) => operations.len(),
            Self::Update(operations) => operations.len(),
        }
    }

    /// The text of the document after the patch. `root` is the pointer to the patch for refusals, such as `/patch`.
    pub fn apply_to_text(&self, document: Json<'_>, wall: WallMillis, root: &str) -> Result<Vec<u8>, PatchRefusal> {
        let mut text = Vec::with_capacity(256);
        self.apply(document, wall, root)?.write(&mut text);
        if text.len() > limits::VALUE_BYTES_MAX {
            let fault = too_large(limits::VALUE_BYTES_MAX, text.len());
            return Err(PatchRefusal { pointer: root.to_owned(), path: String::new(), fault });
        }
        Ok(text)
    }

    /// The document after the patch. Its size is not checked; what a patch can add is bounded by the patch and by
    /// [`limits::PATCH_COPIED_BYTES_MAX`].
    pub fn apply<'a>(&'a self, document: Json<'a>, wall: WallMillis, root: &str) -> Result<Json<'a>, PatchRefusal> {
        let at_operation = |at: usize, found: FaultAt| PatchRefusal {
            pointer: format!("{root}/{at}"),
            path: found.path,
            fault: found.fault,
        };
        let not_a_document =
            || PatchRefusal { pointer: root.to_owned(), path: String::new(), fault: PatchFault::NotADocument };
        let Json::Object(object) = document else { return Err(not_a_document()) };
        let patched = match self {
            Self::Merge(patch) => merged(object, patch).ok_or_else(not_a_document)?,
            Self::Json(operations) => {
                let (mut document, mut copied) = (Json::Object(object), 0);
                for (at, operation) in operations.iter().enumerate() {
                    json_patch::apply(&mut document, operation, &mut copied)
                        .map_err(|found| at_operation(at, found))?;
                }
                document
            }
            Self::Update(operations) => {
                let mut document = Json::Object(object);
                for (at, operation) in operations.iter().enumerate() {
                    update::apply(&mut document, operation, wall).map_err(|found| at_operation(at, found))?;
                }
                document
            }
        };
        if matches!(patched, Json::Object(_)) { Ok(patched) } else { Err(not_a_document()) }
    }
}

/// `None` where the patch is no object, which its constructor refuses.
fn merged<'a>(mut document: Object<'a>, patch: &'a Json<'static>) -> Option<Json<'a>> {
    let Json::Object(patch) = patch else { return None };
    merge::merge(&mut document, patch);
    Some(Json::Object(document))
}

fn check_count(count: usize) -> Result<(), PatchError> {
    if count > limits::PATCH_OPERATIONS_MAX { Err(PatchError::TooMany(count)) } else { Ok(()) }
}

impl JsonPatchOp {
    pub(super) fn check(&self) -> Result<(), PatchError> {
        match self {
            Self::Remove { path } if path.names().is_empty() => Err(PatchError::WholeDocument),
            Self::Move { from, path } if from.is_above(path) => Err(PatchError::IntoItself),
            _ => Ok(()),
        }
    }
}

impl UpdateOp {
    pub(super) fn check(&self) -> Result<(), PatchError> {
        let operand = |operator, expected| Err(PatchError::Operand { operator, expected });
        match &self.action {
            _ if self.path.names().is_empty() => Err(PatchError::WholeDocument),
            UpdateAction::Inc(value) if !matches!(value, Json::Number(_)) => operand("inc", "a number"),
            UpdateAction::Max(value) if !has_order(value) => operand("max", "a number or a string"),
            UpdateAction::Min(value) if !has_order(value) => operand("min", "a number or a string"),
            _ => Ok(()),
        }
    }
}

fn has_order(value: &Json<'_>) -> bool {
    matches!(value, Json::Number(_) | Json::String(_))
}

pub(super) fn too_large(limit: usize, actual: usize) -> PatchFault {
    PatchFault::TooLarge { limit: limit as u64, actual: actual as u64 }
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
