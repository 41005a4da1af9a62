//! Current entries that were written lately, in memory.
//!
//! Owns copies of rows and their bound. Never the truth: a row that is not here is asked of RocksDB, and whether a copy
//! belongs to a reader's position is for [`super::shared`] to know. Only the writer of the state changes anything here.
//!
//! Each row key has one place, which it may share with others: the one written last has it. That needs no order of use
//! and no list, so a read costs one lock that nearly nobody else wants and a comparison.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use quorate_machine::keyspace::family;
use quorate_machine::machine::Write;
use xxhash_rust::xxh3::xxh3_64;

/// Places; a power of two. Empty ones take 1 MiB.
const PLACES: usize = 1 << 16;

/// Longest row kept, with its key. Of longer ones the copy would cost more than the search.
const ROW_BYTES_MAX: usize = 2 << 10;

const _: () = assert!(ROW_BYTES_MAX <= u16::MAX as usize);

/// Most bytes of all rows kept.
const BYTES_MAX: usize = 24 << 20;

/// The copies.
pub(crate) struct RecentEntries {
    places: Box<[Mutex<Option<RecentEntry>>]>,
    /// Of all copies. Changed by the writer alone.
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// The copy of one row: length of the row key (u16 LE), row key, row. One allocation, since each step from one to the
/// next is a wait for memory.
#[derive(Clone)]
pub(crate) struct RecentEntry(Arc<[u8]>);

impl RecentEntry {
    fn new(row_key: &[u8], row: &[u8]) -> Self {
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, Self::length(row_key, row)).collect();
        let unshared = Arc::get_mut(&mut bytes).expect("nobody else has a copy just made");
        Self::fill(unshared, row_key, row);
        Self(bytes)
    }

    /// Takes another row; false where it has another length, or somebody still reads this one.
    fn replace(&mut self, row_key: &[u8], row: &[u8]) -> bool {
        match Arc::get_mut(&mut self.0).filter(|bytes| bytes.len() == Self::length(row_key, row)) {
            Some(bytes) => Self::fill(bytes, row_key, row),
            None => return false,
        }
        true
    }

    fn length(row_key: &[u8], row: &[u8]) -> usize {
        2 + row_key.len() + row.len()
    }

    fn fill(bytes: &mut [u8], row_key: &[u8], row: &[u8]) {
        let key_length = u16::try_from(row_key.len()).expect("longer rows than ROW_BYTES_MAX are not kept");
        let (head, rest) = bytes.split_at_mut(2);
        let (key, value) = rest.split_at_mut(row_key.len());
        head.copy_from_slice(&key_length.to_le_bytes());
        key.copy_from_slice(row_key);
        value.copy_from_slice(row);
    }

    fn key_end(&self) -> usize {
        2 + usize::from(u16::from_le_bytes([self.0[0], self.0[1]]))
    }

    fn row_key(&self) -> &[u8] {
        &self.0[2..self.key_end()]
    }

    /// The row.
    pub(crate) fn row(&self) -> &[u8] {
        &self.0[self.key_end()..]
    }
}

impl RecentEntries {
    pub(crate) fn new() -> Self {
        Self::bounded(PLACES, BYTES_MAX)
    }

    fn bounded(places: usize, bytes_max: usize) -> Self {
        let places = std::iter::repeat_with(Mutex::default).take(places).collect();
        Self { places, bytes: AtomicUsize::new(0), bytes_max }
    }

    /// The copy of a row, if there is one.
    pub(crate) fn get(&self, row_key: &[u8]) -> Option<RecentEntry> {
        let place = self.place(row_key).lock();
        place.as_ref().filter(|entry| entry.row_key() == row_key).cloned()
    }

    /// Takes a row as it is now.
    fn put(&self, row_key: &[u8], row: &[u8]) {
        let mut place = self.place(row_key).lock();
        if place.as_mut().is_some_and(|entry| entry.replace(row_key, row)) {
            return;
        }
        let others = self.bytes.load(Ordering::Relaxed) - place.as_ref().map_or(0, |entry| entry.0.len());
        let length = RecentEntry::length(row_key, row);
        let fits = length <= ROW_BYTES_MAX && others + length <= self.bytes_max;
        *place = fits.then(|| RecentEntry::new(row_key, row));
        self.bytes.store(others + if fits { length } else { 0 }, Ordering::Relaxed);
    }

