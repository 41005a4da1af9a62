//! Reads of ranges outside transactions: as of now, or at a revision of the past.
//!
//! Owns which of the node's reads answers what, what a read costs, and that count and entries are of one revision. A read of one key that is
//! named is done where it is asked for; all else is a scan.

use quorate_etcd_api::Error;
use quorate_etcd_api::kv::RangeResponse;
use quorate_machine::limits::LOOK_BYTES;
use quorate_machine::query::{KeyRead, ListQuery, ListRead, PastRead, StateFault};
use quorate_machine::types::{Entry, Key, ListOrder, ListOrderBy, ListShown, ListStep, Revision, RevisionFilter};
use quorate_node_core::backend::SharedNode;
use quorate_node_core::gateway::auth::requirement::{Permission, Requirement, Visit};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::failure::Failure;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::limits;

use crate::header::header;
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
    /// What was read for it, as [`Room`] counts that.
    bytes: usize,
}

/// Why there is no answer.
enum Missed {
    Known(Error),
    TooMuch,
}

/// What a read on this node came to.
type Looked = Result<Result<Found, Missed>, StateFault>;

/// How much a read may hold.
#[derive(Clone, Copy)]
struct Room {
    /// Bytes.
    left: usize,
    /// What each entry takes of it beside its key and its value.
    each: usize,
}

impl Room {
    /// That of an answer of its own.
    const OF_ANSWER: Self = Self { left: limits::ETCD_RANGE_BYTES_MAX, each: 0 };

    /// Most entries that fit, and one that does not.
    fn entries(self) -> usize {
        self.left.checked_div(self.each).map_or(usize::MAX, |most| most + 1)
    }

    /// What these take.
    fn taken(self, entries: &[(Key, Entry)]) -> usize {
        entries.iter().map(|(key, entry)| key.as_bytes().len() + entry.value.data.len() + self.each).sum()
    }
}

/// The key that is read, where it is one that is named; `None` where its entries have to be looked for.
pub fn named(step: &ListStep) -> Option<Key> {
    step.range.key().and_then(|key| Key::new(key).ok())
}

/// What a read costs among scans: as a page where no more than that is looked at, else as a search. A range without a limit is taken for a
/// long page; that most of them are short is not known before.
pub fn cost(step: &ListStep) -> usize {
    match named(step) {
        Some(_) => 1,
        None if is_in_order(step) && step.shown != ListShown::Count => cost_of_page(step.limit()),
        None => limits::FIND_COST,
    }
}

/// What a part of a range costs that ends at this limit.
pub fn cost_of_page(limit: usize) -> usize {
    Call::cost_of_page(limit.min(PAGE_FOR_COST))
}

/// Lets a read in as what it is: a scan, but where it names its key. Only who may read it takes anything of scans.
pub async fn enter(call: &Call, step: &ListStep) -> Result<(), Failure> {
    if named(step).is_some() {
        return Ok(());
    }
    let wanted = |visit: &mut Visit<'_>| visit(Requirement::on_range(Permission::Read, &step.range));
    call.caller().admit(call.deadline, &wanted).await?;
    call.go_on_as_scan().await?;
    let cost = cost(step);
    call.costs(cost, cost)
}

/// Reads a range as of now, or at this revision. Who may read it was judged before.
pub async fn read(call: &Call, step: ListStep, revision: Option<Revision>) -> Result<RangeResponse, Status> {
    let (before, charged) = (call.api.revision(), cost(&step));
    let found = match named(&step) {
        Some(key) => {
            one(&call.api.node, &key, &step, revision, Room::OF_ANSWER).map_err(|fault| Failure::from_fault(&fault))?
        }
        None => scan(call, move |backend| many(&backend, &step, revision, Room::OF_ANSWER)).await?,
    };
    match found {
        Ok(found) => {
            // What it was is known only now. It is paid, and no more refused.
            if let Some(account) = call.account() {
                account.pay(Call::cost_of_page(found.entries.len()).saturating_sub(charged));
            }
            Ok(answer(call, found, revision, before))
        }
        Err(Missed::Known(error)) => Err(known(error)),
        Err(Missed::TooMuch) => Err(Status::resource_exhausted(format!(
            "quorate: the range has more than {} bytes; ask for it in pages, with a limit",
            limits::ETCD_RANGE_BYTES_MAX
        ))),
    }
}

