//! Who waits for changes of which keys.
//!
//! Owns the register of all of them: long polls of one key, watches of a key, a prefix or a range. Never reads the state.
//! Nobody is woken for what they do not wait for, but for a few where the register is full, and nobody misses what they wait
//! for: each enters the register first, then looks, then waits; the writer writes first, then looks who is there.
//!
//! A place is one set of keys and those who wait for it. Whoever waits is [armed](Ticket::arm); the first change disarms
//! them and says at which revision it was. So a change costs nothing for who is awake already, and who was asleep knows that
//! nothing before that revision concerns them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use parking_lot::{Mutex, RwLock};
use quorate_machine::keyspace::changes::KeyChange;
use quorate_machine::query::WatchRange;
use quorate_machine::types::{Key, Revision};
use xxhash_rust::xxh3::xxh3_64;

/// Parts of the register of single keys, so that waits on different keys rarely meet.
const SHARDS: usize = 16;

/// Most bytes of the keys in the register. Whoever comes later is woken by every change.
const KEY_BYTES_MAX: usize = 64 << 20;

/// Most different ranges that are no prefix: each change is compared with all of them. Whoever comes with another is woken by
/// every change.
const SPANS_MAX: usize = 256;

/// The news of a slot that has none.
const NOTHING: Revision = Revision::MAX;

/// The place in the list of a slot that is not armed.
const NOWHERE: usize = usize::MAX;

/// The prefix of the place of those who are woken by every change.
const EVERYTHING: &[u8] = b"";

/// Everybody who waits.
pub(crate) struct Register {
    keys: [Mutex<BTreeMap<Key, Member>>; SHARDS],
    prefixes: RwLock<BTreeMap<Vec<u8>, Member>>,
    spans: RwLock<Vec<Span>>,
    /// Tickets out.
    tickets: AtomicUsize,
    /// Those of them that are not for a single key.
    wide: AtomicUsize,
    key_bytes: AtomicUsize,
}

/// A place and how many have a ticket for it.
#[derive(Default)]
struct Member {
    place: Arc<Waiters>,
    tickets: usize,
}

/// A range that is no prefix.
struct Span {
    start: Vec<u8>,
    end: Option<Vec<u8>>,
    member: Member,
}

/// Those who wait for one set of keys.
#[derive(Default)]
struct Waiters {
    armed: Mutex<Vec<Arc<Slot>>>,
}

/// One who waits.
struct Slot {
    /// The revision of the first change since it was armed.
    news: AtomicU64,
    /// Where it stands in the list of its place. Changed under the lock of that list alone.
    at: AtomicUsize,
    waker: AtomicWaker,
}

/// Those who have news and are still asleep.
#[derive(Default)]
#[must_use = "somebody sleeps on until woken"]
pub(crate) struct Noted(Vec<Arc<Slot>>);

impl Noted {
    pub(crate) fn wake(self) {
        for slot in self.0 {
            slot.waker.wake();
        }
    }
}

/// A place in the register, left when dropped.
pub struct Ticket {
    register: Arc<Register>,
    /// Where it is registered, which is a wider range than asked for where the register was full.
    range: WatchRange,
    place: Arc<Waiters>,
    slot: Arc<Slot>,
}

impl Member {
    fn join(&mut self) -> Arc<Waiters> {
        self.tickets += 1;
        Arc::clone(&self.place)
    }

    /// Whether nobody is left.
    fn leave(&mut self) -> bool {
        self.tickets -= 1;
        self.tickets == 0
    }
}

impl Waiters {
    /// Notes a change at `revision` for those who are armed, or that they may have missed one from there on.
    fn note(&self, revision: Revision, noted: &mut Noted) {
        let mut armed = self.armed.lock();
        for slot in armed.iter() {
            slot.at.store(NOWHERE, Ordering::Relaxed);
            slot.news.store(revision, Ordering::Release);
        }
        noted.0.append(&mut armed);
    }

    fn arm(&self, slot: &Arc<Slot>) {
        let mut armed = self.armed.lock();
        if slot.at.load(Ordering::Relaxed) == NOWHERE {
            slot.news.store(NOTHING, Ordering::Relaxed);
            slot.at.store(armed.len(), Ordering::Relaxed);
            armed.push(Arc::clone(slot));
        }
    }

