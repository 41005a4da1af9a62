//! A call: what it is asked and answers with, and what holds for it before it is looked at.
//!
//! Owns that the rest of the way need not know which call it is: messages come as bytes and leave as something that can be written. So
//! the way of a call is compiled once, not for each of them.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use quorate_etcd_api::measure::{self, Fault, Measure, Measured};
use quorate_etcd_api::{Message, Method};
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::guard::Guard;
use quorate_node_core::gateway::call::Call;
use quorate_node_core::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tonic::codec::EncodeBuf;

use crate::message;
use crate::status::{Status, known};

/// What holds for a call before it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Where it is admitted.
    pub class: RequestClass,
    /// Who may ask.
    pub guard: Guard,
    /// Whether it writes: then it has a request id under which its outcome is kept.
    pub writes: bool,
    /// Whether it is served whatever its account owes.
    pub is_vital: bool,
    /// Whether it may wait for others, for as long as its client does.
    pub waits: bool,
}

impl Policy {
    /// About this node or the cluster, for whoever says who they are.
    pub const KNOWN: Self =
        Self { class: RequestClass::Node, guard: Guard::Known, writes: false, is_vital: true, waits: false };
    /// About who asks, for anybody.
    pub const ANYBODY: Self = Self { guard: Guard::None, ..Self::KNOWN };
    /// About the cluster, for who may administer everything.
    pub const ADMIN: Self = Self { guard: Guard::Admin, is_vital: false, ..Self::KNOWN };
    /// Takes a backup.
    pub const BACKUP: Self = Self { guard: Guard::Backup, ..Self::ADMIN };
    /// A change of who may do what.
    pub const ADMIN_WRITE: Self = Self { writes: true, ..Self::ADMIN };

    /// A read.
    pub const fn read(class: RequestClass) -> Self {
        Self { class, guard: Guard::Judged, writes: false, is_vital: false, waits: false }
    }

    /// In another place than others of its kind.
    pub const fn in_class(self, class: RequestClass) -> Self {
        Self { class, ..self }
    }

    /// For the owner of the lease that it names, even without any permission.
    pub const fn for_owners(self) -> Self {
        Self { guard: Guard::Owned, ..self }
    }

    /// A write.
    pub const fn write(class: RequestClass) -> Self {
        Self { writes: true, ..Self::read(class) }
    }
}

/// A message in both forms.
pub trait Form: Message + Default + Serialize + DeserializeOwned + Send + 'static {}

impl<T: Message + Default + Serialize + DeserializeOwned + Send + 'static> Form for T {}

/// A message that is asked with, which is measured before it is read.
pub trait Asks: Form + Measured {}

impl<T: Form + Measured> Asks for T {}

/// A message as it came.
pub enum Incoming {
    /// Over gRPC.
    Proto(Bytes),
    /// Over the JSON gateway; empty where the request has no body.
    Json(Bytes),
}

/// How much a message may be made of.
const MOST: Measure = Measure { elements: limits::ETCD_ELEMENTS_MAX, fields: limits::ETCD_FIELDS_MAX };

impl Incoming {
    /// Reads it.
    pub fn read<T: Asks>(self) -> Result<T, Status> {
        self.check::<T>()?;
        match self {
            Self::Proto(bytes) => T::decode(bytes).map_err(|error| Status::internal(error.to_string())),
            Self::Json(bytes) if bytes.trim_ascii().is_empty() => Ok(T::default()),
            // serde would take a list for the fields of a message, in their order.
            Self::Json(bytes) if bytes.trim_ascii_start().starts_with(b"[") => {
                Err(Status::invalid_argument("a message is an object, and this is a list"))
            }
            Self::Json(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| Status::invalid_argument(error.to_string()))
            }
        }
    }

    /// Refuses a message that would become much larger than it came, before anything of it is decoded.
    fn check<T: Asks>(&self) -> Result<(), Status> {
        let measured = match self {
            Self::Proto(bytes) => measure::of_proto::<T>(bytes, MOST),
            Self::Json(bytes) => measure::of_json(bytes, MOST),
        };
        let Err(fault) = measured else { return Ok(()) };
        Err(match (fault, self) {
            (Fault::TooMuch, _) => T::too_much().map_or_else(too_much, known),
            (Fault::Malformed, Self::Proto(_)) => Status::internal("quorate: the message cannot be decoded"),
            (Fault::Malformed, Self::Json(_)) => Status::invalid_argument("quorate: the message is nested too deeply"),
        })
    }
}

fn too_much() -> Status {
    let Measure { elements, fields } = MOST;
    let text = format!("quorate: a message has at most {elements} elements in its lists, and {fields} fields");
    Status::invalid_argument(text)
}

