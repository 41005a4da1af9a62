//! Replies and rows as text, one line each, nothing left out.

use std::fmt::Write as _;

use quorate_machine::codec;

use super::{access, coordination};
use quorate_machine::document::Excerpt;
use quorate_machine::keyspace::audit::{self, AuditEffect, AuditGroup};
use quorate_machine::keyspace::bucket_use::{self, BucketUse, OwnerUse, RefusedUse, Whose};
use quorate_machine::keyspace::history::Version;
use quorate_machine::keyspace::request::KeptReply;
use quorate_machine::keyspace::{
    collection, deadline, entry, family, history, index, lock, quota, refusals, request, sequence,
};
use quorate_machine::rules::field_text;
use quorate_machine::types::CollectionRow;
use quorate_machine::types::{
    ContentKind, Entry, EntryMeta, ItemOutcome, Outcome, PrefixUse, PrincipalUse, QuotaRow, QuotaState, QuotaSubject,
    Rejection, Reply, Shown, StepRejected, StepReply, TxnReply, WhereReply, Written,
};

use super::tasks;

pub fn reply(reply: &Reply) -> String {
    let replayed = if reply.replayed { " replayed" } else { "" };
    format!("#{} r{} c{}{replayed} {}", reply.index, reply.revision, reply.clock, outcome(&reply.outcome))
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Written(done) => written(done),
        Outcome::Rejected(why) => format!("rejected: {}", rejection(why)),
        Outcome::Bulk(items) => {
            let items = items.iter().map(|item| {
                let outcome = match &item.outcome {
                    ItemOutcome::Written(done) => written(done),
                    ItemOutcome::Rejected(why) => format!("rejected: {}", rejection(why)),
                    ItemOutcome::Deferred => "deferred".into(),
                };
                format!("\n  r{} {outcome}", item.revision)
            });
            format!("bulk{}", items.collect::<String>())
        }
        Outcome::Txn(done) => txn(done, "\n  "),
        Outcome::TxnRejected(rejected) => {
            let StepRejected { pointer, key, why } = &**rejected;
            let key = key.as_ref().map_or("?".into(), |key| key.to_string());
            format!("transaction rejected at {pointer:?} {key}: {}", rejection(why))
        }
        Outcome::Where(done) => {
            let WhereReply { matched, applied, skipped, failed, examined, items, left_out: _, after } = done;
            let after = after.as_ref().map_or(String::new(), |key| format!(" after={key}"));
            let items = items.iter().map(|item| format!("\n  {} {}: {}", item.n, item.key, rejection(&item.why)));
            let counts = format!("matched={matched} applied={applied} skipped={skipped} failed={failed}");
            format!("where {counts} examined={examined}{after}{}", items.collect::<String>())
        }
        Outcome::Claimed(done) => {
            let entries = done.entries.iter().map(|(key, shown)| format!("\n  {key} {}", show_shown(shown)));
            let index: Option<Vec<_>> = done.index.as_ref().map(|paths| paths.iter().map(field_text).collect());
            let index = index.map_or(String::new(), |index| format!(" by {}", index.join(",")));
            let more = if done.more { " more" } else { "" };
            let refused = done.refused.iter().map(|item| format!("\n  not {}: {}", item.key, rejection(&item.why)));
            let lines: String = entries.chain(refused).collect();
            format!("claimed, examined={}{more}{index}{lines}", done.examined)
        }
        Outcome::RulesSet(row) => row.as_ref().map_or("rules removed".into(), |row| show_collection(row)),
        Outcome::Numbers { first, last } => format!("numbers {first}..={last}"),
        Outcome::Session(done) => format!("{done:?}"),
        Outcome::Lock(done) => format!("{done:?}"),
        Outcome::Barrier(row) => format!("{row:?}"),
        Outcome::Latch(row) => format!("{row:?}"),
        Outcome::Task(done) => tasks::done(done),
        Outcome::Access(done) => format!("{done:?}"),
        Outcome::Members(done) => format!("{done:?}"),
        Outcome::Quota(row) => format!("{row:?}"),
        Outcome::Deferred => "deferred".into(),
        Outcome::Maintained { removed, more } => format!("maintained removed={removed} more={more}"),
    }
}

