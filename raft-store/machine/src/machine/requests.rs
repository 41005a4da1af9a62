//! The request table: a write is applied at most once, however often it is retried.
//!
//! Owns looking up and keeping outcomes, and dropping them bucket by bucket.
//!
//! Golden scripts, in `testscripts/machine`: `requests`, `requests_of_principals`, `kept_values`.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use super::Applier;
use super::stop::{Stop, Tried};
use super::view::{Fault, View};
use crate::command_codec;
use crate::keyspace::history::{self, Version};
use crate::keyspace::request::{self, KeptReply};
use crate::keyspace::{bucket, collection, entry};
use crate::limits;
use crate::mutants::Mutant;
use crate::rules::CollectionName;
use crate::types::{
    Action, Bounded, ClusterMillis, Command, Entry, Key, ListShown, Listed, Outcome, Rejection, Removed, Reply,
    RequestId, Revision, SessionOp, Shown, Step, StepReply, Txn, TxnReply, Value, WhereItem, Written,
};

impl Command {
    /// Tells a retry from another command under the same request id. Of the whole command with its principal, so
    /// nobody is answered what somebody else asked.
    pub fn fingerprint(&self) -> u64 {
        fingerprint_of(&command_codec::encode_command(self))
    }
}

/// [`Command::fingerprint`] of a command in its encoded form: decoding and encoding give the same bytes again. Not of its
/// access revision: a retry that was authorised anew is the same command.
pub(super) fn fingerprint_of(encoded: &[u8]) -> u64 {
    xxh3_64(command_codec::judged_part(encoded))
}

