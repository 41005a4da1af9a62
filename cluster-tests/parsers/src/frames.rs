//! Target `frames`: what comes over a connection between nodes.
//!
//! Frames are the same however their bytes arrive, and are written as they were read; their bodies mean the same after they were written
//! again; a stranger is refused in words. No length makes the reader ask for memory before the bytes are there.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse};
use quorate_machine::{codec, command_codec};
use quorate_node_replica::peer::counters::ChannelKind;
use quorate_node_replica::peer::frame::{self, Frame, FrameError, FrameKind, FrameReader, HEADER_BYTES, Outgoing};
use quorate_node_replica::peer::handshake::{self, Hello, Levels, LocalPeer, Welcome};
use quorate_node_replica::peer::message::{Forwarded, PeerRequest, PeerResponse, ProposalOutcome, StateTrust};
use quorate_node_replica::peer::raft_codec::{
    AppendAnswer, AppendOutcome, AppendPieces, RaftAnswer, SnapshotBegin, TransferAnswer, TransferAsk, VoteGrant,
    VoteQuery, decode_append,
};
use quorate_store::identity::Identity;
use quorate_store::raft::TypeConfig;
use quorate_store::raft::wire::{LogIdRecord, MemberRecord, VoteRecord};
use tokio::io::{AsyncRead, ReadBuf};

use super::commands::{record, room};
use super::{assert_explained, memory, samples};

const BODY_BYTES_MAX: usize = 64 * 1024;

/// See the head of this file.
pub fn check(data: &[u8]) {
    check_bytes(data);
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    check_bytes(&sealed);
}

fn check_bytes(bytes: &[u8]) {
    memory::within(2 * room(bytes.len()), "frames", || {
        let (frames, end) = read_at_once(bytes);
        let (slow_frames, slow_end) = read_slowly(bytes);
        assert_eq!((&frames, &end), (&slow_frames, &slow_end), "in pieces they are others");
        frames.iter().for_each(check_body);
    });
}

fn read_at_once(bytes: &[u8]) -> (Vec<Frame>, String) {
    let (mut buffer, mut frames) = (BytesMut::from(bytes), Vec::new());
    let end = loop {
        let before = buffer.clone();
        match frame::decode(&mut buffer, BODY_BYTES_MAX) {
            Ok(Some(frame)) => {
                let used = before.len() - buffer.len();
                let written = Outgoing::whole(frame.kind, frame.id, frame.body.clone()).into_bytes();
                assert_eq!(written, before[..used], "a frame that is written differently");
                frames.push(frame);
            }
            Ok(None) if buffer.is_empty() => break String::new(),
            Ok(None) => break FrameError::CutShort.to_string(),
            Err(error) => break error.to_string(),
        }
    };
    (frames, end)
}

fn read_slowly(bytes: &[u8]) -> (Vec<Frame>, String) {
    let mut reader = FrameReader::new(Trickle(bytes), BODY_BYTES_MAX);
    let mut frames = Vec::new();
    let end = loop {
        match futures::executor::block_on(reader.next()) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => break String::new(),
            Err(error) => break error.to_string(),
        }
    };
    (frames, end)
}

/// Gives a few bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl AsyncRead for Trickle<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = self.0.len().min(1 + self.0.len() % 23).min(into.remaining());
        let (now, later) = self.0.split_at(count);
        into.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}

