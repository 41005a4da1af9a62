//! The vocabulary of the replicated state machine: what a log entry asks for and what applying it answers.
//!
//! Owns the types that are written to the log and the state, in their bincode form (see [`crate::codec`]).
//! Never used as public JSON: the wire types live in `quorate-client` and age differently; the node converts.

mod access;
mod collection;
mod coordination;
mod many;
mod members;
mod name;
mod query;
mod quota;
mod ranges;
mod rejection;
mod task;
mod task_name;
mod waker;

use bincode::{Decode, Encode};

use crate::document::{Criteria, Patch};
use crate::level::Level;
use crate::limits;

pub use crate::entry::{
    ClusterMillis, ContentKind, Entry, EntryMeta, Key, KeyError, Revision, SessionId, Shown, Value, WallMillis,
};
pub use access::{
    AccessFault, AccessOp, AccessReply, NewToken, NoTokenId, ROOT, RoleName, RoleRow, SecretHash, TokenId, TokenRow,
    UserName, UserRow,
};
pub use collection::{CollectionRow, IndexFailure, IndexStage, IndexState};
pub use coordination::{
    Acquire, BarrierOp, BarrierRow, Elected, Guard, LatchOp, LatchRow, LockMode, LockName, LockOp, LockReply,
    LockSpace, Question, SessionOp, SessionReply,
};
pub use many::{
    Branch, Branched, BulkItem, Check, CheckFailed, ItemOutcome, Step, StepRejected, StepReply, Txn, TxnFault, TxnReply,
};
pub use members::{InvitationRow, MembersFault, MembersOp, MembersReply, NewInvitation, NodeDisk, RemovedRow};
pub use name::Name;
pub use query::{ClaimOp, ClaimReply, NumbersOp, RulesChange, RulesOp, WhereChange, WhereItem, WhereOp, WhereReply};
pub use quota::{
    BeyondQuota, Counted, PrefixUse, PrincipalUse, QuotaBounds, QuotaOp, QuotaRow, QuotaState, QuotaSubject,
};
pub use ranges::{
    Compared, Comparison, ComparisonOperator, KeyRange, ListOrder, ListOrderBy, ListShown, ListStep, Listed,
    RemoveStep, Removed, RevisionFilter,
};
pub use rejection::{Bounded, Refusal, Rejection, TxnRefusal};
pub use task::{
    AfterFailure, ClaimedTask, NewTask, PlanTask, Recurrence, Requeue, RetryPlan, ScheduledTask, Start, TaskHead,
    TaskOp, TaskReply, TaskState, TaskSummary, TaskVerb, TasksClaimed, Ticket,
};
pub use task_name::{QueueName, TaskId};
pub use waker::Waker;

/// Condition of a write on the current entry: whether there is one, and which version it is. Both have to hold.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Expect {
    /// The condition on its presence.
    pub presence: Presence,
    /// The condition on its token.
    pub tokens: Tokens,
}

/// Condition on there being an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Presence {
    /// Either way.
    Any,
    /// None (`If-None-Match: *`), or the write is rejected with [`Rejection::AlreadyExists`].
    Absent,
    /// One (`If-Match`), or the write is rejected with [`Rejection::NotFound`].
    Present,
}

/// Condition on the token of the current entry. Without an entry [`Self::One`] and [`Self::AnyOf`] do not hold, the others do.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Tokens {
    /// Any.
    Any,
    /// Exactly this one (`If-Match: "cas"`).
    One(u64),
    /// One of these, at most [`limits::EXPECT_TOKENS_MAX`] (`If-Match: "cas", "cas"`).
    AnyOf(Vec<u64>),
    /// None of these, as many at most (`If-None-Match: "cas"`).
    NoneOf(Vec<u64>),
}

impl Expect {
    /// Nothing is expected.
    pub const ANY: Self = Self { presence: Presence::Any, tokens: Tokens::Any };

    /// No entry is there.
    pub const ABSENT: Self = Self { presence: Presence::Absent, tokens: Tokens::Any };

    /// Some entry is there.
    pub const PRESENT: Self = Self { presence: Presence::Present, tokens: Tokens::Any };