impl<V: View> Applier<'_, V> {
    /// What was kept for an id of this principal, if anything.
    pub(super) fn kept_reply(&self, id: &RequestId, principal: &str) -> Result<Option<KeptReply>, Fault> {
        let clock = self.vars.clock;
        for bucket in (bucket::oldest_live(clock)..=bucket::at(clock)).rev() {
            let row_key = request::row_key(bucket, principal, &id.0);
            if Mutant::RequestsAreLookedUpBeforeTheCall.acts() && !self.overlay.is_stored(&row_key)? {
                continue;
            }
            if let found @ Some(_) = self.decoded(&row_key)? {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The kept answer of a command that came again, with the values of the entries that it shows as long as those
    /// versions are there.
    pub(super) fn replay(&self, action: &Action, kept: Reply) -> Result<Reply, Fault> {
        let mut reply = Reply { replayed: true, ..kept };
        if let Action::Rules(op) = action {
            return self.replay_rules(&op.name, reply);
        }
        if let Action::Task(op) = action {
            return self.replay_claim(&op.queue, reply);
        }
        let parts = shown_parts(action, &reply.outcome);
        let mut bare = Vec::with_capacity(parts.len());
        reply.outcome.each_shown(&mut |shown| bare.push((*shown.meta(), shown.kind())));
        // They are of one command, unless somebody made two with one fingerprint: then it is answered without values.
        if parts.len() != bare.len() {
            return Ok(reply);
        }
        let mut whole = Vec::with_capacity(parts.len());
        for (part, (meta, kind)) in parts.iter().zip(bare) {
            let value = match part {
                ShownPart::Entry(key) => self.value_of_version(key, meta.mod_revision)?,
                ShownPart::KeyAlone => Some(Value { kind, data: Vec::new() }),
            };
            whole.push(value.map(|value| Shown::Whole(Entry { meta, value })));
        }
        let mut whole = whole.into_iter();
        reply.outcome.each_shown(&mut |shown| {
            if let Some(whole) = whole.next().flatten() {
                *shown = whole;
            }
        });
        Ok(reply)
    }

    /// The kept answer about the rules of a collection. A refusal shows those that there were then, as long as they hold: they have no history.
    fn replay_rules(&self, name: &CollectionName, mut reply: Reply) -> Result<Reply, Fault> {
        if let Outcome::Rejected(why) = &mut reply.outcome
            && let Some(shown) = why.current_mut()
            && let Some(row) = self.collection(&collection::row_key(name.as_str().as_bytes()))?
            && row.mod_revision == shown.meta().mod_revision
        {
            *shown = row.to_shown();
        }
        Ok(reply)
    }

    /// The value that a key took at `revision`: the current one, or one in the history.
    fn value_of_version(&self, key: &Key, revision: Revision) -> Result<Option<Value>, Fault> {
        let row_key = entry::row_key(key.as_bytes());
        if let Some(row) = self.overlay.peek(&row_key)? {
            let row = entry::decode(&row).map_err(|error| Fault::row(&row_key, error))?;
            if row.meta.mod_revision == revision {
                return Ok(Some(row.to_entry().value));
            }
        }
        let row_key = history::row_key(key.as_bytes(), revision);
        let Some(row) = self.overlay.peek(&row_key)? else { return Ok(None) };
        match history::decode(&row).map_err(|error| Fault::row(&row_key, error))? {
            Version::Entry(row) => Ok(Some(row.to_entry().value)),
            Version::Tombstone => Err(Fault::Invariant(format!("row {} is no version", row_key.escape_ascii()))),
        }
    }

    /// Keeps the first outcome of an id, of a command with this fingerprint and length.
    pub(super) fn keep_reply(
        &mut self,
        id: &str,
        (fingerprint, command_bytes): (u64, usize),
        reply: &Reply,
        principal: &str,
    ) -> Result<(), Fault> {
        assert!(!reply.replayed, "only a first outcome is kept, not {reply:?}");
        let row_key = request::row_key(bucket::at(self.vars.clock), principal, id);
        let row = request::encode(fingerprint, &kept_of(reply, command_bytes));
        self.count_kept(principal, (row_key.len() + row.len()) as u64)?;
        self.overlay.insert_absent(row_key, row)
    }

    /// Whether one more outcome may be kept: where the table is full, or the principal's share of one that fills up, no new id is decided,
    /// since none may be forgotten early.
    pub(super) fn check_request_table(&mut self, command: &Command) -> Tried<()> {
        if self.goes_beyond_the_table(&command.action)? {
            return Ok(());
        }
        let (mut held, mut own) = (0, 0);
        for bucket in bucket::oldest_live(self.vars.clock)..=bucket::at(self.vars.clock) {
            held += self.held_in(bucket)?.requests;
            if !command.principal.is_empty() {
                own += self.held_by(bucket, &command.principal)?.requests;
            }
        }
        let full = |what, limit| Err(Stop::Rejected(Rejection::TooMany { what, limit }));
        // The share first: it tells the one who can do something about it.
        if own >= limits::REQUEST_TABLE_SHARE_MAX && held >= limits::REQUEST_TABLE_SHARED_FROM {
            return full(Bounded::OwnRequestIds, limits::REQUEST_TABLE_SHARE_MAX);
        }
        if held >= limits::REQUEST_TABLE_BYTES_MAX {
            return full(Bounded::RequestIds, limits::REQUEST_TABLE_BYTES_MAX);
        }
        Ok(())
    }

    /// Whether a command is decided, and its outcome kept and counted, however full the table is. Commands that need permission for
    /// everything are such: they stop a client that fills the table. The end of a living session is such, too: each began with a command for
    /// whose outcome there was room, so there are no more ends than those.
    fn goes_beyond_the_table(&mut self, action: &Action) -> Result<bool, Fault> {
        Ok(match action {
            Action::Access(_) | Action::Quota(_) | Action::Members(_) | Action::Faults(_) => true,
            Action::Session(SessionOp::End(id)) => self.session_row(*id)?.is_some(),
            Action::Session(SessionOp::Create { .. } | SessionOp::CreateAs { .. } | SessionOp::Renew(_)) => false,
            Action::Write(_) | Action::Bulk(_) | Action::Txn(_) | Action::Where(_) | Action::Claim(_) => false,
            Action::Rules(_) | Action::Numbers(_) | Action::Task(_) | Action::Maintain(_) => false,
            Action::Lock(_) | Action::Barrier(_) | Action::Latch(_) => false,
        })
    }

    /// Drops the buckets that are no longer live at the clock of `vars`, which was `before`.
    pub(super) fn drop_old_buckets(&mut self, before: ClusterMillis) {
        let oldest = bucket::oldest_live(self.vars.clock);
        if oldest != bucket::oldest_live(before) {
            self.overlay.drop_buckets(oldest);
        }
    }
}

/// The part of an answer that is kept, for a command of this length: no list that is long in proportion to it.
fn kept_of(reply: &Reply, command_bytes: usize) -> Cow<'_, Reply> {
    let mut kept = Cow::Borrowed(reply);
    if kept.outcome.listed_bytes() > limits::KEPT_LISTED_MAX + command_bytes {
        kept = Cow::Owned(kept.without_listed());
    }
    if kept.outcome.detail_bytes() > limits::KEPT_DETAILS_MAX {
        kept = Cow::Owned(kept.without_details());
    }
    kept
}

/// An entry that an outcome shows, by how much of it was asked for.
enum ShownPart {
    /// All of it.
    Entry(Key),
    /// Nothing of its value: see [`ListShown::Keys`]. Its value may be large, so a retry must not fetch it either.
    KeyAlone,
}

/// The entries that an outcome shows, in the order of [`Outcome::each_shown`].
fn shown_parts(action: &Action, outcome: &Outcome) -> Vec<ShownPart> {
    let mut parts = Vec::new();
    match (action, outcome) {
        (Action::Write(op), Outcome::Written(Written { previous: Some(_), .. })) => {
            parts.push(ShownPart::Entry(op.key.clone()))
        }
        (Action::Write(op), Outcome::Rejected(why)) if why.current().is_some() => {
            parts.push(ShownPart::Entry(op.key.clone()))
        }
        (Action::Bulk(ops), Outcome::Bulk(items)) => {
            let shown = ops.iter().zip(items).filter(|(_, item)| item.outcome.shown().is_some());
            parts.extend(shown.map(|(op, _)| ShownPart::Entry(op.key.clone())));
        }
        (Action::Txn(txn), Outcome::Txn(done)) => push_txn_parts(txn, done, &mut parts),
        (_, Outcome::TxnRejected(rejected)) if rejected.why.current().is_some() => {
            parts.extend(rejected.key.clone().map(ShownPart::Entry))
        }
        (_, Outcome::Claimed(done)) => {
            parts.extend(done.entries.iter().map(|(key, _)| ShownPart::Entry(key.clone())));
            push_item_parts(&done.refused, &mut parts);
        }
        (_, Outcome::Where(done)) => push_item_parts(&done.items, &mut parts),
        _ => {}
    }
    parts
}

fn push_item_parts(items: &[WhereItem], parts: &mut Vec<ShownPart>) {
    let shown = items.iter().filter(|item| item.why.current().is_some());
    parts.extend(shown.map(|item| ShownPart::Entry(item.key.clone())));
}

fn push_txn_parts(txn: &Txn, done: &TxnReply, parts: &mut Vec<ShownPart>) {
    if let Some(failed) = done.failed.as_ref().filter(|failed| failed.why.current().is_some()) {
        parts.extend(txn.checks.get(failed.at as usize).map(|check| ShownPart::Entry(check.key.clone())));
    }
    push_step_parts(txn.branch(done.succeeded()), &done.results, parts);
}

fn push_step_parts(steps: &[Step], results: &[StepReply], parts: &mut Vec<ShownPart>) {
    for (step, result) in steps.iter().zip(results) {
        match (step, result) {
            (Step::Get(key), StepReply::Got(Some(_))) => parts.push(ShownPart::Entry(key.clone())),
            (Step::Write(op), StepReply::Written(Written { previous: Some(_), .. })) => {
                parts.push(ShownPart::Entry(op.key.clone()))
            }
            (Step::Txn(txn), StepReply::Txn(done)) => push_txn_parts(txn, done, parts),
            (Step::List(list), StepReply::Listed(Listed { entries, .. })) if list.shown == ListShown::Keys => {
                parts.extend(entries.iter().map(|_| ShownPart::KeyAlone));
            }
            (Step::List(_), StepReply::Listed(Listed { entries, .. }))
            | (Step::Remove(_), StepReply::Removed(Removed { entries, .. })) => {
                parts.extend(entries.iter().map(|(key, _)| ShownPart::Entry(key.clone())));
            }
            (Step::Branch(branch), StepReply::Branched(done)) => {
                push_step_parts(branch.branch(done.succeeded), &done.results, parts);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{MemoryView, Vars, Write, evaluate};
    use super::*;
    use crate::keyspace::bucket_use::{self, BucketUse, OwnerUse};
    use crate::types::{
        AccessOp, Batch, Change, MembersOp, QuotaBounds, QuotaOp, QuotaSubject, RoleName, SessionId, TokenId,
        WhereReply, WriteOp,
    };
    use crate::{codec, level};

    #[test]
    fn a_full_table_decides_no_new_id() {
        let bucket = 40;
        let vars = Vars { clock: bucket * limits::REQUEST_BUCKET_MS, ..Vars::default() };
        let full = |requests| {
            let held = BucketUse { requests, ..BucketUse::default() };
            MemoryView(
                [
                    (bucket_use::row_key(bucket - 1), codec::encode(&held)),
                    (bucket_use::row_key(bucket), codec::encode(&held)),
                ]
                .into(),
            )
        };
        let named = |id: &str| {
            let action = Action::Session(crate::types::SessionOp::End(crate::types::SessionId(7)));
            Command { request_id: Some(RequestId(id.into())), ..Command::unnamed(action) }
        };
        let limit = limits::REQUEST_TABLE_BYTES_MAX;
        let refused = Outcome::Rejected(Rejection::TooMany { what: Bounded::RequestIds, limit });
        for (held, is_refused) in [(limit / 2 - 1, false), (limit / 2, true)] {
            let reply = evaluate(&full(held), &vars, 3, &named("new")).unwrap();
            assert_eq!(reply.outcome == refused, is_refused, "{held}: {reply:?}");
            let unnamed = Command { request_id: None, ..named("new") };
            assert_ne!(evaluate(&full(held), &vars, 3, &unnamed).unwrap().outcome, refused);
        }
    }

    /// Rows that say of the two buckets that are live at the clock of these scalars how much is kept in each: in all, and for ann.
    fn held(all: u64, by_ann: u64) -> (MemoryView, Vars) {
        let bucket = 40;
        let vars = Vars { clock: bucket * limits::REQUEST_BUCKET_MS, level: level::KNOWN, ..Vars::default() };
        let all = codec::encode(&BucketUse { requests: all, ..BucketUse::default() });
        let by_ann = codec::encode(&OwnerUse { requests: by_ann });
        let rows = [bucket - 1, bucket].into_iter().flat_map(|bucket| {
            [(bucket_use::row_key(bucket), all.clone()), (bucket_use::owner_key(bucket, "ann"), by_ann.clone())]
        });
        (MemoryView(rows.collect()), vars)
    }

    fn by(principal: &str, action: Action) -> Command {
        Command { request_id: Some(RequestId("r".into())), principal: principal.into(), ..Command::unnamed(action) }
    }

    fn touch() -> Action {
        Action::Write(WriteOp { change: Change::Touch, ..WriteOp::removal(Key::new("k").unwrap(), false) })
    }

    #[test]
    fn a_principal_whose_share_is_full_is_refused_and_nobody_else() {
        let limit = limits::REQUEST_TABLE_SHARE_MAX;
        let refused = Outcome::Rejected(Rejection::TooMany { what: Bounded::OwnRequestIds, limit });
        for (by_ann, is_refused) in [(limit / 2 - 1, false), (limit / 2, true)] {
            let (view, vars) = held(limit, by_ann);
            let outcome = |principal| evaluate(&view, &vars, 3, &by(principal, touch())).unwrap().outcome;
            assert_eq!(outcome("ann") == refused, is_refused, "{by_ann}");
            for other in ["bob", "an", "anna", ""] {
                assert_eq!(outcome(other), Outcome::Rejected(Rejection::NotFound), "{other}");
            }
        }
        // A single principal has no less for it: shares hold from a part of the table on.
        for (all, is_refused) in
            [(limits::REQUEST_TABLE_SHARED_FROM - 2, false), (limits::REQUEST_TABLE_SHARED_FROM, true)]
        {
            let (view, vars) = held(all / 2, all / 2);
            let outcome = evaluate(&view, &vars, 3, &by("ann", touch())).unwrap().outcome;
            assert_eq!(outcome == refused, is_refused, "{all}");
        }
        // The refusal names the share, also where the table is full as well.
        let (view, vars) = held(limits::REQUEST_TABLE_BYTES_MAX, limit);
        assert_eq!(evaluate(&view, &vars, 3, &by("ann", touch())).unwrap().outcome, refused);
    }

    #[test]
    fn what_is_kept_counts_for_its_principal() {
        let (view, vars) = held(0, 0);
        let mut applier = super::super::Applier::new(&view, vars.clone());
        let commands = ["ann", "bob", "ann", ""].map(|principal| {
            let id = Some(RequestId(format!("{principal}'s")));
            command_codec::encode_command(&Command { request_id: id, ..by(principal, touch()) })
        });
        let batch = Batch { clock: vars.clock, wall: 0, seed: [0; 16], commands: commands.to_vec() };
        let replies = applier.apply_batch(3, &batch).unwrap();
        assert!(replies[2].replayed && !replies[3].replayed, "{replies:?}");
        let bucket = bucket::at(vars.clock);
        let written: BTreeMap<_, _> = applier.finish().writes.into_iter().filter_map(as_put).collect();
        let bytes = |owner: &str| {
            let row_key = request::row_key(bucket, owner, &format!("{owner}'s"));
            (row_key.len() + written[&row_key].len()) as u64
        };
        for owner in ["ann", "bob"] {
            let said: OwnerUse = codec::decode(&written[&bucket_use::owner_key(bucket, owner)]).unwrap();
            assert_eq!(said.requests, bytes(owner), "{owner}");
        }
        let all: BucketUse = codec::decode(&written[&bucket_use::row_key(bucket)]).unwrap();
        assert_eq!(all.requests, bytes("ann") + bytes("bob") + bytes(""));
    }

    fn as_put(write: Write) -> Option<(Vec<u8>, Vec<u8>)> {
        match write {
            Write::Put { key, value } => Some((key, value)),
            Write::Delete { .. } | Write::DeleteRange { .. } => None,
        }
    }

    #[test]
    fn an_operator_does_not_wait_for_the_table_and_is_decided_once_all_the_same() {
        let (view, vars) = held(limits::REQUEST_TABLE_BYTES_MAX, limits::REQUEST_TABLE_SHARE_MAX);
        let created = SessionOp::Create { ttl_ms: 60_000, owner: String::new(), labels: Vec::new() };
        let subject = QuotaSubject::Principal("eve".into());
        let does = [
            Action::Access(AccessOp::SetRole { name: RoleName::new("r").unwrap(), grants: Vec::new() }),
            Action::Access(AccessOp::RemoveToken(TokenId(7))),
            Action::Quota(QuotaOp::Set { subject, bounds: QuotaBounds::USUAL }),
            Action::Members(MembersOp::Revoke(TokenId(7))),
            Action::Session(SessionOp::End(SessionId(vars.revision + 1))),
        ];
        for action in does {
            let mut applier = super::super::Applier::new(&view, vars.clone());
            let commands =
                [Command::unnamed(Action::Session(created.clone())), by("ann", action.clone()), by("ann", action)];
            let commands = commands.iter().map(command_codec::encode_command).collect();
            let batch = Batch { clock: vars.clock, wall: 0, seed: [0; 16], commands };
            let replies = applier.apply_batch(3, &batch).unwrap();
            assert!(!replies[1].outcome.lacks_room() && !replies[1].replayed, "{replies:?}");
            assert_eq!(replies[2], Reply { replayed: true, ..replies[1].clone() });
        }
        // The end of what does not live stays: it frees nothing, and there is no end of those.
        for action in [Action::Session(SessionOp::End(SessionId(99))), Action::Session(created), touch()] {
            assert!(evaluate(&view, &vars, 3, &by("bob", action)).unwrap().outcome.lacks_room());
        }
    }

    #[test]
    fn a_list_is_kept_where_it_is_not_long_beside_its_command() {
        let item = |n: u32| WhereItem { n, key: Key::new(vec![b'k'; 1_000]).unwrap(), why: Rejection::NotFound };
        let reply = |items: u32| {
            let items = (0..items).map(item).collect();
            let outcome = Outcome::Where(WhereReply { matched: 40, failed: 30, items, ..WhereReply::default() });
            Reply { index: 1, revision: 2, clock: 0, replayed: false, outcome }
        };
        let each = 1_000 + limits::LISTED_ENTRY_BYTES;
        let most = u32::try_from(limits::KEPT_LISTED_MAX / each).unwrap();
        assert_eq!(*kept_of(&reply(most), 0), reply(most));
        let long = reply(most + 1);
        let counts = WhereReply { matched: 40, failed: 30, left_out: true, ..WhereReply::default() };
        assert_eq!(kept_of(&long, 0).outcome, Outcome::Where(counts), "how many failed is still told");
        assert_eq!(*kept_of(&long, each), long, "its command is as long");
    }

    #[test]
    fn nobody_is_answered_what_another_asked_whatever_the_hash_says() {
        let command = Command { request_id: Some(RequestId("cancel-42".into())), ..by("app", touch()) };
        let outcome = Outcome::Written(Written { meta: None, previous: None });
        let kept = Reply { index: 1, revision: 2, clock: 0, replayed: false, outcome };
        let answered_after = |owner: &str| {
            let row = request::encode(command.fingerprint(), &kept);
            let view = MemoryView([(request::row_key(bucket::at(0), owner, "cancel-42"), row)].into());
            evaluate(&view, &Vars { revision: 2, ..Vars::default() }, 3, &command).unwrap()
        };
        assert!(answered_after("app").replayed);
        for owner in ["mallory", "", "ap", "app2"] {
            let foreign = answered_after(owner);
            assert!(!foreign.replayed && foreign.outcome != kept.outcome, "{owner}: {foreign:?}");
        }
    }
}
