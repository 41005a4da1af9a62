//! Newcomers and members of before: whom an invitation lets in, and who never comes back.

use crate::machine_support::{Store, batch};
use quorate_machine::codec;
use quorate_machine::keyspace::audit::{self, AuditOp};
use quorate_machine::keyspace::{family, members};
use quorate_machine::limits;
use quorate_machine::types::{
    Action, Bounded, Command, InvitationRow, MembersFault, MembersOp, MembersReply, NewInvitation, NodeDisk, Outcome,
    Rejection, SecretHash, TokenId,
};

fn ask(store: &mut Store, clock: u64, op: MembersOp) -> Outcome {
    let (mut replies, _) = store.apply(&[batch(clock, &[Command::unnamed(Action::Members(op))])]).expect("no fault");
    store.check();
    replies.remove(0).remove(0).outcome
}

fn invitation(id: u64) -> NewInvitation {
    NewInvitation { id: TokenId(id), hash: SecretHash([7; 32]), node_id: None, is_standby: false, for_ms: 1_000 }
}

fn node(node_id: u64, incarnation: u128) -> NodeDisk {
    NodeDisk { node_id, incarnation }
}

fn admit(id: u64, newcomer: NodeDisk) -> MembersOp {
    MembersOp::Admit { invitation: TokenId(id), hash: SecretHash([7; 32]), newcomer, as_standby: false }
}

fn refused(fault: MembersFault) -> Outcome {
    Outcome::Rejected(Rejection::Members(fault))
}

const ADMITTED: Outcome = Outcome::Members(MembersReply::Admitted);

fn invite(store: &mut Store, clock: u64, invitation: NewInvitation) {
    let for_ms = invitation.for_ms;
    let done = ask(store, clock, MembersOp::Invite(invitation));
    assert_eq!(done, Outcome::Members(MembersReply::Invited { for_ms }));
}

#[test]
fn an_invitation_lets_in_one_node_with_one_disk_and_in_time() {
    let mut store = Store::default();
    invite(&mut store, 10, invitation(1));
    let wrong = MembersOp::Admit {
        invitation: TokenId(1),
        hash: SecretHash([8; 32]),
        newcomer: node(4, 44),
        as_standby: false,
    };
    assert_eq!(ask(&mut store, 10, wrong), refused(MembersFault::NoInvitation), "another secret");
    assert_eq!(ask(&mut store, 10, admit(1, node(4, 44))), ADMITTED);
    let revision = store.vars.revision;
    assert_eq!(ask(&mut store, 11, admit(1, node(4, 44))), ADMITTED, "it asks again, since it heard nothing");
    assert_eq!(store.vars.revision, revision, "nothing changes by that");
    assert_eq!(ask(&mut store, 11, admit(1, node(4, 45))), refused(MembersFault::InvitationUsed), "another disk");
    assert_eq!(ask(&mut store, 11, admit(1, node(5, 44))), refused(MembersFault::InvitationUsed), "another node");

    invite(&mut store, 20, invitation(2));
    assert_eq!(ask(&mut store, 1_020, admit(2, node(5, 55))), refused(MembersFault::InvitationOver));
    invite(&mut store, 1_030, invitation(3));
    assert_eq!(store.rows(family::INVITATION).len(), 1, "those that are over go when another is made");
}

#[test]
fn an_invitation_names_whom_it_is_for() {
    let mut store = Store::default();
    invite(&mut store, 10, NewInvitation { node_id: Some(4), is_standby: true, ..invitation(1) });
    assert_eq!(ask(&mut store, 10, admit(1, node(5, 55))), refused(MembersFault::InvitationOfAnother(4)));
    assert_eq!(ask(&mut store, 10, admit(1, node(4, 44))), refused(MembersFault::OnlyStandby));
    let standby =
        MembersOp::Admit { invitation: TokenId(1), hash: SecretHash([7; 32]), newcomer: node(4, 44), as_standby: true };
    assert_eq!(ask(&mut store, 10, standby), ADMITTED);
    assert_eq!(ask(&mut store, 10, MembersOp::Revoke(TokenId(1))), Outcome::Members(MembersReply::Revoked));
    assert_eq!(ask(&mut store, 10, admit(1, node(4, 44))), refused(MembersFault::NoInvitation), "it was taken back");
    assert_eq!(ask(&mut store, 10, MembersOp::Revoke(TokenId(1))), refused(MembersFault::NoInvitation));
}

