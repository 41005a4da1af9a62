//! One message each way over gRPC: how it is framed, and how its answer ends.
//!
//! Owns what stands around the message of a call. Streams are tonic's: it has buffers of eight kilobytes for each direction, and looks at
//! an answer as a stream of unknown length. Never knows what a message says.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use quorate_etcd_api::Message;
use tonic::metadata::MetadataValue;

use crate::gateway::answer_body;
use crate::gateway::call::Call;
use crate::status::Status;

/// Whether a message is compressed, and its length in four bytes.
const PREFIX_BYTES: usize = 5;

const APPLICATION_GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Reads the one message of a call, and takes a place in the memory for all bodies as it comes.
///
/// Fails where it is longer than `bytes_max`, compressed, cut off, or not the only one.
pub async fn read(call: &Call, headers: &HeaderMap, mut body: Body, bytes_max: usize) -> Result<Bytes, Status> {
    check_encoding(headers)?;
    let mut framed = Gathered::default();
    while let Some(frame) = body.frame().await {
        // Trailers of a request say nothing here.
        let Ok(data) = frame.map_err(|error| tonic::Status::from_error(error.into_inner()))?.into_data() else {
            continue;
        };
        call.body_permit.grow(data.len())?;
        framed.add(data);
        framed.check(bytes_max)?;
    }
    framed.message()
}

/// Nothing is compressed here.
fn check_encoding(headers: &HeaderMap) -> Result<(), Status> {
    match headers.get("grpc-encoding") {
        Some(encoding) if encoding != "identity" => {
            let text = format!("quorate: messages compressed by {encoding:?} are not read");
            let mut status = tonic::Status::unimplemented(text);
            status.metadata_mut().insert("grpc-accept-encoding", MetadataValue::from_static("identity"));
            Err(status.into())
        }
        _ => Ok(()),
    }
}

/// What came of a body. As a rule that is one frame, which is not copied.
#[derive(Debug, Default)]
struct Gathered {
    only: Bytes,
    /// All that came, where there were more.
    all: BytesMut,
}

impl Gathered {
    fn add(&mut self, data: Bytes) {
        if self.only.is_empty() && self.all.is_empty() {
            self.only = data;
            return;
        }
        if self.all.is_empty() {
            self.all.extend_from_slice(&std::mem::take(&mut self.only));
        }
        self.all.extend_from_slice(&data);
    }

    fn bytes(&self) -> &[u8] {
        if self.all.is_empty() { &self.only } else { &self.all }
    }

    /// The length that it says it has; `None` as long as that has not come.
    fn declared(&self) -> Option<usize> {
        let length = self.bytes().get(1..PREFIX_BYTES)?;
        Some(length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    fn check(&self, bytes_max: usize) -> Result<(), Status> {
        match (self.bytes().first(), self.declared()) {
            (Some(flag @ 1..), _) => Err(Status::internal(format!(
                "quorate: a message with the compressed flag {flag}, and no encoding named"
            ))),
            (_, Some(length)) if length > bytes_max => {
                // As gRPC says it in the language of etcd.
                let text = format!("grpc: received message larger than max ({length} vs. {bytes_max})");
                Err(Status::resource_exhausted(text))
            }
            (_, Some(length)) if self.bytes().len() > PREFIX_BYTES + length => {
                Err(Status::internal("quorate: a call takes one message, and more came"))
            }
            _ => Ok(()),
        }
    }

    /// All of it, once nothing more comes.
    fn message(self) -> Result<Bytes, Status> {
        if self.bytes().is_empty() {
            return Err(Status::internal("quorate: a call came without its message"));
        }
        let is_whole = self.declared().is_some_and(|length| self.bytes().len() == PREFIX_BYTES + length);
        let mut framed = if self.all.is_empty() { self.only } else { self.all.freeze() };
        if !is_whole {
            return Err(Status::internal("quorate: the message of a call was cut off"));
        }
        framed.advance(PREFIX_BYTES);
        Ok(framed)
    }
}

/// A message with what stands before it.
pub fn framed(message: &impl Message) -> Result<Bytes, Status> {
    let length = message.encoded_len();
    let declared = u32::try_from(length).map_err(|_| Status::resource_exhausted("quorate: the answer is too long"))?;
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + length);
    framed.put_u8(0);
    framed.put_u32(declared);
    message.encode(&mut framed).map_err(|error| Status::internal(error.to_string()))?;
    Ok(framed.freeze())
}

/// The answer of a call that went well.
pub fn answer(call: &Call, framed: Bytes) -> Response {
    let body = Body::new(Answered { message: Some(answer_body::held(call, framed)), is_over: false });
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, APPLICATION_GRPC);
    answer
}

