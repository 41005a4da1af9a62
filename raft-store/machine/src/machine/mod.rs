//! The deterministic state machine: rows and a batch in, answers and writes out.
//!
//! Owns what every command means. Knows no clock, no randomness, no I/O and no hash-map order; time arrives as data in
//! the batch, so every node that applies the same log holds the same bytes. A refusal is an answer; an error is a
//! [`Fault`] of this node. Until the two are taken apart they are one error, which is `stop`'s.
//!
//! A feature with several files has a folder, whose head names its golden scripts. All of them extend [`Applier`].

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

mod access;
mod bounds;
mod bucket_uses;
mod budget;
mod collections;
mod contain;
mod coordination;
mod current;
mod entries;
mod epoch;
mod expect;
mod layered;
mod members;
mod overlay;
mod quotas;
mod refused;
mod requests;
mod stop;
mod tasks;
mod upkeep;
mod vars;
mod view;
mod wall;

pub use bounds::Bounds;
pub use contain::{Contained, ContainedWork, applying, catching, is_catching};
pub use epoch::{EPOCH_REVISIONS, Epoch, EpochStep};
pub use layered::Layered;
pub use vars::{BucketDigest, Sizes, Vars};
pub use view::{Fault, MemoryView, Most, Row, View, Write};
pub use wall::{WALL_BACK_MAX_MS, is_of_before, wall_after};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::codec::{self, CodecError};
use crate::command_codec;
use crate::keyspace::audit::{self, AuditEffect, AuditGroup, AuditLine, AuditOp};
use crate::keyspace::changes::{self, KeyChange};
use crate::limits;
use crate::mutants::Mutant;
use crate::types::CollectionRow;
use crate::types::{Action, Batch, Command, Key, Outcome, ROOT, Rejection, Reply, RequestId, Revision, Seed};
use bucket_uses::BucketUses;
use budget::Budget;
use overlay::Overlay;
use quotas::counts::KnownQuotas;
use stop::split;

/// Applies the batches of one apply call over a view that does not change meanwhile. Each command sees what the ones
/// before it did, also those of earlier batches.
///
/// Invariant: a batch comes to the same whichever batches stand before it in the call, since nodes group them differently. So all that
/// a command can ask for is in `batch`, which is made anew for each, but for:
/// - `overlay`, which answers by key and by range only, and as the view does once everything pending is written;
/// - `vars`, which are what is stored after the batch before. Digests and sizes, which are known when the call ends, are not among them
///   meanwhile: [`Overlay`] has them, and tells nobody;
/// - `bounds` and `is_containing`: the first is the same on every node, the second changes what becomes of a fault, and nothing else.
///
/// The rest is only written until the call ends.
pub struct Applier<'v, V: View> {
    overlay: Overlay<'v, V>,
    vars: Vars,
    bounds: Bounds,
    batch: Work,
    /// Whether faults are contained: until then the first ends everything.
    is_containing: bool,
    /// Bytes that the batches before this one have taken.
    spent: usize,
    changed: Vec<KeyChange>,
    woken: BTreeSet<Key>,
    contained: Vec<Contained>,
}

/// The batch being applied, and what is at hand while it is.
#[derive(Debug, Default)]
struct Work {
    /// Its log index; 0 before the first.
    index: u64,
    /// Revision before it.
    start: Revision,
    /// Its randomness.
    seed: Seed,
    /// What its commands have taken so far.
    budget: Budget,
    /// The bytes that were counted for each of them.
    costs: Vec<u32>,
    /// Steps of the command being applied, or of the part of it that has a bound of its own.
    steps: u64,
    /// Timers that fired at its head.
    fired: usize,
    /// Number in it of the command being applied.
    nth: u32,
    /// While writes share one revision: that, once the first of them took it.
    joint: Option<Option<Revision>>,
    /// Its audit lines.
    lines: Vec<AuditLine>,
    /// Collections looked for so far, those that are not declared too.
    known_collections: BTreeMap<Vec<u8>, Option<Arc<CollectionRow>>>,
    /// What is at hand of quotas.
    known_quotas: KnownQuotas,
    bucket_uses: BucketUses,
}

