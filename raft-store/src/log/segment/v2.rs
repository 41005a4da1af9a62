//! A layout that only tests know, so that a log of two versions is tried: who it belongs to comes first.

use crate::identity::Identity;

/// Writes it.
pub fn put(fields: &mut [u8], number: u64, capacity: u64, identity: &Identity) {
    fields[..16].copy_from_slice(&identity.incarnation.to_be_bytes());
    fields[16..24].copy_from_slice(&identity.node_id.to_be_bytes());
    fields[24..32].copy_from_slice(&capacity.to_be_bytes());
    fields[32..40].copy_from_slice(&number.to_be_bytes());
}
