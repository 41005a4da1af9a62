//! Finding: which of the entries that are looked at belong to an answer, in which order, and when it is full.
//!
//! Owns the choice and its bounds. Pure: is shown one entry after the other and knows neither the database nor a clock of
//! its own, so that whoever has entries can ask it.

use std::collections::BinaryHeap;

use bincode::{Decode, Encode};

use super::ReadPosition;
use crate::document::path::Path;
use crate::document::{Criteria, Json, Order, Projection, ReadyCriteria, Steps, Subject, TooDear};
use crate::keyspace::entry::EntryRow;
use crate::limits;
use crate::machine::Fault;
use crate::types::{ClusterMillis, ContentKind, Entry, EntryMeta, Key, Revision, Value, WallMillis};

/// What to find.
#[derive(Debug, Clone)]
pub struct FindQuery {
    /// Only keys that begin with this.
    pub prefix: Vec<u8>,
    /// What holds of the entries.
    pub criteria: Criteria,
    /// What the answer is to be.
    pub wanted: Wanted,
    /// At which moment.
    pub moment: FindMoment,
    /// Go on after the entry with this key, in the order asked for: [`FindPage::after`] of the page before.
    pub after: Option<Key>,
    /// How much may be looked at.
    pub bounds: FindBounds,
    /// Whether keys of the same collection without the prefix may be walked past: what an index makes of them, how many there
    /// are and where a page ends, tells of them.
    pub may_walk_past: bool,
}

/// What the answer to a [`FindQuery`] is to be.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// Only how many there are.
    Count,
    /// The entries.
    Page {
        /// In which order.
        order: Order,
        /// Most entries.
        limit: usize,
        /// Stop before more than this many bytes of keys and values are gathered (at least one entry is returned).
        bytes_max: usize,
        /// What is shown of each value.
        shown: ValueShown,
    },
}

impl Wanted {
    /// Whether it is only how many there are.
    pub fn is_count(&self) -> bool {
        matches!(self, Self::Count)
    }
}

/// What is shown of the value of an entry that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueShown {
    /// All of it.
    Whole,
    /// Parts of a document; nothing of a value that has none.
    Parts(Projection),
    /// Nothing.
    Nothing,
}

/// At which moment entries are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindMoment {
    /// As of now, with what the cluster's wall clock shows. The log's stands still while nothing is written.
    Now(WallMillis),
    /// As a find would have been answered when this revision was new.
    Revision(Revision),
    /// As the first page was: [`FindPage::pin`].
    Pinned(FindPin),
}

/// A moment that stays the same: everything that an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FindPin {
    /// Which versions there are.
    pub revision: Revision,
    /// Cluster clock: which of them are expired.
    pub clock: ClusterMillis,
    /// Wall clock: what `{"now":true}` is.
    pub wall: WallMillis,
}

/// How much one query may look at. It ends with the entry that reaches a bound, and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindBounds {
    /// Entries.
    pub entries_max: u64,
    /// Bytes of their keys and values, and [those](Steps::bytes) of the steps that it takes to judge them once they are parsed.
    pub bytes_max: usize,
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its key.
    pub key: Key,
    /// The entry, its value as far as it is shown.
    pub entry: Entry,
    /// Whether there is a value to show.
    pub has_value: bool,
}

/// A page of what was found, or a part of a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindPage {
    /// Where it was evaluated; revision and clock are those of `pin`.
    pub at: ReadPosition,
    /// The moment it shows.
    pub pin: FindPin,
    /// The entries, in order; none for a count.
    pub items: Vec<Found>,
    /// How many were found: of the page, or of the part that was counted.
    pub count: u64,
    /// How many entries were looked at, gone ones too.
    pub examined: u64,
    /// The fields of the index that was used; `None` where it looked at the entries of the prefix.
    pub index: Option<Vec<Path>>,
    /// Where to go on; `None` once everything was looked at. There may be nothing more to find then.
    pub after: Option<Key>,
}

