//! Reads of the request table.
//!
//! Owns where the kept answer of a request id is looked for. Never keeps one, and never says who may be told of it.

use super::{Cursor, Moment, Snapshot};
use crate::keyspace::bucket;
use crate::keyspace::request::{self, KeptReply};
use crate::machine::Fault;
use crate::types::RequestId;

/// The kept answer of an id of `owner`, as apply finds it.
pub fn kept(moment: &Moment<impl Snapshot>, owner: &str, id: &RequestId) -> Result<Option<KeptReply>, Fault> {
    for bucket in live(moment).rev() {
        let kept = moment.decoded(request::row_key(bucket, owner, &id.0))?;
        if kept.is_some() {
            return Ok(kept);
        }
    }
    Ok(None)
}

/// Whose an id is that has an owner: at most `limit` names.
pub fn owners(moment: &Moment<impl Snapshot>, id: &RequestId, limit: usize) -> Result<Vec<String>, Fault> {
    let mut owners = Vec::new();
    for bucket in live(moment) {
        let (start, end) = request::owned_range(bucket, &id.0);
        let mut rows = moment.rows(&start, &end);
        rows.seek_to_first();
        while let Some(row_key) = rows.key().filter(|_| owners.len() < limit) {
            let (_, owner, _) = request::decode_key(row_key)?;
            if !owners.iter().any(|known| known == owner) {
                owners.push(owner.to_owned());
            }
            rows.next();
        }
        rows.status()?;
    }
    Ok(owners)
}

fn live(moment: &Moment<impl Snapshot>) -> std::ops::RangeInclusive<u64> {
    bucket::oldest_live(moment.at.clock)..=bucket::at(moment.at.clock)
}
