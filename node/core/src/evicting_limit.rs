//! How many connections there may be, of one owner and of all, and which one is evicted for another.
//!
//! Owns the counting. When all permits are taken, a new connection evicts the oldest one of the largest crowd, among those that have shown
//! nothing: a crowd that comes in turn evicts its own, and a peer that does in time what is asked for is through before its turn comes. The
//! code that serves a connection says what it has shown, see [`Standing`]. Never looks at a connection.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// How much a connection has shown of itself: the more, the later it is evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Standing {
    /// Nothing. The oldest one of the largest crowd goes: it had the most time to show something.
    Stranger,
    /// A request that was answered, where nobody says who they are. It goes where its owner has more than the one that comes would have,
    /// and only where there is no stranger that can go.
    Served,
    /// The identity of its peer. It stays, among as many of one person as one owner may have.
    Known,
}

/// How long nothing was at work on a connection.
pub trait Idle: Send + Sync {
    /// `None` while something is at work.
    fn idle_for(&self) -> Option<Duration>;
}

/// Why there is no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The owner has as many as one may have.
    OfOne,
    /// All are taken, and nobody has to go for this owner.
    OfAll,
}

/// How many of the oldest, and how many of the newest, are looked at for one that is idle, where they have shown something: it happens
/// while all others wait.
const LOOKED_AT: usize = 32;

/// A limit for each `K` and for all together. Cloning shares it.
#[derive(Debug)]
pub struct EvictingLimit<K> {
    /// For one key.
    of_one_max: usize,
    /// For all.
    all_max: usize,
    /// How many of them are for keys that have none.
    for_newcomers: usize,
    taken: Arc<Mutex<Rows<K>>>,
}

impl<K> Clone for EvictingLimit<K> {
    fn clone(&self) -> Self {
        let Self { of_one_max, all_max, for_newcomers, taken } = self;
        let (of_one_max, all_max, for_newcomers) = (*of_one_max, *all_max, *for_newcomers);
        Self { of_one_max, all_max, for_newcomers, taken: Arc::clone(taken) }
    }
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub struct EvictingPermit<K: Ord + Copy> {
    serial: u64,
    of: EvictingLimit<K>,
}

impl<K: Ord + Copy> EvictingPermit<K> {
    /// Its connection has shown this standing. `idle` gives its idle time from now on.
    pub fn prove(&self, standing: Standing, idle: Weak<dyn Idle>) {
        self.of.taken.lock().rise(self.serial, standing, idle);
    }

    /// Its connection has shown whose it is. One person has as many that are known as one owner may have: wherever further ones come from, they
    /// have shown no more than that they were served, until one of those that are known ends.
    pub fn prove_person(&self, person: &Arc<str>, idle: Weak<dyn Idle>) {
        self.of.taken.lock().know(self.serial, person, self.of.of_one_max, idle);
    }
}

impl<K: Ord + Copy> Drop for EvictingPermit<K> {
    fn drop(&mut self) {
        self.of.taken.lock().remove(self.serial);
    }
}

impl<K: Ord + Copy> EvictingLimit<K> {
    /// At most `of_one_max` permits for one key, and `all_max` for all.
    pub fn new(of_one_max: usize, all_max: usize) -> Self {
        assert!(0 < of_one_max && of_one_max <= all_max, "{of_one_max} of {all_max} permits");
        Self { of_one_max, all_max, for_newcomers: 0, taken: Arc::default() }
    }

    /// Reserves this many of all for keys without a permit: once the others are taken, a key with one gets another only by eviction.
    #[must_use]
    pub fn keeping(self, for_newcomers: usize) -> Self {
        assert!(for_newcomers < self.all_max, "{for_newcomers} of {} permits", self.all_max);
        Self { for_newcomers, ..self }
    }

    /// The bound for one key, and the bound for all.
    pub fn bounds(&self) -> (usize, usize) {
        (self.of_one_max, self.all_max)
    }

    /// How many permits are taken.
    pub fn taken(&self) -> usize {
        self.taken.lock().rows.len()
    }

    /// The keys that hold permits, and how many each holds.
    pub fn held(&self) -> Vec<(K, usize)> {
        self.taken.lock().crowds.iter().map(|(key, crowd)| (*key, crowd.held())).collect()
    }

