//! Connections that take no more of the processors than their account may.
//!
//! Owns when a connection, and what runs beside it, is polled. Never decides how much an account may take: [`super::pace`] does.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use quorate_threads::watchdog;
use tokio::time::Sleep;

use crate::gateway::admission::turns::{ConnectionAccount, Lanes};

pin_project! {
    /// A connection that takes no more than the share of the account that it is on.
    pub struct Paced<F> {
        #[pin]
        connection: F,
        account: Arc<ConnectionAccount>,
        pause: Option<Pause>,
    }
}

/// One that waits until its account has paid, until it is dropped.
struct Pause {
    sleep: Pin<Box<Sleep>>,
    lanes: Arc<Lanes>,
}

impl Pause {
    fn begin(lanes: Arc<Lanes>, until: Instant) -> Self {
        lanes.share.paused.fetch_add(1, Ordering::Relaxed);
        Self { sleep: Box::pin(tokio::time::sleep_until(until.into())), lanes }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.lanes.share.paused.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<F> Paced<F> {
    /// Counts what this one does.
    pub fn new(connection: F, account: &Arc<ConnectionAccount>) -> Self {
        Self { connection, account: Arc::clone(account), pause: None }
    }

    /// The connection itself.
    pub fn connection(self: Pin<&mut Self>) -> Pin<&mut F> {
        self.project().connection
    }
}

impl<F: Future> Future for Paced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let lanes = loop {
            // One that waits goes on waiting, whatever woke it up.
            if let Some(pause) = this.pause {
                std::task::ready!(pause.sleep.as_mut().poll(cx));
                *this.pause = None;
            }
            let lanes = this.account.lanes();
            let Some(until) = lanes.share.pause(Instant::now()) else { break lanes };
            *this.pause = Some(Pause::begin(lanes, until));
        };
        lanes.share.note();
        lanes.share.at_work(|| watchdog::step("connection", || this.connection.poll(cx)))
    }
}

/// Waits until an account has paid for the time of the processors that it took, at most until then: before more is begun for it that will take much.
pub async fn paid(lanes: &Arc<Lanes>, deadline: Instant) {
    loop {
        let now = Instant::now();
        match lanes.share.pause(now) {
            Some(until) if now < deadline => {
                Pause::begin(Arc::clone(lanes), until.min(deadline)).sleep.as_mut().await;
            }
            _ => return,
        }
    }
}

/// Has what belongs to a connection, and runs beside it, take from the same share.
#[derive(Clone)]
pub struct PacedExecutor(pub Arc<ConnectionAccount>);

impl<F: Future<Output: Send> + Send + 'static> hyper::rt::Executor<F> for PacedExecutor {
    fn execute(&self, future: F) {
        watchdog::spawn(Paced::new(future, &self.0));
    }
}