fn check_body(frame: &Frame) {
    let body = &frame.body[..];
    match frame.kind {
        FrameKind::Hello => check_hello(frame),
        FrameKind::Welcome => check_welcome(frame),
        FrameKind::Call => record::<PeerRequest>(body),
        FrameKind::Answer => record::<PeerResponse>(body),
        FrameKind::Vote | FrameKind::PreVote => {
            record::<VoteQuery>(body);
            if let Ok(ask) = codec::decode::<VoteQuery>(body) {
                assert_eq!(VoteQuery::from(&VoteRequest::from(ask.clone())), ask);
            }
        }
        FrameKind::Transfer => {
            record::<TransferAsk>(body);
            if let Ok(ask) = codec::decode::<TransferAsk>(body) {
                assert_eq!(TransferAsk::from(&TransferLeaderRequest::from(ask.clone())), ask);
            }
        }
        FrameKind::RaftAnswer => {
            record::<RaftAnswer<VoteGrant>>(body);
            record::<RaftAnswer<TransferAnswer>>(body);
            if let Ok(Ok(grant)) = codec::decode::<RaftAnswer<VoteGrant>>(body) {
                assert_eq!(VoteGrant::from(&VoteResponse::from(grant.clone())), grant);
            }
            if let Ok(Ok(answer)) = codec::decode::<RaftAnswer<TransferAnswer>>(body) {
                assert_eq!(TransferAnswer::from(&TransferLeaderResponse::from(answer.clone())), answer);
            }
        }
        FrameKind::Append | FrameKind::AppendFirst | FrameKind::AppendNext => check_append(&frame.body),
        FrameKind::AppendAnswer => record::<AppendAnswer>(body),
        FrameKind::SnapshotBegin => record::<SnapshotBegin>(body),
        FrameKind::SnapshotHave => record::<Vec<u64>>(body),
        FrameKind::SnapshotReply => record::<VoteRecord>(body),
        _ => {}
    }
}

fn check_append(body: &Bytes) {
    match decode_append(body) {
        Err(error) => assert_explained(&error),
        Ok(request) => {
            let (entries, mut pieces) = (request.entries.clone(), AppendPieces::new(request));
            let piece = pieces.next(FrameKind::AppendFirst, 1).expect("a request is one piece at least");
            assert!(pieces.next(FrameKind::AppendNext, 1).is_none(), "a short request in two pieces");
            let again = decode_append(&piece.into_bytes().slice(HEADER_BYTES..)).expect("what was written can be read");
            assert_eq!(again.entries, entries);
        }
    }
}

fn check_hello(frame: &Frame) {
    match handshake::read_hello(frame) {
        Err(unread) => assert_explained(&unread.to_string()),
        Ok(hello) => {
            let again = whole_frame(handshake::hello_frame(&hello));
            assert_eq!(handshake::read_hello(&again).as_ref(), Ok(&hello));
            if let Err(refusal) = local().judge_hello(&hello, None) {
                assert_explained(&refusal.reason);
            }
        }
    }
}

fn check_welcome(frame: &Frame) {
    match handshake::read_welcome(frame) {
        Err(unread) => assert_explained(&unread.to_string()),
        Ok(welcome) => {
            let again = whole_frame(handshake::welcome_frame(&welcome));
            assert_eq!(handshake::read_welcome(&again).as_ref(), Ok(&welcome));
            if let Err(refusal) = local().judge_welcome(&welcome, Some(2), None) {
                assert_explained(&refusal.reason);
            }
        }
    }
}

fn whole_frame(outgoing: Outgoing) -> Frame {
    let mut buffer = BytesMut::from(&outgoing.into_bytes()[..]);
    frame::decode(&mut buffer, BODY_BYTES_MAX).expect("a frame of ours").expect("all of it")
}

fn member() -> MemberRecord {
    MemberRecord { peer_addr: "127.0.0.1:7201".into(), client_addr: "127.0.0.1:7101".into(), incarnation: 9 }
}

fn local() -> LocalPeer {
    let identity = Identity { cluster_id: Some(7), node_id: 1, incarnation: 9 };
    LocalPeer {
        identity: Arc::new(arc_swap::ArcSwap::from_pointee(identity)),
        member: member(),
        protocol: handshake::PROTOCOL,
        format_version: codec::FORMAT_VERSION,
        levels: Levels { known: quorate_machine::level::KNOWN, reached: Arc::new(|| quorate_machine::level::KNOWN) },
        trusts_state: Arc::new(|| true),
    }
}