    /// The entry has this token.
    pub fn cas(token: u64) -> Self {
        Self { tokens: Tokens::One(token), ..Self::ANY }
    }

    /// The entry has one of these tokens.
    pub fn any_of(tokens: Vec<u64>) -> Self {
        Self { tokens: Tokens::AnyOf(tokens), ..Self::ANY }
    }

    /// The entry has none of these tokens.
    pub fn none_of(tokens: Vec<u64>) -> Self {
        Self { tokens: Tokens::NoneOf(tokens), ..Self::ANY }
    }

    /// Expects that there is an entry, too.
    pub fn and_present(self) -> Self {
        Self { presence: Presence::Present, ..self }
    }
}

/// The change itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Change {
    /// Creates or overwrites. [`WriteOp::expect`] says whether it may do only one of the two.
    Put(Value),
    /// Changes an existing document.
    Patch(Patch),
    /// Deletes an existing key.
    Remove,
    /// Changes only the expiry.
    Touch,
    /// Locks for so many milliseconds of cluster clock; the token it gets is the key. Rejected with [`Rejection::Locked`]
    /// while another lock holds. Any write with the key ends the lock.
    Lock(u64),
    /// Lets a lock hold for so many milliseconds from now; takes the key.
    Extend(u64),
    /// Ends a lock; takes the key. The token stays what it is.
    Unlock,
    /// Patches, if that is asked for, and locks in the same step: what a claim does.
    Claim {
        /// As with [`Self::Lock`].
        ms: u64,
        /// As with [`Self::Patch`].
        patch: Option<Patch>,
    },
}

impl Change {
    /// Whether it is about a lock, and leaves the entry as it is.
    pub fn is_of_lock(&self) -> bool {
        matches!(self, Self::Lock(_) | Self::Extend(_) | Self::Unlock | Self::Claim { patch: None, .. })
    }

    /// The bytes of the value that it brings.
    pub fn data(&self) -> &[u8] {
        match self {
            Self::Put(value) => &value.data,
            _ => &[],
        }
    }

    /// How it patches a document, if it does.
    pub fn patch(&self) -> Option<&Patch> {
        match self {
            Self::Patch(patch) => Some(patch),
            Self::Claim { patch, .. } => patch.as_ref(),
            _ => None,
        }
    }

    /// Whether the entry it leaves, if any, has another value than before.
    pub fn brings_value(&self) -> bool {
        matches!(self, Self::Put(_)) || self.patch().is_some()
    }

    /// Whether the change needs an entry, in addition to what the write expects.
    pub fn needs_entry(&self) -> bool {
        !matches!(self, Self::Put(_))
    }
}

/// What a write does to the expiry of its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Expiry {
    /// Leaves it: the default of a patch. For a new entry: never expires.
    Keep,
    /// Never expires.
    Never,
    /// Expires this many milliseconds of cluster clock after the command's own clock stamp.
    After(u64),
    /// The time of the collection, or never without one: the default of a put.
    Usual,
}

/// One conditional write of one key.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WriteOp {
    /// The key.
    pub key: Key,
    /// What must hold of its being there and of its token.
    pub expect: Expect,
    /// What else must hold, also of a key without an entry where the change creates one. Looked at after `expect`.
    pub condition: Criteria,
    /// What to do.
    pub change: Change,
    /// What happens to the expiry.
    pub expiry: Expiry,
    /// Whether the answer carries the entry as it was before.
    pub return_previous: bool,
    /// The session that the entry goes with from now on. Without one a put leaves an entry that goes with none, and any other change
    /// leaves that as it is.
    pub session: Option<SessionId>,
    /// A token that must hold a lock.
    pub guard: Option<Box<Guard>>,
}

impl WriteOp {
    /// Removes an entry, whatever it is.
    pub fn removal(key: Key, return_previous: bool) -> Self {
        Self {
            key,
            expect: Expect::ANY,
            condition: Criteria::default(),
            change: Change::Remove,
            expiry: Expiry::Keep,
            return_previous,
            session: None,
            guard: None,
        }
    }
}

