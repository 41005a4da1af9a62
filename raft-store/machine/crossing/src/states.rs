//! States that the target of a command can be in.
//!
//! Owns their names and when each holds. Never decides which pairs have to be met: that is the table's.

use std::collections::BTreeSet;

use quorate_machine::document::Json;
use quorate_machine::keyspace::session::AttachedKind;
use quorate_machine::types::IndexStage;
use quorate_machine::types::{
    AccessOp, BarrierOp, ContentKind, Counted, Entry, Guard, Key, KeyRange, LatchOp, LockName, LockOp, LockSpace,
    MembersOp, QueueName, QuotaSubject, Requeue, SessionId, TaskId, TaskOp, TaskState, TaskVerb, Tokens, WriteOp,
};

use crate::kinds::Target;
use crate::picture::Picture;

/// Those of an entry.
pub const ENTRY: [&str; 24] = [
    "absent",
    "removed before",
    "bytes",
    "document",
    "other JSON",
    "expiring",
    "expired",
    "locked",
    "lock just over",
    "locked, key given",
    "in a session",
    "in a session, locked",
    "in a session, locked, key given",
    "in a session, expiring",
    "in a session, expired",
    "locked, expired",
    "indexed",
    "indexed, locked",
    "unique",
    "being indexed",
    "under rules",
    "in a session, indexed",
    "under a quota",
    "quota used up",
];

/// What the write itself brings to it.
pub const WRITE: [&str; 7] = [
    "guard holds",
    "guard fails",
    "joins a session",
    "stays in its session",
    "leaves its session",
    "session is over",
    "right token",
];

/// Ways in which any command can come.
pub const WAYS: [&str; 4] = ["dry run", "replayed", "id used before", "another's id"];

/// Those of the entries of a prefix: one of them is so.
pub const ENTRIES: [&str; 12] = [
    "none",
    "document",
    "expiring",
    "expired",
    "locked",
    "lock just over",
    "in a session",
    "in a session, locked",
    "indexed",
    "unique",
    "guard holds",
    "guard fails",
];

/// Those of a collection.
pub const COLLECTION: [&str; 8] = [
    "undeclared",
    "declared",
    "with entries",
    "being built",
    "built",
    "failed",
    "has locked entries",
    "around another",
];

/// Those of a session.
pub const SESSION: [&str; 8] = [
    "over",
    "with nothing",
    "with entries",
    "with locks",
    "with barriers",
    "with tasks",
    "with locked entries",
    "never was",
];

/// Those of a lock or an election.
pub const LOCK: [&str; 12] = [
    "free",
    "held by itself",
    "held by another",
    "shared",
    "of several slots",
    "waited for by itself",
    "waited for by another",
    "held back",
    "its session is over",
    "right token",
    "another token",
    "quota used up",
];

/// Those of a barrier.
pub const BARRIER: [&str; 5] = ["absent", "closed", "open", "it is in it", "its session is over"];

/// Those of a latch.
pub const LATCH: [&str; 3] = ["absent", "closed", "open"];

/// Those of a task.
pub const TASK: [&str; 14] = [
    "absent",
    "scheduled",
    "due",
    "claimed",
    "claimed in a session",
    "dead",
    "unplanned",
    "done",
    "recurring",
    "right ticket",
    "another ticket",
    "its session is over",
    "under a quota",
    "quota used up",
];

/// Those of an invitation.
pub const INVITATION: [&str; 4] = ["absent", "open", "used", "over"];
/// Those of a quota.
pub const QUOTA: [&str; 8] =
    ["absent", "there", "counting", "used up", "within another", "around another", "of a principal", "of all others"];

/// Those of a user, a role or a token.
pub const ACCOUNT: [&str; 3] = ["absent", "there", "in use"];

/// Those of the whole state.
pub const EVERYTHING: [&str; 12] = [
    "entries expired",
    "locks over",
    "locked entries",
    "sessions with entries",
    "waiters",
    "tasks claimed in sessions",
    "indexes being built",
    "indexes to clear",
    "history",
    "nothing to compact",
    "quotas to count",
    "quotas",
];

