//! Clients of etcd's protocol, each with one call in flight, that share a connection.
//!
//! Owns whose answer is whose. What the clients of a connection have to say goes out at once: or it would take more of the machine than
//! what is measured. Never looks into what they say.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quorate_etcd_api::Message;
use quorate_etcd_api::maintenance::StatusRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::etcd::{self, Format};
use crate::http2::Connection;
use crate::meter::Meter;
use crate::work::{Client, Step};

/// Messages as gRPC writes them.
struct Binary;

impl Format for Binary {
    type Answer<'a> = Bytes;

    fn write(message: &(impl Message + Serialize)) -> Result<Vec<u8>, Failure> {
        Ok(message.encode_to_vec())
    }

    fn read<M: Message + Default + DeserializeOwned>(answer: Bytes) -> Result<M, Failure> {
        Ok(M::decode(answer)?)
    }
}

/// Has these clients work until the window ends or there is nothing left to do.
pub async fn drive(
    mut connection: Connection,
    mut clients: Vec<Client>,
    value: Bytes,
    meter: Arc<Meter>,
) -> Result<(), Failure> {
    // By stream: whose call it is, and what was asked.
    let mut in_flight = HashMap::new();
    let mut idle: Vec<usize> = (0..clients.len()).collect();
    let (mut answers, mut steps) = (Vec::new(), Vec::<Step>::new());
    loop {
        let sent = Instant::now();
        let may_begin = meter.window.is_open(sent);
        for of in idle.drain(..) {
            if let Some(ask) = clients[of].next(sent, may_begin) {
                let (method, message) = etcd::call::<Binary>(&ask, &value)?;
                in_flight.insert(connection.call(method.grpc, &message)?, (of, ask));
            }
        }
        if in_flight.is_empty() {
            return Ok(());
        }
        connection.flush().await?;
        connection.answers(&mut answers).await?;
        let answered = Instant::now();
        for answer in answers.drain(..) {
            let (of, ask) = in_flight.remove(&answer.stream).ok_or("an answer to no call")?;
            steps.push(clients[of].take(&ask, etcd::reply::<Binary>(&ask, answer.message)?)?);
            idle.push(of);
        }
        meter.note(steps.drain(..), answered);
    }
}

/// Whether this member leads.
pub async fn is_leader(endpoint: &str) -> Result<bool, Failure> {
    let mut connection = Connection::open(endpoint).await?;
    connection.call(etcd::STATUS.grpc, &StatusRequest {}.encode_to_vec())?;
    connection.flush().await?;
    let mut answers = Vec::new();
    connection.answers(&mut answers).await?;
    Ok(etcd::is_leader(&Binary::read(answers.swap_remove(0).message)?))
}
