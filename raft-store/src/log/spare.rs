//! The segment that comes next, made while the current one is being filled.
//!
//! Owns the making of segments while the log runs, in a thread of its own: it takes a fraction of a second, and neither an
//! append nor the mark should wait for that. Leaves most of the disk's time to the log unless the writer waits for it.
//! Never holds more than one spare, and never uses one: the writer does.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::segment::{FIRST_GROUP, Segment};
use crate::identity::Identity;

/// The making of a spare rests this many times as long as it wrote: a group that is written meanwhile finds the disk busy
/// with it one time in four, and then for one piece.
const REST_FACTOR: u32 = 3;

/// See the top of the file.
#[derive(Debug)]
pub struct Spare {
    dir: PathBuf,
    identity: Identity,
    /// Version and bytes of what is made.
    format: u32,
    capacity: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes of the segments on disk, the spare included.
    disk_bytes: AtomicU64,
}

#[derive(Debug)]
struct State {
    /// Number of the segment that comes next.
    next: u64,
    /// That segment, if it is made.
    ready: Option<Arc<Segment>>,
    wanted: bool,
    making: bool,
    /// The writer waits for the one being made.
    awaited: bool,
    closed: bool,
}

impl Spare {
    /// For a log whose next segment is `next`, which may be `ready`. `held` are the bytes of those before it.
    pub fn new(
        dir: PathBuf,
        identity: Identity,
        (format, capacity): (u32, u64),
        next: u64,
        ready: Option<Arc<Segment>>,
        held: u64,
    ) -> Self {
        let bytes = held + ready.as_ref().map_or(0, |ready| ready.capacity());
        let state = State { next, ready, wanted: false, making: false, awaited: false, closed: false };
        let disk_bytes = AtomicU64::new(bytes);
        Self { dir, identity, format, capacity, state: Mutex::new(state), changed: Condvar::new(), disk_bytes }
    }

    /// Bytes of all segments on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes.load(Relaxed)
    }

    /// Takes note that a segment was removed.
    pub fn removed(&self, segment: &Segment) {
        self.disk_bytes.fetch_sub(segment.capacity(), Relaxed);
    }

    /// Says that the next segment will be needed before long.
    pub fn want(&self) {
        self.state.lock().wanted = true;
        self.changed.notify_all();
    }

    /// Ends the thread.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// The next segment, with room for a group of so many bytes. Makes one on the spot where there is none, or where
    /// the spare is too small: then that is replaced.
    pub fn take(&self, group_bytes: u64) -> io::Result<Arc<Segment>> {
        let mut state = self.state.lock();
        while state.making {
            state.awaited = true;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
        state.awaited = false;
        let needed = FIRST_GROUP + group_bytes;
        let segment = match state.ready.take() {
            Some(ready) if ready.capacity() >= needed => ready,
            replaced => {
                replaced.iter().for_each(|segment| self.removed(segment));
                self.make(state.next, needed.max(self.capacity), |_| {})?
            }
        };
        state.next += 1;
        state.wanted = false;
        Ok(segment)
    }

    /// Makes spares as they are wanted, until closed.
    pub fn run(&self) {
        let mut state = self.state.lock();
        while !state.closed {
            if !state.wanted || state.ready.is_some() {
                self.changed.wait(&mut state);
                continue;
            }
            (state.wanted, state.making) = (false, true);
            let number = state.next;
            drop(state);
            let made = self.make(number, self.capacity, |took| self.rest(took * REST_FACTOR));
            state = self.state.lock();
            state.making = false;
            match made {
                Ok(segment) => state.ready = Some(segment),
                // Nothing is lost yet. The writer tries itself once it has no room left, and that is final.
                Err(error) => tracing::warn!(dir = %self.dir.display(), %error, "the next log segment cannot be made"),
            }
            self.changed.notify_all();
        }
    }

    /// Leaves the disk to the writer for so long, or until it waits for the spare.
    fn rest(&self, duration: Duration) {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.awaited && !state.closed, duration);
    }

    fn make(&self, number: u64, capacity: u64, pause: impl FnMut(Duration)) -> io::Result<Arc<Segment>> {
        let segment = Segment::make(&self.dir, number, (self.format, capacity), &self.identity, pause)?;
        self.disk_bytes.fetch_add(capacity, Relaxed);
        Ok(Arc::new(segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::segment;

    #[test]
    fn segments_are_taken_in_order_whether_made_before_or_on_the_spot() {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity { cluster_id: None, node_id: 1, incarnation: 7 };
        let spare = Spare::new(dir.path().to_owned(), identity, (2, 1 << 16), 5, None, 100);
        assert_eq!(spare.take(10).unwrap().number(), 5);
        std::thread::scope(|scope| {
            scope.spawn(|| spare.run());
            spare.want();
            // Waits for the one being made, or makes it.
            assert_eq!(spare.take(10).unwrap().number(), 6);
            spare.want();
            while spare.state.lock().ready.is_none() {
                std::thread::yield_now();
            }
            let large = spare.take(1 << 20).unwrap();
            assert_eq!((large.number(), large.capacity()), (7, (1 << 20) + FIRST_GROUP), "the spare was too small");
            spare.close();
        });
        assert_eq!(spare.disk_bytes(), 100 + 2 * (1 << 16) + (1 << 20) + FIRST_GROUP);
        assert_eq!(dir.path().read_dir().unwrap().count(), 3);
        assert!(dir.path().join(segment::name(7)).exists());
    }
}