/// The states that commands with a target can meet, beside [`WAYS`].
pub fn of_target(target: Target) -> Vec<&'static str> {
    match target {
        Target::Entry => [&ENTRY[..], &WRITE].concat(),
        Target::Entries => ENTRIES.to_vec(),
        Target::Collection => COLLECTION.to_vec(),
        Target::Sequence => vec!["any"],
        Target::Session => SESSION.to_vec(),
        Target::Lock | Target::Election => LOCK.to_vec(),
        Target::Barrier => BARRIER.to_vec(),
        Target::Latch => LATCH.to_vec(),
        Target::Task => TASK.to_vec(),
        Target::Account => ACCOUNT.to_vec(),
        Target::Invitation => INVITATION.to_vec(),
        Target::Quota => QUOTA.to_vec(),
        Target::Everything => EVERYTHING.to_vec(),
    }
}

/// Gathers the names of what holds.
struct Holding(Vec<&'static str>);

impl Holding {
    fn when(&mut self, holds: bool, name: &'static str) {
        if holds {
            self.0.push(name);
        }
    }
}

/// What an entry is.
pub fn of_entry(picture: &Picture, key: &Key) -> Vec<&'static str> {
    let clock = picture.vars.clock;
    let mut holding = Holding(Vec::new());
    let Some(entry) = picture.entries.get(key) else {
        holding.when(picture.removed.contains(key), "removed before");
        holding.when(!picture.removed.contains(key), "absent");
        of_prefixes(picture, key.as_bytes(), &mut holding);
        return holding.0;
    };
    of_prefixes(picture, key.as_bytes(), &mut holding);
    let meta = &entry.meta;
    let (expired, locked) = (entry.is_expired_at(clock), meta.is_locked_at(clock));
    let in_session = meta.session.is_some();
    holding.when(entry.value.kind == ContentKind::Bytes, "bytes");
    let is_document = matches!(Json::parse(&entry.value.data), Ok(Json::Object(_)));
    holding.when(entry.value.kind == ContentKind::Json && is_document, "document");
    holding.when(entry.value.kind == ContentKind::Json && !is_document, "other JSON");
    holding.when(meta.expires_at.is_some() && !expired, "expiring");
    holding.when(expired, "expired");
    holding.when(locked && !expired, "locked");
    holding.when(meta.locked_until.is_some() && !locked && !expired, "lock just over");
    holding.when(in_session, "in a session");
    holding.when(in_session && locked && !expired, "in a session, locked");
    holding.when(in_session && meta.expires_at.is_some() && !expired, "in a session, expiring");
    holding.when(in_session && expired, "in a session, expired");
    holding.when(meta.locked_until.is_some() && expired, "locked, expired");
    if let Some(row) = picture.collection_of(key) {
        let holds = |at: usize| row.indexes[at].holds(key.as_bytes());
        let indexes = row.rules.indexes();
        let is_indexed = (0..indexes.len()).any(holds);
        holding.when(is_indexed, "indexed");
        holding.when(is_indexed && locked && !expired, "indexed, locked");
        holding.when(is_indexed && in_session, "in a session, indexed");
        holding.when((0..indexes.len()).any(|at| holds(at) && indexes[at].is_unique()), "unique");
        holding.when(Picture::is_building(row), "being indexed");
        holding.when(row.rules.needs_documents(), "under rules");
    }
    holding.0
}

/// What the prefixes of a name are.
fn of_prefixes(picture: &Picture, name: &[u8], holding: &mut Holding) {
    let around = || picture.prefix_uses.iter().filter(|(prefix, _)| name.starts_with(prefix));
    holding.when(around().next().is_some(), "under a quota");
    holding
        .when(around().any(|(prefix, _)| is_used_up(picture, &QuotaSubject::Prefix(prefix.clone()))), "quota used up");
}

/// Whether somebody has as much of something as they may.
fn is_used_up(picture: &Picture, subject: &QuotaSubject) -> bool {
    let Some(bounds) = picture.bounds_of(subject) else { return false };
    let all = [Counted::Sessions, Counted::Locks, Counted::Entries, Counted::Bytes, Counted::Tasks];
    all.into_iter().any(|what| bounds.of(what).is_some_and(|bound| picture.used_of(subject, what) >= bound))
}