/// Work that the leader proposes by itself. Each is bounded, re-checked at apply, and takes no request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Maintenance {
    /// Removes up to `limit` entries whose deadline is not after the batch's clock. One revision for each entry removed.
    ExpireDue {
        /// Most entries removed by this command.
        limit: u32,
    },
    /// Drops history up to and including `revision`, at most `groups_max` audit groups in this step. Takes no revision.
    Compact {
        /// Revision to compact to. Older than the compacted one: nothing happens. Clamped to the current one.
        revision: Revision,
        /// Most audit groups dropped by this command.
        groups_max: u32,
    },
    /// Goes on with the building of indexes, then with the clearing of those that failed or were dropped. Takes no revision.
    Indexes {
        /// Most entries and rows looked at by this command.
        rows_max: u32,
    },
    /// Raises the feature level, see [`crate::level`]; nothing where it is as high already. A node that does not know the
    /// level stops. Takes no revision.
    RaiseLevel {
        /// Every member said that it knows it.
        level: Level,
    },
    /// Goes on with the counting of what prefixes had before their quotas; nothing where that is done. Takes no revision.
    Count,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Action {
    /// A client's write.
    Write(WriteOp),
    /// The leader's own housekeeping.
    Maintain(Maintenance),
    /// Several writes, each on its own, in order, as if they had come one after the other: at most
    /// [`limits::COMMAND_WRITES_MAX`].
    Bulk(Vec<WriteOp>),
    /// Several writes, all or none.
    Txn(Txn),
    /// Writes of what is found.
    Where(WhereOp),
    /// Locks of what is found.
    Claim(ClaimOp),
    /// Rules of a collection.
    Rules(RulesOp),
    /// Numbers from a sequence.
    Numbers(NumbersOp),
    /// A session, or several.
    Session(SessionOp),
    /// A lock or an election.
    Lock(LockOp),
    /// A barrier.
    Barrier(BarrierOp),
    /// A latch.
    Latch(LatchOp),
    /// Something about timed tasks.
    Task(TaskOp),
    /// Users, roles and tokens.
    Access(AccessOp),
    /// What an operator does about contained faults.
    Faults(FaultsOp),
    /// Who may become a member.
    Members(MembersOp),
    /// Quotas.
    Quota(QuotaOp),
}

impl Action {
    /// Whether others hold on to life by what it does: it is small, and waits for nothing that is not.
    pub fn is_vital(&self) -> bool {
        matches!(self, Self::Session(_) | Self::Lock(_) | Self::Barrier(_) | Self::Latch(_))
    }

    /// About how many values its answer shows because they were asked for: each may be as long as a value may be, and all of them
    /// together no longer than what [`limits::ASKED_VALUES_MAX`] of them come to. Values in a refusal are not counted but in a bulk, whose
    /// writes may each be refused while the others take effect.
    pub fn values_asked(&self) -> usize {
        let asked = match self {
            Self::Write(op) => usize::from(op.return_previous),
            Self::Bulk(ops) => ops.len(),
            Self::Txn(txn) => txn.values_asked(),
            Self::Claim(op) => op.limit as usize,
            Self::Where(_)
            | Self::Maintain(_)
            | Self::Rules(_)
            | Self::Numbers(_)
            | Self::Session(_)
            | Self::Lock(_)
            | Self::Barrier(_)
            | Self::Latch(_)
            | Self::Task(_)
            | Self::Access(_)
            | Self::Faults(_)
            | Self::Members(_)
            | Self::Quota(_) => 0,
        };
        asked.min(limits::ASKED_VALUES_MAX)
    }
}

/// What an operator does about contained faults, see [`crate::keyspace::fault`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum FaultsOp {
    /// Forgets the faulted commands that are kept.
    Forget,
    /// Tries work that was set aside again; holds the row key of the work. It is set aside again where it faults again.
    Retry(Vec<u8>),
    /// Gives up work that was set aside; holds the row key of the work.
    Drop(Vec<u8>),
}

/// A request id as the client gave it: 1 to [`limits::REQUEST_ID_BYTES_MAX`] bytes of printable ASCII; or of a part of such
/// a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct RequestId(pub String);

impl RequestId {
    /// Stands between a request's id and the number of a part. No client's id has it, so none can be that of a part.
    const PART_MARK: char = '\u{1f}';

