//! Reads of ranges outside transactions: as of now, or at a revision of the past.
//!
//! Owns which of the node's reads answers what, and that count and entries are of one revision.

use quorate_etcd_api::Error;
use quorate_etcd_api::kv::RangeResponse;
use quorate_store::state::{KeyRead, ListQuery, ListRead, PastRead, StateFault};
use quorate_store::types::{Entry, Key, ListOrder, ListOrderBy, ListShown, ListStep, Revision, RevisionFilter};

use crate::backend::Node;
use crate::gateway::call::Call;
use crate::gateway::failure::Failure;
use crate::gateway::scan::scan;
use crate::header::header;
use crate::limits;
use crate::range::key_value;
use crate::status::{Status, known};

/// What a range without a limit is charged as, before anybody knows what is in it.
const PAGE_FOR_COST: usize = 1_000;

/// What was found, and where it was evaluated.
struct Found {
    /// The revision of a read as of now. Who watches from the next one on misses nothing.
    at: Revision,
    entries: Vec<(Key, Entry)>,
    count: u64,
    more: bool,
}

/// Why there is no answer.
enum Missed {
    Known(Error),
    TooMuch,
}

/// Reads a range as of now, or at this revision. Who may read it was judged before.
pub async fn read(call: &Call, step: ListStep, revision: Option<Revision>) -> Result<RangeResponse, Status> {
    look(call, step, revision).await?.map_err(known)
}

/// The same, where that a revision cannot be read may be no failure.
pub async fn look(
    call: &Call,
    step: ListStep,
    revision: Option<Revision>,
) -> Result<Result<RangeResponse, Error>, Status> {
    let before = call.api.revision();
    let found = match step.range.key().and_then(|key| Key::new(key).ok()) {
        Some(key) => one(&call.api.backend, &key, &step, revision).map_err(|fault| Failure::from_fault(&fault))?,
        None => {
            call.costs_page(step.limit().min(PAGE_FOR_COST))?;
            scan(call, move |backend| many(&backend, &step, revision)).await?
        }
    };
    let Found { at, entries, count, more } = match found {
        Ok(found) => found,
        Err(Missed::Known(error)) => return Ok(Err(error)),
        Err(Missed::TooMuch) => {
            return Err(Status::resource_exhausted(format!(
                "quorate: the range has more than {} bytes; ask for it in pages, with a limit",
                limits::ETCD_RANGE_BYTES_MAX
            )));
        }
    };
    let kvs = entries.into_iter().map(|(key, entry)| key_value(&key, entry));
    // The header of a read in the past is about now all the same.
    let at = if revision.is_none() { at } else { before };
    Ok(Ok(RangeResponse { header: Some(header(&call.api, at)), kvs: kvs.collect(), count: count as i64, more }))
}

fn one(
    backend: &Node,
    key: &Key,
    step: &ListStep,
    revision: Option<Revision>,
) -> Result<Result<Found, Missed>, StateFault> {
    let read = match revision {
        None => backend.get(key)?,
        Some(revision) => match backend.get_at(key, revision)? {
            PastRead::Found(read) => read,
            PastRead::Compacted(_) => return Ok(Err(Missed::Known(Error::Compacted))),
            PastRead::Future(_) => return Ok(Err(Missed::Known(Error::FutureRev))),
        },
    };
    let KeyRead { at, entry } = read;
    let count = u64::from(entry.is_some());
    let (entries, more) = step.select(entry.map(|entry| (key.clone(), entry)).into_iter().collect());
    Ok(Ok(Found { at: at.revision, entries, count, more }))
}

/// Most times that a range is read anew because it changed between its entries and its count.
const TRIES_MAX: usize = 3;

fn many(backend: &Node, step: &ListStep, revision: Option<Revision>) -> Result<Result<Found, Missed>, StateFault> {
    // In order of key, nothing has to be read of what is behind the limit.
    let in_order = step.order == ListOrder::BY_KEY && step.filter == RevisionFilter::ALL;
    let query = |limit: usize, revision: Option<Revision>| ListQuery {
        start: step.range.start().to_vec(),
        end: step.range.end().map(<[u8]>::to_vec),
        revision,
        limit,
        bytes_max: limits::ETCD_RANGE_BYTES_MAX,
        keys_only: step.shown == ListShown::Keys && step.order.by != ListOrderBy::Value,
        reverse: false,
    };
    for attempt in 1.. {
        let wanted = match step.shown {
            ListShown::Count => 0,
            _ if in_order => step.limit(),
            _ => usize::MAX,
        };
        let page = match backend.list(&query(wanted.max(1), revision))? {
            ListRead::Page(page) => page,
            ListRead::Compacted(_) => return Ok(Err(Missed::Known(Error::Compacted))),
            ListRead::Future(_) => return Ok(Err(Missed::Known(Error::FutureRev))),
        };
        if page.more && page.entries.len() < wanted {
            return Ok(Err(Missed::TooMuch));
        }
        let count = match page.more {
            false => page.entries.len() as u64,
            true => {
                // A count as of now judges expiry as the page did; at a revision of the past neither does.
                let last = attempt == TRIES_MAX;
                let (at, count) =
                    backend.count(&query(usize::MAX, if last { Some(page.at.revision) } else { revision }))?;
                if revision.is_none() && !last && at.revision != page.at.revision {
                    continue;
                }
                count
            }
        };
        let (entries, more) = step.select(page.entries);
        let more = more || (page.more && step.shown != ListShown::Count);
        return Ok(Ok(Found { at: page.at.revision, entries, count, more }));
    }
    unreachable!("the last try answers")
}

/// A part of a range, in order of key.
pub struct Part {
    /// The revision that it is of.
    pub at: Revision,
    /// As many as fit.
    pub entries: Vec<(Key, Entry)>,
    /// Whether there are more, up to the limit that was asked for.
    pub is_cut: bool,
}

/// Reads a part of a range, as of now or at this revision. Who may read it was judged before.
pub async fn part(call: &Call, query: ListQuery) -> Result<Part, Status> {
    call.costs_page(query.limit.min(PAGE_FOR_COST))?;
    let limit = query.limit;
    match scan(call, move |backend| backend.list(&query)).await? {
        ListRead::Page(page) => {
            let is_cut = page.more && page.entries.len() < limit;
            Ok(Part { at: page.at.revision, entries: page.entries, is_cut })
        }
        ListRead::Compacted(_) => Err(known(Error::Compacted)),
        ListRead::Future(_) => Err(known(Error::FutureRev)),
    }
}

/// The revision that a request names, if it names one of the past.
pub fn revision_of(asked: i64) -> Option<Revision> {
    u64::try_from(asked).ok().filter(|revision| *revision > 0)
}
