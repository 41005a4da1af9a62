//! Commands about sessions, locks, elections, barriers and latches, and what applying them answers.
//!
//! Owns their form in the log. A lock and an election are the same mechanism in two spaces of names: a queue with
//! holders, first come first served, each party bound to a session, each holder with a fencing token.

use bincode::{Decode, Encode};

use super::{ClusterMillis, Key, Name, Revision, SessionId, Value, Waker, WallMillis};

/// What is asked of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SessionOp {
    /// Begins one.
    Create {
        /// It ends when it was not renewed for so long: [`SESSION_TTL_MS_MIN`](crate::limits::SESSION_TTL_MS_MIN) to [`SESSION_TTL_MS_MAX`](crate::limits::SESSION_TTL_MS_MAX).
        ttl_ms: u64,
        /// Whose it is, for people: at most [`SESSION_OWNER_BYTES_MAX`](crate::limits::SESSION_OWNER_BYTES_MAX).
        owner: String,
        /// What else is known of it, in order of names: at most [`SESSION_LABELS_MAX`](crate::limits::SESSION_LABELS_MAX).
        labels: Vec<(String, String)>,
    },
    /// Lets each go on for its time from now; at most [`SESSIONS_RENEWED_MAX`](crate::limits::SESSIONS_RENEWED_MAX). Takes no revision and leaves no
    /// audit line. To repeat it is harmless.
    Renew(Vec<SessionId>),
    /// Ends one, with all that hangs on it.
    End(SessionId),
    /// Begins one under an id of its maker's choice, of which none may live.
    CreateAs {
        /// That of a lease, see [`SessionId::chosen`].
        id: SessionId,
        /// As of [`Self::Create`].
        ttl_ms: u64,
        /// As of [`Self::Create`].
        owner: String,
        /// As of [`Self::Create`].
        labels: Vec<(String, String)>,
    },
}

/// What came of a [`SessionOp`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum SessionReply {
    /// It began.
    Created {
        /// The session.
        id: SessionId,
        /// It ends at this cluster clock unless it is renewed.
        expires_at: ClusterMillis,
    },
    /// For each in order: its time to live in milliseconds, and the cluster clock at which it ends unless it is renewed
    /// again; nothing where there is no such session, or not any more.
    Renewed(Vec<Option<(u64, ClusterMillis)>>),
    /// It ended. Holds how many things hung on it.
    Ended(u32),
}

/// Which space a name is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum LockSpace {
    /// Locks and semaphores.
    Lock,
    /// Elections: exclusive, and each change of the leader is kept for those who observe.
    Election,
}

impl LockSpace {
    /// The first byte of [`LockName::to_bytes`]. On disk, and never changes its meaning.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Lock => 1,
            Self::Election => 2,
        }
    }
}

/// A lock or an election.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct LockName {
    /// The space.
    pub space: LockSpace,
    /// The name in it.
    pub name: Name,
}

impl LockName {
    /// Space and name as bytes, for row keys.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.space.number()];
        bytes.extend_from_slice(self.name.as_str().as_bytes());
        bytes
    }

    /// Reverses [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (space, name) = bytes.split_first()?;
        let space = match space {
            1 => LockSpace::Lock,
            2 => LockSpace::Election,
            _ => return None,
        };
        Some(Self { space, name: Name::new(std::str::from_utf8(name).ok()?).ok()? })
    }

    /// Under what its changes are waited for.
    pub fn waker(&self) -> Key {
        let waker = match self.space {
            LockSpace::Lock => Waker::Lock,
            LockSpace::Election => Waker::Election,
        };
        waker.of(self.name.as_str())
    }
}

/// How a holder shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum LockMode {
    /// It takes one of the slots for itself.
    Exclusive,
    /// It holds beside any number of others that share. Only where there is one slot.
    Shared,
}

/// That a token holds a lock: what a write may depend on.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Guard {
    /// The lock.
    pub lock: LockName,
    /// The fencing token.
    pub token: Revision,
}

/// Asks for a lock, or goes on waiting for it: the same session has one place in it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Acquire {
    /// The lock.
    pub lock: LockName,
    /// Whose place it is: given up when the session ends.
    pub session: SessionId,
    /// How to hold it.
    pub mode: LockMode,
    /// Most exclusive holders at once, 1 to [`LOCK_SLOTS_MAX`](crate::limits::LOCK_SLOTS_MAX); `None`: as it is, 1 for a lock that nobody holds.
    pub slots: Option<u32>,
    /// How long to wait in the queue, at most [`LOCK_WAIT_MS_MAX`](crate::limits::LOCK_WAIT_MS_MAX); 0 never waits. Counts anew each time that the
    /// session asks.
    pub wait_ms: u64,
    /// How long nobody gets the lock after the session of this holder was not renewed: at most
    /// [`LOCK_DELAY_MS_MAX`](crate::limits::LOCK_DELAY_MS_MAX).
    pub delay_ms: u64,
    /// What a leader says of itself; only for elections. At most [`PROCLAIMED_BYTES_MAX`](crate::limits::PROCLAIMED_BYTES_MAX).
    pub value: Option<Value>,
    /// Most that may be in the queue with this session, where it would wait; `None`: [`LOCK_WAITERS_MAX`](crate::limits::LOCK_WAITERS_MAX). A place
    /// that it has stays.
    pub max_waiters: Option<u32>,
}

