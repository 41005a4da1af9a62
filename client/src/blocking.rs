//! The client for programs without a runtime of their own.
//!
//! Everything that is awaited elsewhere is run here: [`Run::run`] is the `.await` of a program that blocks, and [`RunIter::run_iter`] makes
//! an iterator of a stream. What there is to call, and how it is refined, is the same, [`Client`] included.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use quorate_client::blocking::{Client, Run, RunIter};
//! use serde_json::json;
//!
//! fn main() -> Result<(), quorate_client::Error> {
//!     let client = Client::new("127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103")?;
//!     let written = client.put_json("orders/o42", &json!({"status": "new"})).ttl(Duration::from_secs(60)).run()?;
//!     if let Some(cas) = written.cas {
//!         client.cas_json("orders/o42", cas, &json!({"status": "paid"})).run()?;
//!     }
//!     for page in client.list("orders/").pages().run_iter() {
//!         for entry in page?.entries {
//!             println!("{}", entry.key);
//!         }
//!     }
//!     let session = client.session().run()?;
//!     let lock = session.lock("books").wait(Duration::from_secs(5)).acquire().run()?;
//!     client.remove("orders/o42").guarded_by(&lock).run()?;
//!     lock.release().run()
//! }
//! ```
//!
//! A thread of its own, one for the process, moves connections along, renews sessions and follows watches meanwhile. A call that is
//! run on a thread that serves a runtime panics, for it would keep that thread from all its other work: await there.
//!
//! Owns that thread and nothing else.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::thread;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use tokio::runtime::{Builder, Handle};

pub use crate::client::Client;
use crate::tasks::run::{TaskError, TaskRun};

/// What can be awaited, run to its end on this thread.
pub trait Run: IntoFuture + Sized {
    /// Runs it, and blocks this thread until it is done.
    ///
    /// # Panics
    ///
    /// On a thread that serves a runtime, where it is to be awaited; and where the system gives this process no further thread.
    fn run(self) -> Self::Output {
        // The builder of a future may ask for the runtime that it is built on, too.
        runtime().block_on(async { self.await })
    }
}

impl<F: IntoFuture> Run for F {}

/// What comes bit by bit, as an iterator.
pub trait RunIter: Stream + Sized {
    /// The items one after the other; each `next` blocks this thread until there is one, and panics where [`Run::run`] does.
    fn run_iter(self) -> Iter<Self> {
        Iter { stream: Box::pin(self) }
    }
}

impl<S: Stream> RunIter for S {}

/// The items of a stream, from [`RunIter::run_iter`].
#[must_use = "does nothing until its items are taken"]
#[derive(Debug)]
pub struct Iter<S> {
    stream: Pin<Box<S>>,
}

impl<S: Stream> Iterator for Iter<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        runtime().block_on(self.stream.next())
    }
}

/// A handler for [`crate::TaskWorker::run`] that blocks: each task has a thread to itself.
pub fn handler<W>(work: W) -> impl Fn(TaskRun) -> BoxFuture<'static, Result<(), TaskError>> + Send + Sync + 'static
where
    W: Fn(TaskRun) -> Result<(), TaskError> + Send + Sync + 'static,
{
    let work = Arc::new(work);
    move |run| {
        let work = Arc::clone(&work);
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || work(run)).await {
                Ok(done) => done,
                // Not cancelled, for nobody does that: it panicked, which the worker tells as it does of any other handler.
                Err(error) => std::panic::resume_unwind(error.into_panic()),
            }
        })
    }
}

/// The runtime of all blocking calls of this process.
fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime =
            Builder::new_current_thread().enable_all().build().expect("the system gives us an epoll and a timer");
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name("quorate-client".into());
        // It goes with the process.
        thread.spawn(move || runtime.block_on(std::future::pending::<()>())).expect("the system gives us a thread");
        handle
    })
}
