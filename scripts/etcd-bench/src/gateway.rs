//! etcd's JSON gateway.
//!
//! Owns how its messages go by HTTP/1.1. Never knows what they say.

use bytes::Bytes;
use quorate_etcd_api::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::etcd::{self, Format, Method};
use crate::http1::{Answer, Request};
use crate::own::Dialect;
use crate::work::{Ask, Reply};

/// Messages as the gateway writes them.
struct Json;

impl Format for Json {
    type Answer<'a> = &'a [u8];

    fn write(message: &(impl Message + Serialize)) -> Result<Vec<u8>, Failure> {
        Ok(serde_json::to_vec(message)?)
    }

    fn read<M: Message + Default + DeserializeOwned>(answer: &[u8]) -> Result<M, Failure> {
        Ok(serde_json::from_slice(answer)?)
    }
}

/// The gateway, with the value that is written.
pub struct Gateway(pub Bytes);

impl Dialect for Gateway {
    fn request(&self, ask: &Ask) -> Result<Request, Failure> {
        let (method, message) = etcd::call::<Json>(ask, &self.0)?;
        Ok(request(method, message.into()))
    }

    fn reply(&self, ask: &Ask, answer: &Answer<'_>) -> Result<Reply, Failure> {
        etcd::reply::<Json>(ask, message(answer)?)
    }

    fn status(&self) -> Request {
        request(etcd::STATUS, Bytes::from_static(b"{}"))
    }

    fn is_leader(&self, answer: &Answer<'_>) -> Result<bool, Failure> {
        Ok(etcd::is_leader(&Json::read(message(answer)?)?))
    }
}

fn request(method: Method, body: Bytes) -> Request {
    let fields = "Content-Type: application/json\r\n".to_owned();
    Request { method: "POST", path: method.gateway.to_owned(), fields, body }
}

fn message<'a>(answer: &Answer<'a>) -> Result<&'a [u8], Failure> {
    if answer.status == 200 { Ok(answer.body) } else { Err(answer.unexpected()) }
}