/// What an apply call comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// To be written in this order, in one atomic write with `vars`. Dropped ranges first, then one write for each
    /// row that changed, in key order.
    pub writes: Vec<Write>,
    /// The scalars after it.
    pub vars: Vars,
    /// Each change of a key, in order of revision. A key may be there more than once.
    pub changed: Vec<KeyChange>,
    /// What else somebody may wait for and that has changed, by the names that [`crate::types::Waker`] gives it.
    pub woken: BTreeSet<Key>,
    /// The faults that were contained. Whoever gets this must tell of them: each is a bug.
    pub contained: Vec<Contained>,
}

/// Who asked for a change, for its audit line. Nobody, where an entry expired.
#[derive(Default, Clone)]
struct Caller {
    request_id: Option<RequestId>,
    principal: String,
}

impl Caller {
    /// Whether it has rights on some things only.
    fn is_judged(&self) -> bool {
        !self.principal.is_empty() && self.principal != ROOT
    }
}

impl<'v, V: View> Applier<'v, V> {
    /// Starts on the rows and scalars as of the last apply call.
    pub fn new(view: &'v V, mut vars: Vars) -> Self {
        let overlay = Overlay::new(view, vars.take_sums());
        let batch = Work { start: vars.revision, ..Work::default() };
        let (changed, woken, contained) = (Vec::new(), BTreeSet::new(), Vec::new());
        let bounds = Bounds::default();
        Self { overlay, vars, bounds, batch, is_containing: false, spent: 0, changed, woken, contained }
    }

    /// Keeps to these bounds instead of a node's.
    pub fn within(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// One whose writes are thrown away. Its randomness is that of no batch: keys of locks are as long as real ones, and open none.
    fn rehearsing(view: &'v V, vars: &Vars, index: u64) -> Self {
        let mut applier = Self::new(view, vars.clone());
        applier.begin(index, Seed::default());
        applier
    }

    /// Applies one batch; one reply for each command, in order. `index` is the entry's log index. After an error
    /// the applier must be thrown away.
    pub fn apply_batch(&mut self, index: u64, batch: &Batch) -> Result<Vec<Reply>, Fault> {
        assert!(index > self.batch.index, "log index {index} applied after {}", self.batch.index);
        let is_first = self.batch.index == 0;
        self.begin(index, batch.seed);
        let clock_before = self.vars.clock;
        if is_first || !Mutant::TheClockStandsInACall.acts() {
            self.vars.clock = clock_before.max(batch.clock);
        }
        if is_first || !Mutant::TheWallClockStandsInACall.acts() {
            self.move_wall(batch.wall)?;
        }
        self.drop_old_buckets(clock_before);
        if is_first || !Mutant::TimersFireOnceACall.acts() {
            self.batch.fired = self.fire_due()?;
        }
        let mut replies = Vec::with_capacity(batch.commands.len());
        self.batch.costs.reserve_exact(batch.commands.len());
        for (nth, encoded) in (0..).zip(&batch.commands) {
            self.batch.nth = nth;
            let before = self.taken();
            replies.push(self.apply_next(encoded)?);
            let cost = self.taken().saturating_sub(before);
            self.batch.costs.push(u32::try_from(cost).unwrap_or(u32::MAX));
        }
        self.close_batch()?;
        Ok(replies)
    }

    /// Leaves behind all that was of the batch before.
    fn begin(&mut self, index: u64, seed: Seed) {
        self.spent = self.spent.saturating_add(self.taken());
        let before =
            std::mem::replace(&mut self.batch, Work { index, seed, start: self.vars.revision, ..Work::default() });
        self.overlay.begin_batch();
        self.outlive(before);
    }

    /// What bugs on purpose do not leave behind.
    fn outlive(&mut self, before: Work) {
        if before.index == 0 {
            return;
        }
        if Mutant::BudgetsGoOn.acts() {
            self.batch.budget = before.budget;
        }
        if Mutant::CollectionsOutliveTheirRules.acts() {
            self.batch.known_collections = before.known_collections;
        } else if Mutant::QuotasOutliveTheirChange.acts() || Mutant::LooksAtHandAreFree.acts() {
            self.batch.known_quotas = before.known_quotas;
        }
        if Mutant::AuditBeginsWithTheCall.acts() {
            self.batch.start = before.start;
        }
        if Mutant::OneRandomnessForACall.acts() {
            self.batch.seed = before.seed;
        }
    }

    /// Bytes that the batches so far read, write and answer: what [`Self::finish`] gives takes about as much memory.
    pub fn taken_bytes(&self) -> usize {
        self.spent.saturating_add(self.taken())
    }

    /// The bytes that were counted for each command of the batch applied last, see [`limits::BATCH_EFFECT_BYTES_MAX`]. They decide nothing
    /// that is applied.
    pub fn take_costs(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.batch.costs)
    }