/// The answer to a [`FindQuery`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindRead {
    /// A page.
    Page(FindPage),
    /// The revision is below `at.oldest_revision`.
    Compacted(ReadPosition),
    /// The revision is above `at.revision`.
    Future(ReadPosition),
    /// The bounds were reached before all entries were seen, without which the first in order are not known.
    TooManyToOrder(ReadPosition),
    /// To judge the next entry takes more steps than [`limits::COMMAND_STEPS_MAX`].
    TooDear {
        /// The position of the read, as [`FindPage::at`].
        at: ReadPosition,
        /// The entry. It has the prefix.
        key: Key,
        /// The steps, and their bound.
        dear: TooDear,
    },
}

/// Takes entries one after the other and keeps those that belong to the answer.
pub struct Finder<'q> {
    query: &'q FindQuery,
    criteria: ReadyCriteria<'q>,
    pin: FindPin,
    needs_document: bool,
    examined: u64,
    bytes_read: usize,
    found: Chosen<'q>,
    /// Of the last entry looked at.
    last: Option<Key>,
    /// Whether it ended before the entries did.
    is_cut: bool,
    /// The entry that it ended before, because that takes too much to be judged.
    dear: Option<(Key, TooDear)>,
}

enum Chosen<'q> {
    Count(u64),
    AsTheyCome(Page<'q>),
    Ordered(Best<'q>),
}

impl<'q> Finder<'q> {
    /// Begins. `comes_in_order` says that it is shown the entries in the order asked for, from after
    /// [`FindQuery::after`] on; else it is shown all of them, and `after` is the entry of that key at the moment of `pin`.
    pub fn new(query: &'q FindQuery, pin: FindPin, comes_in_order: bool, after: Option<&Entry>) -> Result<Self, Fault> {
        assert!(
            query.bounds.entries_max > 0 && query.bounds.bytes_max > 0,
            "a find that may look at nothing: {query:?}"
        );
        let mut needs_document = query.criteria.needs_document();
        let found = match &query.wanted {
            Wanted::Count => Chosen::Count(0),
            Wanted::Page { order, limit, bytes_max, shown } => {
                assert!(*limit > 0, "a page of no entries never gets anywhere");
                let page = Page { items: Vec::new(), limit: *limit, bytes_left: *bytes_max, shown };
                if comes_in_order {
                    Chosen::AsTheyCome(page)
                } else {
                    needs_document |= order.needs_document();
                    let floor = query.after.as_ref().map(|key| rank_of(order, key, after, pin)).transpose()?;
                    Chosen::Ordered(Best { order, floor, heap: BinaryHeap::new(), dropped: false, page })
                }
            }
        };
        let (examined, bytes_read, last, is_cut, dear) = (0, 0, None, false, None);
        let criteria = query.criteria.ready();
        Ok(Self { query, criteria, pin, needs_document, examined, bytes_read, found, last, is_cut, dear })
    }

    /// Looks at the next key. Without a row the key has no entry at this revision, but it took time to see that. Says
    /// `false` once it wants no more.
    pub fn look(&mut self, key: &[u8], row: Option<EntryRow<'_>>) -> Result<bool, Fault> {
        let bounds = self.query.bounds;
        if self.is_full() || self.examined >= bounds.entries_max || self.bytes_read >= bounds.bytes_max {
            self.is_cut = true;
            return Ok(false);
        }
        self.examined += 1;
        let bytes = key.len() + row.map_or(0, |row| row.data.len());
        self.bytes_read = self.bytes_read.saturating_add(bytes);
        let key = Key::new(key).map_err(|error| Fault::Invariant(format!("a stored key is none: {error}")))?;
        if let Some(row) = row.filter(|row| !row.is_expired_at(self.pin.clock))
            && !self.judge(&key, row)?
        {
            self.is_cut = true;
            return Ok(false);
        }
        self.last = Some(key);
        Ok(true)
    }

    /// Whether it wanted no more before the entries ended.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether the order asked for is that of keys backwards.
    pub fn is_reverse(query: &FindQuery) -> bool {
        matches!(&query.wanted, Wanted::Page { order, .. } if order.by_key() == Some(true))
    }

    /// Whether the order asked for is another than that of keys.
    pub fn takes_all(query: &FindQuery) -> bool {
        matches!(&query.wanted, Wanted::Page { order, .. } if order.by_key().is_none())
    }

    /// The answer, at a position with the revision and clock of the moment; `index` has the fields of the index used.
    pub fn finish(self, at: ReadPosition, index: Option<&[Path]>) -> Result<FindRead, Fault> {
        let at = ReadPosition { revision: self.pin.revision, clock: self.pin.clock, ..at };
        // The entries before it are a page, and the next one begins with it. An order is not known without it.
        let is_ordered = matches!(self.found, Chosen::Ordered(_));
        if let Some((key, dear)) = self.dear.filter(|_| is_ordered || self.last.is_none()) {
            return Ok(FindRead::TooDear { at, key, dear });
        }
        let last = if self.is_cut { self.last } else { None };
        assert!(self.is_cut == last.is_some(), "a find ended early at {last:?} after {} entries", self.examined);
        let (items, count, after) = match self.found {
            Chosen::Count(count) => (Vec::new(), count, last),
            Chosen::AsTheyCome(page) => {
                let count = page.items.len() as u64;
                (page.items, count, last)
            }
            Chosen::Ordered(_) if self.is_cut => return Ok(FindRead::TooManyToOrder(at)),
            Chosen::Ordered(best) => {
                let (items, more) = best.into_page()?;
                let after = items.last().filter(|_| more).map(|found| found.key.clone());
                let count = items.len() as u64;
                (items, count, after)
            }
        };
        let index = index.map(<[Path]>::to_vec);
        Ok(FindRead::Page(FindPage { at, pin: self.pin, items, count, examined: self.examined, index, after }))
    }

    fn is_full(&self) -> bool {
        matches!(&self.found, Chosen::AsTheyCome(page) if page.items.len() >= page.limit)
    }

    /// Takes an entry if it belongs to the answer; `false` where it does and has no room, and where it takes too much to say.
    fn judge(&mut self, key: &Key, row: EntryRow<'_>) -> Result<bool, Fault> {
        let steps = Steps::up_to(limits::COMMAND_STEPS_MAX);
        let parsed = if self.needs_document && row.kind == ContentKind::Json { row.data } else { &[] };
        let may_parse = steps.take_parsing(parsed);
        let document = if self.needs_document && may_parse.is_ok() { parse(key, row)? } else { None };
        let subject = subject(key, &row.meta, document.as_ref(), self.pin);
        let held = may_parse.and_then(|()| self.criteria.hold_within(&subject, &steps));
        // The bytes were counted when the entry was read: parsing adds only the rest.
        self.bytes_read = self.bytes_read.saturating_add(steps.bytes().saturating_sub(parsed.len()));
        match held {
            Ok(true) => {}
            Ok(false) => return Ok(true),
            Err(dear) => {
                self.dear = Some((key.clone(), dear));
                return Ok(false);
            }
        }
        match &mut self.found {
            Chosen::Count(count) => *count += 1,
            Chosen::AsTheyCome(page) => return page.push(key.clone(), row, document),
            Chosen::Ordered(best) => best.offer(&subject, row),
        }
        Ok(true)
    }
}

fn subject<'a>(key: &'a Key, meta: &'a EntryMeta, document: Option<&'a Json<'a>>, pin: FindPin) -> Subject<'a> {
    Subject {
        key,
        meta: Some(meta),
        is_locked: meta.is_locked_at(pin.clock),
        document,
        clock: pin.clock,
        wall: pin.wall,
    }
}

/// The value of an entry, where it is JSON.
pub(super) fn parse<'r>(key: &Key, row: EntryRow<'r>) -> Result<Option<Json<'r>>, Fault> {
    match row.kind {
        ContentKind::Bytes => Ok(None),
        ContentKind::Json => {
            let parsed = Json::parse_stored(row.data);
            parsed.map(Some).map_err(|error| Fault::Invariant(format!("the value of key {key} is damaged: {error}")))
        }
    }
}