/// What a command about a quota meets.
pub fn of_quota(picture: &Picture, subject: &QuotaSubject) -> Vec<&'static str> {
    let is_there = picture.quotas.contains_key(subject);
    let mut holding = Holding(vec![if is_there { "there" } else { "absent" }]);
    holding.when(is_there && is_used_up(picture, subject), "used up");
    match subject {
        QuotaSubject::Prefix(prefix) => {
            let used = picture.prefix_uses.get(prefix);
            holding.when(used.is_some_and(|used| used.from.is_some()), "counting");
            let others = || picture.prefix_uses.keys().filter(|other| *other != prefix);
            holding.when(others().any(|other| prefix.starts_with(other)), "within another");
            holding.when(others().any(|other| other.starts_with(prefix)), "around another");
        }
        QuotaSubject::Principal(_) => holding.0.push("of a principal"),
        QuotaSubject::Default => holding.0.push("of all others"),
    }
    holding.0
}

fn of_guard(picture: &Picture, guard: Option<&Guard>, holding: &mut Holding) {
    let Some(guard) = guard else { return };
    let holds = picture.holders.contains_key(&(guard.lock.clone(), guard.token));
    holding.when(holds, "guard holds");
    holding.when(!holds, "guard fails");
}

/// What a write meets.
pub fn of_write(picture: &Picture, op: &WriteOp) -> Vec<&'static str> {
    let mut holding = Holding(of_entry(picture, &op.key));
    let live: Option<&Entry> = picture.live(&op.key);
    let given = |entry: &Entry| match &op.expect.tokens {
        Tokens::One(token) => picture.has_token(&op.key, entry, *token),
        Tokens::AnyOf(tokens) => tokens.iter().any(|token| picture.has_token(&op.key, entry, *token)),
        _ => false,
    };
    let has_token = live.is_some_and(given);
    let is_locked = live.is_some_and(|entry| entry.meta.is_locked_at(picture.vars.clock));
    let had = live.and_then(|entry| entry.meta.session);
    holding.when(has_token, "right token");
    holding.when(has_token && is_locked, "locked, key given");
    holding.when(has_token && is_locked && had.is_some(), "in a session, locked, key given");
    let lives = op.session.filter(|id| picture.sessions.contains_key(id));
    holding.when(lives.is_some() && had != lives, "joins a session");
    holding.when(had.is_some() && had == lives, "stays in its session");
    holding.when(had.is_some() && op.session.is_none(), "leaves its session");
    holding.when(op.session.is_some() && lives.is_none(), "session is over");
    of_guard(picture, op.guard.as_deref(), &mut holding);
    holding.0
}

/// What a command about the entries of a prefix meets.
pub fn of_entries(picture: &Picture, prefix: &[u8], guard: Option<&Guard>) -> Vec<&'static str> {
    let mut holding = of_those(picture, |key| key.starts_with(prefix));
    of_guard(picture, guard, &mut holding);
    holding.0
}

/// What a step over a range meets.
pub fn of_range(picture: &Picture, range: &KeyRange) -> Vec<&'static str> {
    of_those(picture, |key| range.contains(key)).0
}

fn of_those(picture: &Picture, is_one: impl Fn(&[u8]) -> bool) -> Holding {
    let within = picture.entries.keys().filter(|key| is_one(key.as_bytes()));
    let found: BTreeSet<_> = within.flat_map(|key| of_entry(picture, key)).collect();
    let mut holding = Holding(Vec::new());
    holding.when(found.is_empty(), "none");
    holding.0.extend(ENTRIES.into_iter().filter(|name| found.contains(name)));
    holding
}

