//! One run: from an empty state through the steps of a list of seeds.
//!
//! Owns the order in which a step is tried, applied and checked, and turns whatever goes wrong into words. A step follows from
//! its seed and from what there is, so a run of fewer seeds is a run as well: that is what makes shrinking simple.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};

use quorate_machine::access::{Permission, RequiredPermission};
use quorate_machine::machine;
use quorate_machine::requirements::Requirement;
use quorate_machine::types::{
    Action, Batch, ClusterMillis, Command, ItemOutcome, Key, KeyRange, Maintenance, NodeDisk, Outcome, Rejection,
    Reply, RequestId, Revision, Shown, TaskReply, WriteOp, Written,
};
use quorate_machine::{command_codec, limits};

use crate::chance::Chance;
use crate::check::quotas;
use crate::generate::{self, Sent, Step, Theme, What};
use crate::model::{self, claims, coordination, without_keys};
use crate::names::{self, Texts};
use crate::pairs::Pairs;
use crate::picture::Picture;
use crate::reached::Reached;
use crate::store::{Store, batch};

/// Steps of one run.
pub const STEPS: usize = 400;

/// By how much the members' wall clocks are ahead of the cluster's, at times: the stamps go there at once, and come back.
const SKEWS: [u64; 4] = [0, 0, 3_000, 86_400_000];

/// How many groups of audit a state may have before it is compacted, so that a run is as fast at its end as at its start.
const GROUPS: usize = 60;

/// A run that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The steps that lead to it.
    pub seeds: Vec<u64>,
    /// What went wrong.
    pub words: String,
    /// Commands applied until then.
    pub commands: u64,
}

impl Failure {
    /// Whether another one begins with the same words; what stands behind them differs with revisions.
    pub fn is_like(&self, other: &Self) -> bool {
        self.gist() == other.gist()
    }

    fn gist(&self) -> String {
        let start = self.words.split(['[', '{', '\n']).next().unwrap_or_default();
        start.chars().filter(|letter| !letter.is_ascii_digit()).take(60).collect()
    }
}

/// What came of a run.
#[derive(Debug, Clone, Default)]
pub struct Met {
    /// Commands applied.
    pub commands: u64,
    /// What met what.
    pub pairs: Pairs,
    /// Groups of entries that came to what each of them did by itself.
    pub groups: u64,
    /// What the runs with low bounds reached.
    pub reached: Reached,
}

/// The seeds of so many steps of a run.
pub fn seeds(seed: u64, steps: usize) -> Vec<u64> {
    let mut chance = Chance::new(seed);
    (0..steps).map(|_| chance.draw()).collect()
}

/// Takes the steps of a run; `tell` is told of each before it is taken.
pub fn run(first: u64, seeds: &[u64], texts: &Texts, tell: &mut dyn FnMut(&Picture, &Step)) -> Result<Met, Failure> {
    let theme = Theme::of(first);
    let mut run = Run {
        store: Store { seed: first, ..Store::default() },
        sent: Sent::new(),
        met: Met::default(),
        texts,
        theme,
        answered: BTreeMap::new(),
        members: BTreeSet::new(),
        ahead: 0,
    };
    for (nth, seed) in seeds.iter().enumerate() {
        let done = panic::catch_unwind(AssertUnwindSafe(|| {
            run.step(*seed, tell);
        }));
        if let Err(panic) = done {
            return Err(run.failed(&seeds[..=nth], panic.as_ref()));
        }
    }
    match panic::catch_unwind(AssertUnwindSafe(|| run.store.twins.settle())) {
        Ok(()) => {
            run.met.groups = run.store.twins.groups();
            Ok(std::mem::take(&mut run.met))
        }
        Err(panic) => Err(run.failed(seeds, panic.as_ref())),
    }
}

/// What a panic said.
pub fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it said nothing".into())
}

/// What was decided under a request id.
struct Answered {
    fingerprint: u64,
    at: ClusterMillis,
    reply: Reply,
    /// What was kept of the history then.
    oldest: Revision,
}

