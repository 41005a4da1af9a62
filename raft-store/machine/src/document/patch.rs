//! Patches: changes of a document that depend on the document.
//!
//! Owns the types that stand in log commands, what they refuse, and the rules that all three kinds share: a patch is
//! applied to a document (a JSON object) and leaves one; all of it takes effect or nothing does; the result is within
//! the bounds of a value. What a patch does not touch keeps its place and its spelling.

use bincode::{Decode, Encode};

use super::json::{Json, Object};
use super::json_patch::JsonPatchOp;
use super::patch_fault::{FaultAt, PatchError, PatchFault, PatchRefusal, too_large};
use super::steps::Steps;
use super::update::UpdateOp;
use super::{json_patch, merge, update};
use crate::entry::WallMillis;
use crate::limits;

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

    /// The text of the document after the patch. `root` is the pointer to the patch for refusals, such as `/patch`.
    pub fn apply_to_text(&self, document: Json<'_>, wall: WallMillis, root: &str) -> Result<Vec<u8>, PatchRefusal> {
        self.apply_to_text_within(document, wall, root, &Steps::unbounded())
    }

    /// The same, refused where it takes more steps than it may.
    pub fn apply_to_text_within(
        &self,
        document: Json<'_>,
        wall: WallMillis,
        root: &str,
        steps: &Steps,
    ) -> Result<Vec<u8>, PatchRefusal> {
        let mut text = Vec::with_capacity(256);
        self.apply_within(document, wall, root, steps)?.write(&mut text);
        if text.len() > limits::VALUE_BYTES_MAX {
            let fault = too_large(limits::VALUE_BYTES_MAX, text.len());
            return Err(PatchRefusal { pointer: root.to_owned(), path: String::new(), fault });
        }
        Ok(text)
    }

    /// The document after the patch. Its size is not checked; what a patch can add is bounded by the patch and by
    /// [`limits::PATCH_COPIED_BYTES_MAX`].
    pub fn apply<'a>(&'a self, document: Json<'a>, wall: WallMillis, root: &str) -> Result<Json<'a>, PatchRefusal> {
        self.apply_within(document, wall, root, &Steps::unbounded())
    }

    /// The same, refused where it takes more steps than it may.
    fn apply_within<'a>(
        &'a self,
        document: Json<'a>,
        wall: WallMillis,
        root: &str,
        steps: &Steps,
    ) -> Result<Json<'a>, PatchRefusal> {
        let at_operation = |at: usize, found: FaultAt| PatchRefusal {
            pointer: format!("{root}/{at}"),
            path: found.path,
            fault: found.fault,
        };
        let not_a_document =
            || PatchRefusal { pointer: root.to_owned(), path: String::new(), fault: PatchFault::NotADocument };
        let Json::Object(object) = document else { return Err(not_a_document()) };
        let patched = match self {
            Self::Merge(patch) => {
                let merged = merged(object, patch, steps).ok_or_else(not_a_document)?;
                steps.judge(merged).map_err(|dear| PatchRefusal {
                    pointer: root.to_owned(),
                    path: String::new(),
                    fault: PatchFault::TooDear(dear),
                })?
            }
            Self::Json(operations) => {
                let mut document = Json::Object(object);
                let mut allowed = json_patch::Allowed { copied: 0, steps };
                for (at, operation) in operations.iter().enumerate() {
                    json_patch::apply(&mut document, operation, &mut allowed)
                        .map_err(|found| at_operation(at, found))?;
                }
                document
            }
            Self::Update(operations) => {
                let mut document = Json::Object(object);
                for (at, operation) in operations.iter().enumerate() {
                    update::apply(&mut document, operation, wall, steps).map_err(|found| at_operation(at, found))?;
                }
                document
            }
        };
        if matches!(patched, Json::Object(_)) { Ok(patched) } else { Err(not_a_document()) }
    }
}

/// `None` where the patch is no object, which its constructor refuses.
fn merged<'a>(mut document: Object<'a>, patch: &'a Json<'static>, steps: &Steps) -> Option<Json<'a>> {
    let Json::Object(patch) = patch else { return None };
    merge::merge_within(&mut document, patch, steps);
    Some(Json::Object(document))
}

fn check_count(count: usize) -> Result<(), PatchError> {
    if count > limits::PATCH_OPERATIONS_MAX { Err(PatchError::TooMany(count)) } else { Ok(()) }
}