fn show_collection(row: &CollectionRow) -> String {
    let CollectionRow { create_revision, mod_revision, version, rules, indexes } = row;
    let indexes: Vec<_> = indexes.iter().map(|state| format!("{} {:?}", state.id, state.stage)).collect();
    let rules = rules.to_json().to_text();
    format!("create={create_revision} mod={mod_revision} v={version} {rules} [{}]", indexes.join(", "))
}

fn written(written: &Written) -> String {
    let mut text = match &written.meta {
        Some(after) => format!("written {}", meta(after)),
        None => "removed".into(),
    };
    if let Some(previous) = &written.previous {
        write!(text, ", was {}", show_shown(previous)).unwrap();
    }
    text
}

fn txn(done: &TxnReply, line: &str) -> String {
    let mut text = match &done.failed {
        None => "transaction, then".to_owned(),
        Some(failed) => format!("transaction, check {}: {}; else", failed.at, rejection(&failed.why)),
    };
    results(&done.results, line, &mut text);
    text
}

fn results(results: &[StepReply], line: &str, text: &mut String) {
    for result in results {
        text.push_str(line);
        text.push_str(&match result {
            StepReply::Got(shown) => format!("got {}", shown.as_ref().map_or("nothing".into(), show_shown)),
            StepReply::Written(done) => written(done),
            StepReply::Txn(done) => txn(done, &format!("{line}  ")),
            StepReply::Listed(listed) => {
                let entries = listed.entries.iter().map(|(key, shown)| format!("; {key}: {}", show_shown(shown)));
                let more = if listed.more { ", more" } else { "" };
                format!("listed of {}{more}{}", listed.count, entries.collect::<String>())
            }
            StepReply::Removed(removed) => {
                let entries = removed.entries.iter().map(|(key, shown)| format!("; {key}: {}", show_shown(shown)));
                format!("removed {}{}", removed.count, entries.collect::<String>())
            }
            StepReply::Branched(done) => {
                let mut inner = if done.succeeded { "branch, then".to_owned() } else { "branch, else".to_owned() };
                self::results(&done.results, &format!("{line}  "), &mut inner);
                inner
            }
        });
    }
}

fn rejection(rejection: &Rejection) -> String {
    let at = show_shown;
    match rejection {
        Rejection::AlreadyExists { current } => format!("already exists, is {}", at(current)),
        Rejection::NotFound => "not found".into(),
        Rejection::CasMismatch { expected, current } => {
            let expected = expected.map_or("none".into(), |cas| cas.to_string());
            format!("cas {expected} expected, is {}", current.as_ref().map_or("missing".into(), at))
        }
        Rejection::CasListed { current } => format!("cas is listed, is {}", at(current)),
        Rejection::Locked { current } => format!("locked, is {}", at(current)),
        Rejection::NotLocked { current } => format!("not locked, is {}", at(current)),
        Rejection::ConditionNotMet { unmet, current } => {
            let unmet: Vec<_> =
                unmet.iter().map(|unmet| format!("{} {}", unmet.pointer, excerpt(&unmet.actual))).collect();
            format!("unmet {}, is {}", unmet.join(", "), current.as_ref().map_or("missing".into(), at))
        }
        Rejection::PatchFailed { refusal, current } => {
            format!("patch failed at {} {:?}: {:?}, is {}", refusal.pointer, refusal.path, refusal.fault, at(current))
        }
        Rejection::NotADocument { current } => format!("not a document, is {}", at(current)),
        Rejection::TooLarge { limit, actual } => format!("too large, {actual} of {limit}"),
        Rejection::TooMuch { limit } => format!("too much, more than {limit}"),
        Rejection::TooDear(dear) => format!("too dear, {} of {}", dear.actual, dear.limit),
        Rejection::RulesBroken(faults) => {
            let faults: Vec<_> = faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.kind)).collect();
            format!("breaks rules: {}", faults.join("; "))
        }
        Rejection::NotUnique { fields, key } => {
            let fields: Vec<_> = fields.iter().map(field_text).collect();
            format!("not unique in {}, as {key}", fields.join(","))
        }
        Rejection::PreconditionRequired => "precondition required".into(),
        Rejection::Overlaps(other) => format!("overlaps {other}"),
        Rejection::TooManyToOrder(max) => format!("more than {max} to order"),
        Rejection::UsedUp => "used up".into(),
        Rejection::SessionExpired(id) => format!("session {id} expired"),
        Rejection::SessionExists(id) => format!("session {id} exists"),
        Rejection::GuardFailed { guard, holder } => format!("guard failed, token {} against {holder:?}", guard.token),
        Rejection::Held { holders, waiters, delay_ms } => {
            format!("held by {holders}, {waiters} wait, delay {delay_ms}")
        }
        Rejection::QueueLong { holders, waiters, most, delay_ms } => {
            format!("held by {holders}, {waiters} wait, of {most}, delay {delay_ms}")
        }
        Rejection::NotHolder => "not holder".into(),
        Rejection::NotYours => "not yours".into(),
        Rejection::AnotherPlace { is_holder, at } => format!("another place, holder={is_holder} at {at}"),
        Rejection::OtherNumber(number) => format!("other number {number}"),
        Rejection::BarrierOpen => "barrier open".into(),
        Rejection::TooMany { what, limit } => format!("too many {what:?}, {limit}"),
        Rejection::RequestIdReused => "request id reused".into(),
        Rejection::Unsupported(reason) => format!("unsupported: {reason}"),
        Rejection::AccessChanged => "access changed".into(),
        Rejection::Access(fault) => format!("{fault:?}"),
        Rejection::Members(fault) => format!("{fault:?}"),
        Rejection::Internal => "internal".into(),
        Rejection::BeyondQuota(beyond) => format!("{beyond:?}"),
        Rejection::Txn(why) => format!("{why:?}"),
        Rejection::TaskInUse(task) => format!("in use by {}", super::tasks::summary(task)),
    }
}