    /// Takes a permit, which may evict another connection: its token is cancelled, as `end` is in its time. There is a permit for
    /// everybody while no connection proves anything.
    pub fn take(&self, key: K, end: CancellationToken) -> Result<EvictingPermit<K>, Full> {
        let mut rows = self.taken.lock();
        let gone = self.to_go(&rows, key)?.and_then(|serial| rows.remove(serial));
        let serial = rows.begin(key, end);
        // Cancelled without the lock: the end of the connection that waits for the token takes the lock, too.
        drop(rows);
        if let Some(gone) = gone {
            gone.end.cancel();
        }
        Ok(EvictingPermit { serial, of: self.clone() })
    }

    /// The one that is evicted for one more of this owner, if any has to be.
    fn to_go(&self, rows: &Rows<K>, key: K) -> Result<Option<u64>, Full> {
        let own = rows.crowds.get(&key);
        let held = own.map_or(0, Crowd::held);
        let all_max = if held == 0 { self.all_max } else { self.all_max - self.for_newcomers };
        if held >= self.of_one_max {
            return own.and_then(|own| own.strangers.first()).map(|oldest| Some(*oldest)).ok_or(Full::OfOne);
        }
        let weight = own.map_or(0, Crowd::weight);
        if rows.rows.len() >= all_max { rows.least(key, weight).map(Some).ok_or(Full::OfAll) } else { Ok(None) }
    }
}

/// The holders of permits.
#[derive(Debug)]
struct Rows<K> {
    /// Keyed by serial number: each has a higher one than those before it.
    rows: BTreeMap<u64, Row<K>>,
    /// The crowds of all keys with a permit.
    crowds: BTreeMap<K, Crowd>,
    /// The crowds with strangers. The heaviest is the last; between two that weigh as much, the one whose oldest stranger is older.
    with_strangers: BTreeSet<(usize, Reverse<u64>, K)>,
    /// Likewise those with some that were served.
    with_served: BTreeSet<(usize, Reverse<u64>, K)>,
    /// How many each person has that are known as theirs.
    people: BTreeMap<Arc<str>, usize>,
    /// Those beyond that, by person and serial number.
    beyond: BTreeSet<(Arc<str>, u64)>,
    /// The number of the next one.
    serial: u64,
}

#[derive(Debug)]
struct Row<K> {
    key: K,
    standing: Standing,
    /// Its user, once it has shown that: within their share of connections or beyond it.
    person: Option<Arc<str>>,
    end: CancellationToken,
    idle: Option<Weak<dyn Idle>>,
}

/// The connections of one key, by serial number: the lowest is the oldest.
#[derive(Debug, Default)]
struct Crowd {
    strangers: BTreeSet<u64>,
    served: BTreeSet<u64>,
    /// Only counted: they are never evicted.
    known: usize,
}

impl Crowd {
    fn held(&self) -> usize {
        self.weight() + self.known
    }

    /// How many of them may have to go.
    fn weight(&self) -> usize {
        self.strangers.len() + self.served.len()
    }

    fn add(&mut self, serial: u64, standing: Standing) {
        match standing {
            Standing::Stranger => _ = self.strangers.insert(serial),
            Standing::Served => _ = self.served.insert(serial),
            Standing::Known => self.known += 1,
        }
    }

    fn take(&mut self, serial: u64, standing: Standing) {
        match standing {
            Standing::Stranger => _ = self.strangers.remove(&serial),
            Standing::Served => _ = self.served.remove(&serial),
            Standing::Known => self.known -= 1,
        }
    }
}

impl<K> Default for Rows<K> {
    fn default() -> Self {
        let [with_strangers, with_served] = [BTreeSet::new(), BTreeSet::new()];
        let (people, beyond) = (BTreeMap::new(), BTreeSet::new());
        Self { rows: BTreeMap::new(), crowds: BTreeMap::new(), with_strangers, with_served, people, beyond, serial: 0 }
    }
}

impl<K: Ord + Copy> Rows<K> {
    fn begin(&mut self, key: K, end: CancellationToken) -> u64 {
        let serial = self.serial;
        self.serial += 1;
        self.rows.insert(serial, Row { key, standing: Standing::Stranger, person: None, end, idle: None });
        self.change(key, |crowd| crowd.add(serial, Standing::Stranger));
        serial
    }

