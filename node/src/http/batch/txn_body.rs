//! The body of `POST /v1/txn`.
//!
//! Owns the reading of checks, steps and transactions in transactions, with a pointer to every fault. What a step does is
//! `op_body`'s to read. The names are those of `quorate_api::{TxnRequest, TxnCheck, TxnBlock}`, which a test holds
//! this file to.

use std::fmt;

use quorate_api::OpKind;
use quorate_store::codec;
use quorate_store::document::Criteria;
use quorate_store::limits::{TXN_DEPTH_MAX, TXN_STEPS_MAX};
use quorate_store::types::{Check, Expect, Key, Step, Txn, TxnFault};
use serde_json::value::RawValue;

use crate::gateway::failure::Failure;
use crate::http::input::extract::{self, Faults};
use crate::http::input::json::JsonFault;
use crate::http::input::{criteria, json, key};
use crate::http::keys::op_body::{ParsedOp, Standing, cas, request_id, text, typed};
use crate::limits::ACTION_BYTES_MAX;

const FIELDS: [&str; 5] = ["if", "then", "else", "dry_run", "request_id"];
const BLOCK_FIELDS: [&str; 4] = ["op", "if", "then", "else"];
const CHECK_FIELDS: [&str; 4] = ["key", "cas", "exists", "if"];

/// A checked transaction.
pub struct ParsedTxn {
    /// What to do.
    pub txn: Txn,
    /// What its answer needs to know of it.
    pub shape: Shape,
    /// Checks and steps, those of nested transactions too.
    pub count: usize,
    /// Whether it is only to be tried.
    pub dry_run: bool,
    /// The caller's.
    pub request_id: Option<String>,
}

/// A transaction without what its steps are about, which goes into the log.
#[derive(Debug, Default)]
pub struct Shape {
    /// Keys of the checks.
    pub checks: Vec<Key>,
    /// Steps where all checks hold.
    pub then: Vec<StepShape>,
    /// Steps where one does not.
    pub otherwise: Vec<StepShape>,
}

/// A step of it.
#[derive(Debug)]
pub enum StepShape {
    /// An operation.
    Op(OpKind, Key),
    /// A transaction in the transaction.
    Txn(Shape),
}

impl ParsedTxn {
    /// Reads a body. Reports every fault, not only the first.
    pub fn read(body: &[u8]) -> Result<Self, Failure> {
        let mut reader = Reader::default();
        let parsed = reader.whole(body);
        reader.faults.check()?;
        parsed.ok_or_else(|| Failure::invalid("", "the transaction is not complete"))
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    faults: Faults,
    /// Checks and steps, those of nested transactions too.
    count: usize,
}

impl Reader {
    fn whole(&mut self, body: &[u8]) -> Option<ParsedTxn> {
        let faults = &mut self.faults;
        let [checks, then, otherwise, dry_run, id] = extract::object(body, "a transaction", FIELDS, faults)?;
        let dry_run = dry_run.and_then(|raw| typed(raw, "/dry_run", "true or false", faults)).unwrap_or(false);
        let request_id = id.and_then(|raw| request_id(raw, faults)).map(|id| id.into_owned());
        let (txn, shape) = self.block(checks, then, otherwise, 1);
        if self.faults.is_empty() {
            self.check_whole(&txn);
        }
        Some(ParsedTxn { txn, shape, count: self.count, dry_run, request_id })
    }

    /// What can be wrong with a transaction of which each part is right.
    fn check_whole(&mut self, txn: &Txn) {
        match txn.fault() {
            None => {}
            Some(TxnFault::KeyTwice { key, pointer }) => {
                let detail = format!(
                    "{key} is written before on this way; a transaction is one revision, which has one version of each key"
                );
                self.faults.add(pointer, detail);
            }
            Some(fault @ (TxnFault::TooMany(_) | TxnFault::TooDeep)) => self.faults.add("", fault.to_string()),
        }
        let bytes = codec::encode(txn).len();
        if bytes > ACTION_BYTES_MAX {
            self.faults.add_too_large("", "a transaction, as the log has it,", ACTION_BYTES_MAX, bytes);
        }
    }