    /// The writes of everything applied so far.
    pub fn finish(mut self) -> Applied {
        let writes = self.overlay.finish(&mut self.vars);
        Applied { writes, vars: self.vars, changed: self.changed, woken: self.woken, contained: self.contained }
    }

    /// Applies a command, unless those before it took all that one batch may.
    fn apply_next(&mut self, encoded: &[u8]) -> Result<Reply, Fault> {
        if self.has_taken_all() {
            return Ok(self.reply(Outcome::Deferred));
        }
        let reply = match self.at_savepoint(|applier| applier.apply_command(encoded))? {
            Ok(reply) => reply,
            Err(fault) => self.faulted(encoded, fault)?,
        };
        self.take_bytes(reply.outcome.value_bytes());
        self.take_bytes(reply.outcome.detail_bytes());
        Ok(reply)
    }

    /// A row in its decoded form, if it is there; it is not kept at hand.
    fn decoded<T: bincode::Decode<crate::codec::Written>>(&self, row_key: &[u8]) -> Result<Option<T>, Fault> {
        let row = self.overlay.peek(row_key)?;
        row.map(|row| codec::decode(&row).map_err(|error| Fault::row(row_key, error))).transpose()
    }

    /// What a command would answer. One that would be deferred, to come again after what it did, has nothing to come after.
    fn rehearsed(&mut self, command: &Command) -> Result<Reply, Fault> {
        let reply = self.apply_command(&command_codec::encode_command(command))?;
        Ok(match reply.outcome {
            Outcome::Deferred => {
                let limit = self.bounds.txn_bytes as u64;
                self.reply(Outcome::Rejected(Rejection::TooMuch { limit }))
            }
            _ => reply,
        })
    }

    fn apply_command(&mut self, encoded: &[u8]) -> Result<Reply, Fault> {
        let command = match readable(encoded) {
            Ok(command) => command,
            Err(reason) => return Ok(self.refuse(None, Caller::default(), Rejection::Unsupported(reason))),
        };
        let Some(id) = &command.request_id else {
            return match self.is_still_authorised(&command) {
                true => self.execute(command),
                false => Ok(self.access_changed()),
            };
        };
        let id = id.clone();
        let fingerprint = requests::fingerprint_of(encoded);
        match self.kept_reply(&id, &command.principal)? {
            Some(kept) if kept.fingerprint == fingerprint => self.replay(&command.action, kept.reply),
            Some(_) => {
                let key = match command.action {
                    Action::Write(op) => Some(op.key),
                    _ => None,
                };
                let caller = Caller { request_id: Some(id), principal: command.principal };
                Ok(self.refuse(key, caller, Rejection::RequestIdReused))
            }
            None if !self.is_still_authorised(&command) => Ok(self.access_changed()),
            None => {
                if let Err(rejection) = split(self.check_request_table(&command))? {
                    return Ok(self.reply(Outcome::Rejected(rejection)));
                }
                let principal = command.principal.clone();
                let reply = self.execute(command)?;
                if is_kept(&reply.outcome) && !Mutant::OutcomesAreForgotten.acts() {
                    self.keep_reply(&id.0, (fingerprint, encoded.len()), &reply, &principal)?;
                }
                Ok(reply)
            }
        }
    }