    fn remove(&mut self, serial: u64) -> Option<Row<K>> {
        let row = self.rows.remove(&serial)?;
        self.change(row.key, |crowd| crowd.take(serial, row.standing));
        if let Some(person) = &row.person
            && !self.beyond.remove(&(Arc::clone(person), serial))
        {
            self.hand_on(person);
        }
        Some(row)
    }

    /// One that was known as this person's has ended. The oldest of those beyond is known in its place: a connection tells only once whose it is.
    fn hand_on(&mut self, person: &Arc<str>) {
        let first = (Arc::clone(person), 0);
        let next = self.beyond.range(first..).next().filter(|(of, _)| of == person).cloned();
        if let Some(next) = next {
            self.beyond.remove(&next);
            return self.stand(next.1, Standing::Known);
        }
        if let Some(known) = self.people.get_mut(person) {
            *known -= 1;
            if *known == 0 {
                self.people.remove(person);
            }
        }
    }

    /// One that was pushed out meanwhile shows nothing any more, and what is known stays known as whose it was first.
    fn know(&mut self, serial: u64, person: &Arc<str>, most: usize, idle: Weak<dyn Idle>) {
        let Some(row) = self.rows.get_mut(&serial).filter(|row| row.standing != Standing::Known) else { return };
        if let Some(before) = row.person.replace(Arc::clone(person)) {
            self.beyond.remove(&(before, serial));
        }
        let known = self.people.get(person).copied().unwrap_or(0);
        if known >= most {
            self.beyond.insert((Arc::clone(person), serial));
            return self.rise(serial, Standing::Served, idle);
        }
        self.rise(serial, Standing::Known, idle);
        self.people.insert(Arc::clone(person), known + 1);
    }

    /// One that was pushed out meanwhile shows nothing any more.
    fn rise(&mut self, serial: u64, standing: Standing, idle: Weak<dyn Idle>) {
        let Some(row) = self.rows.get_mut(&serial).filter(|row| row.standing < standing) else { return };
        row.idle = Some(idle);
        self.stand(serial, standing);
    }

    fn stand(&mut self, serial: u64, standing: Standing) {
        let Some(row) = self.rows.get_mut(&serial) else { return };
        let (key, before) = (row.key, row.standing);
        row.standing = standing;
        self.change(key, |crowd| {
            crowd.take(serial, before);
            crowd.add(serial, standing);
        });
    }

    fn change(&mut self, key: K, change: impl FnOnce(&mut Crowd)) {
        let crowd = self.crowds.entry(key).or_default();
        let marks = |crowd: &Crowd| {
            let mark = |of: &BTreeSet<u64>| of.first().map(|oldest| (crowd.weight(), Reverse(*oldest), key));
            (mark(&crowd.strangers), mark(&crowd.served))
        };
        let before = marks(&*crowd);
        change(crowd);
        let (after, is_over) = (marks(&*crowd), crowd.held() == 0);
        replace(&mut self.with_strangers, before.0, after.0);
        replace(&mut self.with_served, before.1, after.1);
        if is_over {
            self.crowds.remove(&key);
        }
    }

    /// The one that is evicted for one more of this owner, whose crowd has this weight.
    fn least(&self, key: K, own: usize) -> Option<u64> {
        // Else the two would take from each other for ever.
        let served = self.with_served.last().filter(|(weight, ..)| *weight > own + 1);
        match self.with_strangers.last() {
            // Its own ones may still be on their way to be served.
            Some((_, _, of)) if *of == key && served.is_some() => {}
            // Not one of a smaller crowd: where all of a large one were served, a newcomer would be evicted for each new one of it.
            Some((weight, Reverse(oldest), _)) if *weight >= own => return Some(*oldest),
            _ => {}
        }
        let (_, _, of) = served?;
        let served = &self.crowds.get(of)?.served;
        // Watches grow old: where none of the oldest is idle, one of the newest mostly is.
        let looked_at = served.iter().take(LOOKED_AT).chain(served.iter().rev().take(LOOKED_AT));
        looked_at.min_by_key(|serial| Reverse(self.idle_for(**serial))).copied()
    }

    /// For how long a connection was idle; one that is gone for ever.
    fn idle_for(&self, serial: u64) -> Option<Duration> {
        let idle = self.rows.get(&serial)?.idle.as_ref()?;
        idle.upgrade().map_or(Some(Duration::MAX), |idle| idle.idle_for())
    }
}

fn replace<T: Ord>(of: &mut BTreeSet<T>, before: Option<T>, after: Option<T>) {
    if let Some(before) = before {
        of.remove(&before);
    }
    of.extend(after);
}

#[cfg(test)]
mod tests {
    use super::*;