/// What a command about the rules of a collection meets.
pub fn of_collection(picture: &Picture, name: &quorate_machine::rules::CollectionName) -> Vec<&'static str> {
    let mut holding = Holding(Vec::new());
    let row = picture.collections.get(name);
    holding.when(row.is_none(), "undeclared");
    holding.when(row.is_some(), "declared");
    let (start, end) = quorate_machine::keyspace::collection::keys(name);
    let within = |key: &Key| (start.as_slice()..end.as_slice()).contains(&key.as_bytes());
    let entries = || picture.entries.iter().filter(|(key, _)| within(key));
    holding.when(entries().next().is_some(), "with entries");
    let is_locked = |entry: &Entry| entry.meta.is_locked_at(picture.vars.clock);
    holding.when(entries().any(|(_, entry)| is_locked(entry)), "has locked entries");
    if let Some(row) = row {
        holding.when(Picture::is_building(row), "being built");
        holding.when(row.indexes.iter().any(|state| state.stage == IndexStage::Ready), "built");
        holding.when(row.indexes.iter().any(|state| matches!(state.stage, IndexStage::Failed(_))), "failed");
    }
    let text = name.as_str();
    let is_around = |other: &str| other.strip_prefix(text).is_some_and(|rest| rest.starts_with('/'));
    let is_within = |other: &str| text.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
    let overlaps = picture.collections.keys().any(|other| is_around(other.as_str()) || is_within(other.as_str()));
    holding.when(overlaps, "around another");
    holding.0
}

/// What a command about a session meets.
pub fn of_session(picture: &Picture, id: SessionId) -> Vec<&'static str> {
    if !picture.sessions.contains_key(&id) {
        return vec![if id.0 > picture.vars.revision || id.0 < 2 { "never was" } else { "over" }];
    }
    let mut holding = Holding(Vec::new());
    let kinds = picture.attached.get(&id);
    let has = |kind: AttachedKind| kinds.is_some_and(|kinds| kinds.contains(&(kind as u8)));
    holding.when(kinds.is_none(), "with nothing");
    holding.when(has(AttachedKind::Entry), "with entries");
    holding.when(has(AttachedKind::Lock), "with locks");
    holding.when(has(AttachedKind::Barrier), "with barriers");
    holding.when(has(AttachedKind::Task), "with tasks");
    let is_locked = |entry: &Entry| entry.meta.session == Some(id) && entry.meta.is_locked_at(picture.vars.clock);
    holding.when(picture.entries.values().any(is_locked), "with locked entries");
    holding.0
}

/// What a command about a lock or an election meets.
pub fn of_lock(picture: &Picture, op: &LockOp) -> Vec<&'static str> {
    let (lock, session, token) = match op {
        LockOp::Acquire(request) => (&request.lock, Some(request.session), None),
        LockOp::Release { lock, token } | LockOp::Proclaim { lock, token, .. } => (lock, None, Some(*token)),
        LockOp::Leave { lock, session, .. }
        | LockOp::Listen { lock, session }
        | LockOp::HangUp { lock, session, .. } => (lock, Some(*session), None),
    };
    let mut holding = Holding(Vec::new());
    if let Some(row) = session.and_then(|id| picture.sessions.get(&id)).filter(|row| !row.principal.is_empty()) {
        let subject = QuotaSubject::Principal(row.principal.clone());
        let bound = picture.bounds_of(&subject).and_then(|bounds| bounds.locks);
        holding.when(bound.is_some_and(|bound| picture.used_of(&subject, Counted::Locks) >= bound), "quota used up");
    }
    let head = picture.heads.get(lock);
    holding.when(head.is_none(), "free");
    if let Some(head) = head {
        use quorate_machine::types::LockMode::Shared;
        holding.when(head.not_before.is_some(), "held back");
        holding.when(head.holders > 0 && head.mode == Shared, "shared");
        holding.when(head.slots > 1, "of several slots");
    }
    let of_lock = |(of, _): &(LockName, u64)| of == lock;
    let holders: Vec<_> = picture.holders.iter().filter(|(at, _)| of_lock(at)).collect();
    let waiters: Vec<_> = picture.waiters.iter().filter(|(at, _)| of_lock(at)).collect();
    match session {
        Some(id) => {
            holding.when(holders.iter().any(|(_, row)| row.session == id), "held by itself");
            holding.when(holders.iter().any(|(_, row)| row.session != id), "held by another");
            holding.when(waiters.iter().any(|(_, row)| row.party.session == id), "waited for by itself");
            holding.when(waiters.iter().any(|(_, row)| row.party.session != id), "waited for by another");
            holding.when(!picture.sessions.contains_key(&id), "its session is over");
        }
        None => {
            let holds = token.is_some_and(|token| picture.holders.contains_key(&(lock.clone(), token)));
            holding.when(holds, "held by itself");
            holding.when(!holds && !holders.is_empty(), "held by another");
            holding.when(!waiters.is_empty(), "waited for by another");
            holding.when(holds, "right token");
            holding.when(!holds, "another token");
        }
    }
    holding.0
}