    /// A transaction at this depth, the outermost at 1.
    fn block(
        &mut self,
        checks: Option<&RawValue>,
        then: Option<&RawValue>,
        otherwise: Option<&RawValue>,
        depth: usize,
    ) -> (Txn, Shape) {
        let checks: Vec<Check> = self.list(checks, "/if", Self::check);
        let (then, then_shape) = self.list(then, "/then", |reader, raw| reader.step(raw, depth)).into_iter().unzip();
        let (otherwise, else_shape) =
            self.list(otherwise, "/else", |reader, raw| reader.step(raw, depth)).into_iter().unzip();
        let keys = checks.iter().map(|check| check.key.clone()).collect();
        (Txn { checks, then, otherwise }, Shape { checks: keys, then: then_shape, otherwise: else_shape })
    }

    /// The items of a list that may be left out. Of one that is too long none is looked at.
    fn list<T>(
        &mut self,
        raw: Option<&RawValue>,
        pointer: &str,
        mut read: impl FnMut(&mut Self, &RawValue) -> Option<T>,
    ) -> Vec<T> {
        let Some(raw) = raw else { return Vec::new() };
        let Some((items, count)) = json::items(raw, TXN_STEPS_MAX) else {
            self.faults.add(pointer, "must be a list");
            return Vec::new();
        };
        let was_too_many = self.count > TXN_STEPS_MAX;
        self.count += count;
        if self.count > TXN_STEPS_MAX {
            if !was_too_many {
                let count = self.count;
                let detail = format!(
                    "a transaction has at most {TXN_STEPS_MAX} checks and steps, nested ones too; up to here it has {count}"
                );
                self.faults.add(pointer, detail);
            }
            return Vec::new();
        }
        let mut list = Vec::with_capacity(count);
        for (at, raw) in items.into_iter().enumerate() {
            if self.faults.is_full() {
                break;
            }
            list.extend(self.at(format_args!("{pointer}/{at}"), |reader| read(reader, raw)));
        }
        list
    }

    fn at<T>(&mut self, place: fmt::Arguments<'_>, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.faults.enter(place);
        let done = read(self);
        self.faults.leave(before);
        done
    }

    fn step(&mut self, raw: &RawValue, depth: usize) -> Option<(Step, StepShape)> {
        let body = raw.get().as_bytes();
        if is_txn(body) {
            return self.nested(body, depth + 1).map(|(txn, shape)| (Step::Txn(txn), StepShape::Txn(shape)));
        }
        let parsed = ParsedOp::read_part(body, Standing::InTxn, &mut self.faults)?;
        let shape = StepShape::Op(parsed.kind, parsed.key.key.clone());
        Some((parsed.into_step(), shape))
    }

    fn nested(&mut self, body: &[u8], depth: usize) -> Option<(Txn, Shape)> {
        let [_, checks, then, otherwise] =
            extract::object(body, "a transaction in a transaction", BLOCK_FIELDS, &mut self.faults)?;
        if depth > TXN_DEPTH_MAX {
            let detail =
                format!("transactions stand at most {TXN_DEPTH_MAX} deep in each other, the outermost counted");
            self.faults.add("", detail);
            return None;
        }
        Some(self.block(checks, then, otherwise, depth))
    }

