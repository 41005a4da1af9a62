//! Reads of what faulted and was contained.
//!
//! Owns what is told of it. Never changes anything, and never decides what a fault becomes; that is the machine's.

use super::{Cursor, Moment, Snapshot};
use crate::codec;
use crate::keyspace::fault::{self, FaultCounts, FaultRow, ParkedRow};
use crate::keyspace::{family, family_range};
use crate::limits;
use crate::machine::Fault;

/// What faulted, newest commands first.
#[derive(Debug, Clone, Default)]
pub struct FaultsRead {
    /// How much there ever was.
    pub counts: FaultCounts,
    /// Commands that are kept for a report.
    pub commands: Vec<KeptFault>,
    /// Work that is set aside, in order of row keys: the first [`limits::PARKED_SHOWN_MAX`].
    pub parked: Vec<Parked>,
}

/// A command that faulted.
#[derive(Debug, Clone)]
pub struct KeptFault {
    /// Log index of its entry.
    pub index: u64,
    /// Its number in the entry.
    pub nth: u32,
    /// What is kept of it.
    pub row: FaultRow,
}

/// Work that is set aside.
#[derive(Debug, Clone)]
pub struct Parked {
    /// The row key of the work.
    pub work: Vec<u8>,
    /// When it faulted.
    pub row: ParkedRow,
}

/// How much was contained.
pub fn counts(moment: &Moment<impl Snapshot>) -> Result<FaultCounts, Fault> {
    Ok(moment.decoded(fault::COUNTS_KEY)?.unwrap_or_default())
}

/// How many commands are kept and how many pieces of work are set aside: what somebody can still do something about.
pub fn open(moment: &Moment<impl Snapshot>) -> Result<(usize, u64), Fault> {
    let kept = each(moment, family::FAULT, limits::FAULTS_KEPT_MAX, |_, _| Ok(()))?;
    Ok((kept.len(), counts(moment)?.parked))
}

/// Everything that is kept of contained faults, within bounds.
pub fn faults(moment: &Moment<impl Snapshot>) -> Result<FaultsRead, Fault> {
    let mut commands = each(moment, family::FAULT, limits::FAULTS_KEPT_MAX, |row_key, row| {
        let (index, nth) = fault::decode_key(row_key)?;
        Ok(KeptFault { index, nth, row: codec::decode(row)? })
    })?;
    commands.reverse();
    let parked = each(moment, family::PARKED, limits::PARKED_SHOWN_MAX, |row_key, row| {
        Ok(Parked { work: fault::decode_parked(row_key)?.to_vec(), row: codec::decode(row)? })
    })?;
    Ok(FaultsRead { counts: counts(moment)?, commands, parked })
}

/// The first rows of a family.
fn each<T>(
    moment: &Moment<impl Snapshot>,
    family: u8,
    limit: usize,
    decode: impl Fn(&[u8], &[u8]) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let (start, end) = family_range(family);
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    let mut decoded = Vec::new();
    while let Some((row_key, row)) = rows.item().filter(|_| decoded.len() < limit) {
        decoded.push(decode(row_key, row)?);
        rows.next();
    }
    rows.status()?;
    Ok(decoded)
}
