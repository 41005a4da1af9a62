//! The memory for the bodies of all requests in flight.
//!
//! Owns the bound, and what each body has taken of it. Never reads a body.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::gateway::failure::Failure;
use crate::limits;

/// The memory for the bodies of all requests in flight.
///
/// A body takes its place as it comes, not by what it declares: who only announces much must not keep others out.
#[derive(Debug)]
pub struct BodyMemory {
    bytes_max: usize,
    taken: AtomicUsize,
}

impl BodyMemory {
    /// All of it free.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, taken: AtomicUsize::new(0) }
    }

    /// Bytes taken at the moment.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes room that is given back by [`Self::give_back`].
    pub fn take(&self, bytes: usize) -> Result<(), Failure> {
        self.take_up_to(self.bytes_max, bytes)
    }

    fn take_up_to(&self, bytes_max: usize, bytes: usize) -> Result<(), Failure> {
        if self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes > bytes_max {
            self.give_back(bytes);
            return Err(Failure::too_many("the bodies of the requests on this node take all the memory they may"));
        }
        Ok(())
    }

    /// Gives back what was taken.
    pub fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A place without room yet. What coordinates others has some that nobody else can take.
    pub fn place(self: &Arc<Self>, coordinates: bool) -> BodyPermit {
        let reserve = if coordinates { limits::COORDINATION_BODIES_BYTES } else { 0 };
        BodyPermit { room: Arc::clone(self), bytes_max: self.bytes_max + reserve, bytes: AtomicUsize::new(0) }
    }
}

/// What one body has taken; given back when its request is answered.
#[derive(Debug)]
pub struct BodyPermit {
    room: Arc<BodyMemory>,
    /// Up to where the room may be filled for it.
    bytes_max: usize,
    bytes: AtomicUsize,
}

impl BodyPermit {
    /// What it takes at the moment.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes so much more.
    pub fn grow(&self, bytes: usize) -> Result<(), Failure> {
        self.room.take_up_to(self.bytes_max, bytes).map_err(Failure::closing)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for BodyPermit {
    fn drop(&mut self) {
        self.room.give_back(self.bytes());
    }
}