    fn check(&mut self, raw: &RawValue) -> Option<Check> {
        let (body, faults) = (raw.get().as_bytes(), &mut self.faults);
        if let Err(JsonFault { pointer, detail }) = json::check(body) {
            faults.add(pointer, detail);
            return None;
        }
        let [name, token, exists, list] = extract::object(body, "a check", CHECK_FIELDS, faults)?;
        if token.or(exists).or(list).is_none() {
            faults.add("", "a check says at least one of cas, exists and if");
        }
        if name.is_none() {
            faults.add("/key", "missing; the key of the entry to check");
        }
        let name = name.and_then(|raw| text(raw, "/key", faults)).and_then(|name| key::read(name, "/key", faults));
        let token = token.and_then(|raw| cas(raw, faults));
        let exists = exists.and_then(|raw| typed(raw, "/exists", "true or false", faults));
        let condition = match list {
            Some(list) => criteria::criteria(list.get().as_bytes(), "/if", faults),
            None => Some(Criteria::default()),
        };
        let expect = expected(token, exists, faults);
        Some(Check { key: name?.key, expect, condition: condition? })
    }
}

/// What a check says of the entry being there, and of its token.
fn expected(token: Option<u64>, exists: Option<bool>, faults: &mut Faults) -> Expect {
    match (token, exists) {
        (Some(_), Some(false)) => {
            faults.add("/exists", "an entry that is not there has no cas; leave out one of the two");
            Expect::Any
        }
        (Some(token), _) => Expect::Cas(token),
        (None, Some(true)) => Expect::Present,
        (None, Some(false)) => Expect::Absent,
        (None, None) => Expect::Any,
    }
}

fn is_txn(body: &[u8]) -> bool {
    let Ok(fields) = json::fields(body) else { return false };
    let op = fields.into_iter().find(|(name, _)| name == "op");
    op.and_then(|(_, raw)| json::text(raw)).is_some_and(|op| op == "txn")
}

#[cfg(test)]
mod tests {
    use quorate_api::{TxnBlock, TxnCheck, TxnRequest, TxnStep, TxnTag};

    use super::*;

    fn read(body: &str) -> Result<ParsedTxn, String> {
        ParsedTxn::read(body.as_bytes()).map_err(|failure| format!("{failure:?}"))
    }

    fn fault(body: &str) -> String {
        read(body).err().unwrap_or_else(|| panic!("there is nothing wrong with {body}"))
    }

    fn names(part: &impl serde::Serialize) -> Vec<String> {
        let text = serde_json::to_vec(part).expect("JSON");
        json::fields(&text).expect("an object").into_iter().map(|(name, _)| name.into_owned()).collect()
    }

    #[test]
    fn the_fields_are_those_of_the_wire_types() {
        let check =
            TxnCheck { key: "k".into(), cas: Some("1".into()), exists: Some(true), condition: Some(Vec::new()) };
        assert_eq!(names(&check), CHECK_FIELDS);
        let step = || TxnStep::Txn(TxnBlock { op: TxnTag::Txn, checks: vec![], then: vec![], otherwise: vec![] });
        let (checks, then, otherwise) = (vec![check], vec![step()], vec![step()]);
        let block =
            TxnBlock { op: TxnTag::Txn, checks: checks.clone(), then: then.clone(), otherwise: otherwise.clone() };
        assert_eq!(names(&block), BLOCK_FIELDS);
        let request = TxnRequest { checks, then, otherwise, dry_run: true, request_id: Some("r".into()) };
        assert_eq!(names(&request), FIELDS);
    }

