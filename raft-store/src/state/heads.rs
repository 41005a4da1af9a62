//! Lower bounds of the first rows in families, and in ranges of entries, that are used as queues.
//!
//! Owns a lower bound of each: no row stands before it. RocksDB keeps the trace of a row that is gone until it merges it away, and a scan from
//! the head of such a family would walk over the traces of all that was due before: a million of them take a tenth of a second, on the
//! thread of Raft. Never the truth about a row: a bound that is too low only costs time.
//!
//! The writer of the state raises a bound to the first row that it finds, and lowers it once it has written one that stands before. Others,
//! who look beside it, raise it no further than what it has written since they began.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use parking_lot::Mutex;
use quorate_machine::keyspace::{family, family_range, index};
use quorate_machine::machine::Write;
use quorate_machine::query::StateFault;
use rocksdb::DB;

use super::reading::{range_options, read_fault};
use super::recent::is_entry;

/// Families in the order of time: what was due goes, and what comes is due later.
const TIMED: [u8; 3] = [family::DEADLINE, family::LOCK, family::TIMER];

/// Ranges of entries whose first row was far behind their start. Those who use entries as a queue have one each.
const SLOW_MAX: usize = 16;

/// The bounds of one database.
#[derive(Debug)]
pub(crate) struct Heads {
    ranges: Mutex<BTreeMap<Vec<u8>, Head>>,
    slow: Mutex<VecDeque<Gap>>,
}

/// There is no entry in `[start, bound)`.
#[derive(Debug)]
struct Gap {
    start: Vec<u8>,
    bound: Vec<u8>,
}

impl Gap {
    fn has(&self, row_key: &[u8]) -> bool {
        self.start.as_slice() <= row_key && row_key < self.bound.as_slice()
    }
}

/// That of one range of rows, by its start.
#[derive(Debug)]
struct Head {
    /// Behind the range.
    end: Vec<u8>,
    bound: Vec<u8>,
    /// The lowest row written since somebody began to look for the first.
    written: Option<Vec<u8>>,
    /// How many began to look.
    looks: u64,
}

impl Head {
    fn of((start, end): (Vec<u8>, Vec<u8>)) -> (Vec<u8>, Self) {
        (start.clone(), Self { end, bound: start, written: None, looks: 0 })
    }

    fn lower(&mut self, row_key: &[u8]) {
        if row_key < self.bound.as_slice() {
            self.bound = row_key.to_vec();
        }
        if self.looks > 0 && self.written.as_deref().is_none_or(|lowest| row_key < lowest) {
            self.written = Some(row_key.to_vec());
        }
    }
}

impl Heads {
    fn new(ranges: BTreeMap<Vec<u8>, Head>) -> Self {
        Self { ranges: Mutex::new(ranges), slow: Mutex::default() }
    }

    /// Of the rows of a database that nobody writes yet.
    pub(crate) fn of_rows(rocks: &DB) -> Result<Self, StateFault> {
        let mut heads: BTreeMap<_, _> = TIMED.into_iter().map(|family| Head::of(family_range(family))).collect();
        let (start, end) = family_range(family::DROPPED_INDEX);
        let mut rows = rocks.raw_iterator_opt(range_options(&start, &end));
        rows.seek_to_first();
        while let Some(row_key) = rows.key() {
            heads.extend([Head::of(index::of_index(index::decode_dropped(row_key)?))]);
            rows.next();
        }
        rows.status().map_err(read_fault)?;
        let heads = Self::new(heads);
        heads.refresh(rocks)?;
        Ok(heads)
    }

