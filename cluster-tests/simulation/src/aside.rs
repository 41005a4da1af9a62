//! Threads for the blocking work of simulated nodes.
//!
//! Owns the turns: of that thread and the simulation's only one runs at any time, so that the order of all work follows from the seed as
//! ever. Time goes by for such a thread only while it waits for something, by the clock of its machine. Never does work of its own.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quorate_threads::background;
use tokio::runtime::Handle;

use crate::clock::{self, Carried};

/// How a turn of such a thread ends.
enum Told {
    /// It goes on once so much time has gone by.
    Waits(Duration, Carried),
    Done(Carried),
}

/// What such a thread has of the simulation.
struct Seat {
    turns: Receiver<Carried>,
    told: Sender<Told>,
}

thread_local! {
    static SEAT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// Whether this is such a thread.
pub fn is_here() -> bool {
    SEAT.with_borrow(Option::is_some)
}

/// Lets so much time go by, while others run. False: its machine is gone, and nothing that it does counts.
pub fn wait(time: Duration) -> bool {
    SEAT.with_borrow(|seat| {
        let Some(Seat { turns, told }) = seat else { return false };
        let turn = told.send(Told::Waits(time, clock::carry())).ok().and_then(|()| turns.recv().ok());
        turn.map(Carried::put).is_some()
    })
}

/// Does work on such a thread, for [`background::simulate_blocking_by`].
pub fn does(work: Box<dyn FnOnce() + Send>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut other = Other::begin(work);
        while let Some(time) = other.turn() {
            tokio::time::sleep(time).await;
        }
    })
}

/// Such a thread, as the simulation has it. It ends with the task that waits for it, as a process takes all its threads along.
struct Other {
    turns: Option<Sender<Carried>>,
    told: Receiver<Told>,
    thread: Option<JoinHandle<()>>,
}

impl Other {
    fn begin(work: Box<dyn FnOnce() + Send>) -> Self {
        let (give, turns) = channel::<Carried>();
        let (tell, told) = channel();
        let machine = Handle::current();
        let run = move || {
            let Ok(first) = turns.recv() else { return };
            first.put();
            background::simulate_on_this_thread();
            let _machine = machine.enter();
            SEAT.set(Some(Seat { turns, told: tell }));
            work();
            // Nobody listens where the machine is gone.
            SEAT.with_borrow(|seat| seat.iter().for_each(|seat| drop(seat.told.send(Told::Done(clock::carry())))));
        };
        let thread = thread::Builder::new().name("aside".into()).spawn(run).expect("a thread can be started");
        Self { turns: Some(give), told, thread: Some(thread) }
    }

    /// Lets it run until it waits for something; `None` where it came to its end.
    fn turn(&mut self) -> Option<Duration> {
        let begun = self.turns.as_ref().and_then(|turns| turns.send(clock::carry()).ok());
        // Without an answer it panicked, which is noted as every panic is.
        match begun.and_then(|()| self.told.recv().ok()) {
            Some(Told::Waits(time, clock)) => {
                clock.put();
                return Some(time);
            }
            Some(Told::Done(clock)) => clock.put(),
            None => {}
        }
        self.end();
        None
    }

    fn end(&mut self) {
        drop(self.turns.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.end();
    }
}