/// The row of an entry.
pub(super) fn row_of(entry: &Entry) -> EntryRow<'_> {
    EntryRow { meta: entry.meta, key: None, is_relocked: false, kind: entry.value.kind, data: &entry.value.data }
}

/// The rank of the entry that a page begins after. One that is not there, which no cursor of ours names, has no fields.
fn rank_of(order: &Order, key: &Key, entry: Option<&Entry>, pin: FindPin) -> Result<Vec<u8>, Fault> {
    let document = entry.map(|entry| parse(key, row_of(entry))).transpose()?.flatten();
    let meta = entry.map(|entry| &entry.meta);
    let is_locked = meta.is_some_and(|meta| meta.is_locked_at(pin.clock));
    Ok(order.rank(&Subject { key, meta, is_locked, document: document.as_ref(), clock: pin.clock, wall: pin.wall }))
}

/// Entries as they come, until they are enough.
struct Page<'q> {
    items: Vec<Found>,
    limit: usize,
    bytes_left: usize,
    shown: &'q ValueShown,
}

impl Page<'_> {
    /// Adds an entry, unless it is too large for what is left of the page. A document that was not parsed yet is, where
    /// parts of it are shown.
    fn push(&mut self, key: Key, row: EntryRow<'_>, document: Option<Json<'_>>) -> Result<bool, Fault> {
        let shown = match self.shown {
            ValueShown::Whole => Some(row.data.to_vec()),
            ValueShown::Nothing => None,
            ValueShown::Parts(projection) => {
                let document = document.map_or_else(|| parse(&key, row), |document| Ok(Some(document)))?;
                let parts = document.as_ref().and_then(|document| projection.of(document));
                parts.map(|parts| parts.to_text().into_bytes())
            }
        };
        let bytes = key.as_bytes().len() + shown.as_ref().map_or(0, Vec::len);
        if bytes > self.bytes_left && !self.items.is_empty() {
            return Ok(false);
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        let has_value = shown.is_some();
        let value = Value { kind: row.kind, data: shown.unwrap_or_default() };
        self.items.push(Found { key, entry: Entry { meta: row.meta, value }, has_value });
        Ok(true)
    }
}