    /// Where a scan from `start` on may begin instead.
    pub(crate) fn begin<'s>(&self, start: &'s [u8]) -> Cow<'s, [u8]> {
        if is_entry(start) {
            let slow = self.slow.lock();
            let bound = slow.iter().filter(|gap| gap.has(start)).map(|gap| &gap.bound).max();
            return bound.map_or(start.into(), |bound| bound.clone().into());
        }
        if !is_followed(start) {
            return start.into();
        }
        let mut heads = self.ranges.lock();
        match over(&mut heads, start).filter(|head| start < head.bound.as_slice()) {
            Some(head) => head.bound.clone().into(),
            None => start.into(),
        }
    }

    /// The writer found nothing in `[start, first)`.
    pub(crate) fn found(&self, start: &[u8], first: &[u8]) {
        if !is_followed(start) {
            return;
        }
        let mut heads = self.ranges.lock();
        if let Some(head) = over(&mut heads, start)
            && start <= head.bound.as_slice()
            && head.bound.as_slice() < first
        {
            head.bound = head.end.as_slice().min(first).to_vec();
        }
    }

    /// The writer found nothing in `[start, first)` either, and it took long.
    pub(crate) fn found_slowly(&self, start: &[u8], first: &[u8]) {
        if !is_entry(start) {
            return;
        }
        let mut slow = self.slow.lock();
        match slow.iter_mut().find(|gap| gap.start.as_slice() == start) {
            Some(gap) => gap.bound = first.to_vec(),
            None => {
                if slow.len() == SLOW_MAX {
                    slow.pop_front();
                }
                slow.push_back(Gap { start: start.to_vec(), bound: first.to_vec() });
            }
        }
    }

    fn follow_entries(&self, writes: &[Write]) {
        let mut slow = self.slow.lock();
        if slow.is_empty() {
            return;
        }
        for write in writes {
            if let Write::Put { key, .. } = write
                && is_entry(key)
            {
                slow.iter_mut().filter(|gap| gap.has(key)).for_each(|gap| gap.bound.clone_from(key));
            }
        }
    }

    /// Follows what was written.
    pub(crate) fn follow(&self, writes: &[Write]) {
        self.follow_entries(writes);
        let is_dropped = |row_key: &[u8]| row_key.first() == Some(&family::DROPPED_INDEX);
        for write in writes {
            match write {
                Write::Put { key, .. } if is_followed(key) => {
                    if let Some(head) = over(&mut self.ranges.lock(), key) {
                        head.lower(key);
                    }
                }
                // From here on its rows are taken away from the first on.
                Write::Put { key, .. } if is_dropped(key) => {
                    if let Ok(id) = index::decode_dropped(key) {
                        self.ranges.lock().extend([Head::of(index::of_index(id))]);
                    }
                }
                Write::Delete { key } if is_dropped(key) => {
                    if let Ok(id) = index::decode_dropped(key) {
                        self.ranges.lock().remove(&index::of_index(id).0);
                    }
                }
                Write::Put { .. } | Write::Delete { .. } | Write::DeleteRange { .. } => {}
            }
        }
    }

    /// Rows were written that nobody follows.
    pub(crate) fn forget(&self) {
        for (start, head) in self.ranges.lock().iter_mut() {
            head.lower(start);
        }
        self.slow.lock().clear();
    }

    /// Raises all bounds to the first rows there are. What has time does this every now and then: where rows come and go and none is ever
    /// due, the writer does not look for the first for long, and has all the more to walk over when it does.
    pub(crate) fn refresh(&self, rocks: &DB) -> Result<(), StateFault> {
        let starts: Vec<Vec<u8>> = self.ranges.lock().keys().cloned().collect();
        for start in starts {
            let Some((bound, end, look)) = self.look(&start) else { continue };
            let mut rows = rocks.raw_iterator_opt(range_options(&bound, &end));
            rows.seek_to_first();
            rows.status().map_err(read_fault)?;
            let first = rows.key().map_or(end, <[u8]>::to_vec);
            self.seen(&start, look, first);
        }
        Ok(())
    }

    /// Somebody begins to look for the first row of a range.
    fn look(&self, start: &[u8]) -> Option<(Vec<u8>, Vec<u8>, u64)> {
        let mut heads = self.ranges.lock();
        let head = heads.get_mut(start)?;
        head.looks += 1;
        head.written = None;
        Some((head.bound.clone(), head.end.clone(), head.looks))
    }

    /// It was this one. What was found by an older look than the last is of no use: nobody knows what was written since it began.
    fn seen(&self, start: &[u8], look: u64, first: Vec<u8>) {
        let mut heads = self.ranges.lock();
        let Some(head) = heads.get_mut(start).filter(|head| head.looks == look) else { return };
        let first = head.written.take().map_or(first.clone(), |written| written.min(first));
        if head.bound < first {
            head.bound = first;
        }
    }
}

