//! The memory for the bodies of all requests in flight.
//!
//! Owns the bound, the share of one account, and what each body has taken of it. Never reads a body.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quorate_api::NodeResourceKind;

use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::shares::{Full, HeldShare, Holding, Resource};
use crate::gateway::failure::Failure;
use crate::limits;

/// The memory for the bodies of all requests in flight.
///
/// A body takes its place as it comes, not by what it declares: who only announces much must not keep others out.
#[derive(Debug)]
pub struct BodyMemory(Resource);

impl BodyMemory {
    /// All of it free. One account may have a quarter, or one body of the largest size; more while less than half of all is taken.
    pub fn new(bytes_max: usize, body_bytes_max: usize) -> Self {
        let largest = body_bytes_max.max(limits::BULK_BODY_BYTES_MAX);
        let of_one = (bytes_max / limits::BODIES_SHARE).max(largest);
        Self(Resource::new(NodeResourceKind::Bodies, bytes_max, of_one))
    }

    /// Its bound, and how much is taken.
    pub fn room(&self) -> &Resource {
        &self.0
    }

    /// Bytes taken at the moment.
    pub fn taken(&self) -> usize {
        self.0.taken()
    }

    /// The part of this account.
    pub fn of(&self, account: Account) -> BodyRoom {
        BodyRoom(self.0.of(account))
    }
}

fn refusal(full: Full) -> Failure {
    let why = match full {
        Full::All { bound } => {
            format!("the bodies of the requests on this node take all the memory they may, {bound} bytes")
        }
        Full::Share { of_one, bound } => format!(
            "half of the memory for bodies on this node is taken, and the bodies of your requests have the share that one \
             account may have then, {of_one} bytes of the {bound} for all"
        ),
    };
    Failure::too_many(why).after(Duration::from_secs(limits::RETRY_AFTER_SECONDS))
}

/// The part of one account.
#[derive(Debug, Clone)]
pub struct BodyRoom(Arc<Holding>);

impl BodyRoom {
    /// Takes room that is given back by [`Self::give_back`].
    pub fn take(&self, bytes: usize) -> Result<(), Failure> {
        self.0.take(bytes, 0).map_err(refusal)
    }

    /// Gives back what was taken.
    pub fn give_back(&self, bytes: usize) {
        self.0.give_back(bytes);
    }
}

/// What one body has taken; given back when its request is answered.
#[derive(Debug)]
pub struct BodyPermit {
    /// How much further the room, and the share of its account, may be filled for it.
    reserve: usize,
    /// How much of it has come.
    bytes: AtomicUsize,
    /// Its part of the memory, unless it is small.
    held: OnceLock<HeldShare>,
}

impl BodyPermit {
    /// A body without room yet. Requests for coordination have some that no others can take.
    pub fn new(coordinates: bool) -> Self {
        let reserve = if coordinates { limits::COORDINATION_BODIES_BYTES } else { 0 };
        Self { reserve, bytes: AtomicUsize::new(0), held: OnceLock::new() }
    }

    /// How much of it has come.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts `more` bytes that came. A small body needs no room, so that the renewal of a session never finds it full.
    pub fn grow(&self, more: usize, of: impl FnOnce() -> BodyRoom) -> Result<(), Failure> {
        let bytes = self.bytes() + more;
        if bytes > limits::SMALL_BODY_BYTES {
            let held = self.held.get_or_init(|| HeldShare::of(of().0));
            held.hold(bytes, self.reserve).map_err(refusal)?;
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// At most `left` bytes of what came are left.
    pub fn shrink(&self, left: usize) {
        let bytes = left.min(self.bytes());
        self.bytes.store(bytes, Ordering::Relaxed);
        if let Some(held) = self.held.get() {
            let needed = if bytes > limits::SMALL_BODY_BYTES { bytes } else { 0 };
            // Less is always there.
            let _less = held.hold(needed, self.reserve);
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_api::ErrorCode;

    use super::*;

    const MIB: usize = 1024 * 1024;

    fn user(name: &str) -> Account {
        Account::User(name.into())
    }

    /// Counts `more` bytes of this user's body.
    fn grow(body: &BodyPermit, more: usize, memory: &BodyMemory, name: &str) -> Result<(), Failure> {
        body.grow(more, || memory.of(user(name)))
    }

    #[test]
    fn one_account_has_half_of_the_room_alone_and_a_quarter_beside_others() {
        let memory = BodyMemory::new(256 * MIB, 2 * MIB);
        let greedy: Vec<_> = (0..8).map(|_| BodyPermit::new(false)).collect();
        for body in &greedy {
            grow(body, 16 * MIB, &memory, "greedy").expect("half");
        }
        let refused = grow(&greedy[0], 1, &memory, "greedy").expect_err("no more than that");
        assert_eq!(refused.code(), ErrorCode::TooManyRequests);
        assert!(refused.detail().contains("your requests") && refused.detail().contains("67108864"), "{refused:?}");
        // Renewals are not kept out by what else their account writes.
        let renewals = BodyPermit::new(true);
        grow(&renewals, limits::COORDINATION_BODIES_BYTES, &memory, "greedy").expect("there is a reserve for them");
        assert!(grow(&renewals, 1, &memory, "greedy").is_err());
        drop(renewals);
        let honest = BodyPermit::new(false);
        grow(&honest, 64 * MIB, &memory, "honest").expect("a quarter is for each of the others");
        assert!(grow(&honest, 1, &memory, "honest").is_err());
        assert_eq!(memory.taken(), 192 * MIB);
        drop((greedy, honest));
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn small_bodies_need_no_room_and_larger_ones_take_all_of_theirs() {
        const SMALL: usize = limits::SMALL_BODY_BYTES;
        let memory = BodyMemory::new(16 * MIB, MIB);
        let (all, small) = (BodyPermit::new(false), BodyPermit::new(false));
        grow(&all, 16 * MIB, &memory, "greedy").expect("one of the largest size always fits");
        grow(&small, SMALL, &memory, "honest").expect("it needs none");
        let refused = grow(&small, 1, &memory, "honest").expect_err("now it does");
        assert!(refused.detail().contains("all the memory they may"), "{refused:?}");
        drop(all);
        grow(&small, 1, &memory, "honest").expect("there is room again");
        assert_eq!((small.bytes(), memory.taken()), (SMALL + 1, SMALL + 1));
        small.shrink(10);
        assert_eq!((small.bytes(), memory.taken()), (10, 0));
    }

    #[test]
    fn an_account_has_room_for_the_largest_body_however_small_the_whole_is() {
        let memory = BodyMemory::new(100, 60);
        let room = memory.of(user("ann"));
        room.take(60).expect("one fits");
        assert!(room.take(41).is_err() && memory.of(user("bob")).take(40).is_ok());
        assert_eq!(memory.taken(), 100);
    }
}