struct Run<'t> {
    store: Store,
    sent: Sent,
    met: Met,
    texts: &'t Texts,
    theme: Theme,
    /// What was decided under each request id, by its owner.
    answered: BTreeMap<(String, RequestId), Answered>,
    /// Who is a member.
    members: BTreeSet<NodeDisk>,
    /// By how much wall clocks are ahead of what they began with.
    ahead: u64,
}

impl Run<'_> {
    fn failed(&mut self, seeds: &[u64], panic: &(dyn std::any::Any + Send)) -> Failure {
        self.store.twins.forget();
        Failure { seeds: seeds.to_vec(), words: words(panic), commands: self.met.commands }
    }

    fn step(&mut self, seed: u64, tell: &mut dyn FnMut(&Picture, &Step)) {
        let clock = generate::clock_step(seed, &Picture::of(&self.store));
        if seed % 64 == 9 {
            self.ahead = SKEWS[(seed / 64) as usize % SKEWS.len()];
        }
        if clock > 0 {
            let now = self.store.vars.clock + clock;
            let before = Picture::of(&self.store);
            let entry = batch(now, &[]);
            self.store
                .apply(&[Batch { wall: entry.wall + self.ahead, ..entry }])
                .unwrap_or_else(|fault| panic!("the clock moves to {now}: {fault}"));
            model::time_passed(&before, &Picture::of(&self.store));
        }
        if seed % 32 == 5 {
            self.change_membership(seed);
        }
        let picture = Picture::of(&self.store);
        let step = generate::step(seed, self.theme, clock, &picture, self.texts, &self.sent);
        tell(&picture, &step);
        match &step.what {
            What::Epoch => {
                self.met.pairs.note_epoch(&picture);
                self.store.begin_epoch();
                self.members.clear();
                self.answered.clear();
            }
            What::Batch(commands) => {
                self.apply(&picture, &step, commands);
                self.check_past(&picture);
            }
        }
        self.store.check();
        self.compact();
    }

    /// A membership entry: who was let in becomes a member, and somebody goes now and then.
    fn change_membership(&mut self, seed: u64) {
        let before = Picture::of(&self.store);
        let were = self.members.clone();
        let let_in = before.invitations.values().filter_map(|row| row.used_by);
        self.members.extend(let_in.filter(|node| !before.removed_members.contains(node)));
        let goes = (seed / 32).is_multiple_of(3).then(|| were.first().copied()).flatten();
        self.members.retain(|node| Some(*node) != goes);
        let (from, to): (Vec<_>, Vec<_>) = (were.into_iter().collect(), self.members.iter().copied().collect());
        let applied = self.store.apply_membership(&from, &to);
        applied.unwrap_or_else(|fault| panic!("the members become {to:?}: {fault}"));
        let after = Picture::of(&self.store);
        let expected: BTreeSet<_> = before.removed_members.iter().copied().chain(goes).collect();
        assert_eq!(after.removed_members, expected, "who was removed");
        let is_left = |node: NodeDisk| after.invitations.values().any(|row| row.used_by == Some(node));
        assert!(!to.iter().any(|node| is_left(*node)), "an invitation outlives its use: {after:?}");
        self.store.check();
    }

    fn apply(&mut self, picture: &Picture, step: &Step, commands: &[Command]) {
        let rehearsed = step.is_rehearsed.then(|| {
            self.met.pairs.note_rehearsal(&commands[0]);
            let Store { view, vars, index, .. } = &self.store;
            let reply = machine::evaluate(view, vars, index + 1, &commands[0]);
            reply.unwrap_or_else(|fault| panic!("a dry run faults: {fault}"))
        });
        // What the others of the batch meet is only known once the first is applied.
        self.met.pairs.note(&self.store, picture, &commands[0]);
        for command in commands {
            if let Some(id) = &command.request_id {
                self.sent.insert(id.0.clone(), command.clone());
            }
        }
        let (replies, changed) =
            self.store.apply(&[self.store.now(commands)]).unwrap_or_else(|fault| panic!("a command faults: {fault}"));
        self.met.commands += commands.len() as u64;
        let replies = &replies[0];
        if let Some(rehearsed) = rehearsed {
            let (rehearsed, came) = (without_keys(&rehearsed), without_keys(&replies[0]));
            assert_eq!(rehearsed, came, "the dry run on the left, what it came to on the right");
        }
        match (commands, &replies[..]) {
            ([command], [reply]) => {
                self.judge(picture, command, reply);
                check_required(command, &changed);
            }
            (commands, replies) => self.judge_each(picture, commands, replies),
        }
        for (command, reply) in commands.iter().zip(replies) {
            assert_ne!(reply.outcome, Outcome::Rejected(Rejection::Internal), "contained: {command:?}");
            assert_ne!(reply.outcome, Outcome::Deferred, "deferred: {command:?}");
            self.check_once(command, reply);
            let encoded = command_codec::encode_command(command);
            assert_eq!(
                command_codec::decode_command(&encoded).as_ref(),
                Ok(command),
                "what was read is another command"
            );
        }
    }

    /// What was decided under a request id is not decided again while that is remembered.
    fn check_once(&mut self, command: &Command, reply: &Reply) {
        let Some(id) = &command.request_id else { return };
        let (clock, fingerprint) = (self.store.vars.clock, command.fingerprint());
        let owned = (command.principal.clone(), id.clone());
        // That of the bucket at hand and of the one before.
        let bucket = |at: ClusterMillis| at / limits::REQUEST_BUCKET_MS;
        let is_remembered = |known: &&Answered| bucket(known.at) + 1 >= bucket(clock);
        if let Some(known) = self.answered.get(&owned).filter(is_remembered) {
            let is_same = known.fingerprint == fingerprint;
            assert_eq!(reply.replayed, is_same, "something was decided under the request id of {command:?}: {reply:?}");
            if is_same && is_of_entries(&command.action) && known.oldest == self.store.vars.oldest_revision {
                let first = Reply { replayed: true, ..known.reply.clone() };
                assert_eq!(first, *reply, "the first answer on the left, and what {command:?} is answered again");
            }
            return;
        }
        assert!(!reply.replayed, "nothing is remembered under the request id of {command:?}: {reply:?}");
        let is_decided = match &reply.outcome {
            // A claim that found nothing is tried again.
            Outcome::Task(done) => !matches!(&**done, TaskReply::Claimed(claimed) if claimed.tasks.is_empty()),
            outcome => !model::is_undecided(outcome) && !outcome.lacks_room(),
        };
        if is_decided {
            let (reply, oldest) = (reply.clone(), self.store.vars.oldest_revision);
            self.answered.insert(owned, Answered { fingerprint, at: clock, reply, oldest });
        }
    }

    /// Compares what came of a command with what the model says.
    fn judge(&self, before: &Picture, command: &Command, reply: &Reply) {
        let after = Picture::of(&self.store);
        if !reply.replayed {
            quotas::judge(before, &command.action, &reply.outcome, &after);
        }
        match &command.action {
            Action::Write(op) if !reply.replayed => check_shown(before, op, reply.outcome.clone()),
            Action::Bulk(ops) if !reply.replayed => check_each_shown(before, ops, &reply.outcome),
            Action::Session(_) | Action::Lock(_) if !reply.replayed => {
                coordination::judge(before, &command.action, &reply.outcome, &after);
            }
            Action::Claim(op) if !reply.replayed => claims::judge(before, op, &reply.outcome),
            Action::Maintain(Maintenance::ExpireDue { .. }) => {
                let is_left = after.entries.values().any(|entry| entry.is_expired_at(after.vars.clock));
                let says_so = matches!(reply.outcome, Outcome::Maintained { more: true, .. });
                assert!(says_so || !is_left, "what is expired is left: {:?}", reply.outcome);
            }
            _ => {}
        }
        model::check_beside(before, &command.action, &after);
        if reply.replayed || model::is_undecided(&reply.outcome) {
            model::assert_same(before, &after);
        } else if quotas::refused(&reply.outcome) {
            // A transaction buries what is expired before it is refused.
            if matches!(reply.outcome, Outcome::Rejected(_)) {
                model::assert_same(before, &after);
            }
        } else if let Some(predicted) = model::predict(before, &command.action, &command.principal) {
            model::compare(predicted, &reply.outcome, &after);
        }
    }

    /// Compares what came of commands about entries, one after the other, with what the model says.
    fn judge_each(&self, before: &Picture, commands: &[Command], replies: &[Reply]) {
        let mut now = before.clone();
        for (command, reply) in commands.iter().zip(replies) {
            let is_silent = reply.replayed || model::is_undecided(&reply.outcome) || quotas::refused(&reply.outcome);
            if is_silent || !is_of_entries(&command.action) {
                return;
            }
            let Some((comes, then)) = model::predict(&now, &command.action, &command.principal) else { return };
            model::compare_answers(comes, &reply.outcome, None);
            now = then;
        }
        model::assert_same(&now, &Picture::of(&self.store));
    }

    /// What the past looked like does not change.
    fn check_past(&self, before: &Picture) {
        let revision = before.vars.revision;
        if revision < self.store.vars.oldest_revision {
            return;
        }
        for key in names::keys() {
            let was = before.entries.get(&key);
            let is = self.store.read_at(key.as_bytes(), revision);
            assert_eq!(
                was,
                is.as_ref(),
                "{key} at revision {revision} as it was on the left, as it is remembered on the right"
            );
        }
    }

    /// Keeps the history short.
    fn compact(&mut self) {
        if self.store.rows(quorate_machine::keyspace::family::AUDIT).len() > GROUPS {
            let revision = self.store.vars.revision - 10;
            let what = Maintenance::Compact { revision, groups_max: 50 };
            let command = Command::unnamed(Action::Maintain(what));
            self.store
                .apply(&[self.store.now(&[command])])
                .unwrap_or_else(|fault| panic!("compaction faults: {fault}"));
            self.store.check();
        }
    }
}

