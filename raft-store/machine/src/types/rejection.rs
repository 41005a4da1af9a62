//! Why a command had no effect: the one list of it.
//!
//! Owns the reasons as the log's replies carry them, and their kinds as the audit keeps them. A new reason is declared here, and gets its words and
//! its error code in the gateway of a node. Never decides anything, and never speaks to users.

use bincode::{Decode, Encode};

use super::{AccessFault, BeyondQuota, Guard, Key, MembersFault, Revision, SessionId, Shown, TaskSummary};
use crate::codec;
use crate::document::path::Path;
use crate::document::{PatchRefusal, TooDear, Unmet};
use crate::rules::{CollectionName, RuleFault};

/// Why a command had no effect. Small enough to be passed around as it is: what is large and rare is boxed. Every one of these is definite, the same on every node, and kept for retries.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Rejection {
    /// A write that expects [`crate::types::Presence::Absent`] on a key that exists.
    AlreadyExists {
        /// The entry as it is.
        current: Shown,
    },
    /// A write that needs an entry or expects [`crate::types::Presence::Present`] on a key that does not exist.
    NotFound,
    /// The token given is not the current one.
    CasMismatch {
        /// The token that the command expected; `None` where it named several, or none and the entry is locked.
        expected: Option<u64>,
        /// The entry as it is, if any.
        current: Option<Shown>,
    },
    /// The current token is one of those of [`crate::types::Tokens::NoneOf`].
    CasListed {
        /// The entry as it is.
        current: Shown,
    },
    /// Somebody else holds the lock: a lock, or an unlock or extension without the key.
    Locked {
        /// The entry as it is.
        current: Shown,
    },
    /// An unlock or extension of an entry that is not locked, or not any more.
    NotLocked {
        /// The entry as it is.
        current: Shown,
    },
    /// [`crate::types::WriteOp::condition`] does not hold.
    ConditionNotMet {
        /// The predicates to blame, with pointers from `/if` on.
        unmet: Box<[Unmet]>,
        /// The entry as it is, if any.
        current: Option<Shown>,
    },
    /// A patch on a value that is not a JSON object.
    NotADocument {
        /// The entry as it is.
        current: Shown,
    },
    /// A patch that does not fit the document.
    PatchFailed {
        /// The place and the reason; pointers begin with `/patch`.
        refusal: Box<PatchRefusal>,
        /// The entry as it is.
        current: Shown,
    },
    /// The value after a patch would exceed [`crate::limits::VALUE_BYTES_MAX`].
    TooLarge {
        /// Most bytes allowed.
        limit: u64,
        /// Bytes it would have had.
        actual: u64,
    },
    /// All that it would read, write and answer exceeds what one command may: [`crate::limits::TXN_EFFECT_BYTES_MAX`], or
    /// [`crate::limits::REHEARSAL_BYTES_MAX`].
    TooMuch {
        /// Most bytes allowed.
        limit: u64,
    },
    /// The document is not what the rules of its collection ask for.
    RulesBroken(Box<[RuleFault]>),
    /// Another entry has the same values in a unique index.
    NotUnique {
        /// The fields of the index.
        fields: Box<[Path]>,
        /// The other entry.
        key: Box<Key>,
    },
    /// The collection requires that a write says what it expects.
    PreconditionRequired,
    /// A collection within another one, or around one. Holds the name of that.
    Overlaps(Box<CollectionName>),
    /// A claim in an order that no index gives, over more entries than one may look at. Holds how many that is.
    TooManyToOrder(u64),
    /// A sequence has no number left.
    UsedUp,
    /// There is no such session, or not any more.
    SessionExpired(SessionId),
    /// The token of a guard does not hold the lock. Holds one that does, if any.
    GuardFailed {
        /// The guard of the command.
        guard: Box<Guard>,
        /// The newest token that holds it.
        holder: Option<Revision>,
    },
    /// Others hold the lock or are before this in its queue, and it would not wait.
    Held {
        /// How many hold it.
        holders: u32,
        /// How many wait for it.
        waiters: u32,
        /// Milliseconds of cluster clock for which nobody gets it after an unclean end; 0 for none.
        delay_ms: u64,
    },
    /// A release or a proclamation by a token that does not hold the lock, or not any more.
    NotHolder,
    /// The session has a place there already, and asked for another: with another mode or value.
    AnotherPlace {
        /// Whether it holds the lock.
        is_holder: bool,
        /// Its token or place.
        at: Revision,
    },
    /// It is in use with another number of slots, parties or counts. Holds that.
    OtherNumber(u64),
    /// The barrier is open until all who are in it have left.
    BarrierOpen,
    /// More of something than there may be.
    TooMany {
        /// The things that there are too many of.
        what: Bounded,
        /// How many there may be.
        limit: u64,
    },
    /// The request id was used before with another action. Not stored: the first outcome stays.
    RequestIdReused,
    /// The command could not be decoded or is of a kind that this build does not know. Holds the reason.
    Unsupported(String),
    /// Users, roles or tokens have changed since the command was authorised. Not stored, and nothing was looked at: it may
    /// be authorised again by the rules as of [`crate::types::Reply::index`], and proposed again under the same request id.
    AccessChanged,
    /// Something about users, roles and tokens that cannot be.
    Access(Box<AccessFault>),
    /// Applying the command faulted: a bug of this software, or a state that contradicts itself. All that it did was taken back;
    /// what it was is kept, see [`crate::keyspace::fault`].
    Internal,
    /// A session of the id that was chosen lives.
    SessionExists(SessionId),
    /// A release or a proclamation by a token of somebody else's session: tokens are shown to everybody who may read the lock.
    NotYours,
    /// Something about newcomers that cannot be.
    Members(MembersFault),
    /// It would be beyond a quota. Not stored: the same request may succeed later.
    BeyondQuota(Box<BeyondQuota>),
    /// Something about a transaction that shows only on the way that it takes.
    Txn(TxnRefusal),
    /// The id of a task is in use by this one, which is not what was to be scheduled.
    TaskInUse(Box<TaskSummary>),
    /// To judge its conditions, to patch what it finds and to hold to the rules of its collection takes more steps than
    /// [`crate::limits::COMMAND_STEPS_MAX`].
    TooDear(TooDear),
    /// It would have to wait, and as many wait already as may: [`crate::types::Acquire::max_waiters`].
    QueueLong {
        /// How many hold it.
        holders: u32,
        /// How many wait for it.
        waiters: u32,
        /// How many may wait with it, itself included.
        most: u32,
        /// Milliseconds of cluster clock for which nobody gets it after an unclean end; 0 for none.
        delay_ms: u64,
    },
}