    /// The id of the part of a request that begins with its item `from`; the first part has the request's own.
    pub fn of_part(&self, from: usize) -> Self {
        if from == 0 { self.clone() } else { Self(format!("{}{}{from}", self.0, Self::PART_MARK)) }
    }

    /// Whether it is within its bounds.
    pub fn is_valid(&self) -> bool {
        let (id, part) = self.0.split_once(Self::PART_MARK).unwrap_or((&self.0, ""));
        (1..=limits::REQUEST_ID_BYTES_MAX).contains(&id.len())
            && id.bytes().all(|byte| matches!(byte, b' '..=b'~'))
            && part.len() < limits::REQUEST_PART_BYTES_MAX
            && part.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// One command of a batch. Its encoded form is [`crate::command_codec::encode_command`]'s.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Under which the outcome is kept for retries.
    pub request_id: Option<RequestId>,
    /// Who asked, for the audit line. Empty while no authentication is configured.
    pub principal: String,
    /// What to do. A retry under the same id must carry the same action, compared by [`Command::fingerprint`].
    pub action: Action,
    /// [`crate::machine::Vars::access`] as it was when its principal was found to be allowed to do this: under any other it is
    /// refused with [`Rejection::AccessChanged`]. `None` for what nobody asked for, and while authentication is off. Never
    /// [`Command::NO_ACCESS_REVISION`].
    pub access_revision: Option<u64>,
}

impl Command {
    /// Stands for no access revision in the encoded form: no store gets to this revision.
    pub const NO_ACCESS_REVISION: u64 = u64::MAX;

    /// One that nobody tries again: of a node itself, or only to be evaluated.
    pub fn unnamed(action: Action) -> Self {
        Self { request_id: None, principal: String::new(), action, access_revision: None }
    }
}

/// Randomness as data.
pub type Seed = [u8; 16];

/// What one normal Raft entry holds: a clock stamp and commands, applied in order.
///
/// Invariant: a batch without commands only moves the clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The proposer's cluster clock. Apply uses `max(previous, this)`.
    pub clock: ClusterMillis,
    /// The cluster's wall clock, as the proposer stamped it: where a majority of the members' clocks is. Apply takes it, also where it was
    /// walked back, but for a little: see [`crate::machine::wall_after`].
    pub wall: WallMillis,
    /// Random bytes of the proposer, of which the machine makes what nobody may guess.
    pub seed: Seed,
    /// The commands, each in the encoded form of [`crate::command_codec::encode_command`].
    pub commands: Vec<bytes::Bytes>,
}

/// A write that took effect.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Written {
    /// The entry after the write; `None` once it is removed.
    pub meta: Option<EntryMeta>,
    /// The entry before the write, where the command asked for it and there was one.
    pub previous: Option<Shown>,
}

impl Written {
    /// Bytes of the value that it carries.
    pub(crate) fn value_bytes(&self) -> usize {
        self.previous.as_ref().map_or(0, Shown::value_bytes)
    }
}

/// The outcome of one command.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Outcome {
    /// A write took effect at [`Reply::revision`].
    Written(Written),
    /// Nothing changed; evaluated at [`Reply::revision`].
    Rejected(Rejection),
    /// Housekeeping done: how many things it removed, and whether more is left.
    Maintained {
        /// Entries, groups or records removed.
        removed: u32,
        /// Whether the same command would find more to do.
        more: bool,
    },
    /// What came of each item of a bulk; evaluated at or before [`Reply::revision`].
    Bulk(Vec<BulkItem>),
    /// A transaction was carried out at [`Reply::revision`], or evaluated there where it had nothing to write.
    Txn(TxnReply),
    /// What came of what was found.
    Where(WhereReply),
    /// What was locked at [`Reply::revision`], or that nothing was found there.
    Claimed(ClaimReply),
    /// Rules were set at [`Reply::revision`], or removed: the collection as it is now.
    RulesSet(Option<Box<CollectionRow>>),
    /// Numbers were drawn at [`Reply::revision`].
    Numbers {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
    },
    /// What came of a session.
    Session(SessionReply),
    /// What came of a lock.
    Lock(LockReply),
    /// The barrier as it is now; `None` once all have left.
    Barrier(Option<BarrierRow>),
    /// The latch as it is now; `None` once it is removed.
    Latch(Option<LatchRow>),
    /// A transaction had no effect; evaluated at [`Reply::revision`].
    TxnRejected(Box<StepRejected>),
    /// Not decided: the commands before it took all that a batch may, see [`limits::BATCH_EFFECT_BYTES_MAX`]. Nothing is
    /// kept of it, so it may be proposed again, as if it had never been.
    Deferred,
    /// What came of something about timed tasks, at [`Reply::revision`].
    Task(Box<TaskReply>),
    /// What came of something about users, roles and tokens.
    Access(Box<AccessReply>),
    /// What came of something about newcomers.
    Members(MembersReply),
    /// The quota as it is now; `None` once it is removed.
    Quota(Option<Box<QuotaRow>>),
}

