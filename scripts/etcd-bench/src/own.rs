//! Clients of HTTP/1.1, each with a connection of its own.
//!
//! Owns the loop of such a client. Never knows what it speaks: that is a [`Dialect`].

use std::sync::Arc;
use std::time::Instant;

use crate::Failure;
use crate::http1::{Answer, Connection, Request};
use crate::meter::Meter;
use crate::work::{Ask, Client, Reply};

/// How something is asked by HTTP/1.1.
pub trait Dialect: Send + Sync {
    fn request(&self, ask: &Ask) -> Result<Request, Failure>;
    fn reply(&self, ask: &Ask, answer: &Answer<'_>) -> Result<Reply, Failure>;
    /// Asks for what [`Self::is_leader`] looks at.
    fn status(&self) -> Request;
    fn is_leader(&self, answer: &Answer<'_>) -> Result<bool, Failure>;
}

/// Has a client work until the window ends or there is nothing left to do.
pub async fn drive(
    mut connection: Connection,
    mut client: Client,
    dialect: Arc<dyn Dialect>,
    meter: Arc<Meter>,
) -> Result<(), Failure> {
    loop {
        let sent = Instant::now();
        let Some(ask) = client.next(sent, meter.window.is_open(sent)) else { return Ok(()) };
        let request = dialect.request(&ask)?;
        let answer = connection.call(&request).await?;
        let answered = Instant::now();
        let reply = dialect.reply(&ask, &answer);
        let reply = reply.map_err(|error| format!("{} {}: {error}", request.method, request.path))?;
        meter.note([client.take(&ask, reply)?], answered);
    }
}

/// Whether this member leads.
pub async fn is_leader(endpoint: &str, dialect: &dyn Dialect) -> Result<bool, Failure> {
    let mut connection = Connection::open(endpoint).await?;
    dialect.is_leader(&connection.call(&dialect.status()).await?)
}