    type Taken = (EvictingPermit<u32>, CancellationToken);

    fn take(limit: &EvictingLimit<u32>, key: u32) -> Taken {
        let end = CancellationToken::new();
        (limit.take(key, end.clone()).expect("there is room"), end)
    }

    fn take_all(limit: &EvictingLimit<u32>, key: u32, count: usize) -> Vec<Taken> {
        (0..count).map(|_| take(limit, key)).collect()
    }

    fn refusal(limit: &EvictingLimit<u32>, key: u32) -> Option<Full> {
        limit.take(key, CancellationToken::new()).err()
    }

    /// Which of them had to go.
    fn gone(taken: &[Taken]) -> Vec<usize> {
        taken.iter().enumerate().filter(|(_, (_, end))| end.is_cancelled()).map(|(at, _)| at).collect()
    }

    struct IdleFor(Option<u64>);

    impl Idle for IdleFor {
        fn idle_for(&self) -> Option<Duration> {
            self.0.map(Duration::from_secs)
        }
    }

    /// Busy where there are no seconds. The caller has to keep the result.
    fn prove(taken: &Taken, standing: Standing, idle_seconds: Option<u64>) -> Arc<dyn Idle> {
        let idle: Arc<dyn Idle> = Arc::new(IdleFor(idle_seconds));
        taken.0.prove(standing, Arc::downgrade(&idle));
        idle
    }

    fn assert_empty(limit: &EvictingLimit<u32>) {
        let rows = limit.taken.lock();
        assert!(rows.rows.is_empty() && rows.crowds.is_empty(), "{rows:?}");
        assert!(rows.with_strangers.is_empty() && rows.with_served.is_empty(), "{rows:?}");
        assert!(rows.people.is_empty() && rows.beyond.is_empty(), "{rows:?}");
    }

    #[test]
    fn one_that_takes_more_than_its_part_pushes_out_its_own_oldest() {
        let limit = EvictingLimit::new(2, 4);
        let (_honest, stays) = take(&limit, 1);
        let (_first, first) = take(&limit, 7);
        let (second_permit, second) = take(&limit, 7);
        let (_third, third) = take(&limit, 7);
        assert!(first.is_cancelled() && !second.is_cancelled() && !third.is_cancelled() && !stays.is_cancelled());
        drop(second_permit);
        let (_fourth, fourth) = take(&limit, 7);
        assert!(!second.is_cancelled(), "it had gone by itself");
        assert!(!third.is_cancelled() && !fourth.is_cancelled(), "its permit was free");
    }

    #[test]
    fn where_all_is_taken_the_largest_crowd_makes_room() {
        let limit = EvictingLimit::new(3, 4);
        let (_one, alone) = take(&limit, 1);
        let crowd = take_all(&limit, 7, 3);
        let (_two, newcomer) = take(&limit, 2);
        assert_eq!(gone(&crowd), [0], "the oldest of the crowd");
        assert!(!alone.is_cancelled() && !newcomer.is_cancelled());
        assert_eq!(limit.taken.lock().rows.len(), 4);
    }

    #[test]
    fn of_crowds_that_are_as_large_the_one_that_came_first_makes_room() {
        let limit = EvictingLimit::new(3, 4);
        // The order of their keys has no part in it.
        let crowd = [9, 1, 5, 3].map(|key| take(&limit, key));
        let newcomers = [2, 8].map(|key| take(&limit, key));
        assert_eq!((gone(&crowd), gone(&newcomers)), (vec![0, 1], vec![]));
    }

    #[test]
    fn a_place_is_free_once_it_is_dropped() {
        let limit = EvictingLimit::new(1, 1);
        for standing in [Standing::Stranger, Standing::Served, Standing::Known] {
            let taken = take(&limit, 1);
            let _idle = prove(&taken, standing, None);
            let (permit, end) = taken;
            drop(permit);
            assert!(!end.is_cancelled());
        }
        assert_empty(&limit);
    }

