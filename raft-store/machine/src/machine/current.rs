//! The rows of current entries, read with the one check that their revision allows.
//!
//! Owns that check. Never writes a row.

use super::view::Fault;
use crate::keyspace::entry::{self, EntryRow};
use crate::types::Revision;

/// Decodes a current entry and checks that it is not from the future.
pub(super) fn decode_current<'a>(row_key: &[u8], row: &'a [u8], revision: Revision) -> Result<EntryRow<'a>, Fault> {
    let decoded = entry::decode(row).map_err(|error| Fault::row(row_key, error))?;
    let newest = decoded.meta.mod_revision;
    if newest > revision {
        let row_key = row_key.escape_ascii();
        return Err(Fault::Invariant(format!("row {row_key} has mod revision {newest}, the store only {revision}")));
    }
    Ok(decoded)
}
