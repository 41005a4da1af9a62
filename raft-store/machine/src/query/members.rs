//! Reads of invitations and of members of before.
//!
//! Owns the answers about them. Never says who is a member: that stands in the membership.

use super::{Moment, Observed, Snapshot};
use crate::codec;
use crate::keyspace::{family, family_range, members};
use crate::machine::Fault;
use crate::machine::View;
use crate::types::{InvitationRow, NodeDisk, TokenId};

/// Most rows that are read at once: many more than there are invitations.
const ROWS_MAX: usize = 10_000;

impl<S: Snapshot> Moment<S> {
    /// All invitations in order of ids, those that are used or over included.
    pub fn invitations(&self) -> Result<Observed<Vec<(TokenId, InvitationRow)>>, Fault> {
        self.observe(invitations)
    }

    /// Whether a node was let in by an invitation and is not a member yet; whether that was as a standby only.
    pub fn admission(&self, node: NodeDisk) -> Result<Option<InvitationRow>, Fault> {
        let all = invitations(self)?;
        Ok(all.into_iter().map(|(_, row)| row).find(|row| row.used_by == Some(node)))
    }

    /// Whether a node was removed with this disk.
    pub fn was_removed(&self, node: NodeDisk) -> Result<bool, Fault> {
        Ok(self.snapshot.get_pinned(members::removed_key(node))?.is_some())
    }

    /// Whether a node of this id was ever removed, with any disk.
    pub fn was_id_removed(&self, node_id: u64) -> Result<bool, Fault> {
        let (start, end) = members::disks_of(node_id);
        Ok(!self.scan(&start, &end, 1)?.is_empty())
    }
}

fn invitations(moment: &Moment<impl Snapshot>) -> Result<Vec<(TokenId, InvitationRow)>, Fault> {
    let (start, end) = family_range(family::INVITATION);
    let rows = moment.scan(&start, &end, ROWS_MAX)?;
    rows.iter().map(|(row_key, row)| Ok((members::decode_invitation(row_key)?, codec::decode(row)?))).collect()
}