    #[test]
    fn who_is_known_stays_whoever_comes() {
        let limit = EvictingLimit::new(4, 4);
        let known = take_all(&limit, 1, 2);
        let _idle: Vec<_> = known.iter().map(|taken| prove(taken, Standing::Known, Some(3_600))).collect();
        // Its own newest one is a crowd of one.
        let fresh = take(&limit, 1);
        let crowd = take_all(&limit, 7, 20);
        assert!(gone(&known).is_empty());
        assert!(fresh.1.is_cancelled(), "it showed nothing while twenty came, and was there before them");
        assert_eq!(gone(&crowd), (0..18).collect::<Vec<_>>());
        // Two strangers are left, and go for others that show who they are.
        let others = [2, 3].map(|key| take(&limit, key));
        let _others_idle = others.each_ref().map(|taken| prove(taken, Standing::Known, None));
        assert_eq!(refusal(&limit, 4), Some(Full::OfAll));
        assert_eq!((gone(&known), gone(&others)), (vec![], vec![]));
    }

    #[test]
    fn who_has_as_many_known_ones_as_one_may_have_gets_no_other() {
        let limit = EvictingLimit::new(2, 10);
        let known = take_all(&limit, 1, 2);
        let _idle: Vec<_> = known.iter().map(|taken| prove(taken, Standing::Known, None)).collect();
        assert_eq!(refusal(&limit, 1), Some(Full::OfOne));
        assert!(refusal(&limit, 2).is_none());
        assert!(gone(&known).is_empty());
    }

    #[test]
    fn of_one_person_as_many_are_known_as_of_one_owner_wherever_they_come_from() {
        let limit = EvictingLimit::new(2, 6);
        let [ann, bob] = ["ann", "bob"].map(Arc::<str>::from);
        let idle: Arc<dyn Idle> = Arc::new(IdleFor(Some(60)));
        let prove = |taken: &Taken, person| taken.0.prove_person(person, Arc::downgrade(&idle));
        let mut crowd = [1, 1, 2, 2, 3, 3].map(|key| take(&limit, key)).into_iter().collect::<Vec<_>>();
        crowd.iter().for_each(|taken| prove(taken, &ann));
        // Once more, by another one's request: it is known whose it is.
        prove(&crowd[0], &bob);
        assert_eq!(limit.taken.lock().people.iter().collect::<Vec<_>>(), [(&ann, &2)]);
        let newcomer = take(&limit, 7);
        assert_eq!(gone(&crowd), [2], "the oldest of those beyond");
        prove(&newcomer, &bob);
        let second = take(&limit, 8);
        assert_eq!(gone(&crowd), [2, 4]);
        // Both are of addresses with no more of them than the next one has.
        prove(&second, &bob);
        assert_eq!(refusal(&limit, 9), Some(Full::OfAll));
        drop(crowd.swap_remove(0));
        let third = take(&limit, 9);
        prove(&third, &ann);
        let people = limit.taken.lock().people.clone();
        assert_eq!(people.into_iter().collect::<Vec<_>>(), [(ann, 2), (bob, 2)]);
        drop((crowd, newcomer, second, third));
        assert_empty(&limit);
    }

    #[test]
    fn of_those_beyond_what_one_person_may_have_the_oldest_is_known_once_another_one_ends() {
        let limit = EvictingLimit::new(2, 6);
        let [ann, bob] = ["ann", "bob"].map(Arc::<str>::from);
        let idle: Arc<dyn Idle> = Arc::new(IdleFor(Some(60)));
        let prove = |taken: &Taken, person| taken.0.prove_person(person, Arc::downgrade(&idle));
        let mut crowd = [1, 1, 2, 2, 3, 3].map(|key| take(&limit, key)).into_iter().collect::<Vec<_>>();
        crowd.iter().for_each(|taken| prove(taken, &ann));
        drop(crowd.remove(0));
        let first = take(&limit, 7);
        prove(&first, &bob);
        let second = take(&limit, 8);
        prove(&second, &bob);
        assert_eq!(gone(&crowd), [3], "the oldest of the only address with two beyond");
        assert_eq!(refusal(&limit, 9), Some(Full::OfAll), "the one that is known now stays");
        // A connection of several people counts as beyond for the last one that asked.
        prove(&crowd[2], &bob);
        drop(first);
        drop(crowd.remove(0));
        let beyond = limit.taken.lock().beyond.clone();
        assert!(beyond.is_empty(), "each was handed on to one of the same person: {beyond:?}");
        let people = limit.taken.lock().people.clone();
        assert_eq!(people.into_iter().collect::<Vec<_>>(), [(ann, 2), (bob, 2)]);
        drop((crowd, second));
        assert_empty(&limit);
    }

