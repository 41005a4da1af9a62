//! Steps of transactions over ranges of keys, and comparisons with what is in a range.
//!
//! Owns their form in the log. What they do is `machine/ranges`'s; the branches that
//! comparisons decide stand with the steps in `many`.

use std::cmp::Ordering;

use bincode::de::Decoder;
use bincode::error::DecodeError;
use bincode::{Decode, Encode, impl_borrow_decode};

use super::{Entry, EntryMeta, Key, Revision, Shown};
use crate::limits::KEY_BYTES_MAX;

/// A range of keys. Its bounds may be any bytes; a longer one than a key can be stands for the next that is no longer than a key and one
/// byte, which has the same keys on either side.
///
/// Invariant: no bound is longer than that, and [`Self::key`] is a [`Key`], because the only constructor sees to it.
#[derive(Debug, Clone, PartialEq, Eq, Encode)]
pub struct KeyRange {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
}

impl KeyRange {
    /// From a first key, inclusive, which is empty for the very first, to an end, exclusive, or without one.
    pub fn new(start: Vec<u8>, end: Option<Vec<u8>>) -> Self {
        Self { start: bound(start), end: end.map(bound) }
    }

    /// One key alone. Where these bytes are none, nothing is in it.
    pub fn of_key(key: &[u8]) -> Self {
        Self::new(key.to_vec(), Some([key, &[0]].concat()))
    }

    /// First key, inclusive; empty for the very first.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// End, exclusive; `None` for no end.
    pub fn end(&self) -> Option<&[u8]> {
        self.end.as_deref()
    }

    /// The key, where it is one alone.
    pub fn key(&self) -> Option<&[u8]> {
        let end = self.end.as_ref()?.strip_suffix(&[0])?;
        (end == self.start && !end.is_empty()).then_some(end)
    }

    /// Whether a key is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_ref().is_none_or(|end| key < end.as_slice())
    }
}

/// The shortest bytes that divide all keys as these do. No key is longer than [`KEY_BYTES_MAX`], so what follows that many bytes tells
/// only that the key of just these is before.
fn bound(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > KEY_BYTES_MAX {
        bytes.truncate(KEY_BYTES_MAX);
        bytes.push(0);
    }
    bytes
}

impl<Context> Decode<Context> for KeyRange {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Ok(Self::new(Decode::decode(decoder)?, Decode::decode(decoder)?))
    }
}

impl_borrow_decode!(KeyRange);

/// What every entry of a range is compared with. Where there is none, values compare false, and all else as of an entry whose numbers
/// are 0.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Comparison {
    /// The entries.
    pub range: KeyRange,
    /// How what is there has to stand to `with`.
    pub operator: ComparisonOperator,
    /// What of the entries, and with what.
    pub with: Compared,
}

/// How two things have to stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ComparisonOperator {
    /// The same.
    Equal,
    /// Not the same.
    NotEqual,
    /// What is there is greater.
    Greater,
    /// What is there is less.
    Less,
}

impl ComparisonOperator {
    /// Whether what is there stands so to what is given.
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Greater => ordering.is_gt(),
            Self::Less => ordering.is_lt(),
        }
    }
}

/// A property of an entry, and what it is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Compared {
    /// Changes since it was created.
    Version(i64),
    /// Revision at which it was created.
    CreateRevision(i64),
    /// Revision of its last change.
    ModRevision(i64),
    /// The session that it goes with, as [`SessionId::lease`](super::SessionId::lease) has it; 0 for none.
    Lease(i64),
    /// The bytes of its value.
    Value(Vec<u8>),
}

impl Compared {
    /// How an entry stands to it; `None` where there is no entry, and it is about a value.
    pub fn ordering(&self, entry: Option<(&EntryMeta, &[u8])>) -> Option<Ordering> {
        let number = |of: fn(&EntryMeta) -> u64| entry.map_or(0, |(meta, _)| of(meta));
        // Revisions are far from the sign bit.
        let against = |actual: u64, wanted: &i64| i128::from(actual).cmp(&i128::from(*wanted));
        Some(match self {
            Self::Version(wanted) => against(number(|meta| meta.version), wanted),
            Self::CreateRevision(wanted) => against(number(|meta| meta.create_revision), wanted),
            Self::ModRevision(wanted) => against(number(|meta| meta.mod_revision), wanted),
            Self::Lease(wanted) => {
                against(number(|meta| meta.session.map_or(0, |id| id.lease().unsigned_abs())), wanted)
            }
            Self::Value(wanted) => entry?.1.cmp(wanted.as_slice()),
        })
    }
}

/// Reads the entries of a range.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ListStep {
    /// The keys.
    pub range: KeyRange,
    /// Most entries given, the first in order; 0 for all.
    pub limit: u64,
    /// In which order.
    pub order: ListOrder,
    /// Which of them.
    pub filter: RevisionFilter,
    /// What is given of each.
    pub shown: ListShown,
    /// The revision of the past at which it is read, which is done beside the transaction since the past does not change: then the step
    /// gives nothing, and where that revision cannot be read before the transaction, the whole transaction is rejected.
    pub at: Option<Revision>,
}

impl ListStep {
    /// Most entries given.
    pub fn limit(&self) -> usize {
        usize::try_from(self.limit).ok().filter(|limit| *limit > 0).unwrap_or(usize::MAX)
    }

