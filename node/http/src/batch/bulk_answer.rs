//! The answer of `POST /v1/bulk`, written as its parts are decided.
//!
//! Owns the JSON of `quorate_api::BulkAnswer`, to which the tests hold it, and what counts as applied, skipped and
//! failed. One buffer: the counts, which stand first, are known last, so there is room for them in front of the items.

use std::fmt::Write;

use bytes::Bytes;
use quorate_machine::types::{BulkItem, ClusterMillis, ItemOutcome, Key, Rejection, Shown, Written};
use quorate_node_core::gateway::{failed, rejection};
use quorate_node_core::limits;

use crate::batch::bulk_body::BulkOp;
use crate::output::render;

/// Room for everything before the items.
const HEAD_BYTES: usize = 128;

/// What an item takes in the answer if it has nothing much to show.
const ITEM_BYTES: usize = 160;

/// The items decided so far.
pub struct BulkTally {
    /// Begins with the room for the head.
    out: Vec<u8>,
    /// Whether only items that failed are shown.
    minimal: bool,
    /// The revision at which they are evaluated, where they are only tried.
    tried_at: Option<u64>,
    applied: u64,
    skipped: u64,
    failed: u64,
}

/// Where the last part was decided, and how.
#[derive(Debug, Clone, Copy)]
pub struct BulkEnd {
    /// Revision of the last part.
    pub revision: u64,
    /// Log index of the last part.
    pub index: u64,
    /// Whether all parts are kept answers.
    pub replayed: bool,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl BulkTally {
    /// Nothing is decided yet of so many items.
    pub fn new(items: usize, minimal: bool) -> Self {
        let mut out = Vec::with_capacity(HEAD_BYTES + if minimal { 0 } else { items * ITEM_BYTES });
        out.resize(HEAD_BYTES, b' ');
        Self { out, minimal, tried_at: None, applied: 0, skipped: 0, failed: 0 }
    }

    /// Says that what is added is only tried, at this revision.
    pub fn only_tries(&mut self, at: u64) {
        self.tried_at = Some(at);
    }

    /// Whether [`Self::only_tries`] was said.
    pub fn is_only_tried(&self) -> bool {
        self.tried_at.is_some()
    }

    /// The revision that is shown of what would be, or was, at this one.
    pub fn revision_shown(&self, revision: u64) -> u64 {
        self.tried_at.map_or(revision, |at| revision.min(at))
    }

    /// How many items took effect.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Bytes of what is shown of entries so far, about: what the answer takes beside that is little more than the operations do.
    pub fn shown_bytes(&self) -> usize {
        let shown = if self.minimal { self.failed } else { self.applied + self.skipped + self.failed };
        self.out.len().saturating_sub(HEAD_BYTES + shown as usize * ITEM_BYTES)
    }

    /// Adds the item at `n`; false where it was not decided.
    pub fn add(&mut self, n: usize, op: &BulkOp, item: &BulkItem, clock: ClusterMillis) -> bool {
        let (key, revision) = (&op.op.key, self.revision_shown(item.revision));
        match &item.outcome {
            ItemOutcome::Written(written) => {
                self.applied += 1;
                if !self.minimal {
                    self.applied_item(n, key, written, revision, clock);
                }
            }
            ItemOutcome::Rejected(why) if is_skip(why) => {
                self.skipped += 1;
                if !self.minimal {
                    self.refused_item(n, key, "skipped", why, revision, clock);
                }
            }
            ItemOutcome::Rejected(why) => {
                self.failed += 1;
                self.refused_item(n, key, "failed", why, revision, clock);
            }
            ItemOutcome::Deferred => return false,
        }
        true
    }

    fn applied_item(&mut self, n: usize, key: &Key, written: &Written, revision: u64, clock: ClusterMillis) {
        let (has_room, tried_at) = (self.has_room(), self.tried_at);
        let out = self.open(n, key, "applied", revision);
        render::what_was_written(out, key, written, clock, has_room, tried_at);
        out.push(b'}');
    }

    fn refused_item(
        &mut self,
        n: usize,
        key: &Key,
        outcome: &str,
        why: &Rejection,
        revision: u64,
        clock: ClusterMillis,
    ) {
        let has_room = self.has_room();
        let out = self.open(n, key, outcome, revision);
        refusal(out, key, why, clock, &format!("/ops/{n}"), has_room);
        out.push(b'}');
    }

    /// Whether what an item shows of entries still goes into the answer.
    fn has_room(&self) -> bool {
        self.out.len() < limits::BULK_ANSWER_BYTES_SOFT_MAX
    }

    /// The fields that each item has, without the closing brace.
    fn open(&mut self, n: usize, key: &Key, outcome: &str, revision: u64) -> &mut Vec<u8> {
        let out = &mut self.out;
        out.extend_from_slice(if out.len() > HEAD_BYTES { b",{\"n\":" } else { b"{\"n\":" });
        render::number(out, n as u64);
        out.push(b',');
        render::key(out, key);
        out.extend_from_slice(b",\"outcome\":\"");
        out.extend_from_slice(outcome.as_bytes());
        out.push(b'"');
        render::token(out, "revision", revision);
        out
    }

    /// The whole answer.
    pub fn finish(mut self, end: BulkEnd) -> Bytes {
        let out = &mut self.out;
        out.push(b']');
        render::token(out, "revision", end.revision);
        render::field(out, "index", end.index);
        render::switches(out, end.replayed, end.dry_run);
        out.push(b'}');
        let mut head = String::with_capacity(HEAD_BYTES);
        let (applied, skipped, failed) = (self.applied, self.skipped, self.failed);
        write!(head, "{{\"applied\":{applied},\"skipped\":{skipped},\"failed\":{failed},\"results\":[")
            .expect("a string takes all text");
        assert!(head.len() <= HEAD_BYTES, "a head of {} bytes in room for {HEAD_BYTES}", head.len());
        let start = HEAD_BYTES - head.len();
        self.out[start..HEAD_BYTES].copy_from_slice(head.as_bytes());
        Bytes::from(self.out).slice(start..)
    }
}

/// Whether a refusal counts as skipped. An insert leaves an entry that exists as it is, so a repeated load does no harm; no other operation
/// is refused for that. An `if` selects entries, as in a change of all that match.
fn is_skip(why: &Rejection) -> bool {
    matches!(why, Rejection::AlreadyExists { .. } | Rejection::ConditionNotMet { .. })
}

/// Why something was refused, as fields of an item: what a problem document would say. `place` points to the operation.
fn refusal(out: &mut Vec<u8>, key: &Key, why: &Rejection, clock: ClusterMillis, place: &str, has_room: bool) {
    let code = rejection::rejection_code(why);
    render::field(out, "status", code.status().into());
    out.extend_from_slice(b",\"code\":");
    render::json(out, &code);
    out.extend_from_slice(b",\"detail\":");
    render::string(out, &rejection::explain(key, clock, why));
    if !has_room {
        return;
    }
    render::failed(out, &failed::below(why, place));
    let errors = rejection::faults_below(why, place);
    if !errors.is_empty() {
        out.extend_from_slice(b",\"errors\":");
        render::json(out, &errors);
    }
    // In the kept answer to a retry the value may be compacted; who needs the entry then reads it.
    if let Some(current @ Shown::Whole(_)) = why.current() {
        out.extend_from_slice(b",\"current\":");
        render::shown(out, key, current, clock, true);
    }
}

#[cfg(test)]
mod tests {
    use quorate_api::{BulkAnswer, BulkOutcome};
    use quorate_machine::document::{Criteria, Excerpt, Unmet};
    use quorate_machine::rules::RuleFault;
    use quorate_machine::types::{Change, ContentKind, Expect, Expiry, Value, WriteOp};

