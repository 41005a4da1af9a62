//! What goes wrong, in etcd's words.
//!
//! Owns the code and text of each failure. Texts are compared by clients, so those that etcd has are etcd's; others are ours.

use std::ops::Deref;

use axum::response::Response;
use futures::stream::BoxStream;
use quorate_api::{Applied, ErrorCode};
use quorate_etcd_api::Error;
use quorate_machine::types::{Outcome, Rejection, Reply, Revision, TxnFault, TxnRefusal};
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::propose;
use tonic::Code;

/// Messages of a stream, either way; the last one may be how it failed.
pub type Flow<T> = BoxStream<'static, Result<T, Status>>;

/// How a call failed: what gRPC calls so. A type of this crate, since what the gateway says went wrong becomes one.
#[derive(Debug, Clone)]
pub struct Status(tonic::Status);

impl Status {
    /// With this code and text.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(tonic::Status::new(code, message))
    }

    /// Something is wrong with what was asked.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Something is wrong here, or with how it was asked.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// There is no such call here.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, message)
    }

    /// It is more than there is room for.
    pub fn resource_exhausted(message: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, message)
    }

    /// As the whole answer of a call.
    pub fn into_http(self) -> Response {
        self.0.into_http()
    }
}

impl Deref for Status {
    type Target = tonic::Status;

    fn deref(&self) -> &tonic::Status {
        &self.0
    }
}

impl From<tonic::Status> for Status {
    fn from(status: tonic::Status) -> Self {
        Self(status)
    }
}

impl From<Status> for tonic::Status {
    fn from(status: Status) -> Self {
        status.0
    }
}

/// An error of etcd's.
pub fn known(error: Error) -> Status {
    Status::new(Code::from_i32(error.code() as i32), error.text())
}

/// What is wrong with a transaction whatever the state.
pub fn of_fault(fault: &TxnFault) -> Status {
    match fault {
        TxnFault::KeyTwice { .. } => known(Error::DuplicateKey),
        TxnFault::TooMany(_) => known(Error::TooManyOps),
        TxnFault::TooDeep => Status::invalid_argument(format!("quorate: {fault}")),
    }
}

/// What is wrong with a transaction on the way that it takes.
fn of_refusal(why: TxnRefusal) -> Error {
    match why {
        // etcd would do both: put the key, and remove it in the same revision.
        TxnRefusal::KeyTwice => Error::DuplicateKey,
        TxnRefusal::Compacted => Error::Compacted,
        TxnRefusal::Future => Error::FutureRev,
    }
}

/// Why a command did not come to what it should have. `key` is what it was about, for people.
pub fn of_reply(key: impl AsRef<[u8]>, reply: &Reply) -> Status {
    let failure = match &reply.outcome {
        // Only a put that keeps the value or the lease asks for an entry that is there.
        Outcome::Rejected(Rejection::NotFound) => return known(Error::KeyNotFound),
        Outcome::TxnRejected(rejected) if matches!(rejected.why, Rejection::NotFound) => {
            return known(Error::KeyNotFound);
        }
        Outcome::Rejected(why) => Failure::from_rejection(key, reply, why),
        Outcome::TxnRejected(rejected) => match rejected.why {
            Rejection::Txn(why) => return known(of_refusal(why)),
            _ => Failure::from_step(reply, rejected),
        },
        _ => propose::confused(reply),
    };
    failure.into()
}

/// The answer to a transaction that this node sent again, not knowing that it was carried out, and whose first answer listed too much to be
/// kept. Not one of the codes upon which a client would send it once more.
pub fn not_listed(revision: Revision) -> Status {
    let what = "it was carried out, and an answer was lost on the way; what it listed is not kept";
    Status::new(Code::Unknown, format!("quorate: {what}: at revision {revision}, read it again"))
}

/// What the gateway says went wrong.
impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let applied = failure.applied();
        let ours = |code: Code| Status::new(code, format!("quorate: {}", failure.detail()));
        match failure.code() {
            ErrorCode::Unauthenticated => known(Error::InvalidAuthToken),
            ErrorCode::PermissionDenied => known(Error::PermissionDenied),
            ErrorCode::NoLeader => known(Error::NoLeader),
            ErrorCode::Timeout if applied == Applied::Unknown => known(Error::TimeoutDueToConnectionLost),
            ErrorCode::Timeout => known(Error::Timeout),
            ErrorCode::TooManyRequests => known(Error::RequestTooManyRequests),
            ErrorCode::TooLarge => known(Error::RequestTooLarge),
            ErrorCode::QuotaExceeded => known(Error::NoSpace),
            ErrorCode::SessionExpired => known(Error::LeaseNotFound),
            ErrorCode::Compacted => known(Error::Compacted),
            ErrorCode::TooDear => ours(Code::ResourceExhausted),
            ErrorCode::NotReady | ErrorCode::Quarantined => ours(Code::Unavailable),
            ErrorCode::Internal => ours(Code::Internal),
            ErrorCode::InvalidArgument | ErrorCode::UnknownField => ours(Code::InvalidArgument),
            _ => ours(Code::FailedPrecondition),
        }
    }
}