impl From<TooDear> for Rejection {
    fn from(dear: TooDear) -> Self {
        Self::TooDear(dear)
    }
}

/// Things with a bound on their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Bounded {
    /// Sessions in the cluster.
    Sessions,
    /// Entries, locks and places that hang on one session.
    Attached,
    /// Bytes of the entries that go with one session.
    AttachedBytes,
    /// Roles of one user.
    UserRoles,
    /// Grants of one role.
    RoleGrants,
    /// Tokens of one user.
    UserTokens,
    /// Invitations of newcomers.
    Invitations,
    /// Prefixes with a quota.
    PrefixQuotas,
    /// Prefixes with a quota around each other.
    NestedQuotas,
    /// Principals with a quota of their own.
    PrincipalQuotas,
    /// Bytes of the outcomes that are kept under request ids. Not stored: there is room again within the time for which they are kept.
    RequestIds,
    /// The same, of those of the principal who asks.
    OwnRequestIds,
}

/// The fault of a transaction on the way that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum TxnRefusal {
    /// A range is removed that holds a key which the transaction has written.
    KeyTwice,
    /// [`crate::types::ListStep::at`] is older than what can be read.
    Compacted,
    /// [`crate::types::ListStep::at`] is yet to come.
    Future,
}

/// The entry that a rejection shows, borrowed as `$borrow` says. Names all that show none, so that a new one is not forgotten.
macro_rules! current_of {
    ($rejection:ident, $borrow:ident) => {
        match $rejection {
            Self::CasMismatch { current, .. } | Self::ConditionNotMet { current, .. } => current.$borrow(),
            Self::AlreadyExists { current }
            | Self::CasListed { current }
            | Self::Locked { current }
            | Self::NotLocked { current }
            | Self::NotADocument { current }
            | Self::PatchFailed { current, .. } => Some(current),
            Self::NotFound
            | Self::TooLarge { .. }
            | Self::TooMuch { .. }
            | Self::RulesBroken(_)
            | Self::NotUnique { .. }
            | Self::PreconditionRequired
            | Self::Overlaps(_)
            | Self::TooManyToOrder(_)
            | Self::UsedUp
            | Self::SessionExpired(_)
            | Self::SessionExists(_)
            | Self::GuardFailed { .. }
            | Self::Held { .. }
            | Self::NotHolder
            | Self::NotYours
            | Self::AnotherPlace { .. }
            | Self::OtherNumber(_)
            | Self::BarrierOpen
            | Self::TooMany { .. }
            | Self::RequestIdReused
            | Self::Unsupported(_)
            | Self::AccessChanged
            | Self::Access(_)
            | Self::Members(_)
            | Self::BeyondQuota(_)
            | Self::Txn(_)
            | Self::TaskInUse(_)
            | Self::TooDear(_)
            | Self::QueueLong { .. }
            | Self::Internal => None,
        }
    };
}