/// What a write shows is what was there; and it shows what was there before it where that is asked for.
fn check_shown(before: &Picture, op: &WriteOp, mut outcome: Outcome) {
    let was = before.live(&op.key).cloned().map(Shown::Whole);
    if let Outcome::Written(Written { previous, .. }) = &outcome {
        assert_eq!(previous.is_some(), op.return_previous && was.is_some(), "{op:?} is answered {outcome:?}");
    }
    outcome.each_shown(&mut |shown| {
        assert_eq!(Some(&*shown), was.as_ref(), "what is shown on the left, what was there on the right");
    });
}

/// The same of each write of a bulk to whose key there is no other.
fn check_each_shown(before: &Picture, ops: &[WriteOp], outcome: &Outcome) {
    let Outcome::Bulk(items) = outcome else { return };
    for (op, item) in ops.iter().zip(items) {
        let is_alone = ops.iter().filter(|other| other.key == op.key).count() == 1;
        match &item.outcome {
            ItemOutcome::Written(written) if is_alone => check_shown(before, op, Outcome::Written(written.clone())),
            ItemOutcome::Rejected(why) if is_alone => check_shown(before, op, Outcome::Rejected(why.clone())),
            _ => {}
        }
    }
}

/// Whether it is of those that name each entry that they may change.
fn is_of_entries(action: &Action) -> bool {
    matches!(action, Action::Write(_) | Action::Bulk(_) | Action::Txn(_))
}

/// Whatever a command about entries does, it demanded a right on each key that it changes.
fn check_required(command: &Command, changed: &[(Key, Revision)]) {
    if !is_of_entries(&command.action) {
        return;
    }
    let mut required = Vec::new();
    command.action.requirements(&mut |requirement| match requirement {
        Requirement::Permission(RequiredPermission::Name(permission, name)) if permission != Permission::Read => {
            required.push(KeyRange::of_key(name));
        }
        Requirement::Permission(RequiredPermission::Range(permission, start, end))
            if permission != Permission::Read =>
        {
            required.push(KeyRange::new(start.to_vec(), end.map(<[u8]>::to_vec)));
        }
        _ => {}
    });
    for (key, revision) in changed {
        let is_known = required.iter().any(|range| range.contains(key.as_bytes()));
        assert!(is_known, "{key} changed at {revision}, and no right on it was demanded by {command:?}");
    }
}
