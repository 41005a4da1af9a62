//! Update operators.
//!
//! Owns what each does to a tree; the rules are on [`UpdateOp`] and [`UpdateAction`]. The caller throws
//! the tree away after a fault.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::json::{Json, Object};
use super::json_patch::{into_scalar, out_of_range};
use super::number::Number;
use super::order;
use super::patch_fault::{FaultAt, PatchError, PatchFault, check_depth, check_depth_below, check_steps, fault_at};
use super::path::{Path, array_index};
use super::steps::Steps;
use super::time;
use crate::entry::WallMillis;
use bincode::{Decode, Encode};

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

/// Applies one operator.
pub(super) fn apply<'a>(
    root: &mut Json<'a>,
    operation: &'a UpdateOp,
    wall: WallMillis,
    steps: &Steps,
) -> Result<(), FaultAt> {
    let path = &operation.path;
    count(root, operation, steps)?;
    match &operation.action {
        UpdateAction::Inc(by) => increase(root, path, by),
        UpdateAction::Set(value) => put(root, path, value.borrowed()),
        UpdateAction::Unset => {
            unset(root, path);
            Ok(())
        }
        UpdateAction::Append(value) => append(root, path, value),
        UpdateAction::Max(value) => keep(root, path, value, Ordering::Greater),
        UpdateAction::Min(value) => keep(root, path, value, Ordering::Less),
        UpdateAction::Now(TimeForm::Rfc3339) => put(root, path, Json::String(Cow::Owned(time::format(wall)))),
        UpdateAction::Now(TimeForm::UnixMs) => put(root, path, Json::Number(Number::from(wall))),
    }
}

/// Counts what an operator looks at and moves: each looks for its field, most of them twice.
fn count(root: &Json<'_>, operation: &UpdateOp, steps: &Steps) -> Result<(), FaultAt> {
    let path = &operation.path;
    let is_taken_out = matches!(operation.action, UpdateAction::Unset);
    let mut value = root;
    for (at, name) in path.names().iter().enumerate() {
        let moves = is_taken_out && at + 1 == path.names().len();
        let next = match value {
            Json::Object(object) => {
                steps.take(2 * object.len());
                check_steps(path, steps)?;
                object.get(name)
            }
            Json::Array(items) => {
                let index = array_index(name).filter(|index| *index < items.len());
                if let Some(index) = index.filter(|_| moves) {
                    steps.take_moving(items.len() - index);
                }
                index.map(|index| &items[index])
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
        };
        let Some(next) = next else { return check_steps(path, steps) };
        value = next;
    }
    // A number is read a few times to be added to, or compared.
    steps.take_scalar(value);
    steps.take_scalar(value);
    check_steps(path, steps)
}

fn increase<'a>(root: &mut Json<'a>, path: &'a Path, by: &'a Json<'static>) -> Result<(), FaultAt> {
    let Json::Number(by) = by else { return Err(wrong_type(path, by)) };
    let sum = |number: &Number<'_>| {
        let overflow = |_| PatchFault::Overflow { actual: Json::Number(number.clone()).excerpt() };
        number.add(by).map_err(|error| fault_at(path, path.names().len(), overflow(error)))
    };
    match find_mut(root, path)? {
        None => put(root, path, Json::Number(sum(&Number::from(0))?)),
        Some(Json::Number(number)) => {
            *number = sum(number)?;
            Ok(())
        }
        Some(other) => Err(wrong_type(path, other)),
    }
}

fn append<'a>(root: &mut Json<'a>, path: &'a Path, value: &'a Json<'static>) -> Result<(), FaultAt> {
    match find_mut(root, path)? {
        None => put(root, path, Json::Array(vec![value.borrowed()])),
        Some(Json::Array(items)) => {
            check_depth_below(path, value)?;
            items.push(value.borrowed());
            Ok(())
        }
        Some(other) => Err(wrong_type(path, other)),
    }
}

/// Sets the value where it compares so with the field.
fn keep<'a>(root: &mut Json<'a>, path: &'a Path, value: &'a Json<'static>, replaces: Ordering) -> Result<(), FaultAt> {
    match find_mut(root, path)? {
        None => put(root, path, value.borrowed()),
        Some(field) if has_same_order(field, value) => {
            if order::compare(value, field) == replaces {
                *field = value.borrowed();
            }
            Ok(())
        }
        Some(other) => Err(wrong_type(path, other)),
    }
}

fn has_same_order(a: &Json<'_>, b: &Json<'_>) -> bool {
    matches!((a, b), (Json::Number(_), Json::Number(_)) | (Json::String(_), Json::String(_)))
}

fn unset(root: &mut Json<'_>, path: &Path) {
    let Some((last, above)) = path.names().split_last() else { return };
    let parent = above.iter().try_fold(root, |value, name| match value {
        Json::Object(object) => object.get_mut(name),
        Json::Array(items) => items.get_mut(array_index(name)?),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
    });
    match parent {
        Some(Json::Object(object)) => drop(object.remove(last)),
        Some(Json::Array(items)) => {
            if let Some(index) = array_index(last).filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

/// The field; `None` where a member is missing, at the end or on the way.
fn find_mut<'j, 'a>(root: &'j mut Json<'a>, path: &Path) -> Result<Option<&'j mut Json<'a>>, FaultAt> {
    let mut value = root;
    for (above, name) in path.names().iter().enumerate() {
        value = match value {
            Json::Object(object) => match object.get_mut(name) {
                Some(value) => value,
                None => return Ok(None),
            },
            Json::Array(items) => item_mut(items, path, above)?,
            scalar => return Err(into_scalar(path, above, scalar)),
        };
    }
    Ok(Some(value))
}

/// Gives the field a value, and makes it and the objects on the way where they are missing.
fn put<'a>(root: &mut Json<'a>, path: &'a Path, new: Json<'a>) -> Result<(), FaultAt> {
    check_depth(path, &new)?;
    let mut value = root;
    for (above, name) in path.names().iter().enumerate() {
        value = match value {
            Json::Object(object) => member_mut(object, name),
            Json::Array(items) => item_mut(items, path, above)?,
            scalar => return Err(into_scalar(path, above, scalar)),
        };
    }
    *value = new;
    Ok(())
}

/// The member of that name, an empty object where there was none.
fn member_mut<'j, 'a>(object: &'j mut Object<'a>, name: &'a str) -> &'j mut Json<'a> {
    let at = match object.members.iter().rposition(|(found, _)| found == name) {
        Some(at) => at,
        None => {
            object.members.push((Cow::Borrowed(name), Json::Object(Object::default())));
            object.members.len() - 1
        }
    };
    &mut object.members[at].1
}

/// The element that the name behind `above` others is the index of.
fn item_mut<'j, 'a>(items: &'j mut [Json<'a>], path: &Path, above: usize) -> Result<&'j mut Json<'a>, FaultAt> {
    let length = items.len();
    let item = array_index(&path.names()[above]).and_then(|index| items.get_mut(index));
    item.ok_or_else(|| out_of_range(path, above + 1, length))
}

fn wrong_type(path: &Path, actual: &Json<'_>) -> FaultAt {
    fault_at(path, path.names().len(), PatchFault::WrongType { actual: actual.excerpt() })
}