/// The first entries in an order, of all that are offered.
///
/// Invariant: holds at most `page.limit` entries, the greatest rank on top. Their values were read within the bounds, so
/// together they are not larger than those.
struct Best<'q> {
    order: &'q Order,
    /// Only what comes after this.
    floor: Option<Vec<u8>>,
    heap: BinaryHeap<Candidate>,
    /// Whether there is more than it holds.
    dropped: bool,
    page: Page<'q>,
}

/// Ordered by its rank alone, which no other entry has.
struct Candidate {
    rank: Vec<u8>,
    key: Key,
    entry: Entry,
}

impl Best<'_> {
    fn offer(&mut self, subject: &Subject<'_>, row: EntryRow<'_>) {
        let rank = self.order.rank(subject);
        if self.floor.as_ref().is_some_and(|floor| rank <= *floor) {
            return;
        }
        if self.heap.len() >= self.page.limit {
            self.dropped = true;
            if self.heap.peek().is_none_or(|worst| worst.rank < rank) {
                return;
            }
            self.heap.pop();
        }
        let keeps_value = *self.page.shown != ValueShown::Nothing;
        let entry = if keeps_value { row.to_entry() } else { row.to_entry_without_data() };
        self.heap.push(Candidate { rank, key: subject.key.clone(), entry });
    }

    /// The entries in order, as many as a page has bytes for, and whether there are more.
    fn into_page(self) -> Result<(Vec<Found>, bool), Fault> {
        let Self { heap, dropped, mut page, .. } = self;
        for Candidate { key, entry, .. } in heap.into_sorted_vec() {
            if !page.push(key, row_of(&entry), None)? {
                return Ok((page.items, true));
            }
        }
        Ok((page.items, dropped))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}