    fn disarm(&self, slot: &Slot) {
        let mut armed = self.armed.lock();
        let at = slot.at.swap(NOWHERE, Ordering::Relaxed);
        if at != NOWHERE {
            armed.swap_remove(at);
            if let Some(moved) = armed.get(at) {
                moved.at.store(at, Ordering::Relaxed);
            }
        }
    }
}

impl Register {
    pub(crate) fn new() -> Self {
        Self {
            keys: std::array::from_fn(|_| Mutex::default()),
            prefixes: RwLock::default(),
            spans: RwLock::default(),
            tickets: AtomicUsize::new(0),
            wide: AtomicUsize::new(0),
            key_bytes: AtomicUsize::new(0),
        }
    }

    /// Enters the register. Call [`Ticket::arm`], then look at the state, then wait for [`Ticket::poll_news`].
    pub(crate) fn join(self: &Arc<Self>, range: WatchRange) -> Ticket {
        self.tickets.fetch_add(1, Ordering::SeqCst);
        let bytes = range.key_bytes();
        let fits = self.key_bytes.fetch_add(bytes, Ordering::SeqCst) + bytes <= KEY_BYTES_MAX;
        let range = if fits { range } else { WatchRange::Prefix(EVERYTHING.to_vec()) };
        self.key_bytes.fetch_sub(bytes - range.key_bytes(), Ordering::SeqCst);
        let (range, place) = self.enter(range);
        if !matches!(range, WatchRange::Key(_)) {
            self.wide.fetch_add(1, Ordering::SeqCst);
        }
        let slot =
            Arc::new(Slot { news: AtomicU64::new(NOTHING), at: AtomicUsize::new(NOWHERE), waker: AtomicWaker::new() });
        Ticket { register: Arc::clone(self), range, place, slot }
    }

    fn enter(&self, range: WatchRange) -> (WatchRange, Arc<Waiters>) {
        match range {
            WatchRange::Key(key) => {
                let place = self.shard(&key).lock().entry(key.clone()).or_default().join();
                (WatchRange::Key(key), place)
            }
            WatchRange::Prefix(prefix) => {
                let place = self.prefixes.write().entry(prefix.clone()).or_default().join();
                (WatchRange::Prefix(prefix), place)
            }
            WatchRange::Span { start, end } => {
                let mut spans = self.spans.write();
                if let Some(known) = spans.iter_mut().find(|span| span.is(&start, end.as_deref())) {
                    return (WatchRange::Span { start, end }, known.member.join());
                }
                if spans.len() >= SPANS_MAX {
                    drop(spans);
                    let bytes = start.len() + end.as_ref().map_or(0, Vec::len);
                    self.key_bytes.fetch_sub(bytes, Ordering::SeqCst);
                    return self.enter(WatchRange::Prefix(EVERYTHING.to_vec()));
                }
                let mut member = Member::default();
                let place = member.join();
                spans.push(Span { start: start.clone(), end: end.clone(), member });
                (WatchRange::Span { start, end }, place)
            }
        }
    }

    fn leave(&self, range: &WatchRange) {
        match range {
            WatchRange::Key(key) => {
                let mut keys = self.shard(key).lock();
                if keys.get_mut(key).expect("a ticket keeps its key in the register").leave() {
                    keys.remove(key);
                }
            }
            WatchRange::Prefix(prefix) => {
                let mut prefixes = self.prefixes.write();
                if prefixes.get_mut(prefix).expect("a ticket keeps its prefix in the register").leave() {
                    prefixes.remove(prefix);
                }
            }
            WatchRange::Span { start, end } => {
                let mut spans = self.spans.write();
                let at = spans.iter().position(|span| span.is(start, end.as_deref()));
                let at = at.expect("a ticket keeps its range in the register");
                if spans[at].member.leave() {
                    spans.swap_remove(at);
                }
            }
        }
    }

    /// Notes the changes for those who wait for one of them. They must be visible to reads already.
    pub(crate) fn note(&self, changes: &[KeyChange]) -> Noted {
        let mut noted = Noted::default();
        fence(Ordering::SeqCst);
        if changes.is_empty() || self.tickets.load(Ordering::SeqCst) == 0 {
            return noted;
        }
        let is_wide = self.wide.load(Ordering::SeqCst) > 0;
        for change in changes {
            self.note_key(&change.key, change.revision, &mut noted);
            match change.value {
                Some(_) if is_wide => self.note_wide(change.key.as_bytes(), change.revision, &mut noted),
                // What changes no value is for long polls: of one key, or of any where the register was full.
                None if is_wide => self.note_everything(change.revision, &mut noted),
                _ => {}
            }
        }
        noted
    }