    #[test]
    fn every_part_is_read_and_remembered_for_the_answer() {
        let body = r#"{"if":[{"key":"a","cas":"7"},{"key":"b","exists":false,"if":[]}],
            "then":[{"op":"get","key":"a"},{"op":"txn","else":[{"op":"get_and_touch","key":"c","ttl_ms":1}]}],
            "else":[{"op":"remove","key":"c"}],"request_id":"r","dry_run":true}"#;
        let ParsedTxn { txn, shape, count, dry_run, request_id } = read(body).expect("a transaction");
        assert_eq!((dry_run, request_id.as_deref(), count), (true, Some("r"), 6));
        let expected: Vec<_> = txn.checks.iter().map(|check| check.expect.clone()).collect();
        assert_eq!(expected, [Expect::Cas(7), Expect::Absent]);
        let [Step::Get(key), Step::Txn(nested)] = &txn.then[..] else { panic!("{txn:?}") };
        assert_eq!(key.as_bytes(), b"a");
        assert!(matches!(nested.otherwise[..], [Step::Write(_)]), "{nested:?}");
        let [StepShape::Op(OpKind::Get, _), StepShape::Txn(nested)] = &shape.then[..] else { panic!("{shape:?}") };
        assert!(matches!(nested.otherwise[..], [StepShape::Op(OpKind::GetAndTouch, _)]), "{nested:?}");
        assert_eq!(shape.checks.len(), 2);
        assert!(read("{}").is_ok(), "nothing to do is nothing wrong");
    }

    #[test]
    fn every_fault_is_told_where_it_stands() {
        let body = r#"{"if":[{"key":"a"},{"cas":"1"},{"key":"b","cas":"1","exists":false},{"key":"c","if":[{"field":"a","op":"is"}]},5],
            "then":[{"op":"upsert","key":"a"},{"op":"txn","request_id":"r","then":[{"op":"remove","key":"k","dry_run":true}]}],
            "else":7,"colour":1}"#;
        let failure = fault(body);
        for pointer in [
            "/if/0",
            "/if/1/key",
            "/if/2/exists",
            "/if/3/if/0/op",
            "/if/4",
            "/then/0/value",
            "/then/1/request_id",
            "/then/1/then/0/dry_run",
            "/else",
            "/colour",
        ] {
            assert!(failure.contains(&format!("\"{pointer}\"")), "{pointer} is missing in {failure}");
        }
        assert!(fault(r#"{"if":[{"key":"a","exists":true,"exists":true}]}"#).contains("\"/if/0/exists\""));
        assert!(fault(r#"{"then":[],"then":[]}"#).contains("\"/then\""));
    }

    #[test]
    fn a_key_is_written_once_on_each_way() {
        let twice =
            fault(r#"{"then":[{"op":"remove","key":"a"},{"op":"txn","else":[{"op":"touch","key":"a","ttl_ms":0}]}]}"#);
        assert!(twice.contains("\"/then/1/else/0\"") && twice.contains("a is written before"), "{twice}");
        assert!(read(r#"{"then":[{"op":"remove","key":"a"}],"else":[{"op":"remove","key":"a"}]}"#).is_ok());
    }

    #[test]
    fn depth_number_and_size_are_limited() {
        let nested = |depth: usize| {
            format!(r#"{{"then":[{}{}"#, r#"{"op":"txn","then":["#.repeat(depth - 1), "]}".repeat(depth))
        };
        assert!(read(&nested(TXN_DEPTH_MAX)).is_ok());
        let too_deep = fault(&nested(TXN_DEPTH_MAX + 1));
        assert!(
            too_deep.contains("\"/then/0/then/0/then/0/then/0\"") && too_deep.contains("at most 4 deep"),
            "{too_deep}"
        );
        let many = |count: usize| {
            format!(
                r#"{{"if":[{{"key":"a","exists":true}}],"else":[{}]}}"#,
                [r#"{"op":"get","key":"a"}"#].repeat(count).join(",")
            )
        };
        assert!(read(&many(TXN_STEPS_MAX - 1)).is_ok());
        let too_many = fault(&many(TXN_STEPS_MAX));
        assert!(too_many.contains("at most 1024") && too_many.contains("it has 1025"), "{too_many}");
        let value = "x".repeat(1 << 20);
        let large = format!(
            r#"{{"then":[{{"op":"upsert","key":"a","value":"{value}"}},{{"op":"upsert","key":"b","value":"{value}"}}]}}"#
        );
        let too_large = fault(&large);
        assert!(too_large.contains("TooLarge") && too_large.contains("it has 2097"), "{too_large}");
    }
}