/// Whether there may be a bound over a row.
fn is_followed(row_key: &[u8]) -> bool {
    row_key.first().is_some_and(|first| TIMED.contains(first) || *first == family::INDEX)
}

/// From where on a collection may have an index that is being built; to look at all of them takes the longer the more there are.
#[derive(Debug, Default)]
pub(crate) struct Building(Mutex<NoneBefore>);

#[derive(Debug, Default)]
struct NoneBefore {
    row_key: Option<Vec<u8>>,
    /// Rows of collections that were written.
    written: u64,
}

impl Building {
    /// No collection before this row has one. The second is for [`Self::seen`], of what is looked at from now on.
    pub(crate) fn none_before(&self) -> (Option<Vec<u8>>, u64) {
        let known = self.0.lock();
        (known.row_key.clone(), known.written)
    }

    /// The writer found none before this row.
    pub(crate) fn found(&self, row_key: &[u8]) {
        self.0.lock().row_key = Some(row_key.to_vec());
    }

    /// Somebody found none before this row. It is of no use where a collection was written since.
    pub(crate) fn seen(&self, written: u64, row_key: &[u8]) {
        let mut known = self.0.lock();
        if known.written == written {
            known.row_key = Some(row_key.to_vec());
        }
    }

    /// Follows what was written.
    pub(crate) fn follow(&self, writes: &[Write]) {
        for write in writes {
            if let Write::Put { key, .. } = write
                && key.first() == Some(&family::COLLECTION)
            {
                let mut known = self.0.lock();
                known.written += 1;
                known.row_key.take_if(|before| *key < *before);
            }
        }
    }

    /// Rows were written that nobody follows.
    pub(crate) fn forget(&self) {
        let mut known = self.0.lock();
        known.written += 1;
        known.row_key = None;
    }
}

/// The range that a row stands in, where there is one.
fn over<'h>(heads: &'h mut BTreeMap<Vec<u8>, Head>, row_key: &[u8]) -> Option<&'h mut Head> {
    let up_to = (Bound::Unbounded, Bound::Included(row_key));
    let (_, head) = heads.range_mut::<[u8], _>(up_to).next_back()?;
    (row_key < head.end.as_slice()).then_some(head)
}

#[cfg(test)]
mod tests {
    use quorate_machine::keyspace::deadline;

    use super::*;

    fn put(clock: u64, name: &str) -> Write {
        Write::Put { key: deadline::row_key(clock, name.as_bytes()), value: Vec::new() }
    }

    fn heads() -> Heads {
        Heads::new(TIMED.into_iter().map(|family| Head::of(family_range(family))).collect())
    }

    #[test]
    fn a_bound_follows_what_the_writer_finds_and_what_it_writes_before_that() {
        let (heads, (start, end)) = (heads(), family_range(family::DEADLINE));
        assert_eq!(*heads.begin(&start), start);
        heads.found(&start, &deadline::row_key(70, b"b"));
        assert_eq!(*heads.begin(&start), deadline::row_key(70, b"b"));
        assert_eq!(*heads.begin(&deadline::row_key(80, b"")), deadline::row_key(80, b""), "it is beyond the bound");
        heads.follow(&[put(90, "c"), put(60, "a"), put(65, "a")]);
        assert_eq!(*heads.begin(&start), deadline::row_key(60, b"a"));
        heads.found(&deadline::row_key(65, b""), &deadline::row_key(90, b"c"));
        assert_eq!(*heads.begin(&start), deadline::row_key(60, b"a"), "nobody looked before 65");
        heads.found(&start, &end);
        assert_eq!(*heads.begin(&start), end);
        assert_eq!(*heads.begin(&[family::ENTRY]), [family::ENTRY], "other families have none");
        let lock = family_range(family::LOCK).0;
        assert_eq!(*heads.begin(&lock), lock);
    }

