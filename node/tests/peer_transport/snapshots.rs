//! Snapshot transfers, with snapshots in memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use quorate_node_replica::peer::raft_codec::RaftAnswer;
use quorate_node_replica::peer::raft_rpc::SnapshotIntake;
use quorate_node_replica::peer::snapshot_stream::{SendError, SnapshotSource, send_to};
use quorate_store::raft::Vote;
use quorate_store::raft::wire::{MembershipRecord, SnapshotMetaRecord, StoredMembershipRecord, VoteRecord};
use quorate_store::state::snapshot::{SnapshotFile, SnapshotManifest};

use crate::support::{Node, Setup, leader_vote, node};

const MIB: usize = 1024 * 1024;

struct Source {
    manifest: SnapshotManifest,
    files: Vec<Bytes>,
    /// Reads left before one fails.
    reads: AtomicUsize,
    bytes_read: AtomicUsize,
}

impl Source {
    fn new(reads: usize) -> Arc<Self> {
        let sizes = [0, 5 * MIB / 2, 17, 4 * MIB];
        let files: Vec<Bytes> = sizes.iter().enumerate().map(|(at, size)| vec![at as u8 + 1; *size].into()).collect();
        let membership = MembershipRecord { configs: Vec::new(), nodes: Default::default() };
        let last_membership = StoredMembershipRecord { log_id: None, membership };
        let manifest = SnapshotManifest {
            meta: SnapshotMetaRecord { last_log_id: None, last_membership },
            files: files
                .iter()
                .enumerate()
                .map(|(at, file)| SnapshotFile { name: format!("{at}.sst"), bytes: file.len() as u64, checksum: 0 })
                .collect(),
        };
        Arc::new(Self { manifest, files, reads: AtomicUsize::new(reads), bytes_read: AtomicUsize::new(0) })
    }
}

impl SnapshotSource for Source {
    fn manifest(&self) -> &SnapshotManifest {
        &self.manifest
    }

    fn read_chunk(&self, file: usize, offset: u64, length: usize) -> io::Result<Bytes> {
        if self.reads.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err() {
            return Err(io::Error::other("the disk is gone"));
        }
        self.bytes_read.fetch_add(length, SeqCst);
        Ok(self.files[file].slice(offset as usize..offset as usize + length))
    }
}

/// What arrived; outlives a transfer as the files of the real receiver do.
#[derive(Default)]
struct Arrived {
    files: Mutex<Vec<Vec<u8>>>,
    installed: Mutex<Option<Vote>>,
    room: AtomicUsize,
}

struct Intake(Arc<Arrived>);

impl SnapshotIntake for Intake {
    fn have(&self) -> Vec<u64> {
        self.0.files.lock().iter().map(|file| file.len() as u64).collect()
    }

    fn write(&mut self, file: usize, offset: u64, chunk: &[u8]) -> io::Result<()> {
        let mut files = self.0.files.lock();
        assert_eq!(offset as usize, files[file].len(), "a chunk at the wrong place");
        if self.0.room.fetch_update(SeqCst, SeqCst, |room| room.checked_sub(chunk.len())).is_err() {
            return Err(io::Error::other("no space left on device"));
        }
        files[file].extend_from_slice(chunk);
        Ok(())
    }

    fn verify(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn install(self: Box<Self>, vote: Vote) -> BoxFuture<'static, RaftAnswer<Vote>> {
        async move {
            *self.0.installed.lock() = Some(vote);
            Ok(vote)
        }
        .boxed()
    }
}

/// A node that takes snapshots in, with that much room for them.
async fn receiver(room: usize) -> (Node, Arc<Arrived>) {
    let two = node(2).await;
    let arrived = Arc::new(Arrived { room: AtomicUsize::new(room), ..Arrived::default() });
    let taken = Arc::clone(&arrived);
    *two.raft.intake.lock() = Some(Box::new(move |manifest| {
        taken.files.lock().resize(manifest.files.len(), Vec::new());
        Ok(Box::new(Intake(Arc::clone(&taken))) as Box<dyn SnapshotIntake>)
    }));
    (two, arrived)
}

async fn send(from: &Node, to: &Node, source: &Arc<Source>) -> Result<Vote, SendError> {
    send_to(&from.net, to.id, &to.member(), leader_vote(), Arc::clone(source) as _).await
}

