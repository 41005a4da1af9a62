//! Where hands are shaken with those who come.
//!
//! Owns a thread for it, one for each port that has TLS. A handshake costs a signature, which anybody may ask for: there it can keep no
//! more busy than that thread, and neither Raft nor those who are through already wait for it. Never decides whom to shake hands with.

use std::future::Future;
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

use super::Port;

/// The thread of a port. It is started when the first one comes: who checks a configuration needs none.
#[derive(Debug)]
pub(super) struct Handshakes {
    name: &'static str,
    runtime: OnceLock<Runtime>,
}

impl Handshakes {
    pub fn new(port: Port) -> Self {
        // Linux shows 15 characters.
        let name = match port {
            Port::Clients => "tls-clients",
            Port::Peers(_) => "tls-peers",
        };
        Self { name, runtime: OnceLock::new() }
    }

    /// Does something there. Dropping the future ends it. It must not set timers: there are none there.
    pub async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
        #[expect(clippy::disallowed_methods, reason = "nobody else is on that thread")]
        let task = AbortOnDropHandle::new(self.runtime()?.spawn(work));
        task.await.map_err(io::Error::other)
    }

    fn runtime(&self) -> io::Result<&Runtime> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(self.name).build()?;
        if let Err(second) = self.runtime.set(runtime) {
            // Two came first at once.
            second.shutdown_background();
        }
        Ok(self.runtime.get().expect("it was set"))
    }
}

/// Its last user may be a task of another runtime, where a runtime must not wait for its end.
impl Drop for Handshakes {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
