//! Groups as bytes in memory, for tests that damage them by the thousand.
//!
//! Owns no layout: it only leads to the parts that opening a log is made of, and seals damaged bytes anew, since no fuzzer finds a
//! checksum. Never does I/O, and no node uses it.

use bytes::Bytes;

use super::group::{Group, HEADER_BYTES, Preamble, preamble};
use super::record::{DirectoryTag, SEAL_BYTES};
use crate::identity::Identity;

/// Reads a group that starts these bytes, as opening a log and reading its entries does. Gives how many entries it has; an error says
/// what is wrong.
pub fn read_group(bytes: &[u8], identity: &Identity, segment: u64) -> Result<usize, String> {
    if bytes.len() < HEADER_BYTES {
        return Err(format!("{} bytes are no group", bytes.len()));
    }
    let tag = DirectoryTag::new(identity);
    let Preamble { directory_end, payload } = preamble(bytes, bytes.len() as u64).map_err(|error| error.to_string())?;
    let group = Group::parse(&bytes[..directory_end], tag, segment).map_err(|error| error.to_string())?;
    let payload = Bytes::copy_from_slice(&bytes[directory_end..directory_end + payload as usize]);
    group.check_payload(tag, &payload).map_err(|error| error.to_string())?;
    let mut log_state = group.before;
    group.records.iter().try_for_each(|record| log_state.apply(record))?;
    let mut at = 0;
    for (id, length) in group.entries() {
        let sealed = payload.slice(at..at + length as usize);
        tag.open_entry(id.index, sealed).map_err(|error| error.to_string())?;
        at += length as usize;
    }
    Ok(group.entries().count())
}

/// Puts the right checksums and tags over a group that starts these bytes, as far as its lengths fit.
pub fn seal_group(bytes: &mut [u8], identity: &Identity) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    let tag = DirectoryTag::new(identity);
    let Ok(Preamble { directory_end, .. }) = preamble(bytes, bytes.len() as u64) else { return };
    bytes[12..16].copy_from_slice(&tag.get().to_le_bytes());
    let checksum = tag.checksum([&bytes[12..directory_end], &[]]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    let segment = u64::from_le_bytes(bytes[24..32].try_into().expect("eight bytes are eight bytes"));
    let Ok(group) = Group::parse(&bytes[..directory_end], tag, segment) else { return };
    let mut rest = &mut bytes[directory_end..];
    for (id, length) in group.entries() {
        let (sealed, after) = rest.split_at_mut(length as usize);
        if sealed.len() >= SEAL_BYTES {
            let checksum = tag.checksum([&id.index.to_le_bytes(), &sealed[SEAL_BYTES..]]);
            sealed[..4].copy_from_slice(&checksum.to_le_bytes());
            sealed[4..SEAL_BYTES].copy_from_slice(&tag.get().to_le_bytes());
        }
        rest = after;
    }
}