fn excerpt(actual: &Option<Excerpt>) -> String {
    actual.as_ref().map_or("missing".into(), |actual| format!("found {}", actual.text))
}

fn meta(meta: &EntryMeta) -> String {
    let EntryMeta { create_revision, mod_revision, version, cas, expires_at, locked_until, session } = meta;
    let expiry = expires_at.map_or(String::new(), |at| format!(" until={at}"));
    let lock = locked_until.map_or(String::new(), |at| format!(" locked={at}"));
    let session = session.map_or(String::new(), |id| format!(" session={id}"));
    format!("create={create_revision} mod={mod_revision} v={version} cas={cas}{expiry}{lock}{session}")
}

fn show_shown(shown: &Shown) -> String {
    match shown {
        Shown::Whole(entry) => show_entry(entry),
        Shown::Bare { meta: of, kind } => format!("{} {kind:?} without value", meta(of)),
    }
}

pub fn show_entry(entry: &Entry) -> String {
    let kind = match entry.value.kind {
        ContentKind::Json => "",
        ContentKind::Bytes => "b:",
    };
    let data = &entry.value.data;
    let shown = data[..data.len().min(80)].escape_ascii().to_string().replace("\\\"", "\"");
    let cut = if data.len() > 80 { format!("...({} bytes)", data.len()) } else { String::new() };
    format!("{} {kind}{shown}{cut}", meta(&entry.meta))
}