    fn execute(&mut self, command: Command) -> Result<Reply, Fault> {
        self.begin_steps();
        let caller = Caller { request_id: command.request_id, principal: command.principal };
        let outcome = match command.action {
            Action::Write(op) => match split(self.write(op, caller))? {
                Ok(written) => Outcome::Written(written),
                Err(rejection) => Outcome::Rejected(rejection),
            },
            Action::Bulk(ops) => self.bulk(ops, caller)?,
            Action::Txn(txn) => self.txn(&txn, caller)?,
            Action::Where(op) => self.update_where(&op, caller)?,
            Action::Claim(op) => self.claim(&op, caller)?,
            Action::Rules(op) => self.set_rules(op, caller)?,
            Action::Numbers(op) => self.numbers(&op, caller)?,
            Action::Session(op) => self.session(op, caller)?,
            Action::Lock(op) => self.lock(op, caller)?,
            Action::Barrier(op) => self.barrier(&op, caller)?,
            Action::Latch(op) => self.latch(&op, caller)?,
            Action::Task(op) => self.task(op, caller)?,
            Action::Access(op) => self.set_access(op, caller)?,
            Action::Maintain(what) => self.maintain(what)?,
            Action::Faults(op) => self.faults(op, caller)?,
            Action::Members(op) => self.set_members(op, caller)?,
            Action::Quota(op) => self.set_quota(op, caller)?,
        };
        Ok(self.reply(outcome))
    }

    /// Refuses a command that was authorised by other rules. No line of audit: it is not decided, and comes again.
    fn access_changed(&self) -> Reply {
        self.reply(Outcome::Rejected(Rejection::AccessChanged))
    }

    /// Refuses a command that is not even looked at against the state.
    fn refuse(&mut self, key: Option<Key>, caller: Caller, rejection: Rejection) -> Reply {
        self.record(AuditOp::Unknown, key, caller, AuditEffect::Refused((&rejection).into()));
        self.reply(Outcome::Rejected(rejection))
    }

    /// The revision that the next change takes.
    fn next_revision(&self) -> Result<Revision, Fault> {
        match self.batch.joint {
            Some(Some(revision)) => Ok(revision),
            None | Some(None) => successor(self.vars.revision),
        }
    }

    /// Takes a revision for a change.
    fn take_revision(&mut self) -> Result<(), Fault> {
        let revision = self.next_revision()?;
        self.vars.revision = revision;
        self.batch.joint = self.batch.joint.map(|_| Some(revision));
        Ok(())
    }

    /// Does something of which all changes share one revision.
    fn sharing_revision<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        assert!(self.batch.joint.is_none(), "a joint revision within another: {:?}", self.batch.joint);
        self.batch.joint = Some(None);
        let done = work(self)?;
        self.batch.joint = None;
        Ok(done)
    }

    fn reply(&self, outcome: Outcome) -> Reply {
        Reply {
            index: self.batch.index,
            revision: self.vars.revision,
            clock: self.vars.clock,
            replayed: false,
            outcome,
        }
    }

    /// Adds a line at the current revision.
    fn record(&mut self, op: AuditOp, key: Option<Key>, caller: Caller, effect: AuditEffect) {
        let Caller { request_id, principal } = caller;
        let line = AuditLine { revision: self.vars.revision, op, key, request_id, principal, effect };
        self.take_line(audit::line_bytes(&line));
        self.batch.lines.push(line);
    }

    /// Writes what is written once a batch.
    fn close_batch(&mut self) -> Result<(), Fault> {
        self.close_audit_group()?;
        self.write_bucket_uses()
    }

    /// Writes the batch's lines as one row and tells its changes.
    fn close_audit_group(&mut self) -> Result<(), Fault> {
        if self.batch.lines.is_empty() {
            return Ok(());
        }
        let group = AuditGroup {
            index: self.batch.index,
            clock: self.vars.clock,
            wall: self.vars.wall,
            first_revision: self.batch.start.saturating_add(1),
            last_revision: self.vars.revision,
            lines: std::mem::take(&mut self.batch.lines),
        };
        if group.last_revision > self.batch.start {
            self.overlay.insert_new(audit::row_key(group.last_revision, self.batch.index), audit::encode(&group))?;
        } else {
            self.record_refusals(&group)?;
        }
        changes::append(group, &mut self.changed);
        Ok(())
    }
}