    /// What is given of the entries that the range holds, found in order of key, and whether the limit left some out.
    pub fn select(&self, mut found: Vec<(Key, Entry)>) -> (Vec<(Key, Entry)>, bool) {
        if self.shown == ListShown::Count {
            return (Vec::new(), false);
        }
        found.retain(|(_, entry)| self.filter.passes(&entry.meta));
        if self.order != ListOrder::BY_KEY {
            found.sort_by(|one, other| self.order.compare(one, other));
        }
        let more = found.len() > self.limit();
        found.truncate(self.limit());
        if self.shown == ListShown::Keys {
            found.iter_mut().for_each(|(_, entry)| entry.value.data.clear());
        }
        (found, more)
    }
}

/// What a listing gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ListShown {
    /// Entries.
    Entries,
    /// Entries without their values.
    Keys,
    /// How many there are.
    Count,
}

/// An order of entries; equal ones stay in order of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ListOrder {
    /// By what.
    pub by: ListOrderBy,
    /// The greatest first.
    pub descending: bool,
}

/// What entries are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum ListOrderBy {
    /// The key.
    Key,
    /// Changes since creation.
    Version,
    /// Revision of creation.
    CreateRevision,
    /// Revision of the last change.
    ModRevision,
    /// The bytes of the value.
    Value,
}

impl ListOrder {
    /// In order of key, which is the one in which entries are found.
    pub const BY_KEY: Self = Self { by: ListOrderBy::Key, descending: false };

    /// How two entries stand to each other in this order.
    fn compare(self, (one_key, one): &(Key, Entry), (other_key, other): &(Key, Entry)) -> Ordering {
        let ordering = match self.by {
            ListOrderBy::Key => one_key.cmp(other_key),
            ListOrderBy::Version => one.meta.version.cmp(&other.meta.version),
            ListOrderBy::CreateRevision => one.meta.create_revision.cmp(&other.meta.create_revision),
            ListOrderBy::ModRevision => one.meta.mod_revision.cmp(&other.meta.mod_revision),
            ListOrderBy::Value => one.value.data.cmp(&other.value.data),
        };
        if self.descending { ordering.reverse() } else { ordering }
    }
}

/// Bounds of revisions, both inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct RevisionFilter {
    /// Lowest revision of the last change.
    pub min_mod: u64,
    /// Highest revision of the last change.
    pub max_mod: u64,
    /// Lowest revision of creation.
    pub min_create: u64,
    /// Highest revision of creation.
    pub max_create: u64,
}

impl RevisionFilter {
    /// Every entry.
    pub const ALL: Self = Self { min_mod: 0, max_mod: u64::MAX, min_create: 0, max_create: u64::MAX };

    /// Whether an entry is within the bounds.
    pub fn passes(&self, meta: &EntryMeta) -> bool {
        (self.min_mod..=self.max_mod).contains(&meta.mod_revision)
            && (self.min_create..=self.max_create).contains(&meta.create_revision)
    }
}

/// Removes the entries of a range. A lock on one of them rejects the step.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RemoveStep {
    /// The keys.
    pub range: KeyRange,
    /// Whether the reply carries what was removed.
    pub return_previous: bool,
}

/// What a [`ListStep`] found.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Listed {
    /// The entries, in order.
    pub entries: Vec<(Key, Shown)>,
    /// How many the range holds, whatever the filter and the limit.
    pub count: u64,
    /// Whether the limit left some out.
    pub more: bool,
    /// Whether the entries are missing because they were too long to be kept under the request id: this answers a retry. The
    /// transaction is done; another read shows the entries.
    pub left_out: bool,
}

/// What a [`RemoveStep`] removed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Removed {
    /// How many.
    pub count: u64,
    /// The entries as they were, in order of key, where they were asked for.
    pub entries: Vec<(Key, Shown)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;

    fn key_of(length: usize) -> Vec<u8> {
        vec![b'k'; length]
    }

    #[test]
    fn a_range_of_one_key_is_of_a_key_or_holds_nothing() {
        let longest = key_of(KEY_BYTES_MAX);
        assert_eq!(KeyRange::of_key(&longest).key(), Some(longest.as_slice()));
        assert!(KeyRange::of_key(&longest).contains(&longest));
        for none in
            [Vec::new(), key_of(KEY_BYTES_MAX + 1), key_of(2 * KEY_BYTES_MAX), [longest.as_slice(), &[0]].concat()]
        {
            let range = KeyRange::of_key(&none);
            assert_eq!(range.key(), None, "of {} bytes", none.len());
            assert!(!range.contains(&longest) && range.start().len() <= KEY_BYTES_MAX + 1);
        }
    }

    #[test]
    fn a_bound_longer_than_a_key_divides_the_keys_as_it_did() {
        let longest = key_of(KEY_BYTES_MAX);
        let around = [b"a".to_vec(), key_of(7), longest.clone(), [&longest[1..], b"l"].concat(), b"l".to_vec()];
        for tail in [&[0][..], b"a", b"k", b"z", &[0xFF; 9]] {
            let long = [longest.as_slice(), tail].concat();
            let (from, up_to) = (KeyRange::new(long.clone(), None), KeyRange::new(Vec::new(), Some(long.clone())));
            for key in &around {
                assert_eq!((from.contains(key), up_to.contains(key)), (*key >= long, *key < long));
            }
            assert!(from.start().len() <= KEY_BYTES_MAX + 1 && up_to.end().unwrap().len() <= KEY_BYTES_MAX + 1);
        }
    }

    #[test]
    fn whatever_is_decoded_is_within_its_bounds() {
        let long = (key_of(9_000), Some([key_of(9_000), vec![0]].concat()));
        let range: KeyRange = codec::decode(&codec::encode(&long)).unwrap();
        assert_eq!(range, KeyRange::of_key(&long.0));
        assert_eq!(codec::decode::<KeyRange>(&codec::encode(&range)).unwrap(), range);
    }
}
