//! The answer of `POST /v1/txn`.
//!
//! Owns the JSON of `quorate_api::TxnAnswer`, to which the tests hold it. Knows of the request what its shape says.

use quorate_api::OpKind;
use quorate_machine::types::{CheckFailed, ClusterMillis, Key, Reply, Shown, StepReply, TxnReply};
use quorate_node_core::gateway::{failed, rejection};

use crate::batch::txn_body::{Shape, StepShape};
use crate::output::render;

/// The whole answer. `None` where it is not the answer to this request.
pub fn render_txn(shape: &Shape, done: &TxnReply, reply: &Reply, dry_run: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(256 + 128 * done.results.len());
    out.push(b'{');
    let at = At { revision: reply.revision, clock: reply.clock, tried_at: dry_run.then_some(reply.revision) };
    branch(&mut out, shape, done, "", at)?;
    render::token(&mut out, "revision", reply.revision);
    render::field(&mut out, "index", reply.index);
    render::switches(&mut out, reply.replayed, dry_run);
    out.push(b'}');
    Some(out)
}

/// Where all of it was evaluated.
#[derive(Clone, Copy)]
struct At {
    revision: u64,
    clock: ClusterMillis,
    /// The revision, if it was only tried.
    tried_at: Option<u64>,
}

/// What came of a transaction, as fields. `place` points to it.
fn branch(out: &mut Vec<u8>, shape: &Shape, done: &TxnReply, place: &str, at: At) -> Option<()> {
    let (name, steps) = match done.succeeded() {
        true => ("then", &shape.then),
        false => ("else", &shape.otherwise),
    };
    out.extend_from_slice(if done.succeeded() { b"\"succeeded\":true" } else { b"\"succeeded\":false" });
    out.extend_from_slice(b",\"results\":[");
    if steps.len() != done.results.len() {
        return None;
    }
    for (position, (step, result)) in steps.iter().zip(&done.results).enumerate() {
        if position > 0 {
            out.push(b',');
        }
        step_result(out, step, result, &format!("{place}/{name}/{position}"), at)?;
    }
    out.push(b']');
    if let Some(check) = &done.failed {
        out.extend_from_slice(b",\"failed\":[");
        check_failed(out, shape, check, place, at.clock)?;
        out.push(b']');
    }
    Some(())
}

fn step_result(out: &mut Vec<u8>, step: &StepShape, result: &StepReply, place: &str, at: At) -> Option<()> {
    match (step, result) {
        (StepShape::Op(OpKind::Get, key), StepReply::Got(entry)) => {
            open(out, OpKind::Get, key);
            out.extend_from_slice(b",\"entry\":");
            match entry {
                Some(entry) => render::shown(out, key, entry, at.clock, true),
                None => out.extend_from_slice(b"null"),
            }
        }
        (StepShape::Op(kind, key), StepReply::Written(written)) => {
            open(out, *kind, key);
            render::token(out, "revision", at.revision);
            render::what_was_written(out, key, written, at.clock, true, at.tried_at);
        }
        (StepShape::Txn(shape), StepReply::Txn(done)) => {
            out.extend_from_slice(b"{\"op\":\"txn\",");
            branch(out, shape, done, place, at)?;
        }
        _ => return None,
    }
    out.push(b'}');
    Some(())
}

fn open(out: &mut Vec<u8>, kind: OpKind, key: &Key) {
    out.extend_from_slice(b"{\"op\":");
    render::json(out, &kind);
    out.push(b',');
    render::key(out, key);
}

fn check_failed(
    out: &mut Vec<u8>,
    shape: &Shape,
    check: &CheckFailed,
    place: &str,
    clock: ClusterMillis,
) -> Option<()> {
    let CheckFailed { at, why } = check;
    let key = shape.checks.get(*at as usize)?;
    let pointer = format!("{place}/if/{at}");
    out.extend_from_slice(b"{\"pointer\":");
    render::string(out, &pointer);
    out.push(b',');
    render::key(out, key);
    out.extend_from_slice(b",\"detail\":");
    render::string(out, &rejection::explain(key, clock, why));
    render::failed(out, &failed::below(why, &pointer));
    // In the kept answer to a retry the value may be compacted; who needs the entry then reads it.
    if let Some(current @ Shown::Whole(_)) = why.current() {
        out.extend_from_slice(b",\"current\":");
        render::shown(out, key, current, clock, true);
    }
    out.push(b'}');
    Some(())
}

#[cfg(test)]
mod tests {
    use quorate_api::{TxnAnswer, TxnResult};
    use quorate_machine::document::Unmet;
    use quorate_machine::types::{ContentKind, Outcome, Rejection, Written};

    use super::*;
    use crate::output::render::tests::{entry, same_as};

    fn key(name: &str) -> Key {
        Key::new(name).expect("a key")
    }

    fn shown() -> Shown {
        Shown::Whole(entry(ContentKind::Json, b"{\"n\": 1.50}", None))
    }

    fn shape() -> Shape {
        let op = |kind, name: &str| StepShape::Op(kind, key(name));
        let nested = Shape { checks: vec![key("x"), key("y\"")], then: vec![], otherwise: vec![op(OpKind::Get, "x")] };
        let then = vec![
            op(OpKind::Get, "a"),
            op(OpKind::Get, "none"),
            op(OpKind::GetAndTouch, "b\n"),
            op(OpKind::Remove, "c"),
            StepShape::Txn(nested),
        ];
        Shape { checks: vec![], then, otherwise: vec![] }
    }

    fn done() -> TxnReply {
        let unmet = Unmet { pointer: "/if/0".into(), actual: None };
        let why = Rejection::ConditionNotMet { unmet: Box::new([unmet]), current: Some(shown()) };
        let nested = TxnReply {
            failed: Some(CheckFailed { at: 1, why }),
            results: vec![StepReply::Got(Some(shown().to_bare()))],
        };
        let written = |meta, previous| StepReply::Written(Written { meta, previous });
        let results = vec![
            StepReply::Got(Some(shown())),
            StepReply::Got(None),
            written(Some(*shown().meta()), Some(shown())),
            written(None, None),
            StepReply::Txn(nested),
        ];
        TxnReply { failed: None, results }
    }

    fn rendered(shape: &Shape, done: &TxnReply, replayed: bool, dry_run: bool) -> Option<Vec<u8>> {
        let reply = Reply { index: 12, revision: 9, clock: 1_000, replayed, outcome: Outcome::Deferred };
        render_txn(shape, done, &reply, dry_run)
    }

    #[test]
    fn rendered_answers_are_the_wire_type() {
        for (replayed, dry_run) in [(false, false), (true, true)] {
            let rendered = rendered(&shape(), &done(), replayed, dry_run).expect("the answer to this request");
            let parsed: TxnAnswer = same_as(&rendered);
            assert!(parsed.succeeded && parsed.failed.is_empty());
            let TxnResult::Txn(nested) = &parsed.results[4] else { panic!("{parsed:?}") };
            let failed = &nested.failed[0];
            assert_eq!((failed.pointer.as_str(), failed.key.text()), ("/then/4/if/1", Some("y\"")));
            assert_eq!(failed.failed[0].pointer, "/then/4/if/1/if/0");
            assert!(failed.current.is_some());
        }
    }

    #[test]
    fn the_answer_to_something_else_is_not_taken() {
        let mut other = done();
        other.results.swap(0, 3);
        assert_eq!(rendered(&shape(), &other, false, false), None);
        assert_eq!(rendered(&Shape::default(), &done(), false, false), None);
    }
}
