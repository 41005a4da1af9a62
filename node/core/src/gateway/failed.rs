//! What a refused condition or patch shows of the document.
//!
//! Owns the words for each thing that a patch can run into. Decides nothing.

use quorate_api::{Failed, JsonText};
use quorate_machine::document::{Excerpt, PatchFault, TooDear};
use quorate_machine::types::Rejection;
use serde_json::value::RawValue;

/// The `failed` of a problem document.
pub fn of(rejection: &Rejection) -> Vec<Failed> {
    match rejection {
        Rejection::ConditionNotMet { unmet, .. } => unmet
            .iter()
            .map(|unmet| {
                let detail = match (unmet.holds(), &unmet.actual) {
                    (false, Some(_)) => "does not hold of the field as it is",
                    (false, None) => "does not hold: there is no such field",
                    (true, Some(_)) => "holds of the field as it is, and must not",
                    (true, None) => "holds, and must not: there is no such field",
                };
                failed(&unmet.pointer, None, detail.to_owned(), unmet.actual.as_ref())
            })
            .collect(),
        Rejection::PatchFailed { refusal, .. } => {
            let path = Some(refusal.path.clone());
            vec![failed(&refusal.pointer, path, explain(&refusal.fault), actual(&refusal.fault))]
        }
        _ => Vec::new(),
    }
}

/// What failed of an operation at `place` of a larger request.
pub fn below(rejection: &Rejection, place: &str) -> Vec<Failed> {
    let mut list = of(rejection);
    for failed in &mut list {
        failed.pointer.insert_str(0, place);
    }
    list
}

fn failed(pointer: &str, path: Option<String>, detail: String, actual: Option<&Excerpt>) -> Failed {
    // Of a long value only the start is known, which is no JSON.
    let (actual, actual_start) = match actual {
        Some(excerpt) if excerpt.is_whole => (RawValue::from_string(excerpt.text.clone()).ok().map(JsonText), None),
        Some(excerpt) => (None, Some(excerpt.text.clone())),
        None => (None, None),
    };
    Failed { pointer: pointer.to_owned(), path, detail, actual, actual_start }
}

/// The fault for people.
pub fn explain(fault: &PatchFault) -> String {
    match fault {
        PatchFault::NotADocument => "the value is no JSON object, or would be none any more".into(),
        PatchFault::Missing => "there is nothing at this place".into(),
        PatchFault::IntoScalar { .. } => "the path goes on below a value that has no parts".into(),
        PatchFault::OutOfRange { length } => format!("not an index of an array of {length} elements"),
        PatchFault::TestFailed { .. } => "`test` found another value".into(),
        PatchFault::WrongType { .. } => "the operator does not take a field of this type".into(),
        PatchFault::Overflow { .. } => "the sum does not fit into 64 bits".into(),
        PatchFault::TooDeep => "the document would be nested too deep".into(),
        PatchFault::TooLarge { limit, actual } => {
            format!("the document would have {actual} bytes, the limit is {limit}")
        }
        PatchFault::TooDear(dear) => explain_dear(*dear),
    }
}

/// How many steps something takes, for people.
pub fn explain_dear(TooDear { limit, actual }: TooDear) -> String {
    let how = "ask with fewer conditions or operations, or split the document";
    format!("to judge or to change one document takes {actual} steps or more, and one request may take {limit}; {how}")
}

fn actual(fault: &PatchFault) -> Option<&Excerpt> {
    match fault {
        PatchFault::IntoScalar { actual } | PatchFault::WrongType { actual } | PatchFault::Overflow { actual } => {
            Some(actual)
        }
        PatchFault::TestFailed { actual } => actual.as_ref(),
        PatchFault::NotADocument
        | PatchFault::Missing
        | PatchFault::OutOfRange { .. }
        | PatchFault::TooDeep
        | PatchFault::TooLarge { .. }
        | PatchFault::TooDear(_) => None,
    }
}