/// Puts the checksums right.
fn seal(bytes: &mut [u8]) {
    let mut rest = bytes;
    while rest.len() >= HEADER_BYTES {
        let length = u32::from_le_bytes(rest[..4].try_into().expect("four bytes are four bytes")) as usize;
        if length > rest.len() - 8 {
            return;
        }
        let (frame, after) = rest.split_at_mut(8 + length);
        let checksum = crc32fast::hash(&frame[8..]);
        frame[4..8].copy_from_slice(&checksum.to_le_bytes());
        rest = after;
    }
}

/// What each channel carries.
pub fn samples() -> Vec<Vec<u8>> {
    let life = samples::life();
    let id = |index| LogIdRecord { term: 3, node: 1, index };
    let vote = VoteRecord { term: 3, node: 1, committed: true };
    let hello = Hello { cluster_id: Some(7), node_id: 2, ..local().hello(ChannelKind::Append, Some(1)) };
    let welcome = Welcome { node_id: 2, incarnation: 5, ..local().welcome(None) };
    let refused = local().welcome(Some("node 1 is full".to_owned().into()));
    let whole = |kind, body: Vec<u8>| Outgoing::whole(kind, 5, body).into_bytes().to_vec();
    let short: Vec<_> = life.commands.iter().map(|command| command_codec::encode_command(command).to_vec()).collect();
    let commands = short.into_iter().filter(|command| command.len() < 300).take(3);
    let commands = commands.map(|command| Forwarded { command, within_ms: 500 }).collect();
    let outcomes = life
        .replies
        .iter()
        .take(4)
        .cloned()
        .map(|reply| ProposalOutcome::Decided { reply, cost: 7 })
        .chain([ProposalOutcome::Unknown])
        .collect();
    let entries = (5..8).map(|index| samples::entry(index, &life.commands[index as usize..][..1])).collect();
    let append = AppendEntriesRequest::<TypeConfig> {
        vote: vote.into(),
        prev_log_id: Some(id(4).into()),
        entries,
        leader_commit: Some(id(3).into()),
    };
    let append = AppendPieces::new(append).next(FrameKind::AppendFirst, 1).expect("a piece").into_bytes().to_vec();
    let grant: RaftAnswer<VoteGrant> = Ok(VoteGrant { vote, granted: true, last: Some(id(9)) });
    let failed: RaftAnswer<TransferAnswer> = Ok(TransferAnswer::NotFlushed { expected: Some(id(9)), actual: None });
    let outcome = AppendOutcome::Conflict(id(4));
    let all = vec![
        handshake::hello_frame(&hello).into_bytes().to_vec(),
        handshake::welcome_frame(&welcome).into_bytes().to_vec(),
        handshake::welcome_frame(&refused).into_bytes().to_vec(),
        whole(FrameKind::Ping, Vec::new()),
        whole(FrameKind::Call, codec::encode(&PeerRequest::Forward { commands, is_urgent: false })),
        whole(
            FrameKind::Call,
            codec::encode(&PeerRequest::Join { node_id: 4, member: member(), as_standby: true, invitation: None }),
        ),
        whole(FrameKind::Answer, codec::encode(&PeerResponse::Forwarded { outcomes })),
        whole(
            FrameKind::Answer,
            codec::encode(&PeerResponse::Digests { points: vec![(7, 9)], trust: StateTrust::Trusted }),
        ),
        whole(FrameKind::Vote, codec::encode(&VoteQuery { vote, last: Some(id(9)), transfer: true })),
        whole(FrameKind::Transfer, codec::encode(&TransferAsk { from: vote, to: 2, last: None })),
        whole(FrameKind::RaftAnswer, codec::encode(&grant)),
        whole(FrameKind::RaftAnswer, codec::encode(&failed)),
        append,
        whole(FrameKind::AppendAnswer, codec::encode(&AppendAnswer { count: 2, outcome })),
        whole(FrameKind::SnapshotReply, codec::encode(&vote)),
    ];
    let two = [&all[0][..], &all[8]].concat();
    all.into_iter().chain([two]).filter(|sample| sample.len() <= super::replay::FILE_BYTES_MAX).collect()
}