#[tokio::test]
async fn an_interrupted_transfer_continues_where_it_stopped() {
    let (one, (two, arrived)) = (node(1).await, receiver(usize::MAX).await);
    let source = Source::new(4);
    let broken = send(&one, &two, &source).await;
    assert!(matches!(broken, Err(SendError::Source(_))), "{broken:?}");
    // Four chunks were read: the second file, and the third.
    assert_eq!(source.bytes_read.load(SeqCst), 5 * MIB / 2 + 17);
    assert_eq!(*arrived.installed.lock(), None);

    source.reads.store(usize::MAX, SeqCst);
    source.bytes_read.store(0, SeqCst);
    assert_eq!(send(&one, &two, &source).await.unwrap(), leader_vote());
    assert_eq!(*arrived.installed.lock(), Some(leader_vote()));
    assert_eq!(*arrived.files.lock(), source.files.iter().map(|file| file.to_vec()).collect::<Vec<_>>());
    let again = source.bytes_read.load(SeqCst);
    assert_eq!(again, 4 * MIB, "bytes were sent that were there already");
}

#[tokio::test]
async fn a_receiver_without_room_says_so_and_keeps_what_it_has() {
    let (one, (two, arrived)) = (node(1).await, receiver(3 * MIB).await);
    let source = Source::new(usize::MAX);
    let refused = send(&one, &two, &source).await;
    assert!(matches!(&refused, Err(SendError::Refused(reason)) if reason.contains("no space left")), "{refused:?}");
    arrived.room.store(usize::MAX, SeqCst);
    assert_eq!(send(&one, &two, &source).await.unwrap(), leader_vote());
}

#[tokio::test]
async fn an_outdated_leader_hears_of_the_newer_vote_before_it_sends_a_byte() {
    let (one, (two, arrived)) = (node(1).await, receiver(usize::MAX).await);
    let newer: Vote = VoteRecord { term: 4, node: 3, committed: true }.into();
    *two.raft.vote.lock() = newer;
    let source = Source::new(usize::MAX);
    assert_eq!(send(&one, &two, &source).await.unwrap(), newer);
    assert_eq!(source.bytes_read.load(SeqCst), 0);
    assert_eq!(*arrived.installed.lock(), None);
}

#[tokio::test]
async fn a_state_that_is_not_trusted_is_given_to_nobody() {
    let (two, arrived) = receiver(usize::MAX).await;
    let doubtful = Setup { trusts_state: false, ..Setup::new(1) }.start().await;
    let source = Source::new(usize::MAX);
    let refused = send(&doubtful, &two, &source).await;
    assert!(matches!(refused, Err(SendError::Untrusted)), "{refused:?}");
    assert_eq!(source.bytes_read.load(SeqCst), 0);
    assert!(arrived.files.lock().is_empty());
}

#[tokio::test]
async fn a_given_up_transfer_lets_the_next_one_in() {
    let (one, (two, _)) = (node(1).await, receiver(usize::MAX).await);
    one.net.limit_snapshots(MIB as u64);
    let source = Source::new(usize::MAX);
    let slow = tokio::time::timeout(Duration::from_millis(200), send(&one, &two, &source)).await;
    assert!(slow.is_err(), "6.5 MiB at 1 MiB a second: {slow:?}");
    one.net.limit_snapshots(0);
    assert_eq!(send(&one, &two, &source).await.unwrap(), leader_vote());
}

#[tokio::test]
async fn the_rate_limit_holds() {
    let (one, (two, _)) = (node(1).await, receiver(usize::MAX).await);
    one.net.limit_snapshots(20 * MIB as u64);
    let begun = Instant::now();
    send(&one, &two, &Source::new(usize::MAX)).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(320), "6.5 MiB at 20 MiB a second in {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_receiver_that_dies_is_a_lost_connection_and_then_unreachable() {
    let (one, (two, arrived)) = (node(1).await, receiver(usize::MAX).await);
    one.net.limit_snapshots(4 * MIB as u64);
    let source = Source::new(usize::MAX);
    let (member, net) = (two.member(), one.net.clone());
    let sending = send_to(&net, 2, &member, leader_vote(), Arc::clone(&source) as _);
    let dying = async {
        while arrived.files.lock().get(1).is_none_or(Vec::is_empty) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        two.stop().await;
    };
    let (lost, ()) = tokio::join!(sending, dying);
    assert!(matches!(lost, Err(SendError::Lost(_))), "{lost:?}");
    let dead = send_to(&net, 2, &member, leader_vote(), source).await;
    assert!(matches!(dead, Err(SendError::Unreachable(_))), "{dead:?}");
}
