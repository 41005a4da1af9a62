//! Who may become a member, and who never may again.
//!
//! Owns that an invitation lets in one node with one disk, and that a membership entry leaves a row for each node that it lets go, in
//! the same step: so there is no moment at which somebody is neither a member nor known to be removed. Never changes the membership.

use super::stop::{Stop, Tried, split};
use super::view::{Fault, View};
use super::{Applier, Caller};
use crate::codec;
use crate::keyspace::audit::{AuditEffect, AuditOp};
use crate::keyspace::{family, family_range, members};
use crate::limits;
use crate::types::{
    Bounded, InvitationRow, MembersFault, MembersOp, MembersReply, NewInvitation, NodeDisk, Outcome, Rejection,
    RemovedRow, SecretHash, Seed, TokenId,
};

/// What becomes of an operation that is not refused.
enum Step {
    /// Something changed.
    Done(MembersReply),
    /// All is as asked for already.
    Same(MembersReply),
}

impl<V: View> Applier<'_, V> {
    /// Invites a node, takes that back, or lets one in that shows its invitation.
    pub(super) fn set_members(&mut self, op: MembersOp, caller: Caller) -> Result<Outcome, Fault> {
        let (audit, subject) = (audit_op(&op), op.subject());
        let revision = self.next_revision()?;
        let tried = match op {
            MembersOp::Invite(invitation) => self.invite(invitation, revision),
            MembersOp::Revoke(id) => self.revoke(id),
            MembersOp::Admit { invitation, hash, newcomer, as_standby } => {
                self.admit(invitation, hash, newcomer, as_standby, revision)
            }
        };
        match split(tried)? {
            Err(rejection) => Ok(self.refuse_in(audit, Some(subject), caller, rejection)),
            Ok(Step::Same(done)) => Ok(Outcome::Members(done)),
            Ok(Step::Done(done)) => {
                self.take_revision()?;
                self.record(audit, Some(subject), caller, AuditEffect::Beside);
                Ok(Outcome::Members(done))
            }
        }
    }

    /// A membership entry is applied: who was a member with a disk and is not any more never comes back with it, and who became one has no more use for its invitation. Both lists are in order.
    pub fn apply_membership(&mut self, index: u64, before: &[NodeDisk], after: &[NodeDisk]) -> Result<(), Fault> {
        assert!(
            index > self.batch.index || self.batch.index == 0,
            "log index {index} applied after {}",
            self.batch.index
        );
        self.begin(index, Seed::default());
        for node in before.iter().filter(|node| !after.contains(node)) {
            self.note_removed(*node)?;
        }
        self.drop_invitations(|row| row.used_by.is_some_and(|node| after.contains(&node)))?;
        self.close_batch()
    }

    fn note_removed(&mut self, node: NodeDisk) -> Result<(), Fault> {
        self.take_revision()?;
        let row = RemovedRow { removed: self.vars.wall, revision: self.vars.revision };
        self.overlay.replace(&members::removed_key(node), Some(codec::encode(&row)))?;
        self.record(AuditOp::MemberRemove, Some(node.subject()), Caller::default(), AuditEffect::Beside);
        Ok(())
    }

    fn invite(&mut self, invitation: NewInvitation, revision: u64) -> Tried<Step> {
        let NewInvitation { id, hash, node_id, is_standby, for_ms } = invitation;
        if !(1..=limits::INVITATION_MS_MAX).contains(&for_ms) {
            let why = format!("an invitation for {for_ms} ms; 1 to {}", limits::INVITATION_MS_MAX);
            return Err(Rejection::Unsupported(why).into());
        }
        if self.overlay.peek(&members::invitation_key(id))?.is_some() {
            return Err(refusal(MembersFault::InvitationExists));
        }
        let clock = self.vars.clock;
        let open = self.invitations()?.iter().filter(|(_, row)| !row.is_over_at(clock)).count();
        if open >= limits::INVITATIONS_MAX {
            let limit = limits::INVITATIONS_MAX as u64;
            return Err(Rejection::TooMany { what: Bounded::Invitations, limit }.into());
        }
        self.drop_invitations(|row| row.is_over_at(clock))?;
        let expires_at = clock.saturating_add(for_ms);
        let created = self.vars.wall;
        let row = InvitationRow { hash, node_id, is_standby, expires_at, created, revision, used_by: None };
        self.overlay.insert_absent(members::invitation_key(id), codec::encode(&row))?;
        Ok(Step::Done(MembersReply::Invited { for_ms }))
    }

    fn revoke(&mut self, id: TokenId) -> Tried<Step> {
        match self.overlay.replace(&members::invitation_key(id), None)? {
            Some(_) => Ok(Step::Done(MembersReply::Revoked)),
            None => Err(refusal(MembersFault::NoInvitation)),
        }
    }

    fn admit(
        &mut self,
        id: TokenId,
        hash: SecretHash,
        newcomer: NodeDisk,
        as_standby: bool,
        revision: u64,
    ) -> Tried<Step> {
        let row_key = members::invitation_key(id);
        let row: Option<InvitationRow> = self.decoded(&row_key)?;
        // What the two have in common tells nothing: both are hashes of what nobody can choose.
        let Some(row) = row.filter(|row| row.hash == hash) else {
            return Err(refusal(MembersFault::NoInvitation));
        };
        if self.overlay.peek(&members::removed_key(newcomer))?.is_some() {
            return Err(refusal(MembersFault::DiskRemoved));
        }
        let fault = match row.used_by {
            Some(user) if user == newcomer => return Ok(Step::Same(MembersReply::Admitted)),
            Some(_) => Some(MembersFault::InvitationUsed),
            None if row.is_over_at(self.vars.clock) => Some(MembersFault::InvitationOver),
            None => None,
        };
        let fault = fault.or(match row.node_id {
            Some(invited) if invited != newcomer.node_id => Some(MembersFault::InvitationOfAnother(invited)),
            None if self.was_removed(newcomer.node_id)? => Some(MembersFault::IdRemoved),
            _ if row.is_standby && !as_standby => Some(MembersFault::OnlyStandby),
            _ => None,
        });
        if let Some(fault) = fault {
            return Err(refusal(fault));
        }
        let row = InvitationRow { used_by: Some(newcomer), revision, ..row };
        self.overlay.replace(&row_key, Some(codec::encode(&row)))?;
        Ok(Step::Done(MembersReply::Admitted))
    }

    /// Whether a node of this id was ever removed, with any disk.
    fn was_removed(&self, node_id: u64) -> Result<bool, Fault> {
        let (start, end) = members::disks_of(node_id);
        Ok(!self.overlay.scan(&start, &end, 1)?.is_empty())
    }

    /// All invitations. Those that are over are dropped before another is made, so there are never many more than may be open.
    fn invitations(&self) -> Result<Vec<(Vec<u8>, InvitationRow)>, Fault> {
        let (start, end) = family_range(family::INVITATION);
        let rows = self.overlay.scan(&start, &end, usize::MAX)?;
        let read = |(row_key, row): (Vec<u8>, Vec<u8>)| match codec::decode(&row) {
            Ok(row) => Ok((row_key, row)),
            Err(error) => Err(Fault::row(&row_key, error)),
        };
        rows.into_iter().map(read).collect()
    }

    fn drop_invitations(&mut self, is_done: impl Fn(&InvitationRow) -> bool) -> Result<(), Fault> {
        for (row_key, row) in self.invitations()? {
            if is_done(&row) {
                self.overlay.take(&row_key)?;
            }
        }
        Ok(())
    }
}

fn refusal(fault: MembersFault) -> Stop {
    Rejection::Members(fault).into()
}

/// What a line of audit calls it.
fn audit_op(op: &MembersOp) -> AuditOp {
    match op {
        MembersOp::Invite(_) => AuditOp::MemberInvite,
        MembersOp::Revoke(_) => AuditOp::InvitationRevoke,
        MembersOp::Admit { .. } => AuditOp::MemberAdmit,
    }
}