    #[test]
    fn who_looks_beside_the_writer_raises_a_bound_no_further_than_what_is_written_meanwhile() {
        let (heads, (start, end)) = (heads(), family_range(family::DEADLINE));
        let (bound, _, first_look) = heads.look(&start).unwrap();
        assert_eq!(bound, start);
        heads.follow(&[put(50, "b"), put(40, "a")]);
        heads.seen(&start, first_look, end.clone());
        assert_eq!(*heads.begin(&start), deadline::row_key(40, b"a"));

        let (_, _, older) = heads.look(&start).unwrap();
        heads.follow(&[put(45, "c")]);
        let (_, _, newer) = heads.look(&start).unwrap();
        heads.seen(&start, older, end.clone());
        assert_eq!(*heads.begin(&start), deadline::row_key(40, b"a"), "what was written since is forgotten");
        heads.seen(&start, newer, deadline::row_key(45, b"c"));
        assert_eq!(*heads.begin(&start), deadline::row_key(45, b"c"));
    }

    #[test]
    fn what_was_found_before_rows_were_loaded_is_forgotten() {
        let (heads, (start, end)) = (heads(), family_range(family::DEADLINE));
        heads.found(&start, &end);
        let (_, _, look) = heads.look(&start).unwrap();
        heads.forget();
        heads.seen(&start, look, end);
        assert_eq!(*heads.begin(&start), start);
    }

    #[test]
    fn what_is_known_of_collections_goes_where_one_before_is_written() {
        let building = Building::default();
        let put = |name: &str| {
            let key = [&[family::COLLECTION][..], name.as_bytes()].concat();
            building.follow(&[Write::Put { key, value: Vec::new() }]);
        };
        let (known, look) = building.none_before();
        assert_eq!(known, None);
        building.seen(look, b"`m");
        assert_eq!(building.none_before().0.as_deref(), Some(&b"`m"[..]));
        put("m");
        put("z");
        assert_eq!(building.none_before().0.as_deref(), Some(&b"`m"[..]), "none of them is before it");
        building.seen(look, b"`z");
        assert_eq!(building.none_before().0.as_deref(), Some(&b"`m"[..]), "collections were written since");
        put("a");
        assert_eq!(building.none_before().0, None);
        building.found(b"`m");
        building.forget();
        assert_eq!(building.none_before().0, None);
    }

    #[test]
    fn a_gap_of_entries_ends_where_one_is_written_into_it() {
        let heads = heads();
        let row_key = |name: &str| quorate_machine::keyspace::entry::row_key(name.as_bytes());
        let begin = |name: &str| heads.begin(&row_key(name)).into_owned();
        let put = |name: &str| heads.follow(&[Write::Put { key: row_key(name), value: Vec::new() }]);
        put("q/1");
        assert_eq!(begin("q/"), row_key("q/"));
        heads.found_slowly(&row_key("q/"), &row_key("q/5"));
        heads.found_slowly(&row_key("q/3"), &row_key("q/5"));
        assert_eq!((begin("q/"), begin("q/2"), begin("q/4")), (row_key("q/5"), row_key("q/5"), row_key("q/5")));
        assert_eq!((begin("p"), begin("q/6")), (row_key("p"), row_key("q/6")), "nothing is known of these");
        put("q/4");
        assert_eq!((begin("q/"), begin("q/3"), begin("q/45")), (row_key("q/4"), row_key("q/4"), row_key("q/45")));
        heads.found_slowly(&row_key("q/"), &row_key("q/7"));
        assert_eq!(begin("q/"), row_key("q/7"));
        (0..SLOW_MAX).for_each(|nth| heads.found_slowly(&row_key(&format!("r/{nth}")), &row_key("s")));
        assert_eq!(begin("q/"), row_key("q/"), "the oldest is forgotten");
        heads.forget();
        assert_eq!(begin("r/1"), row_key("r/1"));
    }

    #[test]
    fn an_index_has_a_bound_while_its_rows_are_taken_away() {
        let (heads, (start, end)) = (heads(), index::of_index(7));
        heads.found(&start, &end);
        assert_eq!(*heads.begin(&start), start);
        heads.follow(&[Write::Put { key: index::dropped_key(7), value: Vec::new() }]);
        heads.found(&start, &end);
        assert_eq!(*heads.begin(&start), end);
        heads.follow(&[Write::Delete { key: index::dropped_key(7) }]);
        assert_eq!(*heads.begin(&start), start);
    }
}