impl Outcome {
    /// Visits every entry that it shows, in the order of what was asked.
    pub fn each_shown(&mut self, visit: &mut dyn FnMut(&mut Shown)) {
        match self {
            Self::Written(written) => written.previous.iter_mut().for_each(visit),
            Self::Rejected(rejection) => rejection.current_mut().into_iter().for_each(visit),
            Self::Bulk(items) => items.iter_mut().filter_map(|item| item.outcome.shown_mut()).for_each(visit),
            Self::Txn(done) => done.each_shown(visit),
            Self::TxnRejected(rejected) => rejected.why.current_mut().into_iter().for_each(visit),
            Self::Where(done) => done.items.iter_mut().filter_map(|item| item.why.current_mut()).for_each(visit),
            Self::Claimed(done) => {
                let refused = done.refused.iter_mut().filter_map(|item| item.why.current_mut());
                done.entries.iter_mut().map(|(_, shown)| shown).chain(refused).for_each(visit);
            }
            Self::Session(_) | Self::Lock(_) | Self::Barrier(_) | Self::Latch(_) => {}
            // The payloads of tasks are no entries.
            Self::Task(_) => {}
            Self::RulesSet(_) | Self::Numbers { .. } | Self::Maintained { .. } | Self::Deferred => {}
            Self::Access(_) | Self::Members(_) | Self::Quota(_) => {}
        }
    }

    /// Whether all of it was refused because there is too much already. Nothing of that is kept under the request id: the same
    /// request may succeed later.
    pub fn lacks_room(&self) -> bool {
        match self {
            Self::Rejected(why) => why.lacks_room(),
            Self::TxnRejected(rejected) => rejected.why.lacks_room(),
            _ => false,
        }
    }

    /// Steps that were taken for what was refused since it takes too many. They were taken in vain, on every node.
    pub fn steps_in_vain(&self) -> u64 {
        let of = |why: &Rejection| match why {
            Rejection::TooDear(dear) => dear.actual.min(dear.limit),
            _ => 0,
        };
        match self {
            Self::Rejected(why) => of(why),
            Self::TxnRejected(rejected) => of(&rejected.why),
            Self::Bulk(items) => items.iter().filter_map(|item| item.outcome.rejection()).map(of).sum(),
            Self::Where(done) => done.items.iter().map(|item| of(&item.why)).sum(),
            Self::Claimed(done) => done.refused.iter().map(|item| of(&item.why)).sum(),
            _ => 0,
        }
    }

    /// Visits every reason for which something of what was asked was refused.
    fn each_rejection(&mut self, visit: &mut dyn FnMut(&mut Rejection)) {
        match self {
            Self::Rejected(rejection) => visit(rejection),
            Self::Bulk(items) => items.iter_mut().filter_map(|item| item.outcome.rejection_mut()).for_each(visit),
            Self::Txn(done) => done.each_rejection(visit),
            Self::TxnRejected(rejected) => visit(&mut rejected.why),
            Self::Where(done) => done.items.iter_mut().for_each(|item| visit(&mut item.why)),
            Self::Claimed(done) => done.refused.iter_mut().for_each(|item| visit(&mut item.why)),
            _ => {}
        }
    }