impl Acquire {
    /// Asks for it exclusively, with as many slots as it has, and waits for nothing.
    pub fn of(lock: LockName, session: SessionId) -> Self {
        let (mode, slots, wait_ms, delay_ms) = (LockMode::Exclusive, None, 0, 0);
        Self { lock, session, mode, slots, wait_ms, delay_ms, value: None, max_waiters: None }
    }
}

/// What is asked of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum LockOp {
    /// See [`Acquire`].
    Acquire(Acquire),
    /// Gives up what this token holds.
    Release {
        /// The lock.
        lock: LockName,
        /// The token.
        token: Revision,
    },
    /// Leaves the queue.
    Leave {
        /// The lock.
        lock: LockName,
        /// Whose place.
        session: SessionId,
        /// Only if the session has not asked again since: [`LockReply::Waiting::asked`]. Of what was granted to it meanwhile: only if it
        /// has not asked again and was told.
        asked: Option<u64>,
        /// Whether to give up the lock where the session holds it by now; otherwise that is what is answered.
        release: bool,
    },
    /// Exchanges the value of a leader.
    Proclaim {
        /// The election.
        lock: LockName,
        /// The leader's token.
        token: Revision,
        /// The value.
        value: Value,
    },
    /// Listens anew to what came of a question, as who repeats it does. Takes no place and no lock: a repetition may come late, when the
    /// session has left.
    Listen {
        /// The lock.
        lock: LockName,
        /// Whose question.
        session: SessionId,
    },
    /// Nobody listens any more to what comes of a question. Others who wait for the session are told, and may listen in its place: the
    /// number that is answered gives up what they do not want ([`LockOp::Leave`]).
    HangUp {
        /// The lock.
        lock: LockName,
        /// Whose question.
        session: SessionId,
        /// Which one.
        question: Question,
    },
}

/// A question for a lock, as who asked it knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Question {
    /// Its number: [`LockReply::Waiting::asked`].
    Numbered(u64),
    /// It was granted at once, with this token.
    Granted(Revision),
}

/// What came of a [`LockOp`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum LockReply {
    /// The session holds it, since now or before.
    Held {
        /// The fencing token: the revision at which it got it.
        token: Revision,
    },
    /// The session has a place in the queue.
    Waiting {
        /// The place: the revision at which it got it.
        place: Revision,
        /// The number of the question that it asked last.
        asked: u64,
    },
    /// The session holds nothing there and waits for nothing any more. Tells whether it did.
    Gone(bool),
    /// The value was exchanged.
    Proclaimed,
    /// Nobody listens; the number with which to give up what is there, unless somebody listens anew.
    HungUp(u64),
}

/// What is asked of a barrier.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum BarrierOp {
    /// Enters; once `parties` sessions are in it, it opens for all of them.
    Enter {
        /// The barrier.
        name: Name,
        /// Who enters.
        session: SessionId,
        /// How many there must be: 1 to [`BARRIER_PARTIES_MAX`](crate::limits::BARRIER_PARTIES_MAX), the same for all of them.
        parties: u32,
    },
    /// Leaves. It is closed again once all have left.
    Leave {
        /// The barrier.
        name: Name,
        /// Who leaves.
        session: SessionId,
    },
}

/// A barrier as it is after a [`BarrierOp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct BarrierRow {
    /// How many must be in it.
    pub parties: u32,
    /// How many are.
    pub entered: u32,
    /// The revision at which it opened, if it did.
    pub opened: Option<Revision>,
}

/// What is asked of a latch.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum LatchOp {
    /// Makes a latch that opens after so many counts, 1 to [`LATCH_COUNT_MAX`](crate::limits::LATCH_COUNT_MAX). The same again changes nothing.
    Create {
        /// The latch.
        name: Name,
        /// How many counts.
        count: u64,
    },
    /// Counts down; at 0 it opens for good. More than is left is as good as what is left.
    CountDown {
        /// The latch.
        name: Name,
        /// By how many, at least 1.
        by: u64,
    },
    /// Removes it.
    Remove {
        /// The latch.
        name: Name,
    },
}

/// A latch as it is after a [`LatchOp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LatchRow {
    /// The count it began with.
    pub count: u64,
    /// What is left of it.
    pub left: u64,
    /// The revision at which it opened, if it did.
    pub opened: Option<Revision>,
}

/// The leader of an election, as it is kept for those who observe.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Elected {
    /// The term: its fencing token.
    pub token: Revision,
    /// Its session.
    pub session: SessionId,
    /// The owner of that session.
    pub owner: String,
    /// What it says of itself.
    pub value: Option<Value>,
    /// Wall clock at which it was elected.
    pub since: WallMillis,
}
