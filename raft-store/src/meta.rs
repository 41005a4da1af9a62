//! The row of the applied position: `0x00 0x01` → [`AppliedRecord`].
//!
//! Owns its form. The state store writes it in the same batch as the rows it speaks of; it is outside the digest.

use bincode::{Decode, Encode};
use quorate_machine::keyspace::family;
use quorate_machine::machine::Vars;

use crate::raft::wire::{LogIdRecord, StoredMembershipRecord};

/// The row key.
pub const APPLIED_KEY: &[u8] = &[family::META, 0x01];

/// How far this state has come. Encode and decode with [`quorate_machine::codec`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AppliedRecord {
    /// Last entry applied.
    pub log_id: Option<LogIdRecord>,
    /// Membership in force there.
    pub membership: StoredMembershipRecord,
    /// The machine's own scalars there.
    pub vars: Vars,
}
