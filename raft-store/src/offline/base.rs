//! The state that a node would go on from on this disk.
//!
//! Owns the choice between the live database and a snapshot that is ahead of it, which is what a crash in the middle of an
//! installation leaves: a start installs it. Changes nothing.

use super::OfflineError;
use crate::meta::AppliedRecord;
use crate::state::{Db, Home, SnapshotHandle, newest_snapshot};

/// See the top of the file.
pub struct Base {
    /// How far it goes.
    pub record: AppliedRecord,
    /// Where it is, if not in the live database.
    pub snapshot: Option<SnapshotHandle>,
}

impl Base {
    /// That of a state directory that no node has open.
    pub fn of(home: &Home) -> Result<Self, OfflineError> {
        let record = Db::peek_applied(&home.live()?)?;
        let dir = home.snapshots();
        let newest = newest_snapshot(&dir).map_err(OfflineError::at(&dir))?;
        let Some(snapshot) = newest.filter(|snapshot| snapshot.manifest().meta.last_log_id > record.log_id) else {
            return Ok(Self { record, snapshot: None });
        };
        Ok(Self { record: Db::peek_applied(snapshot.dir())?, snapshot: Some(snapshot) })
    }
}
