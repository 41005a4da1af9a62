//! The classes of requests.
//!
//! Owns which there are, and their names. Never knows how many of each are let in: `classes` does.

/// The kind of work that a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum RequestClass {
    /// Sessions, locks, elections, barriers, latches. Others hold on to life by them.
    Coordination,
    /// Work on keys that are named: its cost is their number.
    Point,
    /// Work that looks for what it is about.
    Scan,
    /// Requests that wait for something to happen, for as long as their callers say. They take no place in their own class meanwhile.
    Waiting,
    /// Questions about the node itself: never refused.
    Node,
}

impl RequestClass {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Coordination, Self::Point, Self::Scan, Self::Waiting, Self::Node];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coordination => "coordination",
            Self::Point => "point",
            Self::Scan => "scan",
            Self::Waiting => "waiting",
            Self::Node => "node",
        }
    }
}
