//! The body of `POST /v1/bulk`, as an object or as lines.
//!
//! Owns how many operations there may be and what each takes in the log. What an operation is, is `op_body`'s. The names are
//! those of `quorate_api::BulkRequest`, which a test holds this file to.

use crate::http::input::json_body;
use quorate_api::BULK_OPS_MAX;
use quorate_store::codec;
use quorate_store::types::{Step, WriteOp};
use serde_json::value::RawValue;

use crate::gateway::failure::Failure;
use crate::http::input::extract::{self, Faults};
use crate::http::input::headers::BodyKind;
use crate::http::input::json;
use crate::http::keys::op_body::{ParsedOp, Standing, request_id, typed};
use crate::limits::{ACTION_BYTES_MAX, BODY_BYTES_MAX_DEFAULT};

const FIELDS: [&str; 3] = ["ops", "dry_run", "request_id"];

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
    /// Reads a body. Reports every fault, not only the first.
    pub fn read(body: &[u8], form: Form) -> Result<Self, Failure> {
        let mut faults = Faults::default();
        let parsed = match form {
            Form::Object(kind) => Self::read_object(json_body::object_of(kind, body)?, &mut faults),
            Form::Lines => Some(Self { ops: read_lines(body, &mut faults), dry_run: false, request_id: None }),
        };
        faults.check()?;
        parsed.ok_or_else(|| Failure::invalid("", "the bulk is not complete"))
    }

    fn read_object(text: &[u8], faults: &mut Faults) -> Option<Self> {
        let [ops, dry_run, id] = extract::object(text, "a bulk", FIELDS, faults)?;
        let dry_run = dry_run.and_then(|raw| typed(raw, "/dry_run", "true or false", faults)).unwrap_or(false);
        let request_id = id.and_then(|raw| request_id(raw, faults)).map(|id| id.into_owned());
        Some(Self { ops: read_list(ops, faults), dry_run, request_id })
    }
}

fn read_list(ops: Option<&RawValue>, faults: &mut Faults) -> Vec<BulkOp> {
    match ops.map(|raw| json::items(raw, BULK_OPS_MAX)) {
        Some(Some((list, count))) => {
            read_ops(list.iter().map(|raw| raw.get().as_bytes()).take(BULK_OPS_MAX), count, faults)
        }
        Some(None) => {
            faults.add("/ops", "must be a list of operations");
            Vec::new()
        }
        None => {
            faults.add("/ops", format!("missing; a list of 1 to {BULK_OPS_MAX} operations"));
            Vec::new()
        }
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
    let Step::Write(op) = ParsedOp::read_part(text, Standing::InBulk, faults)?.into_step() else { return None };
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
    use quorate_api::BulkRequest;

    use super::*;

    fn read(body: &str, form: Form) -> Result<ParsedBulk, String> {
        ParsedBulk::read(body.as_bytes(), form).map_err(|failure| format!("{failure:?}"))
    }

    const OBJECT: Form = Form::Object(BodyKind::Json);

    #[test]
    fn the_fields_are_those_of_the_wire_type() {
        let full = BulkRequest { ops: Vec::new(), dry_run: true, request_id: Some("r".into()) };
        let text = serde_json::to_vec(&full).expect("JSON");
        let names: Vec<_> = json::fields(&text).expect("an object").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, FIELDS);
    }

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
    fn faults_of_all_operations_are_told_and_no_more_than_anyone_reads() {
        let body = r#"{"ops":[{"op":"get","key":"a"},5,{"op":"upsert","key":"","value":{"a":1,"a":2}},{"op":"remove","key":"b"}],"colour":1}"#;
        let failure = read(body, OBJECT).err().expect("four faults");
        for pointer in ["/ops/0/op", "/ops/1", "/ops/2/value/a", "/colour"] {
            assert!(failure.contains(&format!("\"{pointer}\"")), "{pointer} is missing in {failure}");
        }
        let failure = read(&"x\n".repeat(9_000), Form::Lines).err().expect("faults");
        assert_eq!(failure.matches("pointer").count(), 32, "{failure}");
    }

    #[test]
    fn more_operations_than_there_may_be_are_one_fault_with_both_numbers() {
        for (body, form) in
            [(format!(r#"{{"ops":[{}]}}"#, ["5"; 10_001].join(",")), OBJECT), ("5\n".repeat(10_001), Form::Lines)]
        {
            let failure = read(&body, form).err().expect("too many");
            assert!(failure.contains("1 to 10000 operations, this one has 10001"), "{failure}");
            assert_eq!(failure.matches("pointer").count(), 1, "{failure}");
        }
        for empty in [read(r#"{"ops":[]}"#, OBJECT), read("\n \n", Form::Lines)] {
            assert!(empty.err().expect("nothing to do").contains("this one has 0"));
        }
    }
}
