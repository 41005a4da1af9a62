//! The other members of a node in memory, and its operators' commands: fixed answers that do not depend on its state.

use std::io::{self, Write};

use quorate_api::{Role, StatusAnswer};
use quorate_machine::types::Revision;
use quorate_node_core::backend::members::{MemberChange, MemberReply, MemberRequest, MemberSeen, MembersSeen};
use quorate_node_core::backend::{AppError, LeaderHint};

/// Node 2 leads.
pub fn leader_hint() -> LeaderHint {
    LeaderHint { term: 7, leader_id: Some(2) }
}

/// Four members: node 3 is not heard, and node 4 does not vote.
pub fn members_seen() -> MembersSeen {
    let member = |id| MemberSeen {
        id,
        peer_addr: format!("127.0.0.1:720{id}"),
        client_addr: format!("127.0.0.1:710{id}"),
        votes: id != 4,
        is_heard: id != 3,
        lag: if id == 3 { u64::MAX } else { 0 },
        last_contact_ms: (id != 3).then_some(5),
    };
    let members = (1..=4).map(member).collect();
    MembersSeen { leader: 2, changing: false, majority: 2, prospect: "well".into(), members }
}

/// Explains a change by what was asked for, and refuses to remove node 9.
pub fn change_members(asked: &MemberRequest) -> Result<MemberReply, AppError> {
    let explanation = vec![format!("{:?}", asked.change)];
    match asked.change {
        MemberChange::Remove { id: 9 } => Err(AppError::Refused("it is the last voter".into())),
        _ => Ok(MemberReply { changed: !asked.dry_run, explanation, voters: vec![1, 2], learners: vec![4] }),
    }
}

/// A follower without peers.
pub fn status() -> StatusAnswer {
    StatusAnswer {
        cluster_id: "0123456789abcdef0123456789abcdef".into(),
        node_id: 1,
        incarnation: String::new(),
        version: "test".into(),
        role: Role::Follower,
        ready: true,
        warnings: Vec::new(),
        leader_id: Some(2),
        leader_client_addr: None,
        term: 7,
        epoch: 0,
        epoch_revision: 0,
        members: Vec::new(),
        last_log_index: 4,
        committed_index: 3,
        applied_index: 2,
        snapshot_index: 1,
        purged_index: 0,
        revision: 1,
        oldest_revision: 1,
        cluster_clock_ms: 1_000,
        digest: String::new(),
        level: 2,
        level_known: 2,
        disk_free_bytes: None,
        disk_size_bytes: None,
        entries: 0,
        stored_bytes: 0,
        history_bytes: 0,
        quota_bytes: 0,
    }
}

/// Writes a backup of `pieces` pieces of 64 KiB.
pub fn back_up(
    pieces: usize,
    revision: Revision,
    sink: &mut dyn Write,
    begun: &mut dyn FnMut(Revision),
) -> io::Result<()> {
    begun(revision);
    for _ in 0..pieces {
        sink.write_all(&[7; 64 * 1024])?;
    }
    sink.flush()
}
