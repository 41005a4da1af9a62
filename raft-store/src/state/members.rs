//! Reads of invitations and of members of before.
//!
//! Owns what is told of them. Never says who is a member: that stands in the membership, see [`StateReader::applied`].

use super::coordination::Observed;
use super::reader::StateReader;
use super::shared::Moment;
use super::types::StateFault;
use crate::codec;
use crate::keyspace::{family, family_range, members};
use crate::machine::View;
use crate::types::{InvitationRow, NodeDisk, TokenId};

/// Most rows that are read at once: many more than there are invitations.
const ROWS_MAX: usize = 10_000;

impl StateReader {
    /// All invitations in order of ids, those that are used or over included.
    pub fn invitations(&self) -> Result<Observed<Vec<(TokenId, InvitationRow)>>, StateFault> {
        self.observe(invitations)
    }

    /// Whether a node was let in by an invitation and is not a member yet; whether that was as a standby only.
    pub fn admission(&self, node: NodeDisk) -> Result<Option<InvitationRow>, StateFault> {
        let all = self.shared.with_moment(invitations)?;
        Ok(all.into_iter().map(|(_, row)| row).find(|row| row.used_by == Some(node)))
    }

    /// Whether a node was removed with this disk.
    pub fn was_removed(&self, node: NodeDisk) -> Result<bool, StateFault> {
        self.shared.with_moment(|moment| Ok(moment.snapshot.get_pinned(members::removed_key(node))?.is_some()))
    }

    /// Whether a node of this id was ever removed, with any disk.
    pub fn was_id_removed(&self, node_id: u64) -> Result<bool, StateFault> {
        let (start, end) = members::disks_of(node_id);
        self.shared.with_moment(|moment| Ok(!moment.scan(&start, &end, 1)?.is_empty()))
    }
}

fn invitations(moment: &Moment<'_>) -> Result<Vec<(TokenId, InvitationRow)>, StateFault> {
    let (start, end) = family_range(family::INVITATION);
    let rows = moment.scan(&start, &end, ROWS_MAX)?;
    rows.iter().map(|(row_key, row)| Ok((members::decode_invitation(row_key)?, codec::decode(row)?))).collect()
}
