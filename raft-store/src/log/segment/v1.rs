//! What the header of a segment says in version 1, behind the version: number, capacity, incarnation, number of the node.

use crate::identity::Identity;

const NUMBER: usize = 0;
const CAPACITY: usize = 8;
const INCARNATION: usize = 16;
const NODE: usize = 32;

/// Writes it.
pub fn put(fields: &mut [u8], number: u64, capacity: u64, identity: &Identity) {
    let mut put = |at: usize, bytes: &[u8]| fields[at..at + bytes.len()].copy_from_slice(bytes);
    put(NUMBER, &number.to_le_bytes());
    put(CAPACITY, &capacity.to_le_bytes());
    put(INCARNATION, &identity.incarnation.to_le_bytes());
    put(NODE, &identity.node_id.to_le_bytes());
}

/// How what was found differs from what was made, for people.
pub fn difference(found: &[u8], expected: &[u8]) -> String {
    let field = |fields: &[u8], at: usize| {
        u64::from_le_bytes(fields[at..at + 8].try_into().expect("eight bytes are eight bytes"))
    };
    let differs = |at: usize| field(found, at) != field(expected, at);
    if differs(INCARNATION) || differs(INCARNATION + 8) || differs(NODE) {
        return "it belongs to another data directory".to_owned();
    }
    if differs(NUMBER) {
        return format!("it is segment {} under another name", field(found, NUMBER));
    }
    format!("it has {} bytes, it was made with {}", field(expected, CAPACITY), field(found, CAPACITY))
}