/// What a command would answer, by the same code as [`Applier::apply_batch`] with the clocks as they are; nothing is
/// written. `index` is that of the last applied entry. A request id is looked up as usual.
pub fn evaluate<V: View>(view: &V, vars: &Vars, index: u64, command: &Command) -> Result<Reply, Fault> {
    let mut applier = Applier::rehearsing(view, vars, index);
    catching(|| applier.rehearsed(command))
}

/// Judges several commands in turn, each in a batch of its own, and each seeing what those before it would
/// do. `next` is told what the last one would answer, and gives the next until it has none. Once they have taken
/// [`limits::REHEARSAL_BYTES_MAX`], a command is answered by [`Rejection::TooMuch`] with that limit.
pub fn rehearse<V: View>(
    view: &V,
    vars: &Vars,
    index: u64,
    next: &mut dyn FnMut(Option<Reply>) -> Option<Command>,
) -> Result<(), Fault> {
    let mut applier = Applier::rehearsing(view, vars, index);
    let mut reply = None;
    while let Some(command) = next(reply.take()) {
        applier.begin(index, Seed::default());
        let limit = limits::REHEARSAL_BYTES_MAX as u64;
        reply = Some(match applier.taken_bytes() as u64 > limit {
            true => applier.reply(Outcome::Rejected(Rejection::TooMuch { limit })),
            false => catching(|| applier.rehearsed(&command))?,
        });
    }
    Ok(())
}

/// Whether an outcome is kept under the request id.
fn is_kept(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Deferred => false,
        Outcome::Task(done) => done.is_kept(),
        // The same request succeeds once there is less, or may be more.
        outcome if outcome.lacks_room() => false,
        _ => true,
    }
}

/// The key of a stored row.
fn stored_key(key: &[u8]) -> Result<Key, Fault> {
    Key::new(key).map_err(|error| Fault::Invariant(format!("a stored key: {error}")))
}

/// The next revision or version.
fn successor(number: u64) -> Result<u64, Fault> {
    number.checked_add(1).ok_or_else(|| Fault::Invariant("a revision or version at the end of its range".into()))
}

/// Decodes a command; says what is wrong with one that this build cannot read. A build of a later level says the same, word for word,
/// of what this one cannot decode, until that level is reached.
fn readable(encoded: &[u8]) -> Result<Command, String> {
    if encoded.len() > limits::COMMAND_BYTES_MAX {
        return Err(format!("a command of {} bytes; the largest has {}", encoded.len(), limits::COMMAND_BYTES_MAX));
    }
    let command = command_codec::decode_command(encoded).map_err(|error| match error {
        // bincode's words name Rust types as the compiler at hand spells them.
        CodecError::Malformed(_) => "a command that this build cannot decode".to_owned(),
        CodecError::Empty | CodecError::UnknownVersion { .. } => error.to_string(),
    })?;
    if !command.request_id.as_ref().is_none_or(RequestId::is_valid) {
        return Err(format!("a request id is 1 to {} bytes of printable ASCII", limits::REQUEST_ID_BYTES_MAX));
    }
    Ok(command)
}