#[test]
fn who_was_removed_comes_back_with_another_disk_only_and_only_by_its_id() {
    let mut store = Store::default();
    let all = [node(1, 11), node(2, 22), node(3, 33)];
    store.apply_membership(&[], &all).expect("a founding");
    assert_eq!(store.rows(family::REMOVED_MEMBER), [], "nobody was removed");
    let revision = store.vars.revision;
    store.apply_membership(&all, &all[..2]).expect("a removal");
    store.check();
    assert_eq!(store.vars.revision, revision + 1);
    let rows = store.rows(family::REMOVED_MEMBER);
    assert_eq!(rows.iter().map(|(key, _)| members::decode_removed(key).unwrap()).collect::<Vec<_>>(), [node(3, 33)]);
    let lines = store.rows(family::AUDIT).into_iter().flat_map(|(_, row)| audit::decode(&row).unwrap().lines);
    assert_eq!(lines.filter(|line| line.op == AuditOp::MemberRemove).count(), 1);

    invite(&mut store, 10, invitation(1));
    assert_eq!(ask(&mut store, 10, admit(1, node(3, 99))), refused(MembersFault::IdRemoved), "it is for anybody");
    invite(&mut store, 10, NewInvitation { node_id: Some(3), ..invitation(2) });
    assert_eq!(ask(&mut store, 10, admit(2, node(3, 33))), refused(MembersFault::DiskRemoved), "never with that disk");
    assert_eq!(ask(&mut store, 10, admit(2, node(3, 99))), ADMITTED);
    let rows = store.rows(family::INVITATION);
    let used: Vec<InvitationRow> = rows.iter().map(|(_, row)| codec::decode(row).unwrap()).collect();
    assert_eq!(used.iter().filter_map(|row| row.used_by).collect::<Vec<_>>(), [node(3, 99)]);
    store.apply_membership(&all[..2], &[node(1, 11), node(2, 22), node(3, 99)]).expect("an addition");
    store.check();
    assert_eq!(store.rows(family::INVITATION).len(), 1, "what was used is of no use any more");
}

#[test]
fn a_member_that_comes_with_another_disk_leaves_the_old_one_behind() {
    let mut store = Store::default();
    store.apply_membership(&[node(1, 11)], &[node(1, 12)]).expect("an exchange");
    store.check();
    let rows = store.rows(family::REMOVED_MEMBER);
    assert_eq!(members::decode_removed(&rows[0].0), Ok(node(1, 11)));
}

#[test]
fn there_are_only_so_many_invitations_and_for_so_long() {
    let mut store = Store::default();
    for for_ms in [0, limits::INVITATION_MS_MAX + 1] {
        let op = MembersOp::Invite(NewInvitation { for_ms, ..invitation(1) });
        assert!(matches!(ask(&mut store, 1, op), Outcome::Rejected(Rejection::Unsupported(_))));
    }
    for id in 0..limits::INVITATIONS_MAX as u64 {
        invite(&mut store, 2, invitation(id));
    }
    assert_eq!(ask(&mut store, 2, MembersOp::Invite(invitation(0))), refused(MembersFault::InvitationExists));
    let limit = limits::INVITATIONS_MAX as u64;
    let too_many = Outcome::Rejected(Rejection::TooMany { what: Bounded::Invitations, limit });
    assert_eq!(ask(&mut store, 2, MembersOp::Invite(invitation(1_000))), too_many);
    invite(&mut store, 2_000, invitation(1_000));
    assert_eq!(store.rows(family::INVITATION).len(), 1);
}
