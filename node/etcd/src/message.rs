//! One message each way over gRPC: how it is framed, and how its answer ends.
//!
//! Owns what stands around the message of a call, and around those of a stream on its way in. Streams on their way out are tonic's: it looks at
//! an answer as one of unknown length. Never knows what a message says.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::Stream;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use quorate_etcd_api::Message;
use quorate_node_core::gateway::admission::shares::HeldShare;
use quorate_node_core::gateway::answer_body;
use quorate_node_core::gateway::body::{self, BodyPatience, Coming};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::timings::{self, Part};
use tokio::time::Instant;
use tonic::metadata::MetadataValue;

use crate::status::{Status, known};

/// Whether a message is compressed, and its length in four bytes.
const PREFIX_BYTES: usize = 5;

const APPLICATION_GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Reads the one message of a call, and takes a place in the memory for all bodies as it comes.
///
/// Fails where it is longer than `bytes_max`, cut off, late, or not the only one.
pub async fn read(call: &Call, body: Body, bytes_max: usize) -> Result<Bytes, Status> {
    let reading = async {
        let mut framed = Gathered::default();
        let mut coming = Coming::new(call, body);
        while let Some(data) = coming.next().await? {
            call.take_body(data.len())?;
            framed.add(data);
            framed.check(bytes_max)?;
        }
        framed.message()
    };
    timings::on(Part::Body, reading).await
}

