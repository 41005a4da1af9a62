//! One attack of the generator: an operation, a shape, who does it, and from how many addresses.
//!
//! Owns the kinds of each. Never carries one out.

use std::fmt;
use std::sync::Arc;

use super::operations::Operation;

kinds! {
    /// The shape of an attack: how it sends a request and reads the answer.
    Shape {
        /// Its head is sent, and nothing of the body that it announces.
        HeadOnly = "head only",
        /// All of it is sent but the last byte.
        ByteShort = "body one byte short",
        /// Its body is sent drop by drop.
        BodyByDrops = "body by drops",
        /// Many are sent, and no answer is read.
        AnswerUnread = "answer unread",
        /// Many are sent, and the answers are read drop by drop.
        AnswerByDrops = "answer by drops",
        /// It is as long as it may be, again and again.
        Largest = "largest legal request",
        /// It is the one that makes the most work of few bytes, many at once, again and again.
        Dear = "cheapest bytes for most work",
        /// It is sent as soon as the last one was answered.
        Repeated = "repeated",
    }
}

kinds! {
    /// The kind of client that asks.
    Caller {
        /// Somebody without a token.
        Stranger = "stranger",
        /// A user without any right.
        Powerless = "user without rights",
        /// A user that may write and lock what begins with its own prefix.
        Tenant = "tenant",
    }
}

kinds! {
    /// The number of addresses that an attack comes from.
    Sources {
        /// One address.
        One = "one address",
        /// Two addresses.
        Two = "two addresses",
    }
}

impl Sources {
    /// How many addresses that is.
    pub fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// One attack.
#[derive(Debug, Clone)]
pub struct Combination {
    /// The operation that is asked for, with its protocol.
    pub operation: Arc<Operation>,
    /// How.
    pub shape: Shape,
    /// The kind of client that asks.
    pub caller: Caller,
    /// The number of addresses that it comes from.
    pub sources: Sources,
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, shape, caller, sources } = self;
        write!(f, "{}, {}, {shape}, {caller}, {sources}", operation.way, operation.name)
    }
}