    /// Forgets a row that is no longer there.
    fn remove(&self, row_key: &[u8]) {
        let mut place = self.place(row_key).lock();
        if let Some(entry) = place.take_if(|entry| entry.row_key() == row_key) {
            self.bytes.fetch_sub(entry.0.len(), Ordering::Relaxed);
        }
    }

    /// Follows what is written to the database.
    pub(crate) fn follow(&self, writes: &[Write]) {
        for write in writes {
            match write {
                Write::Put { key, value } if is_entry(key) => self.put(key, value),
                Write::Delete { key } if is_entry(key) => self.remove(key),
                Write::Put { .. } | Write::Delete { .. } => {}
                Write::DeleteRange { start, end } => assert!(
                    start.first() > Some(&family::ENTRY) || end.as_slice() <= [family::ENTRY].as_slice(),
                    "entries dropped unread, from {} to {}",
                    start.escape_ascii(),
                    end.escape_ascii()
                ),
            }
        }
    }

    fn place(&self, row_key: &[u8]) -> &Mutex<Option<RecentEntry>> {
        &self.places[xxh3_64(row_key) as usize & (self.places.len() - 1)]
    }
}

/// Whether a row is one of a current entry.
pub(crate) fn is_entry(row_key: &[u8]) -> bool {
    row_key.first() == Some(&family::ENTRY)
}

#[cfg(test)]
mod tests {
    use quorate_machine::keyspace::entry;

    use super::*;

    fn row_of(recent: &RecentEntries, row_key: &[u8]) -> Option<Vec<u8>> {
        recent.get(row_key).map(|entry| entry.row().to_vec())
    }

    #[test]
    fn a_copy_follows_the_writes_of_its_own_key_only() {
        let recent = RecentEntries::bounded(1, 1 << 20);
        let (a, b) = (entry::row_key(b"a"), entry::row_key(b"b"));
        let put = |key: &[u8], value: &str| Write::Put { key: key.to_vec(), value: value.into() };
        recent.follow(&[put(&a, "one"), put(&[family::HISTORY, b'a'], "old")]);
        assert_eq!(row_of(&recent, &a), Some(b"one".to_vec()));
        let held = recent.get(&a).unwrap();
        recent.follow(&[put(&a, "two")]);
        assert_eq!((held.row(), row_of(&recent, &a)), (&b"one"[..], Some(b"two".to_vec())));
        recent.follow(&[put(&b, "other")]);
        assert_eq!((row_of(&recent, &a), row_of(&recent, &b)), (None, Some(b"other".to_vec())));
        recent.follow(&[Write::Delete { key: a }]);
        assert_eq!(row_of(&recent, &b), Some(b"other".to_vec()), "the place was another key's");
        recent.follow(&[Write::Delete { key: b.clone() }]);
        assert_eq!((row_of(&recent, &b), recent.bytes.load(Ordering::Relaxed)), (None, 0));
    }

    #[test]
    fn copies_stay_within_their_bytes_and_a_row_too_long_leaves_no_stale_one() {
        let recent = RecentEntries::bounded(1 << 10, 10_000);
        for n in 0..1_000u32 {
            recent.put(&entry::row_key(&n.to_be_bytes()), &[7; 100]);
            assert!(recent.bytes.load(Ordering::Relaxed) <= 10_000);
        }
        let kept = recent.places.iter().filter_map(|place| place.lock().as_ref().map(|entry| entry.0.len()));
        let (count, bytes) = kept.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
        assert_eq!(bytes, recent.bytes.load(Ordering::Relaxed));
        assert!(count >= 50, "only {count} rows fit");
        let key = entry::row_key(b"grows");
        let recent = RecentEntries::bounded(4, 10_000);
        recent.put(&key, b"short");
        recent.put(&key, &[1; ROW_BYTES_MAX]);
        assert_eq!((row_of(&recent, &key), recent.bytes.load(Ordering::Relaxed)), (None, 0));
    }
}