/// Reads a range at a revision of the past for a transaction, one key like many where it holds up nobody else, and takes what that is from
/// what the transaction may still read. Who may read it was judged before. That the revision cannot be read may be no failure.
pub async fn look(
    call: &Call,
    step: ListStep,
    revision: Revision,
    left: &mut usize,
) -> Result<Result<RangeResponse, Error>, Status> {
    let (before, at) = (call.api.revision(), Some(revision));
    let room = Room { left: *left, each: LOOK_BYTES };
    let found = scan(call, move |backend| match named(&step) {
        Some(key) => one(&backend, &key, &step, at, room),
        None => many(&backend, &step, at, room),
    });
    match found.await? {
        Ok(found) => {
            *left = left.saturating_sub(found.bytes);
            Ok(Ok(answer(call, found, at, before)))
        }
        Err(Missed::Known(error)) => Ok(Err(error)),
        Err(Missed::TooMuch) => Err(known(Error::RequestTooLarge)),
    }
}

/// `before` is the revision that this node knew of before it read.
fn answer(call: &Call, found: Found, revision: Option<Revision>, before: Revision) -> RangeResponse {
    let Found { at, entries, count, more, .. } = found;
    let kvs = entries.into_iter().map(|(key, entry)| key_value(&key, entry));
    // The header of a read in the past is about now all the same.
    let at = if revision.is_none() { at } else { before };
    RangeResponse { header: Some(header(&call.api, at)), kvs: kvs.collect(), count: count as i64, more }
}

fn one(backend: &SharedNode, key: &Key, step: &ListStep, revision: Option<Revision>, room: Room) -> Looked {
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
    let found: Vec<_> = entry.map(|entry| (key.clone(), entry)).into_iter().collect();
    let bytes = room.taken(&found);
    if bytes > room.left {
        return Ok(Err(Missed::TooMuch));
    }
    let (entries, more) = step.select(found);
    Ok(Ok(Found { at: at.revision, entries, count, more, bytes }))
}

/// Most times that a range is read anew because it changed between its entries and its count.
const TRIES_MAX: usize = 3;

/// Whether nothing has to be read of what is behind the limit.
fn is_in_order(step: &ListStep) -> bool {
    step.order == ListOrder::BY_KEY && step.filter == RevisionFilter::ALL
}

fn many(backend: &SharedNode, step: &ListStep, revision: Option<Revision>, room: Room) -> Looked {
    let query = |limit: usize, revision: Option<Revision>| ListQuery {
        start: step.range.start().to_vec(),
        end: step.range.end().map(<[u8]>::to_vec),
        revision,
        limit,
        bytes_max: room.left,
        keys_only: step.shown == ListShown::Keys && step.order.by != ListOrderBy::Value,
        reverse: false,
    };
    for attempt in 1.. {
        let wanted = match step.shown {
            ListShown::Count => 0,
            _ if is_in_order(step) => step.limit(),
            _ => usize::MAX,
        };
        let page = match backend.list(&query(wanted.max(1).min(room.entries()), revision))? {
            ListRead::Page(page) => page,
            ListRead::Compacted(_) => return Ok(Err(Missed::Known(Error::Compacted))),
            ListRead::Future(_) => return Ok(Err(Missed::Known(Error::FutureRev))),
        };
        let bytes = room.taken(&page.entries);
        if bytes > room.left || (page.more && page.entries.len() < wanted) {
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
        return Ok(Ok(Found { at: page.at.revision, entries, count, more, bytes }));
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
