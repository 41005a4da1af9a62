//! The network of a simulation as one host sees it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use quorate_node_core::net::{Listener, Network, Stream};
use tokio::sync::{mpsc, oneshot};

use crate::address::{HostId, host_of};
use crate::network::{Event, Net};

/// The network as this host sees it.
pub fn of(net: &Net, host: HostId) -> Arc<dyn Network> {
    Arc::new(HostNetwork { net: net.clone(), host })
}

struct HostNetwork {
    net: Net,
    host: HostId,
}

impl Network for HostNetwork {
    fn listen(&self, addr: SocketAddr) -> io::Result<Listener> {
        let mut inner = self.net.lock();
        if inner.listeners.get(&addr).is_some_and(|listener| !listener.is_closed()) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let (arrivals, listener) = mpsc::unbounded_channel();
        inner.listeners.insert(addr, arrivals);
        Ok(Listener::Simulated(listener))
    }

    fn connect(&self, addr: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let (connected, answer) = oneshot::channel();
        let asked = addr.parse::<SocketAddr>().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error));
        let asked = asked.map(|to| {
            let mut inner = self.net.lock();
            let host = host_of(to).unwrap_or(self.host);
            inner.schedule_over(self.host, host, Event::Ask { from: self.host, to, connected });
        });
        Box::pin(async move {
            asked?;
            answer.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
        })
    }
}