    fn note_everything(&self, revision: Revision, noted: &mut Noted) {
        if let Some(everything) = self.prefixes.read().get(EVERYTHING) {
            everything.place.note(revision, noted);
        }
    }

    /// Notes for those who wait for one of these names that it may have changed at any revision from `since` on.
    pub(crate) fn note_names<'k>(&self, names: impl IntoIterator<Item = &'k Key>, since: Revision) -> Noted {
        let mut noted = Noted::default();
        fence(Ordering::SeqCst);
        let mut names = names.into_iter().peekable();
        if names.peek().is_none() || self.tickets.load(Ordering::SeqCst) == 0 {
            return noted;
        }
        for name in names {
            self.note_key(name, since, &mut noted);
        }
        // Who found the register full may wait for any name.
        self.note_everything(since, &mut noted);
        noted
    }

    /// Notes for everybody that the whole state was replaced, and every revision from `since` on may have been missed.
    pub(crate) fn note_all(&self, since: Revision) -> Noted {
        let mut noted = Noted::default();
        fence(Ordering::SeqCst);
        for shard in &self.keys {
            shard.lock().values().for_each(|member| member.place.note(since, &mut noted));
        }
        self.prefixes.read().values().for_each(|member| member.place.note(since, &mut noted));
        self.spans.read().iter().for_each(|span| span.member.place.note(since, &mut noted));
        noted
    }

    /// Tickets out.
    pub(crate) fn len(&self) -> usize {
        self.tickets.load(Ordering::Relaxed)
    }

    fn note_key(&self, key: &Key, revision: Revision, noted: &mut Noted) {
        if let Some(member) = self.shard(key).lock().get(key) {
            member.place.note(revision, noted);
        }
    }

    /// Finds the prefixes of the key from the longest to the shortest. What sorts last up to a bound is either one of
    /// them, or shares fewer bytes with the key than any that could follow, and so bounds the next step.
    fn note_wide(&self, key: &[u8], revision: Revision, noted: &mut Noted) {
        let prefixes = self.prefixes.read();
        let mut bound = key;
        loop {
            let up_to = (Bound::Unbounded, Bound::Included(bound));
            let Some((prefix, member)) = prefixes.range::<[u8], _>(up_to).next_back() else { break };
            let same = prefix.iter().zip(key).take_while(|(one, other)| one == other).count();
            let next = if same == prefix.len() {
                member.place.note(revision, noted);
                same.checked_sub(1)
            } else {
                Some(same)
            };
            let Some(next) = next else { break };
            bound = &key[..next];
        }
        drop(prefixes);
        for span in self.spans.read().iter().filter(|span| span.contains(key)) {
            span.member.place.note(revision, noted);
        }
    }

    fn shard(&self, key: &Key) -> &Mutex<BTreeMap<Key, Member>> {
        &self.keys[xxh3_64(key.as_bytes()) as usize % SHARDS]
    }
}

impl Span {
    fn is(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        self.start == start && self.end.as_deref() == end
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_ref().is_none_or(|end| key < end.as_slice())
    }
}

impl Ticket {
    /// From now on the first change is noticed. Forgets the news there were.
    pub fn arm(&self) {
        self.place.arm(&self.slot);
        // Pairs with the fence in `Register::note`: either the writer sees this ticket or the reads that follow see its write.
        fence(Ordering::SeqCst);
    }

    /// The revision of the first change since it was armed: nothing before it concerns this ticket.
    pub fn news(&self) -> Option<Revision> {
        Some(self.slot.news.load(Ordering::Acquire)).filter(|news| *news != NOTHING)
    }

    /// Waits for that.
    pub fn poll_news(&self, cx: &mut Context<'_>) -> Poll<Revision> {
        self.slot.waker.register(cx.waker());
        self.news().map_or(Poll::Pending, Poll::Ready)
    }