/// What a command about a barrier meets.
pub fn of_barrier(picture: &Picture, op: &BarrierOp) -> Vec<&'static str> {
    let (BarrierOp::Enter { name, session, .. } | BarrierOp::Leave { name, session }) = op;
    let mut holding = Holding(Vec::new());
    let row = picture.barriers.get(name);
    holding.when(row.is_none(), "absent");
    holding.when(row.is_some_and(|row| row.opened.is_none()), "closed");
    holding.when(row.is_some_and(|row| row.opened.is_some()), "open");
    holding.when(picture.parties.contains(&(name.clone(), *session)), "it is in it");
    holding.when(!picture.sessions.contains_key(session), "its session is over");
    holding.0
}

/// What a command about a latch meets.
pub fn of_latch(picture: &Picture, op: &LatchOp) -> Vec<&'static str> {
    let (LatchOp::Create { name, .. } | LatchOp::CountDown { name, .. } | LatchOp::Remove { name }) = op;
    vec![match picture.latches.get(name) {
        None => "absent",
        Some(row) if row.opened.is_some() => "open",
        Some(_) => "closed",
    }]
}

/// What a command about tasks meets.
pub fn of_task(picture: &Picture, op: &TaskOp) -> Vec<&'static str> {
    let mut found = BTreeSet::new();
    let mut of_ids = |ids: Vec<TaskId>| ids.iter().for_each(|id| found.extend(of_one_task(picture, &op.queue, id)));
    let whole_queue =
        || picture.tasks.keys().filter(|(queue, _)| *queue == op.queue).map(|(_, id)| id.clone()).collect();
    match &op.verb {
        TaskVerb::Schedule(tasks) => of_ids(tasks.iter().filter_map(|task| task.id.clone()).collect()),
        TaskVerb::ScheduleOne(task) => of_ids(task.id.iter().cloned().collect()),
        TaskVerb::Claim { session, .. } => {
            of_ids(whole_queue());
            if session.is_some_and(|id| !picture.sessions.contains_key(&id)) {
                found.insert("its session is over");
            }
        }
        TaskVerb::Extend { ticket, .. } | TaskVerb::Complete(ticket) | TaskVerb::Fail { ticket, .. } => {
            of_ids(vec![ticket.id.clone()]);
            let row = picture.tasks.get(&(op.queue.clone(), ticket.id.clone()));
            let token = row.and_then(|row| match row.head.state {
                TaskState::Claimed { token, .. } => Some(token),
                _ => None,
            });
            found.insert(if token == Some(ticket.token) { "right ticket" } else { "another ticket" });
        }
        TaskVerb::Cancel(id) | TaskVerb::Requeue(Requeue::One(id)) => of_ids(vec![id.clone()]),
        TaskVerb::Requeue(Requeue::Oldest(_)) => of_ids(whole_queue()),
        TaskVerb::Plan(plan) => {
            of_ids(vec![plan.id.clone()]);
            let row = picture.tasks.get(&(op.queue.clone(), plan.id.clone()));
            let is_seen = row.is_some_and(|row| row.head.revision == plan.seen);
            found.insert(if is_seen { "right ticket" } else { "another ticket" });
        }
    }
    if found.is_empty() {
        found.insert("absent");
    }
    let mut around = Holding(Vec::new());
    of_prefixes(picture, op.queue.as_str().as_bytes(), &mut around);
    found.extend(around.0);
    found.into_iter().collect()
}

