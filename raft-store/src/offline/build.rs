//! Making a state in a new epoch out of the rows of another.
//!
//! Owns the order: all rows, then what the new epoch ends, then the look at the whole of it. Holds some MiB of rows at a time.

use std::path::Path;

use quorate_machine::level;
use quorate_machine::machine::{Applied, Contained, Epoch, EpochStep, Row, Vars};
use quorate_machine::query::StateFault;
use quorate_machine::types::Revision;
use rocksdb::WriteBatch;

use super::OfflineError;
use crate::meta::AppliedRecord;
use crate::raft::wire::{LogIdRecord, MemberRecord, MembershipRecord, StoredMembershipRecord};
use crate::state::{Db, Home, LatestView};

/// Where the new state begins.
#[derive(Debug, Clone)]
pub struct Beginning {
    /// The node that it is for: the only member.
    pub node_id: u64,
    /// How it is reached, and the disk.
    pub member: MemberRecord,
    /// The last log entry of the old state.
    pub log_id: LogIdRecord,
    /// The scalars of the old state.
    pub vars: Vars,
    /// The new epoch begins at this revision or above.
    pub revision_floor: Revision,
}

impl Beginning {
    /// A cluster of this node alone.
    fn membership(&self) -> StoredMembershipRecord {
        let (configs, nodes) = (vec![[self.node_id].into()], [(self.node_id, self.member.clone())].into());
        StoredMembershipRecord { log_id: Some(self.log_id), membership: MembershipRecord { configs, nodes } }
    }
}

/// Makes `<dir>/state` of rows that `next` gives in pieces, in order of keys. Gives the scalars it ends with.
pub fn build(
    dir: &Path,
    beginning: &Beginning,
    mut next: impl FnMut() -> Result<Option<Vec<Row>>, OfflineError>,
) -> Result<Vars, OfflineError> {
    level::check(beginning.vars.level).map_err(|error| StateFault::because("the state cannot be taken", error))?;
    let live = Home(dir.join("state")).prepare()?;
    let db = Db::open(&live, beginning.node_id)?;
    let mut epoch = Epoch::after(beginning.vars.clone(), beginning.revision_floor).map_err(StateFault::from)?;
    while let Some(rows) = next()? {
        let mut batch = WriteBatch::default();
        for (row_key, value) in rows {
            batch.put(&row_key, epoch.take(&row_key, value).map_err(StateFault::from)?);
        }
        db.load(batch)?;
    }
    let vars = epoch.finish().map_err(StateFault::from)?;
    let mut record = AppliedRecord { log_id: Some(beginning.log_id), membership: beginning.membership(), vars };
    let nothing = Applied {
        writes: Vec::new(),
        vars: record.vars.clone(),
        changed: Vec::new(),
        woken: [].into(),
        contained: Vec::new(),
    };
    db.write(&nothing, &record)?;
    let mut step = EpochStep::default();
    loop {
        let done = step.next(&LatestView(&db), record.vars.clone(), beginning.log_id.index);
        let Some(applied) = done.map_err(StateFault::from)? else { break };
        for Contained { what, fault, .. } in &applied.contained {
            tracing::error!(?what, %fault, "what belongs to the cluster of before could not be ended: it was set aside, see /v1/cluster/faults");
        }
        record.vars = applied.vars.clone();
        db.write(&applied, &record)?;
    }
    if record.vars.sessions != 0 {
        return Err(StateFault::new(format!("{} sessions are counted that are not there", record.vars.sessions)).into());
    }
    db.flush()?;
    db.verify(u64::MAX)?;
    Ok(record.vars)
}
