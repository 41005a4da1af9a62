//! One attack of the generator: an operation, a shape, who does it, and from how many addresses.
//!
//! Owns the kinds of each. Never carries one out.

use std::fmt;
use std::sync::Arc;

use super::operations::Operation;

/// The shape of an attack: how it sends a request and reads the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// Its head is sent, and nothing of the body that it announces.
    HeadOnly,
    /// All of it is sent but the last byte.
    ByteShort,
    /// Its body is sent drop by drop.
    BodyByDrops,
    /// Many are sent, and no answer is read.
    AnswerUnread,
    /// Many are sent, and the answers are read drop by drop.
    AnswerByDrops,
    /// It is as long as it may be, again and again.
    Largest,
    /// It is the one that makes the most work of few bytes, many at once, again and again.
    Dear,
    /// It is sent as soon as the last one was answered.
    Repeated,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::HeadOnly,
        Self::ByteShort,
        Self::BodyByDrops,
        Self::AnswerUnread,
        Self::AnswerByDrops,
        Self::Largest,
        Self::Dear,
        Self::Repeated,
    ];
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HeadOnly => "head only",
            Self::ByteShort => "body one byte short",
            Self::BodyByDrops => "body by drops",
            Self::AnswerUnread => "answer unread",
            Self::AnswerByDrops => "answer by drops",
            Self::Largest => "largest legal request",
            Self::Dear => "cheapest bytes for most work",
            Self::Repeated => "repeated",
        })
    }
}

/// The kind of client that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// Somebody without a token.
    Stranger,
    /// A user without any right.
    Powerless,
    /// A user that may write and lock what begins with its own prefix.
    Tenant,
}

impl Caller {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stranger, Self::Powerless, Self::Tenant];
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stranger => "stranger",
            Self::Powerless => "user without rights",
            Self::Tenant => "tenant",
        })
    }
}

/// The number of addresses that an attack comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sources {
    /// One address.
    One,
    /// Two addresses.
    Two,
}

impl Sources {
    /// Both.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];

    /// How many addresses that is.
    pub fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one address",
            Self::Two => "two addresses",
        })
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