/// What a task is.
pub fn of_one_task(picture: &Picture, queue: &QueueName, id: &TaskId) -> Vec<&'static str> {
    let Some(row) = picture.tasks.get(&(queue.clone(), id.clone())) else { return vec!["absent"] };
    let mut states = vec![match &row.head.state {
        TaskState::Scheduled if row.head.due <= picture.vars.wall => "due",
        TaskState::Scheduled => "scheduled",
        TaskState::Claimed { session: Some(_), .. } => "claimed in a session",
        TaskState::Claimed { session: None, .. } => "claimed",
        TaskState::Dead { .. } => "dead",
        TaskState::Unplanned => "unplanned",
        TaskState::Done { .. } => "done",
    }];
    states.extend(row.head.recurrence.is_some().then_some("recurring"));
    states
}

/// What a command about users, roles and tokens meets.
pub fn of_account(picture: &Picture, op: &AccessOp) -> Vec<&'static str> {
    let (is_there, is_used) = match op {
        AccessOp::SetUser { name, .. } | AccessOp::RemoveUser(name) => {
            (picture.users.contains_key(name), picture.tokens.values().any(|row| row.user == *name))
        }
        AccessOp::SetRole { name, .. } | AccessOp::RemoveRole(name) => {
            (picture.roles.contains_key(name), picture.users.values().any(|row| row.roles.contains(name)))
        }
        AccessOp::AddToken(token) => (picture.tokens.contains_key(&token.id), picture.users.contains_key(&token.user)),
        AccessOp::RemoveToken(id) => (picture.tokens.contains_key(id), false),
    };
    let mut holding = Holding(vec![if is_there { "there" } else { "absent" }]);
    holding.when(is_used, "in use");
    holding.0
}

/// What a command about newcomers meets.
pub fn of_invitation(picture: &Picture, op: &MembersOp) -> Vec<&'static str> {
    let id = match op {
        MembersOp::Invite(invitation) => invitation.id,
        MembersOp::Revoke(id) | MembersOp::Admit { invitation: id, .. } => *id,
    };
    let Some(row) = picture.invitations.get(&id) else { return vec!["absent"] };
    let mut holding = Holding(Vec::new());
    let is_over = row.is_over_at(picture.vars.clock);
    holding.when(row.used_by.is_none() && !is_over, "open");
    holding.when(row.used_by.is_some(), "used");
    holding.when(is_over, "over");
    holding.0
}

/// What a command about everything meets.
pub fn of_everything(picture: &Picture) -> Vec<&'static str> {
    let clock = picture.vars.clock;
    let mut holding = Holding(Vec::new());
    let any = |holds: &dyn Fn(&Entry) -> bool| picture.entries.values().any(holds);
    holding.when(any(&|entry| entry.is_expired_at(clock)), "entries expired");
    holding.when(any(&|entry| entry.meta.locked_until.is_some_and(|until| until <= clock)), "locks over");
    holding.when(any(&|entry| entry.meta.is_locked_at(clock)), "locked entries");
    holding.when(any(&|entry| entry.meta.session.is_some()), "sessions with entries");
    holding.when(!picture.waiters.is_empty(), "waiters");
    let in_session = |state: &TaskState| matches!(state, TaskState::Claimed { session: Some(_), .. });
    holding.when(picture.tasks.values().any(|row| in_session(&row.head.state)), "tasks claimed in sessions");
    holding.when(picture.collections.values().any(Picture::is_building), "indexes being built");
    holding.when(picture.dropped > 0, "indexes to clear");
    holding.when(picture.groups > 0, "history");
    holding.when(picture.groups == 0, "nothing to compact");
    holding.when(picture.quota_state.has_work(), "quotas to count");
    holding.when(!picture.quotas.is_empty(), "quotas");
    holding.0
}

/// Which kind of target a name of a lock is.
pub fn target_of(lock: &LockName) -> Target {
    match lock.space {
        LockSpace::Lock => Target::Lock,
        LockSpace::Election => Target::Election,
    }
}
