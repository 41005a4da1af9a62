//! The body of `POST /v1/txn`.
//!
//! Owns what checks, steps and transactions in transactions become in the log, with a pointer to every fault. What a step does is
//! `op_body`'s to read. How they are written are `quorate_api::{TxnRequest, TxnBlock, TxnCheck}`.

use std::fmt;

use quorate_api::{JsonText, OpKind, TxnBlock, TxnCheck, TxnRequest, TxnStep};
use quorate_machine::codec;
use quorate_machine::limits::{TXN_DEPTH_MAX, TXN_STEPS_MAX};
use quorate_machine::types::{Check, Expect, Key, Step, Txn, TxnFault};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::text::quoted;
use quorate_node_core::limits::ACTION_BYTES_MAX;
use serde_json::value::RawValue;

use crate::input::extract::Faults;
use crate::input::json::{self, JsonFault};
use crate::input::{criteria, json_body, key};
use crate::keys::op_body::{Container, ParsedOp, cas};

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
    /// Reads a body. Reports the faults of all checks and steps, not only the first.
    pub fn read(body: &[u8]) -> Result<Self, Failure> {
        let request: TxnRequest<&RawValue> = json_body::frame(body)?;
        let mut reader = Reader::default();
        let (txn, shape) = reader.block(&request.checks, &request.then, &request.otherwise, 1);
        if reader.faults.is_empty() {
            reader.check_whole(&txn);
        }
        reader.faults.check()?;
        Ok(Self { txn, shape, count: reader.count, dry_run: request.dry_run, request_id: request.request_id })
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
    /// What can be wrong with a transaction of which each part is right.
    fn check_whole(&mut self, txn: &Txn) {
        match txn.fault() {
            None => {}
            Some(TxnFault::KeyTwice { key, pointer }) => {
                let key = quoted(&key);
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
        checks: &[TxnCheck],
        then: &[&RawValue],
        otherwise: &[&RawValue],
        depth: usize,
    ) -> (Txn, Shape) {
        let checks: Vec<Check> = self.list(checks, "/if", |reader, check| check_of(check, &mut reader.faults));
        let (then, then_shape) = self.list(then, "/then", |reader, raw| reader.step(raw, depth)).into_iter().unzip();
        let (otherwise, else_shape) =
            self.list(otherwise, "/else", |reader, raw| reader.step(raw, depth)).into_iter().unzip();
        let keys = checks.iter().map(|check| check.key.clone()).collect();
        (Txn { checks, then, otherwise }, Shape { checks: keys, then: then_shape, otherwise: else_shape })
    }

    /// Reads the items of a list. Of one that makes the transaction too long none is looked at.
    fn list<I, T>(&mut self, items: &[I], pointer: &str, mut read: impl FnMut(&mut Self, &I) -> Option<T>) -> Vec<T> {
        let was_too_many = self.count > TXN_STEPS_MAX;
        self.count += items.len();
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
        let mut list = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            if self.faults.is_full() {
                break;
            }
            list.extend(self.at(format_args!("{pointer}/{at}"), |reader| read(reader, item)));
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
        if TxnStep::is_txn(raw) {
            return self.nested(raw, depth + 1).map(|(txn, shape)| (Step::Txn(txn), StepShape::Txn(shape)));
        }
        let parsed = ParsedOp::read_part(raw.get().as_bytes(), Container::Txn, &mut self.faults)?;
        Some((parsed.step, StepShape::Op(parsed.kind, parsed.key)))
    }

    fn nested(&mut self, raw: &RawValue, depth: usize) -> Option<(Txn, Shape)> {
        let read = json_body::frame(raw.get().as_bytes());
        let block: TxnBlock<&RawValue> = json_body::noted(read, "", &mut self.faults)?;
        if depth > TXN_DEPTH_MAX {
            let detail =
                format!("transactions stand at most {TXN_DEPTH_MAX} deep in each other, the outermost counted");
            self.faults.add("", detail);
            return None;
        }
        Some(self.block(&block.checks, &block.then, &block.otherwise, depth))
    }
}

fn check_of(check: &TxnCheck, faults: &mut Faults) -> Option<Check> {
    let TxnCheck { key, cas: token, exists, condition } = check;
    if token.is_none() && exists.is_none() && condition.is_none() {
        faults.add("", "a check says at least one of cas, exists and if");
    }
    let key = key::read(key.as_bytes(), "/key", faults);
    let token = token.as_deref().map(|text| cas(text, faults));
    // The body was read as a frame: what stands in it was not checked to be strict JSON yet.
    for (at, JsonText(item)) in condition.iter().flatten().enumerate() {
        if let Err(JsonFault { pointer, detail }) = json::check(item.get().as_bytes()) {
            faults.add(format!("/if/{at}{pointer}"), detail);
            return None;
        }
    }
    let condition = criteria::list(condition.as_deref(), "/if", faults);
    let expect = expected(token.flatten(), *exists, faults);
    Some(Check { key: key?, expect, condition: condition? })
}

/// What a check says of the entry being there, and of its token.
fn expected(token: Option<u64>, exists: Option<bool>, faults: &mut Faults) -> Expect {
    match (token, exists) {
        (Some(_), Some(false)) => {
            faults.add("/exists", "an entry that is not there has no cas; leave out one of the two");
            Expect::ANY
        }
        (Some(token), _) => Expect::cas(token),
        (None, Some(true)) => Expect::PRESENT,
        (None, Some(false)) => Expect::ABSENT,
        (None, None) => Expect::ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<ParsedTxn, String> {
        ParsedTxn::read(body.as_bytes()).map_err(|failure| format!("{failure:?}"))
    }

    fn fault(body: &str) -> String {
        read(body).err().unwrap_or_else(|| panic!("there is nothing wrong with {body}"))
    }

    #[test]
    fn every_part_is_read_and_remembered_for_the_answer() {
        let body = r#"{"if":[{"key":"a","cas":"7"},{"key":"b","exists":false,"if":[]}],
            "then":[{"op":"get","key":"a"},{"op":"txn","else":[{"op":"get_and_touch","key":"c","ttl_ms":1}]}],
            "else":[{"op":"remove","key":"c"}],"request_id":"r","dry_run":true}"#;
        let ParsedTxn { txn, shape, count, dry_run, request_id } = read(body).expect("a transaction");
        assert_eq!((dry_run, request_id.as_deref(), count), (true, Some("r"), 6));
        let expected: Vec<_> = txn.checks.iter().map(|check| check.expect.clone()).collect();
        assert_eq!(expected, [Expect::cas(7), Expect::ABSENT]);
        let [Step::Get(key), Step::Txn(nested)] = &txn.then[..] else { panic!("{txn:?}") };
        assert_eq!(key.as_bytes(), b"a");
        assert!(matches!(nested.otherwise[..], [Step::Write(_)]), "{nested:?}");
        let [StepShape::Op(OpKind::Get, _), StepShape::Txn(nested)] = &shape.then[..] else { panic!("{shape:?}") };
        assert!(matches!(nested.otherwise[..], [StepShape::Op(OpKind::GetAndTouch, _)]), "{nested:?}");
        assert_eq!(shape.checks.len(), 2);
        assert!(read("{}").is_ok(), "nothing to do is nothing wrong");
    }

    #[test]
    fn a_key_is_written_once_on_each_way() {
        let twice =
            fault(r#"{"then":[{"op":"remove","key":"a"},{"op":"txn","else":[{"op":"touch","key":"a","ttl_ms":0}]}]}"#);
        assert!(twice.contains("\"/then/1/else/0\"") && twice.contains("`a` is written before"), "{twice}");
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