    /// Waits for that.
    pub async fn changed(&self) -> Revision {
        std::future::poll_fn(|cx| self.poll_news(cx)).await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.place.disarm(&self.slot);
        self.register.leave(&self.range);
        self.register.key_bytes.fetch_sub(self.range.key_bytes(), Ordering::SeqCst);
        if !matches!(self.range, WatchRange::Key(_)) {
            self.register.wide.fetch_sub(1, Ordering::SeqCst);
        }
        self.register.tickets.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use quorate_machine::keyspace::changes::{Cause, ValueChange};

    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn change(text: &str, revision: Revision) -> KeyChange {
        let (cause, locks, previous) = (Cause::Written, false, None);
        let value = ValueChange { index: 0, of: 1, cause, locks, previous, clock: 0, wall: 0 };
        KeyChange { key: key(text), revision, value: Some(value) }
    }

    fn ranges() -> Vec<WatchRange> {
        let mut ranges: Vec<_> = ["", "a", "a/", "a/b", "a/b/", "a/b/c", "a/c", "b", "a/b/c/d/e", "a\u{ff}"]
            .into_iter()
            .map(|prefix| WatchRange::Prefix(prefix.into()))
            .collect();
        ranges.extend(["a", "a/b/c", "b"].map(|name| WatchRange::Key(key(name))));
        ranges.push(WatchRange::span(b"a/b".to_vec(), Some(b"a/b/cc".to_vec())));
        ranges.push(WatchRange::span(b"b".to_vec(), None));
        ranges
    }

    #[test]
    fn a_change_wakes_exactly_those_whose_range_has_its_key() {
        let register = Arc::new(Register::new());
        let tickets: Vec<_> = ranges().into_iter().map(|range| (register.join(range.clone()), range)).collect();
        for (revision, name) in ["a/b/c/d", "a/b/c", "a", "b/x", "c", "a/", "a/b0", "\u{1}"].into_iter().enumerate() {
            tickets.iter().for_each(|(ticket, _)| ticket.arm());
            register.note(&[change(name, revision as u64 + 2)]).wake();
            for (ticket, range) in &tickets {
                let expected = range.contains(name.as_bytes()).then_some(revision as u64 + 2);
                assert_eq!(ticket.news(), expected, "{name} for {range:?}");
            }
        }
    }

    #[test]
    fn news_are_of_the_first_change_since_it_was_armed_and_stay_until_then() {
        let register = Arc::new(Register::new());
        let ticket = register.join(WatchRange::Prefix(b"a".to_vec()));
        register.note(&[change("a", 2)]).wake();
        assert_eq!(ticket.news(), None, "it was not armed");
        ticket.arm();
        ticket.arm();
        register.note(&[change("b", 3), change("a1", 4), change("a2", 5)]).wake();
        register.note(&[change("a3", 6)]).wake();
        assert_eq!(ticket.news(), Some(4));
        ticket.arm();
        assert_eq!(ticket.news(), None);
        register.note_all(7).wake();
        assert_eq!(ticket.news(), Some(7));
    }

    #[test]
    fn whoever_leaves_leaves_nothing_and_disturbs_nobody() {
        let register = Arc::new(Register::new());
        let mut tickets: Vec<_> = (0..5).map(|_| register.join(WatchRange::Prefix(b"a".to_vec()))).collect();
        tickets.iter().for_each(Ticket::arm);
        drop(tickets.remove(1));
        drop(tickets.remove(0));
        register.note(&[change("a", 2)]).wake();
        assert!(tickets.iter().all(|ticket| ticket.news() == Some(2)));
        drop(tickets);
        for range in ranges() {
            register.join(range).arm();
        }
        assert_eq!(register.len(), 0);
        assert_eq!((register.wide.load(Ordering::SeqCst), register.key_bytes.load(Ordering::SeqCst)), (0, 0));
        assert!(register.prefixes.read().is_empty() && register.spans.read().is_empty());
        assert!(register.keys.iter().all(|shard| shard.lock().is_empty()));
    }

    #[test]
    fn whoever_finds_the_register_full_is_woken_by_every_change_and_name() {
        let register = Arc::new(Register::new());
        let span = |n: usize| WatchRange::span(format!("{n:04}").into_bytes(), Some(b"a".to_vec()));
        let tickets: Vec<_> = (0..SPANS_MAX + 1).map(|n| register.join(span(n))).collect();
        tickets.iter().for_each(Ticket::arm);
        register.note(&[change("z", 2)]).wake();
        let woken: Vec<_> = tickets.iter().map(|ticket| ticket.news().is_some()).collect();
        assert_eq!(woken.iter().filter(|woken| **woken).count(), 1);
        assert!(woken[SPANS_MAX]);
        tickets[SPANS_MAX].arm();
        register.note_names(&[key("\0name")], 3).wake();
        assert_eq!(tickets[SPANS_MAX].news(), Some(3));
        drop(tickets);
        assert_eq!(register.key_bytes.load(Ordering::SeqCst), 0);
    }
}