/// A message, and behind it that all went well.
struct Answered {
    message: Option<Bytes>,
    is_over: bool,
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        if std::mem::replace(&mut self.is_over, true) {
            return Poll::Ready(None);
        }
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use quorate_etcd_api::kv::RangeRequest;
    use tonic::Code;

    use super::*;

    const BYTES_MAX: usize = 100;

    /// What parts of a body come to.
    fn read_parts<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Bytes, Status> {
        let mut framed = Gathered::default();
        for part in parts {
            framed.add(Bytes::copy_from_slice(part));
            framed.check(BYTES_MAX)?;
        }
        framed.message()
    }

    #[test]
    fn a_message_is_read_in_whatever_parts_it_comes() {
        let message = RangeRequest { key: Bytes::from_static(b"key"), limit: 7, ..RangeRequest::default() };
        let framed = framed(&message).expect("it is short");
        for length in 1..=framed.len() {
            let read = read_parts(framed.chunks(length)).expect("it is whole");
            assert_eq!(RangeRequest::decode(read).expect("it is one"), message, "in parts of {length}");
        }
        assert_eq!(read_parts([&[0; PREFIX_BYTES][..]]).expect("it is empty"), Bytes::new());
    }

    #[test]
    fn what_is_no_single_message_is_refused_and_says_why() {
        let refused = |parts: &[&[u8]]| read_parts(parts.iter().copied()).expect_err("it is none").message().to_owned();
        for cut_off in [&[0][..], &[0, 0, 0, 0], &[0, 0, 0, 0, 2, 1]] {
            assert!(refused(&[cut_off]).contains("cut off"), "{cut_off:?}");
        }
        assert!(refused(&[]).contains("without its message"));
        assert!(refused(&[&[0, 0, 0, 0, 1], &[1, 0]]).contains("more came"));
        assert!(refused(&[&[1, 0, 0, 0, 0]]).contains("compressed flag 1"));
        // Before more of it comes than its length.
        assert!(refused(&[&[0, 0, 0, 0, 101]]).contains("larger than max (101 vs. 100)"));
        let too_long = read_parts([&[0, 0, 0, 0, 101][..]]).expect_err("it is too long");
        assert_eq!(too_long.code(), Code::ResourceExhausted, "out of range are revisions");
        assert!(refused(&[&[0, 255, 255, 255, 255]]).contains("4294967295"));
    }

    #[test]
    fn compressed_messages_are_not_read() {
        let with = |encoding| HeaderMap::from_iter([(header::HeaderName::from_static("grpc-encoding"), encoding)]);
        assert!(check_encoding(&HeaderMap::new()).is_ok());
        assert!(check_encoding(&with(HeaderValue::from_static("identity"))).is_ok());
        let refused = check_encoding(&with(HeaderValue::from_static("gzip"))).expect_err("it is compressed");
        assert_eq!(refused.code(), Code::Unimplemented);
        assert!(refused.metadata().contains_key("grpc-accept-encoding"));
    }

    #[tokio::test]
    async fn an_answer_is_its_message_and_then_that_all_went_well() {
        let mut body = Answered { message: Some(Bytes::from_static(b"message")), is_over: false };
        assert!(!body.is_end_stream());
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "message");
        let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
        assert_eq!(trailers.get("grpc-status").unwrap(), "0");
        assert!(body.is_end_stream() && body.frame().await.is_none());
    }
}