    use super::*;
    use crate::output::render::tests::{entry, same_as};

    const END: BulkEnd = BulkEnd { revision: 90, index: 100, replayed: false, dry_run: false };

    fn op(change: Change) -> BulkOp {
        let (key, condition) = (Key::new("a\"ü/1").expect("a key"), Criteria::default());
        let op = WriteOp {
            key,
            expect: Expect::ANY,
            condition,
            change,
            expiry: Expiry::Keep,
            return_previous: true,
            session: None,
            guard: None,
        };
        BulkOp { op, bytes: 0 }
    }

    fn shown(value_bytes: usize) -> Shown {
        Shown::Whole(entry(ContentKind::Bytes, &vec![7; value_bytes], Some(1_500)))
    }

    fn outcomes() -> Vec<(BulkOp, ItemOutcome)> {
        let insert = || op(Change::Put(Value { kind: ContentKind::Json, data: b"1".to_vec() }));
        let written = |previous| ItemOutcome::Written(Written { meta: Some(*shown(0).meta()), previous });
        let unmet =
            Unmet { pointer: "/if/0".into(), actual: Some(Excerpt { text: "{\"b\": 1.0}".into(), is_whole: true }) };
        let unmet = Rejection::ConditionNotMet { unmet: Box::new([unmet]), current: Some(shown(3)) };
        vec![
            (insert(), written(None)),
            (op(Change::Touch), written(Some(shown(2)))),
            (op(Change::Remove), ItemOutcome::Written(Written { meta: None, previous: Some(shown(1).to_bare()) })),
            (insert(), ItemOutcome::Rejected(Rejection::AlreadyExists { current: shown(4) })),
            (insert(), ItemOutcome::Rejected(Rejection::AlreadyExists { current: shown(4).to_bare() })),
            (op(Change::Remove), ItemOutcome::Rejected(Rejection::NotFound)),
            (op(Change::Touch), ItemOutcome::Rejected(unmet)),
            (insert(), ItemOutcome::Rejected(Rejection::RulesBroken([RuleFault::not_an_object()].into()))),
        ]
    }

