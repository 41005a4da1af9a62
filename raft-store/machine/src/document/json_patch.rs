//! RFC 6902: the operations of a JSON Patch.
//!
//! Owns what each does to a tree. The caller throws the tree away after a fault.

use super::json::Json;
use super::order;
use super::patch_fault::{FaultAt, PatchError, PatchFault, check_depth, check_steps, fault_at, too_large};
use super::path::{Path, array_index};
use super::steps::Steps;
use crate::limits;
use bincode::{Decode, Encode};

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

impl JsonPatchOp {
    pub(super) fn check(&self) -> Result<(), PatchError> {
        match self {
            Self::Remove { path } if path.names().is_empty() => Err(PatchError::WholeDocument),
            Self::Move { from, path } if from.is_above(path) => Err(PatchError::IntoItself),
            _ => Ok(()),
        }
    }
}

/// The work of a patch so far.
pub(super) struct Allowed<'s> {
    /// Bytes that were copied so far, see [`limits::PATCH_COPIED_BYTES_MAX`].
    pub(super) copied: usize,
    /// Looks and moves.
    pub(super) steps: &'s Steps,
}

/// Applies one operation.
pub(super) fn apply<'a>(
    root: &mut Json<'a>,
    operation: &'a JsonPatchOp,
    allowed: &mut Allowed<'_>,
) -> Result<(), FaultAt> {
    let steps = allowed.steps;
    match operation {
        JsonPatchOp::Add { path, value } => {
            check_depth(path, value)?;
            add(root, path, value.borrowed(), steps)
        }
        JsonPatchOp::Remove { path } => remove(root, path, steps).map(drop),
        JsonPatchOp::Replace { path, value } => {
            check_depth(path, value)?;
            *find_mut(root, path, steps)? = value.borrowed();
            Ok(())
        }
        JsonPatchOp::Move { from, path } if from == path => find_mut(root, from, steps).map(drop),
        JsonPatchOp::Move { from, path } => {
            let value = remove(root, from, steps)?;
            // Further down it may be too deep; elsewhere it cannot be deeper than it was.
            if path.names().len() > from.names().len() {
                check_copied(path, &value, allowed)?;
            }
            add(root, path, value, steps)
        }
        JsonPatchOp::Copy { from, path } => {
            let value = find_mut(root, from, steps)?;
            check_copied(path, value, allowed)?;
            let copy = value.clone();
            add(root, path, copy, steps)
        }
        JsonPatchOp::Test { path, value } => {
            let found = path.find_within(root, steps);
            let is_same = found.is_some_and(|found| order::same_within(found, value, steps));
            check_steps(path, steps)?;
            if is_same {
                return Ok(());
            }
            let actual = found.map(Json::excerpt);
            Err(FaultAt { path: path.to_string(), fault: PatchFault::TestFailed { actual } })
        }
    }
}

fn check_copied(path: &Path, value: &Json<'_>, allowed: &mut Allowed<'_>) -> Result<(), FaultAt> {
    let bytes = value.text_bytes();
    allowed.copied += bytes;
    if allowed.copied > limits::PATCH_COPIED_BYTES_MAX {
        let fault = too_large(limits::PATCH_COPIED_BYTES_MAX, allowed.copied);
        return Err(FaultAt { path: path.to_string(), fault });
    }
    allowed.steps.take(bytes);
    check_steps(path, allowed.steps)?;
    check_depth(path, value)
}

fn add<'a>(root: &mut Json<'a>, path: &'a Path, value: Json<'a>, steps: &Steps) -> Result<(), FaultAt> {
    let Some((last, depth)) = last_of(path) else {
        *root = value;
        return Ok(());
    };
    match walk(root, path, depth, steps)? {
        Json::Object(object) => {
            steps.take(object.len());
            check_steps(path, steps)?;
            object.set(last, value);
        }
        Json::Array(items) => {
            let index = if last == "-" { Some(items.len()) } else { array_index(last) };
            let length = items.len();
            let index = index.filter(|index| *index <= length).ok_or_else(|| out_of_range(path, depth + 1, length))?;
            steps.take_moving(length - index);
            check_steps(path, steps)?;
            items.insert(index, value);
        }
        scalar => return Err(into_scalar(path, depth, scalar)),
    }
    Ok(())
}

fn remove<'a>(root: &mut Json<'a>, path: &Path, steps: &Steps) -> Result<Json<'a>, FaultAt> {
    // The constructor refuses to remove the whole; `move` of it to itself does not come here.
    let Some((last, depth)) = last_of(path) else { return Err(fault_at(path, 0, PatchFault::NotADocument)) };
    match walk(root, path, depth, steps)? {
        Json::Object(object) => {
            // It looks for the name from both ends, and moves what stands behind it.
            steps.take(2 * object.len());
            check_steps(path, steps)?;
            object.remove(last).ok_or_else(|| fault_at(path, depth + 1, PatchFault::Missing))
        }
        Json::Array(items) => {
            let length = items.len();
            let index = array_index(last).filter(|index| *index < length);
            let index = index.ok_or_else(|| out_of_range(path, depth + 1, length))?;
            steps.take_moving(length - index);
            check_steps(path, steps)?;
            Ok(items.remove(index))
        }
        scalar => Err(into_scalar(path, depth, scalar)),
    }
}

fn find_mut<'j, 'a>(root: &'j mut Json<'a>, path: &Path, steps: &Steps) -> Result<&'j mut Json<'a>, FaultAt> {
    walk(root, path, path.names().len(), steps)
}

/// The value that so many names of the path lead to.
fn walk<'j, 'a>(root: &'j mut Json<'a>, path: &Path, depth: usize, steps: &Steps) -> Result<&'j mut Json<'a>, FaultAt> {
    path.names()[..depth].iter().enumerate().try_fold(root, |value, (above, name)| match value {
        Json::Object(object) => {
            steps.take(object.len());
            check_steps(path, steps)?;
            object.get_mut(name).ok_or_else(|| fault_at(path, above + 1, PatchFault::Missing))
        }
        Json::Array(items) => {
            let length = items.len();
            let item = array_index(name).and_then(|index| items.get_mut(index));
            item.ok_or_else(|| out_of_range(path, above + 1, length))
        }
        scalar => Err(into_scalar(path, above, scalar)),
    })
}

fn last_of(path: &Path) -> Option<(&str, usize)> {
    path.names().split_last().map(|(last, above)| (last.as_str(), above.len()))
}

pub(super) fn out_of_range(path: &Path, depth: usize, length: usize) -> FaultAt {
    fault_at(path, depth, PatchFault::OutOfRange { length: length as u64 })
}

pub(super) fn into_scalar(path: &Path, depth: usize, scalar: &Json<'_>) -> FaultAt {
    fault_at(path, depth, PatchFault::IntoScalar { actual: scalar.excerpt() })
}