impl Rejection {
    /// The entry as it is, if it shows one.
    pub fn current(&self) -> Option<&Shown> {
        current_of!(self, as_ref)
    }

    /// Whether it is refused because there is too much already.
    pub(super) fn lacks_room(&self) -> bool {
        matches!(self, Self::BeyondQuota(_) | Self::TooMany { what: Bounded::RequestIds | Bounded::OwnRequestIds, .. })
    }

    /// The current entry, to be changed.
    pub(crate) fn current_mut(&mut self) -> Option<&mut Shown> {
        current_of!(self, as_mut)
    }

    /// Bytes of the value that it carries.
    pub(crate) fn value_bytes(&self) -> usize {
        self.current().map_or(0, Shown::value_bytes)
    }

    /// Bytes in which it says why, beside the value.
    pub(crate) fn detail_bytes(&self) -> usize {
        match self {
            Self::ConditionNotMet { unmet, .. } => codec::encode(unmet).len(),
            Self::PatchFailed { refusal, .. } => codec::encode(refusal).len(),
            Self::RulesBroken(faults) => codec::encode(faults).len(),
            Self::NotUnique { fields, .. } => codec::encode(fields).len(),
            _ => 0,
        }
    }

    /// Leaves out what says why in detail.
    pub(super) fn drop_details(&mut self) {
        match self {
            Self::ConditionNotMet { unmet, .. } => *unmet = Box::default(),
            Self::PatchFailed { refusal, .. } => (refusal.pointer, refusal.path) = Default::default(),
            Self::RulesBroken(faults) => *faults = Box::default(),
            Self::NotUnique { fields, .. } => *fields = Box::default(),
            _ => {}
        }
    }
}

/// Declares [`Refusal`]: one kind for each rejection of the same name, and one for each fault that has an error code of its own.
macro_rules! refusals {
    ($($same:ident)*; $($(#[$doc:meta])* $fault:ident,)*) => {
        /// The kind of a [`Rejection`], without its details: the audit keeps it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
        pub enum Refusal {
            $(#[doc = concat!("See [`Rejection::", stringify!($same), "`].")] $same,)*
            $($(#[$doc])* $fault,)*
        }

        impl From<&Rejection> for Refusal {
            fn from(rejection: &Rejection) -> Self {
                match rejection {
                    Rejection::TooMuch { .. } => Self::TooLarge,
                    Rejection::Access(fault) if **fault == AccessFault::TokenExists => Self::AccessExists,
                    Rejection::Access(fault) if matches!(**fault, AccessFault::RoleInUse(_)) => Self::AccessInUse,
                    Rejection::Members(MembersFault::NoInvitation) => Self::MembersMissing,
                    Rejection::Members(MembersFault::InvitationExists) => Self::MembersExists,
                    Rejection::Txn(TxnRefusal::Compacted) => Self::TxnCompacted,
                    $(Rejection::$same { .. } => Self::$same,)*
                }
            }
        }
    };
}

refusals! {
    AlreadyExists NotFound CasMismatch Locked NotLocked ConditionNotMet NotADocument PatchFailed TooLarge
    RequestIdReused Unsupported CasListed RulesBroken NotUnique PreconditionRequired Overlaps TooManyToOrder UsedUp
    SessionExpired GuardFailed Held NotHolder AnotherPlace OtherNumber BarrierOpen TooMany AccessChanged Access
    Internal SessionExists NotYours Members BeyondQuota Txn TaskInUse TooDear QueueLong;
    /// See [`AccessFault::TokenExists`].
    AccessExists,
    /// See [`AccessFault::RoleInUse`].
    AccessInUse,
    /// See [`MembersFault::NoInvitation`].
    MembersMissing,
    /// See [`MembersFault::InvitationExists`].
    MembersExists,
    /// See [`TxnRefusal::Compacted`].
    TxnCompacted,
}