/// Nothing is compressed here.
pub fn check_encoding(headers: &HeaderMap) -> Result<(), Status> {
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

    fn check(&self, bytes_max: usize) -> Result<(), Status> {
        match declared(self.bytes(), bytes_max)? {
            Some(length) if self.bytes().len() > PREFIX_BYTES + length => {
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
        let is_whole = length_of(self.bytes()).is_some_and(|length| self.bytes().len() == PREFIX_BYTES + length);
        let mut framed = if self.all.is_empty() { self.only } else { self.all.freeze() };
        if !is_whole {
            return Err(cut_off());
        }
        framed.advance(PREFIX_BYTES);
        Ok(framed)
    }
}

/// The length that a message says it has; `None` as long as that has not come.
fn length_of(framed: &[u8]) -> Option<usize> {
    let length = framed.get(1..PREFIX_BYTES)?;
    Some(length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
}

/// The same, where it may come.
fn declared(framed: &[u8], bytes_max: usize) -> Result<Option<usize>, Status> {
    match (framed.first(), length_of(framed)) {
        (Some(flag @ 1..), _) => {
            Err(Status::internal(format!("quorate: a message with the compressed flag {flag}, and no encoding named")))
        }
        (_, Some(length)) if length > bytes_max => {
            // The text of gRPC in Go, the language of etcd.
            let text = format!("grpc: received message larger than max ({length} vs. {bytes_max})");
            Err(Status::resource_exhausted(text))
        }
        (_, length) => Ok(length),
    }
}

/// The messages of a stream, each of at most `bytes_max` bytes. A stream may say nothing for as long as it likes, but a message that has begun
/// takes room in the memory for all bodies until it is whole. The rest of it has to come in time, and takes a place among those on their way
/// after a while.
pub fn stream(call: Arc<Call>, body: Body, bytes_max: usize) -> impl Stream<Item = Result<Bytes, Status>> + Send {
    let patience = BodyPatience::of(&call.api.settings);
    let messages = Messages { call, body, bytes_max, patience, came: Came::default(), place: None };
    futures::stream::unfold(Some(messages), |messages| async move {
        let mut messages = messages?;
        match messages.next().await {
            Ok(Some(message)) => Some((Ok(message), Some(messages))),
            Ok(None) => None,
            Err(status) => Some((Err(status), None)),
        }
    })
}

/// A stream on its way in.
struct Messages {
    call: Arc<Call>,
    body: Body,
    bytes_max: usize,
    patience: BodyPatience,
    came: Came,
    /// That of the message which is on its way.
    place: Option<HeldShare>,
}

impl Messages {
    /// The next message; `None` where the client has ended its side, or taken its stream back.
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(message) = self.came.take_whole(self.bytes_max)? {
                self.call.body_permit.shrink(self.came.bytes.len());
                self.place = None;
                return Ok(Some(message));
            }
            let Some(data) = self.next_piece().await? else {
                return match self.came.bytes.is_empty() {
                    true => Ok(None),
                    false => Err(cut_off()),
                };
            };
            self.call.take_body(data.len())?;
            self.came.add(&data);
        }
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            let frame = match self.next_frame().await?.transpose() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(None),
                Err(error) => match tonic::Status::from_error(error.into_inner()) {
                    status if status.code() == tonic::Code::Cancelled => return Ok(None),
                    status => return Err(status.into()),
                },
            };
            // Trailers of a request say nothing here.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// Waits without an end where no message has begun.
    async fn next_frame(&mut self) -> Result<Option<Result<Frame<Bytes>, axum::Error>>, Status> {
        let Some(begun) = self.came.begun else { return Ok(self.body.frame().await) };
        let due = begun + self.patience.after(self.came.bytes.len());
        loop {
            let until = body::wait_until(begun, due, self.place.is_some());
            match tokio::time::timeout_at(until, self.body.frame()).await {
                Ok(frame) => return Ok(frame),
                Err(_late) if until >= due => return Err(known(quorate_etcd_api::Error::Timeout)),
                Err(_still_coming) => self.place = Some(self.call.arrive()?),
            }
        }
    }
}

/// Bytes of a stream that came and were not taken yet.
#[derive(Debug, Default)]
struct Came {
    bytes: BytesMut,
    /// When the message began that is there in part.
    begun: Option<Instant>,
}

impl Came {
    fn add(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        if !self.bytes.is_empty() {
            self.begun.get_or_insert_with(Instant::now);
        }
    }

    /// The next message, if all of it is there.
    fn take_whole(&mut self, bytes_max: usize) -> Result<Option<Bytes>, Status> {
        let Some(length) = declared(&self.bytes, bytes_max)? else { return Ok(None) };
        if self.bytes.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        let mut message = self.bytes.split_to(PREFIX_BYTES + length).freeze();
        message.advance(PREFIX_BYTES);
        self.begun = (!self.bytes.is_empty()).then(Instant::now);
        Ok(Some(message))
    }
}

fn cut_off() -> Status {
    Status::internal("quorate: the message of a call was cut off")
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
    fn messages_of_a_stream_are_read_in_whatever_parts_they_come() {
        let messages: Vec<_> = [3, 0, BYTES_MAX, 1].map(|length| vec![7u8; length]).into();
        let bytes: Vec<u8> =
            messages.iter().flat_map(|message| [&[0, 0, 0, 0, message.len() as u8][..], message].concat()).collect();
        for length in 1..=bytes.len() {
            let (mut came, mut read) = (Came::default(), Vec::new());
            for part in bytes.chunks(length) {
                came.add(part);
                while let Some(message) = came.take_whole(BYTES_MAX).expect("it is short") {
                    read.push(message.to_vec());
                }
                assert_eq!(came.begun.is_some(), !came.bytes.is_empty(), "what has begun has a deadline");
            }
            assert_eq!(read, messages, "in parts of {length}");
        }
    }

    #[test]
    fn a_message_of_a_stream_that_is_too_long_is_refused_before_it_comes() {
        let mut came = Came::default();
        came.add(&[0, 0, 0, 0, 1, 7, 0, 0, 0, 0]);
        assert_eq!(came.take_whole(BYTES_MAX).expect("it is short").as_deref(), Some(&[7][..]));
        assert!(came.take_whole(BYTES_MAX).expect("nothing is wrong yet").is_none());
        came.add(&[101]);
        let refused = came.take_whole(BYTES_MAX).expect_err("it is too long");
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("larger than max (101 vs. 100)"));
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
