//! Rows about members to be and members of before: `0xC0`, invitation id → [`InvitationRow`]; `0xC1`, node id, incarnation →
//! [`RemovedRow`].
//!
//! Owns their row keys. Who is a member now is in no row: it stands beside the log position, with the membership entry that made it so.

use super::{family, split_u64, strip_family};
use crate::codec::CodecError;
#[cfg(doc)]
use crate::types::{InvitationRow, RemovedRow};
use crate::types::{NodeDisk, TokenId};

/// The row key of an invitation.
pub fn invitation_key(id: TokenId) -> Vec<u8> {
    [&[family::INVITATION][..], &id.0.to_be_bytes()].concat()
}

/// Reverses [`invitation_key`].
pub fn decode_invitation(row_key: &[u8]) -> Result<TokenId, CodecError> {
    match split_u64(strip_family(row_key, family::INVITATION)?)? {
        (id, []) => Ok(TokenId(id)),
        (_, rest) => Err(CodecError::Malformed(format!("{} bytes too many in the id of an invitation", rest.len()))),
    }
}

/// The row key of a node that was removed with a disk.
pub fn removed_key(node: NodeDisk) -> Vec<u8> {
    let NodeDisk { node_id, incarnation } = node;
    [&[family::REMOVED_MEMBER][..], &node_id.to_be_bytes(), &incarnation.to_be_bytes()].concat()
}

/// Reverses [`removed_key`].
pub fn decode_removed(row_key: &[u8]) -> Result<NodeDisk, CodecError> {
    let (node_id, rest) = split_u64(strip_family(row_key, family::REMOVED_MEMBER)?)?;
    let incarnation = rest.try_into().map_err(|_| CodecError::Malformed("an incarnation of another length".into()))?;
    Ok(NodeDisk { node_id, incarnation: u128::from_be_bytes(incarnation) })
}

/// The bounds `[start, end)` of all disks with which a node was removed.
pub fn disks_of(node_id: u64) -> (Vec<u8>, Vec<u8>) {
    let start = [&[family::REMOVED_MEMBER][..], &node_id.to_be_bytes()].concat();
    let end = match node_id.checked_add(1) {
        Some(next) => [&[family::REMOVED_MEMBER][..], &next.to_be_bytes()].concat(),
        None => vec![family::REMOVED_MEMBER + 1],
    };
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_keys_come_back_and_lie_within_the_bounds_of_their_node_alone() {
        let id = TokenId(0xfeed);
        assert_eq!(decode_invitation(&invitation_key(id)), Ok(id));
        assert!(decode_invitation(&[family::INVITATION, 1]).is_err());
        for node_id in [0, 3, u64::MAX] {
            for incarnation in [0, u128::MAX] {
                let node = NodeDisk { node_id, incarnation };
                let row_key = removed_key(node);
                assert_eq!(decode_removed(&row_key), Ok(node));
                for of in [0, 3, u64::MAX] {
                    let (start, end) = disks_of(of);
                    assert_eq!(start <= row_key && row_key < end, of == node_id, "{of} {node:?}");
                }
            }
        }
        assert!(decode_removed(&[family::REMOVED_MEMBER, 1, 2]).is_err());
    }
}
