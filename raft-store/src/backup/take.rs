//! Taking a backup, or the whole state, of a running node.
//!
//! Owns the walk over the rows of one moment. Holds one block at a time, whatever the size of the state, and keeps what it
//! reads out of the block cache, so that the reads of clients stay fast. Never stops the apply path.

use std::io::Write;

use quorate_machine::query::{Cursor as _, StateFault};
use quorate_machine::types::WallMillis;

use super::{BackupEnd, BackupError, BackupHeader, BackupWriter, Content};
use crate::meta::AppliedRecord;
use crate::state::{Moment, StateReader, record_of};

/// What a node says of itself in a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taker {
    /// Its cluster.
    pub cluster_id: u128,
    /// The node.
    pub node_id: u64,
    /// Version of its program.
    pub node_version: String,
    /// Its wall clock.
    pub now: WallMillis,
}

/// Writes the rows of one moment to a sink, once.
pub struct TakeWhole<'m, 'd> {
    moment: &'m Moment<'d>,
    header: &'m BackupHeader,
}

impl TakeWhole<'_, '_> {
    /// Writes them. Blocks for as long as the sink takes. An error also where they are not those that were applied here.
    pub fn write(self, sink: impl Write) -> Result<BackupEnd, BackupError> {
        let (_, end) = write(Content::Whole, self.moment, self.header, sink)?;
        let (found, expected) = (end.digest, self.header.vars.digest());
        match found == expected {
            true => Ok(end),
            false => Err(StateFault::new(format!("the rows have digest {found:032x}, not {expected:032x}")).into()),
        }
    }
}

impl StateReader {
    /// Writes a backup of the state as of now. Blocks for as long as the sink takes; the moment is kept meanwhile, which
    /// only means that RocksDB cannot merge away what it needs. Tells `begun` what the backup is of before its first byte.
    pub fn back_up<W: Write>(
        &self,
        taker: Taker,
        sink: W,
        begun: impl FnOnce(&BackupHeader),
    ) -> Result<(W, BackupEnd), BackupError> {
        self.shared.with_moment(|moment| {
            let header = header(taker, record_of(moment));
            begun(&header);
            Ok(write(Content::Lasting, moment, &header, sink))
        })?
    }

    /// Takes every row of the state as of now, for whoever goes on from it with the log: `take` is told what it is of and makes the
    /// sink. Otherwise as [`Self::back_up`].
    pub fn take_whole<T>(
        &self,
        taker: Taker,
        take: impl FnOnce(&BackupHeader, TakeWhole<'_, '_>) -> T,
    ) -> Result<T, StateFault> {
        self.shared.with_moment(|moment| {
            let header = header(taker, record_of(moment));
            Ok(take(&header, TakeWhole { moment, header: &header }))
        })
    }
}

fn header(taker: Taker, record: AppliedRecord) -> BackupHeader {
    let Taker { cluster_id, node_id, node_version, now: taken_at } = taker;
    let AppliedRecord { log_id, membership, vars } = record;
    BackupHeader { cluster_id, node_id, node_version, taken_at, log_id, membership, vars }
}

fn write<W: Write>(
    content: Content,
    moment: &Moment<'_>,
    header: &BackupHeader,
    sink: W,
) -> Result<(W, BackupEnd), BackupError> {
    let mut writer = BackupWriter::of(content, sink, header)?;
    for (start, end) in content.ranges() {
        let mut rows = moment.snapshot.rows_once(&start, &end);
        rows.seek_to_first();
        while let Some((key, value)) = rows.item() {
            writer.row(key, value)?;
            rows.next();
        }
        rows.status().map_err(StateFault::from)?;
    }
    writer.finish()
}
