//! The body of `POST /v1/bulk`, as an object or as lines.
//!
//! Owns how many operations there may be and what each takes in the log. What an operation is, is `op_body`'s.

use quorate_api::{BULK_OPS_MAX, BulkRequest};
use quorate_machine::codec;
use quorate_machine::types::{Step, WriteOp};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::limits::{ACTION_BYTES_MAX, BODY_BYTES_MAX_DEFAULT};
use serde_json::value::RawValue;

use crate::headers::BodyKind;
use crate::input::extract::Faults;
use crate::input::{json, json_body};
use crate::keys::op_body::{Container, ParsedOp};

/// How the operations come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One object with all of them.
    Object(BodyKind),
    /// One on each line; blank lines do not count.
    Lines,
}

/// A checked bulk.
pub struct ParsedBulk {
    /// What to do, in order.
    pub ops: Vec<BulkOp>,
    /// Whether it is only to be tried.
    pub dry_run: bool,
    /// The caller's.
    pub request_id: Option<String>,
}

/// A checked operation of it.
#[derive(Debug)]
pub struct BulkOp {
    /// What to do.
    pub op: WriteOp,
    /// What it takes in the log.
    pub bytes: usize,
}

impl ParsedBulk {
    /// Reads a body. Reports the faults of all operations, not only the first.
    pub fn read(body: &[u8], form: Form) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let (ops, dry_run, request_id) = match form {
            Form::Object(kind) => {
                let bulk: BulkRequest<&RawValue> = json_body::frame(json_body::object_of(kind, body)?)?;
                let texts = bulk.ops.iter().map(|raw| raw.get().as_bytes());
                (read_ops(texts, bulk.ops.len(), &mut faults), bulk.dry_run, bulk.request_id)
            }
            Form::Lines => (read_lines(body, &mut faults), false, None),
        };
        faults.check()?;
        Ok(Self { ops, dry_run, request_id })
    }
}

fn read_lines(body: &[u8], faults: &mut Faults) -> Vec<BulkOp> {
    let lines = || body.split(|byte| *byte == b'\n').map(json::trim).filter(|line| !line.is_empty());
    read_ops(lines(), lines().count(), faults)
}

/// Too many are not even looked at.
fn read_ops<'a>(texts: impl Iterator<Item = &'a [u8]>, count: usize, faults: &mut Faults) -> Vec<BulkOp> {
    if !(1..=BULK_OPS_MAX).contains(&count) {
        faults.add("/ops", format!("a bulk has 1 to {BULK_OPS_MAX} operations, this one has {count}"));
        return Vec::new();
    }
    let mut ops = Vec::with_capacity(count);
    let mut scratch = Vec::new();
    for (n, text) in texts.enumerate() {
        if faults.is_full() {
            break;
        }
        let before = faults.enter(format_args!("/ops/{n}"));
        ops.extend(read_op(text, &mut scratch, faults));
        faults.leave(before);
    }
    ops
}

fn read_op(text: &[u8], scratch: &mut Vec<u8>, faults: &mut Faults) -> Option<BulkOp> {
    // What is read of it takes several times its length.
    if text.len() > BODY_BYTES_MAX_DEFAULT {
        faults.add_too_large("", "an operation", BODY_BYTES_MAX_DEFAULT, text.len());
        return None;
    }
    // A get was refused as a fault of its own.
    let Step::Write(op) = ParsedOp::read_part(text, Container::Bulk, faults)?.step else { return None };
    scratch.clear();
    codec::encode_into(&op, scratch);
    let bytes = scratch.len();
    if bytes > ACTION_BYTES_MAX {
        faults.add_too_large("", "an operation with its conditions, as the log has it,", ACTION_BYTES_MAX, bytes);
        return None;
    }
    Some(BulkOp { op, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str, form: Form) -> Result<ParsedBulk, String> {
        ParsedBulk::read(body.as_bytes(), form).map_err(|failure| format!("{failure:?}"))
    }

    const OBJECT: Form = Form::Object(BodyKind::Json);

    #[test]
    fn lines_and_a_list_are_read_alike() {
        let ops = [r#"{"op":"insert","key":"a","value":[1, 2]}"#, r#"{"op":"remove","key":"b","cas":"7"}"#];
        let listed = read(&format!(r#"{{"ops":[{}]}}"#, ops.join(",")), OBJECT).expect("two operations");
        let lines = read(&format!("\n {}\r\n\n{}", ops[0], ops[1]), Form::Lines).expect("two operations");
        let of = |parsed: &ParsedBulk| parsed.ops.iter().map(|op| (op.op.clone(), op.bytes)).collect::<Vec<_>>();
        assert_eq!(of(&listed), of(&lines));
        assert_eq!(listed.ops[0].op.change.data(), b"[1, 2]", "kept as it was written");
    }

    #[test]
    fn more_operations_than_there_may_be_are_one_fault_with_both_numbers() {
        for (body, form) in
            [(format!(r#"{{"ops":[{}]}}"#, ["5"; 10_001].join(",")), OBJECT), ("5\n".repeat(10_001), Form::Lines)]
        {
            let failure = read(&body, form).err().expect("too many");
            assert!(failure.contains("10000") && failure.contains("10001"), "{failure}");
            assert_eq!(failure.matches("pointer").count(), 1, "{failure}");
        }
        for empty in [read(r#"{"ops":[]}"#, OBJECT), read("\n \n", Form::Lines)] {
            assert!(empty.err().expect("nothing to do").contains("this one has 0"));
        }
    }
}
