//! Reads of the request table.
//!
//! Owns where the kept answer of a request id is looked for. Never keeps one, and never says who may be told of it.

use super::shared::Moment;
use super::types::StateFault;
use crate::codec;
use crate::keyspace::bucket;
use crate::keyspace::request::{self, KeptReply};
use crate::types::RequestId;

/// The kept answer of an id of `owner`, as apply finds it.
pub(crate) fn kept(moment: &Moment<'_>, owner: &str, id: &RequestId) -> Result<Option<KeptReply>, StateFault> {
    for bucket in live(moment).rev() {
        if let Some(row) = moment.snapshot.get_pinned(request::row_key(bucket, owner, &id.0))? {
            return Ok(Some(codec::decode(&row)?));
        }
    }
    Ok(None)
}

/// Whose an id is that has an owner: at most `limit` names.
pub(crate) fn owners(moment: &Moment<'_>, id: &RequestId, limit: usize) -> Result<Vec<String>, StateFault> {
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

fn live(moment: &Moment<'_>) -> std::ops::RangeInclusive<u64> {
    bucket::oldest_live(moment.at.clock)..=bucket::at(moment.at.clock)
}