/// A message on its way out.
pub trait Outgoing: Send {
    /// Writes it as one of a stream over gRPC.
    fn write(&self, into: &mut EncodeBuf<'_>) -> Result<(), Status>;
    /// How long it is over gRPC.
    fn bytes(&self) -> u64;
    /// As the one message of an answer over gRPC, with what stands before it.
    fn framed(&self) -> Result<Bytes, Status>;
    /// Writes it as JSON.
    fn to_json(&self) -> serde_json::Result<Vec<u8>>;
}

impl<T: Form> Outgoing for T {
    fn write(&self, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        self.encode(into).map_err(|error| Status::internal(error.to_string()))
    }

    fn bytes(&self) -> u64 {
        self.encoded_len() as u64
    }

    fn framed(&self) -> Result<Bytes, Status> {
        message::framed(self)
    }

    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}

/// What is answered.
pub type Answer = Result<Box<dyn Outgoing>, Status>;
/// What is answered with a stream.
pub type Answers = BoxStream<'static, Answer>;
/// What is asked with one.
pub type Questions = BoxStream<'static, Result<Incoming, Status>>;

/// A call that is served.
#[derive(Clone, Copy)]
pub struct Served {
    /// Its path over gRPC, and in the gateway.
    pub method: &'static Method,
    /// What holds for it.
    pub policy: Policy,
    /// What is done.
    pub work: Work,
}

/// What is done for a call.
#[derive(Clone, Copy)]
pub enum Work {
    /// One message each way.
    Unary(fn(Arc<Call>, Incoming) -> BoxFuture<'static, Answer>),
    /// Streams.
    Exchange {
        /// Whether it goes on where nothing more is asked, until the client ends its side.
        goes_on: bool,
        /// Begins: gives what it answers with. It should end when the token says that the connection or the node does.
        open: fn(Arc<Call>, Questions, CancellationToken) -> Answers,
    },
}

#[cfg(test)]
mod tests {
    use quorate_etcd_api::Error;
    use quorate_etcd_api::kv::{PutRequest, RequestOp, RequestOpRequest, TxnRequest};
    use quorate_etcd_api::watch::{WatchCreateRequest, WatchRequest, WatchRequestRequestUnion};
    use tonic::Code;

    use super::*;

    fn refused<T: Asks + std::fmt::Debug>(message: Incoming) -> (Code, String) {
        let status = message.read::<T>().expect_err("it is refused");
        (status.code(), status.message().to_owned())
    }

    /// Whatever stands behind it: nothing of it is decoded.
    #[test]
    fn what_has_too_much_is_refused_before_it_is_decoded() {
        let too_many = (Code::InvalidArgument, Error::TooManyOps.text().to_owned());
        let empty = [[0x12_u8, 0].repeat(100_000), vec![0xff]].concat();
        assert_eq!(refused::<TxnRequest>(Incoming::Proto(empty.into())), too_many);
        let empty = format!(r#"{{"success":[{}"#, "{},".repeat(100_000));
        assert_eq!(refused::<TxnRequest>(Incoming::Json(empty.into())), too_many);
        let filters = vec![0; 1_025];
        let create = WatchCreateRequest { filters, ..WatchCreateRequest::default() };
        let watch = WatchRequest { request_union: Some(WatchRequestRequestUnion::CreateRequest(create)) };
        for message in [
            Incoming::Proto(watch.encode_to_vec().into()),
            Incoming::Json(serde_json::to_vec(&watch).expect("JSON").into()),
        ] {
            let (code, text) = refused::<WatchRequest>(message);
            assert!(code == Code::InvalidArgument && text.contains("at most 1024 elements"), "{code:?} {text}");
        }
        assert_eq!(refused::<PutRequest>(Incoming::Proto(Bytes::from_static(&[0x12, 0x80]))).0, Code::Internal);
    }

    #[test]
    fn as_much_as_may_be_is_read_in_both_forms() {
        let put = |n: usize| {
            let (key, value) = (format!("key {n}").into(), "[{,:\"".into());
            let put = PutRequest { key, value, lease: 7, prev_kv: true, ignore_value: true, ignore_lease: true };
            RequestOp { request: Some(RequestOpRequest::RequestPut(put)) }
        };
        let most = limits::ETCD_ELEMENTS_MAX;
        let txn = TxnRequest { success: (0..most).map(put).collect(), ..TxnRequest::default() };
        let both = [
            Incoming::Proto(txn.encode_to_vec().into()),
            Incoming::Json(serde_json::to_vec(&txn).expect("JSON").into()),
        ];
        for message in both {
            assert_eq!(message.read::<TxnRequest>().expect("it is one"), txn);
        }
    }
}
