//! SIGINT and SIGTERM while a verb has something half done on disk: it gives up and removes that, instead of ending with it there.
//!
//! Owns these signals from the first such work on. Outside of it, and at a second one, the process ends at once.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use quorate_threads::watchdog;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// As of a process that SIGINT ended.
const EXIT_INTERRUPTED: i32 = 130;

const IDLE: u8 = 0;
const AT_WORK: u8 = 1;
const GIVES_UP: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(IDLE);
static LISTENS: AtomicBool = AtomicBool::new(false);

/// Work that is given up at a signal, until this is dropped.
#[derive(Debug)]
pub struct Work(());

impl Work {
    /// Begins, with a runtime that runs beside it.
    ///
    /// # Errors
    /// The system gives no signals.
    pub fn begin(handle: &Handle) -> io::Result<Self> {
        if !LISTENS.swap(true, Ordering::SeqCst) {
            let _in_runtime = handle.enter();
            let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            watchdog::spawn_on(handle, async move {
                loop {
                    tokio::select! {
                        _ = terminate.recv() => {}
                        _ = interrupt.recv() => {}
                    }
                    if STATE.compare_exchange(AT_WORK, GIVES_UP, Ordering::SeqCst, Ordering::SeqCst).is_err() {
                        quorate_node_core::end_now(EXIT_INTERRUPTED);
                    }
                }
            });
        }
        STATE.store(AT_WORK, Ordering::SeqCst);
        Ok(Self(()))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        STATE.store(IDLE, Ordering::SeqCst);
    }
}

/// An error once a signal has come.
pub fn check() -> Result<(), String> {
    match STATE.load(Ordering::SeqCst) {
        GIVES_UP => Err("interrupted; what was begun is removed".into()),
        _ => Ok(()),
    }
}

/// Writes until a signal comes.
#[derive(Debug)]
pub struct Until<W>(pub W);

impl<W: Write> Write for Until<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check().map_err(io::Error::other)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