    /// Bytes in which it says why something was refused, beside values.
    pub fn detail_bytes(&self) -> usize {
        match self {
            Self::Rejected(rejection) => rejection.detail_bytes(),
            Self::Bulk(items) => items.iter().map(|item| item.outcome.detail_bytes()).sum(),
            Self::Txn(done) => done.detail_bytes(),
            Self::TxnRejected(rejected) => rejected.why.detail_bytes(),
            Self::Where(done) => done.items.iter().map(|item| item.why.detail_bytes()).sum(),
            Self::Claimed(done) => done.refused.iter().map(|item| item.why.detail_bytes()).sum(),
            _ => 0,
        }
    }

    /// About the bytes of a row for its lists: of entries that were only looked at, so they may be long however short the command was.
    /// The outcomes of its own writes are not counted.
    pub fn listed_bytes(&self) -> usize {
        match self {
            Self::Txn(done) => done.listed_bytes(),
            Self::Where(done) => done.items.iter().map(WhereItem::listed_bytes).sum(),
            Self::Claimed(done) => done.refused.iter().map(WhereItem::listed_bytes).sum(),
            _ => 0,
        }
    }

    /// Leaves out what it lists, and says so.
    fn drop_listed(&mut self) {
        match self {
            Self::Txn(done) => done.drop_listed(),
            Self::Where(done) => (done.items, done.left_out) = (Vec::new(), true),
            Self::Claimed(done) => (done.refused, done.left_out) = (Vec::new(), true),
            _ => {}
        }
    }

    /// How many items or steps it tells of; 0 for that of a single write.
    pub fn parts(&self) -> usize {
        match self {
            Self::Bulk(items) => items.len(),
            Self::Txn(done) => done.parts(),
            Self::Task(done) => done.parts(),
            Self::Where(done) => done.items.len(),
            Self::Claimed(done) => done.entries.len() + done.refused.len(),
            _ => 0,
        }
    }

    /// Bytes of the values that it carries.
    pub fn value_bytes(&self) -> usize {
        match self {
            Self::Written(written) => written.value_bytes(),
            Self::Rejected(rejection) => rejection.value_bytes(),
            Self::Bulk(items) => items.iter().map(|item| item.outcome.value_bytes()).sum(),
            Self::Txn(done) => done.value_bytes(),
            Self::TxnRejected(rejected) => rejected.why.value_bytes(),
            Self::Where(done) => done.items.iter().map(|item| item.why.value_bytes()).sum(),
            Self::Claimed(done) => {
                let refused = done.refused.iter().map(|item| item.why.value_bytes());
                done.entries.iter().map(|(_, shown)| shown.value_bytes()).chain(refused).sum()
            }
            Self::Session(_) | Self::Lock(_) | Self::Barrier(_) | Self::Latch(_) => 0,
            Self::Task(done) => done.value_bytes(),
            Self::RulesSet(_) | Self::Numbers { .. } | Self::Maintained { .. } | Self::Deferred => 0,
            Self::Access(_) | Self::Members(_) | Self::Quota(_) => 0,
        }
    }
}

/// The answer to one command. Without the value of the entry it shows, also what the request table keeps.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Reply {
    /// Log index of the Raft entry that decided it.
    pub index: u64,
    /// Revision at which it took effect, or at which it was evaluated without effect.
    pub revision: Revision,
    /// Cluster clock at which it was evaluated.
    pub clock: ClusterMillis,
    /// Whether this is the kept answer of an earlier try.
    pub replayed: bool,
    /// What happened.
    pub outcome: Outcome,
}

impl Reply {
    /// A copy that does not say why in detail something was refused.
    pub(crate) fn without_details(&self) -> Self {
        let mut short = self.clone();
        short.outcome.each_rejection(&mut Rejection::drop_details);
        short
    }

    /// A copy that does not have what was only listed.
    pub(crate) fn without_listed(&self) -> Self {
        let mut short = self.clone();
        short.outcome.drop_listed();
        short
    }

    /// A copy without the values of the entries that it shows.
    pub fn to_bare(&self) -> Self {
        let mut bare = self.clone();
        bare.outcome.each_shown(&mut |shown| *shown = shown.to_bare());
        if let Outcome::Task(done) = &mut bare.outcome {
            done.make_bare();
        }
        bare
    }
}