    #[test]
    fn a_part_is_for_those_who_have_none() {
        let limit = EvictingLimit::new(10, 10).keeping(2);
        let crowd = take_all(&limit, 7, 8);
        let _idle: Vec<_> = crowd.iter().map(|taken| prove(taken, Standing::Known, None)).collect();
        assert_eq!(refusal(&limit, 7), Some(Full::OfAll), "the rest is not for it");
        let first = take(&limit, 1);
        let _first_idle = prove(&first, Standing::Known, None);
        assert_eq!(refusal(&limit, 1), Some(Full::OfAll), "it has one now");
        let second = take(&limit, 2);
        // The only stranger.
        let third = take(&limit, 3);
        assert_eq!((gone(&crowd), gone(&[first, second, third])), (vec![], vec![1]));
    }

    #[test]
    fn where_nobody_is_known_the_one_that_is_idle_for_the_longest_makes_room_until_all_have_as_many() {
        let limit = EvictingLimit::new(6, 6);
        let crowd = take_all(&limit, 7, 5);
        let idle = [None, Some(3), Some(60), Some(60), None];
        let _idle: Vec<_> = crowd.iter().zip(idle).map(|(taken, idle)| prove(taken, Standing::Served, idle)).collect();
        // While there is a stranger, it goes.
        let stranger = take(&limit, 8);
        let first = take(&limit, 1);
        let _first_idle = prove(&first, Standing::Served, None);
        assert_eq!((gone(&crowd), stranger.1.is_cancelled()), (vec![], true));
        let second = take(&limit, 1);
        let _second_idle = prove(&second, Standing::Served, None);
        assert_eq!(gone(&crowd), [2], "of two that are idle for as long the older one");
        let third = take(&limit, 1);
        let _third_idle = prove(&third, Standing::Served, None);
        assert_eq!(gone(&crowd), [2, 3]);
        assert_eq!(refusal(&limit, 1), Some(Full::OfAll), "both have three");
        assert_eq!(refusal(&limit, 7), Some(Full::OfAll));
        // One after the other; those that are at work are the last.
        let _others = [2, 3].map(|key| {
            let other = take(&limit, key);
            let idle = prove(&other, Standing::Served, None);
            (other, idle)
        });
        assert_eq!(gone(&crowd), [1, 2, 3]);
        assert_eq!(gone(&[first, second, third]), [0]);
    }

    #[test]
    fn those_that_are_at_work_stay_where_one_is_idle_though_they_are_the_oldest() {
        let limit = EvictingLimit::new(80, 80);
        let crowd = take_all(&limit, 7, 80);
        let idle = |at: usize| Some(100 - at as u64).filter(|_| at >= 70);
        let _idle: Vec<_> =
            crowd.iter().enumerate().map(|(at, taken)| prove(taken, Standing::Served, idle(at))).collect();
        let _newcomer = take(&limit, 1);
        assert_eq!(gone(&crowd), [70], "that which is idle for the longest");
    }

    #[test]
    fn who_just_came_does_not_go_for_more_of_a_large_crowd_that_was_served() {
        let limit = EvictingLimit::new(10, 10).keeping(3);
        let crowd = take_all(&limit, 7, 7);
        let _idle: Vec<_> = crowd.iter().map(|taken| prove(taken, Standing::Served, Some(60))).collect();
        let newcomer = take(&limit, 1);
        assert_eq!(refusal(&limit, 7), Some(Full::OfAll));
        assert!(!newcomer.1.is_cancelled());
        // It gets a second one, though both have shown nothing yet.
        let second = take(&limit, 1);
        assert!(!newcomer.1.is_cancelled(), "it may still be on its way");
        assert_eq!((gone(&crowd), gone(&[second])), (vec![0], vec![]));
    }

    #[test]
    fn what_is_shown_once_is_not_unshown_and_who_is_gone_shows_nothing() {
        let limit = EvictingLimit::new(2, 2);
        let first = take(&limit, 1);
        let _known = prove(&first, Standing::Known, None);
        let _served = prove(&first, Standing::Served, Some(60));
        let second = take(&limit, 7);
        let third = take(&limit, 7);
        let _late = prove(&second, Standing::Known, None);
        assert_eq!(gone(&[first, second, third]), [1]);
        assert_empty(&limit);
    }
}