/// Any row.
pub fn row(row_key: &[u8], value: &[u8]) -> String {
    match row_key[0] {
        family::ENTRY => {
            let key = entry::decode_key(row_key).unwrap();
            format!("entry {} = {}", key.escape_ascii(), show_entry(&entry::decode(value).unwrap().to_entry()))
        }
        family::HISTORY => {
            let (key, revision) = history::decode_key(row_key).unwrap();
            let version = match history::decode(value).unwrap() {
                Version::Entry(row) => show_entry(&row.to_entry()),
                Version::Tombstone => "tombstone".into(),
            };
            format!("history {}@{revision} = {version}", key.escape_ascii())
        }
        family::AUDIT => {
            let (revision, index) = audit::decode_key(row_key).unwrap();
            format!("audit r{revision} #{index} = {}", group(value))
        }
        family::REFUSALS => {
            let (bucket, index) = refusals::decode_key(row_key).unwrap();
            format!("refusals b{bucket} #{index} = {}", group(value))
        }
        family::REQUEST => {
            let (bucket, owner, id) = request::decode_key(row_key).unwrap();
            let kept: KeptReply = codec::decode(value).unwrap();
            let of = if owner.is_empty() { String::new() } else { format!(" of {owner}") };
            format!("request b{bucket} {id}{of} = {:016x} {}", kept.fingerprint, reply(&kept.reply))
        }
        family::BUCKET_USE => {
            let (bucket, whose) = bucket_use::decode_key(row_key).unwrap();
            match whose {
                Whose::All => {
                    let held: BucketUse = codec::decode(value).unwrap();
                    format!("held b{bucket} = {held:?}")
                }
                Whose::Kept(owner) => {
                    let held: OwnerUse = codec::decode(value).unwrap();
                    format!("held b{bucket} of {owner} = {held:?}")
                }
                Whose::Refused(owner) => {
                    let held: RefusedUse = codec::decode(value).unwrap();
                    format!("held b{bucket} of {owner} = {held:?}")
                }
            }
        }
        family::DEADLINE => {
            let (at, key) = deadline::decode_key(row_key).unwrap();
            assert!(value.is_empty());
            format!("deadline {at} {}", key.escape_ascii())
        }
        family::LOCK => {
            let (until, key) = lock::decode_key(row_key).unwrap();
            assert!(value.is_empty());
            format!("lock {until} {}", key.escape_ascii())
        }
        family::COLLECTION => {
            let name = collection::decode_key(row_key).unwrap();
            format!("collection {name} = {}", show_collection(&codec::decode(value).unwrap()))
        }
        family::INDEX => {
            format!("index {} {}", u64::from_be_bytes(row_key[1..9].try_into().unwrap()), row_key[9..].escape_ascii())
        }
        family::SEQUENCE => format!("sequence {} = {}", row_key[1..].escape_ascii(), sequence::decode(value).unwrap()),
        family::TASK..=family::TASK_UNPLANNED => tasks::row(row_key, value),
        family::DROPPED_INDEX => format!("dropped {}", index::decode_dropped(row_key).unwrap()),
        family::USER..=family::ROLE_USER => access::row(row_key, value),
        family::QUOTA => {
            let row: QuotaRow = codec::decode(value).unwrap();
            format!("quota {} = {row:?}", quota::decode_key(row_key).unwrap())
        }
        family::QUOTA_USE => match quota::decode_use_key(row_key).unwrap() {
            subject @ QuotaSubject::Prefix(_) => {
                format!("used by {subject} = {:?}", codec::decode::<PrefixUse>(value).unwrap())
            }
            subject => format!("used by {subject} = {:?}", codec::decode::<PrincipalUse>(value).unwrap()),
        },
        family::QUOTA_STATE => format!("quotas = {:?}", codec::decode::<QuotaState>(value).unwrap()),
        _ => coordination::row(row_key, value),
    }
}

fn group(value: &[u8]) -> String {
    let group: AuditGroup = audit::decode(value).unwrap();
    let AuditGroup { index, clock, wall, first_revision, last_revision, lines } = group;
    let mut text = format!("#{index} c{clock} w{wall} r{first_revision}..={last_revision}");
    for line in lines {
        let key = line.key.map_or("?".into(), |key| key.to_string());
        write!(text, "\n  r{} {:?} {key}", line.revision, line.op).unwrap();
        if let Some(id) = line.request_id {
            write!(text, " id={}", id.0).unwrap();
        }
        if !line.principal.is_empty() {
            write!(text, " by={}", line.principal).unwrap();
        }
        match line.effect {
            AuditEffect::Refused(why) => write!(text, " refused {why:?}").unwrap(),
            AuditEffect::Relocked { .. } => text.push_str(" relocked"),
            AuditEffect::Beside => text.push_str(" beside"),
            AuditEffect::Elected { row } => write!(text, " elected {:032x}", row.hash).unwrap(),
            AuditEffect::Changed { previous, removed } => {
                if let Some(previous) = previous {
                    write!(text, " over={} {:032x}", previous.revision, previous.row.hash).unwrap();
                }
                if removed {
                    text.push_str(" removed");
                }
            }
        }
    }
    text
}