    fn tally(outcomes: &[(BulkOp, ItemOutcome)], minimal: bool) -> BulkTally {
        let mut tally = BulkTally::new(outcomes.len(), minimal);
        for (n, (op, outcome)) in outcomes.iter().enumerate() {
            let item = BulkItem { revision: 80 + n as u64, outcome: outcome.clone() };
            assert!(tally.add(n, op, &item, 1_000));
        }
        tally
    }

    #[test]
    fn rendered_answers_are_the_wire_type() {
        let answer: BulkAnswer =
            same_as(&tally(&outcomes(), false).finish(BulkEnd { replayed: true, dry_run: true, ..END }));
        assert_eq!((answer.applied, answer.skipped, answer.failed), (3, 3, 2));
        let kinds: Vec<_> = answer.results.iter().map(|item| item.outcome).collect();
        use BulkOutcome::{Applied, Failed, Skipped};
        assert_eq!(kinds, [Applied, Applied, Applied, Skipped, Skipped, Failed, Skipped, Failed]);
        assert_eq!(answer.results[7].errors[0].pointer, "/ops/7/value");
        assert_eq!(answer.results[6].failed[0].pointer, "/ops/6/if/0");
        assert_eq!(answer.results[6].failed[0].actual.as_ref().expect("shown").0.get(), "{\"b\": 1.0}");
        same_as::<BulkAnswer>(&tally(&[], false).finish(END));
    }

    #[test]
    fn a_minimal_answer_has_only_what_failed_and_counts_everything() {
        let answer: BulkAnswer = same_as(&tally(&outcomes(), true).finish(END));
        assert_eq!((answer.applied, answer.skipped, answer.failed), (3, 3, 2));
        assert_eq!(answer.results.iter().map(|item| item.n).collect::<Vec<_>>(), [5, 7]);
    }

    #[test]
    fn entries_are_shown_until_the_answer_is_long() {
        let large = || ItemOutcome::Rejected(Rejection::AlreadyExists { current: shown(3 << 20) });
        let insert = || op(Change::Put(Value { kind: ContentKind::Json, data: b"1".to_vec() }));
        let mut outcomes: Vec<_> = (0..6).map(|_| (insert(), large())).collect();
        outcomes.push((op(Change::Touch), ItemOutcome::Written(Written { meta: None, previous: Some(shown(9)) })));
        let bytes = tally(&outcomes, false).finish(END);
        // 4 MiB each in base64.
        let shown = same_as::<BulkAnswer>(&bytes).results.iter().filter(|item| item.current.is_some()).count();
        assert_eq!(shown, 4);
        assert!(bytes.len() < limits::BULK_ANSWER_BYTES_SOFT_MAX + (5 << 20), "{} bytes", bytes.len());
        let last = same_as::<BulkAnswer>(&bytes).results.pop().expect("seven items");
        assert_eq!(last.prev.expect("without its value").value_base64, None);
    }
}
