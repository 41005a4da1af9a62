//! The limited resources of a node, and who holds how much of them.
//!
//! Owns that nothing is taken but through an [`Account`] (a user; an address where authentication is off; else all strangers together),
//! and that one account gets no more than its share once half of all is taken, also where nothing else is configured. A caller alone has
//! half, and keeps it until it gives it back; others find their shares in the rest, as long as there is any. A place that may be held for ever
//! is only lent: where the next account would not find its share any more, accounts that hold more than theirs give the rest back. Knows only
//! those who hold something. Never waits: a request for too much is refused at once, with the bound that it met, of its share or of all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate_api::{NodeResource, NodeResourceKind};

use crate::alive_table::AliveTable;
use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::refusals::{Amounts, Held, Met, Numbers, Refusals};

/// A resource that a node has a limited amount of.
#[derive(Debug)]
pub struct Resource(Arc<Totals>);

/// The amount that all accounts hold together.
#[derive(Debug)]
struct Totals {
    bound: usize,
    /// The amount that one account may always have, unless all is taken.
    of_one: usize,
    /// While no more than this is taken in all, an account may have more than that.
    shared_from: usize,
    /// While no more than this is taken in all, the next account finds its share in the rest.
    lent_up_to: usize,
    /// The bound that operators are told, where it is kept elsewhere.
    bound_elsewhere: Option<usize>,
    taken: AtomicUsize,
    refusals: Refusals,
    accounts: AliveTable<Account, Holding>,
}

/// The amount that one account holds.
#[derive(Debug)]
pub struct Holding {
    all: Arc<Totals>,
    taken: AtomicUsize,
}

/// Why there is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// All together hold as much as there is.
    All {
        /// The amount for all.
        bound: usize,
    },
    /// The account has its share, and half of all is taken.
    Share {
        /// The amount for one account.
        of_one: usize,
        /// The amount for all.
        bound: usize,
    },
}

impl Resource {
    /// A resource of this `bound`, all of it free. One account may have `of_one`, and more while less than half of all is taken.
    pub fn new(what: NodeResourceKind, bound: usize, of_one: usize) -> Self {
        Self::with(what, bound, of_one.min(bound), bound / 2, None)
    }

    /// A resource whose `bound` for all is kept elsewhere, and so is when accounts have to share: here one has `of_one` at all times.
    /// [`Self::refused_elsewhere`] counts the refusals of the other place.
    pub fn bounded_elsewhere(what: NodeResourceKind, bound: usize, of_one: usize) -> Self {
        Self::with(what, usize::MAX, of_one, 0, Some(bound))
    }

    /// The same, but accounts share from half of `bound` on, as in [`Self::new`].
    fn shared_here(what: NodeResourceKind, bound: usize, of_one: usize) -> Self {
        Self::with(what, usize::MAX, of_one, bound / 2, Some(bound))
    }

    fn with(
        what: NodeResourceKind,
        bound: usize,
        of_one: usize,
        shared_from: usize,
        bound_elsewhere: Option<usize>,
    ) -> Self {
        let (refusals, taken, accounts) = (Refusals::new(what), AtomicUsize::default(), AliveTable::default());
        let lent_up_to = bound_elsewhere.unwrap_or(bound).saturating_sub(of_one);
        Self(Arc::new(Totals { bound, of_one, shared_from, lent_up_to, bound_elsewhere, taken, refusals, accounts }))
    }

    /// How much one account may have once half of all is taken.
    pub fn of_one(&self) -> usize {
        self.0.of_one
    }

    /// The amount that all hold together.
    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Counts a refusal by the place that keeps the bound for all.
    pub fn refused_elsewhere(&self) {
        self.0.refusals.add(Met::All, || self.0.held());
    }

    /// Its numbers, for the metrics.
    pub fn numbers(&self) -> Numbers {
        self.0.refusals.numbers(self.0.amounts())
    }

    /// The same with the accounts that hold most, for operators.
    pub fn told(&self) -> NodeResource {
        self.0.refusals.told(self.0.held())
    }

    /// The part of this account.
    pub fn of(&self, account: Account) -> Arc<Holding> {
        self.0.accounts.get(account, || Holding { all: Arc::clone(&self.0), taken: AtomicUsize::new(0) })
    }
}

impl Totals {
    fn amounts(&self) -> Amounts {
        let (bound, taken) = (self.bound_elsewhere.unwrap_or(self.bound), self.taken.load(Ordering::Relaxed));
        Amounts { bound, of_one: self.of_one, taken }
    }

    fn held(&self) -> Held {
        self.held_where(|_| true)
    }

    /// The accounts wanted, with what each holds.
    fn held_where(&self, is_wanted: impl Fn(&Arc<Holding>) -> bool) -> Held {
        let entries = self.accounts.entries().into_iter().filter(|(_, holding)| is_wanted(holding));
        let accounts = entries.map(|(account, holding)| (account, holding.taken.load(Ordering::Relaxed))).collect();
        Held { amounts: self.amounts(), accounts }
    }

    fn refuse(&self, met: Met) -> Full {
        self.refusals.add(met, || self.held());
        let (of_one, bound) = (self.of_one, self.bound);
        match met {
            Met::All => Full::All { bound },
            Met::Share => Full::Share { of_one, bound },
        }
    }
}

impl Holding {
    /// Takes `amount` more, to be given back by [`Self::give_back`]. `reserve` raises all bounds for this call; calls without it cannot take
    /// that part.
    pub fn take(&self, amount: usize, reserve: usize) -> Result<(), Full> {
        self.take_counted(amount, reserve).map(|_own| ())
    }

    /// The same; gives what the account holds with it.
    fn take_counted(&self, amount: usize, reserve: usize) -> Result<usize, Full> {
        let all = &self.all;
        let own = self.taken.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        let is_beyond_share = own > all.of_one.saturating_add(reserve);
        let (met, most) = if is_beyond_share { (Met::Share, all.shared_from) } else { (Met::All, all.bound) };
        let most = most.saturating_add(reserve);
        // A refused amount never counts among that of all: those who ask in vain take nothing from others, not even for a moment. It does
        // count as its account's until it is refused. Meanwhile another request of that account may be refused or get too high a number, and a
        // place may be asked back of an account with no more than its share: only an account that asks for more than that pays for it.
        let more = |taken: usize| Some(taken.saturating_add(amount)).filter(|after| *after <= most);
        if all.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            self.taken.fetch_sub(amount, Ordering::Relaxed);
            return Err(all.refuse(met));
        }
        Ok(own)
    }

    /// Gives back one place that is lent, the one that was the `number`th of its account when it was taken, if it has to be: its account holds
    /// more than its share, and others do not find theirs. The account keeps its share at least, and the places with the lowest numbers. Never
    /// more than `n` of them have a number up to `n`, since each of those was taken when the account held no more than `n`: so there always is
    /// one to give back.
    fn give_back_lent(&self, number: usize) -> bool {
        let all = &self.all;
        // Most accounts have no more than their share, and change nothing.
        if self.taken.load(Ordering::Relaxed) <= all.of_one {
            return false;
        }
        // The total first, then the account: two places that look at once never give back for the same missing one. A place that is not to be
        // given back counts again a moment later; others may have kept theirs meanwhile, and look again.
        let beyond = |taken: usize| (taken > all.lent_up_to).then(|| taken - 1);
        let Ok(taken) = all.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, beyond) else { return false };
        let wanted = taken - all.lent_up_to;
        let without = |own: usize| {
            let given = own.saturating_sub(all.of_one).min(wanted);
            (given > 0 && number > own - given).then(|| own - 1)
        };
        let is_given = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, without).is_ok();
        if !is_given {
            all.taken.fetch_add(1, Ordering::Relaxed);
        }
        is_given
    }

    /// Gives back what was taken.
    pub fn give_back(&self, amount: usize) {
        self.taken.fetch_sub(amount, Ordering::Relaxed);
        self.all.taken.fetch_sub(amount, Ordering::Relaxed);
    }
}

/// An amount of a resource, until it is dropped.
#[derive(Debug)]
pub struct HeldShare {
    holding: Arc<Holding>,
    /// Changed by its owner only.
    amount: AtomicUsize,
}

impl HeldShare {
    /// Nothing yet.
    pub fn of(holding: Arc<Holding>) -> Self {
        Self { holding, amount: AtomicUsize::new(0) }
    }

    /// Holds `amount` from now on, more than before or less. A refusal leaves the amount as it was.
    pub fn hold(&self, amount: usize, reserve: usize) -> Result<(), Full> {
        let before = self.amount.load(Ordering::Relaxed);
        if amount > before {
            self.holding.take(amount - before, reserve)?;
        } else {
            self.holding.give_back(before - amount);
        }
        self.amount.store(amount, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for HeldShare {
    fn drop(&mut self) {
        self.holding.give_back(self.amount.load(Ordering::Relaxed));
    }
}

/// A place that is asked back where its account holds more than its share and others do not find theirs; held until then, or until it is
/// dropped.
#[derive(Debug)]
pub struct LentPlace {
    holding: Arc<Holding>,
    /// How many its account held with this one when it was taken.
    number: usize,
    is_held: bool,
}

impl LentPlace {
    fn take(holding: Arc<Holding>) -> Result<Self, Full> {
        let number = holding.take_counted(1, 0)?;
        Ok(Self { holding, number, is_held: true })
    }

    /// Its account, with what it holds.
    fn held(&self) -> Held {
        self.holding.all.held_where(|holding| Arc::ptr_eq(holding, &self.holding))
    }

    /// Asks it back if others need it. Returns the bounds, of all and of one account, once it is not held any more. The last places of an
    /// account go first.
    pub fn ask_back(&mut self) -> Option<Amounts> {
        let all = &self.holding.all;
        if self.is_held && self.holding.give_back_lent(self.number) {
            self.is_held = false;
            all.refusals.add_asked_back(|| self.held());
        }
        (!self.is_held).then(|| all.amounts())
    }
}

impl Drop for LentPlace {
    fn drop(&mut self) {
        if self.is_held {
            self.holding.give_back(1);
        }
    }
}

/// Kinds of places that are few on a node and that callers hold for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Scarce {
    /// Those of requests that wait for something to happen.
    Waits,
    /// Watches, and observers of elections.
    Watches,
    /// Those of requests whose body is still on its way.
    Arriving,
}

/// How many kinds there are.
const KINDS: usize = 3;

/// One caller may have one part in this many of each kind, once half of all is taken.
const SHARE: usize = 4;

/// The places of each kind.
#[derive(Debug)]
pub struct Shares([Resource; KINDS]);

impl Shares {
    /// This many places for waits, for watches, and for requests that are on their way, all of them free.
    pub fn new(waits: usize, watches: usize, arriving: usize) -> Arc<Self> {
        // The class bounds all waits, and the feed all watches. A single place may be anybody's.
        let [waits, watches] = [(NodeResourceKind::Waits, waits), (NodeResourceKind::Watches, watches)]
            .map(|(what, all)| Resource::shared_here(what, all, all.div_ceil(SHARE)));
        let arriving = Resource::new(NodeResourceKind::Arriving, arriving, arriving.div_ceil(SHARE));
        Arc::new(Self([waits, watches, arriving]))
    }

    /// Those of a kind.
    pub fn places(&self, what: Scarce) -> &Resource {
        &self.0[what as usize]
    }

    /// Most of a kind for one caller once half of all is taken.
    pub fn most(&self, what: Scarce) -> usize {
        self.places(what).of_one()
    }

    /// Holds one more, until what is returned is dropped.
    pub fn hold(&self, account: Account, what: Scarce) -> Result<HeldShare, Full> {
        let held = HeldShare::of(self.places(what).of(account));
        held.hold(1, 0)?;
        Ok(held)
    }

    /// The same, of a kind that callers may hold for ever: who holds it asks now and then whether it is asked back.
    pub fn lend(&self, account: Account, what: Scarce) -> Result<LentPlace, Full> {
        LentPlace::take(self.places(what).of(account))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Account {
        Account::User(name.into())
    }

    #[test]
    fn of_waits_one_caller_alone_has_half_and_a_quarter_once_others_have_some() {
        let shares = Shares::new(8, 1, 1);
        let hold = |name: &str| shares.hold(user(name), Scarce::Waits);
        let mut of_ann = Vec::from([(); 4].map(|()| hold("ann").expect("four of eight")));
        assert!(hold("ann").is_err());
        let _of_bob = [(); 2].map(|()| hold("bob").expect("a quarter, whatever others have"));
        assert!(hold("bob").is_err());
        assert!(shares.hold(user("ann"), Scarce::Watches).is_ok(), "each kind by itself, and of one that");
        shares.places(Scarce::Waits).refused_elsewhere();
        let told = shares.places(Scarce::Waits).told();
        assert_eq!((told.bound, told.share, told.taken), (8, 2, 6), "the bound for all, though its class sees to that");
        assert_eq!((told.refused, told.share_refused), (1, 2));
        of_ann.truncate(3);
        assert!(hold("ann").is_err(), "five are taken, and it has three");
        of_ann.truncate(1);
        assert!(hold("ann").is_ok(), "a quarter");
    }

    /// Asks all of them back; the indices of those that were not before.
    fn asked_back(places: &mut [LentPlace]) -> Vec<usize> {
        let was_held = |place: &mut LentPlace| place.is_held && place.ask_back().is_some();
        places.iter_mut().enumerate().filter_map(|(n, place)| was_held(place).then_some(n)).collect()
    }

    #[test]
    fn of_lent_places_those_beyond_a_share_are_asked_back_the_last_first_until_the_next_one_finds_its_share() {
        let shares = Shares::new(1, 16, 1);
        let lend = |name: &str, count: usize| -> Vec<LentPlace> {
            (0..count).map(|_| shares.lend(user(name), Scarce::Watches).expect("a place")).collect()
        };
        let (mut of_ann, mut of_bob) = (lend("ann", 8), lend("bob", 4));
        assert!(asked_back(&mut of_ann).is_empty() && asked_back(&mut of_bob).is_empty(), "a quarter is left");
        let mut of_cid = lend("cid", 3);
        for others in [&mut of_bob, &mut of_cid] {
            assert!(asked_back(others).is_empty(), "who has no more than its share keeps it");
        }
        let places = shares.places(Scarce::Watches);
        assert_eq!((asked_back(&mut of_ann), places.taken()), (vec![5, 6, 7], 12));
        let held = of_bob[0].held();
        assert_eq!(
            (held.accounts, held.amounts.taken),
            (vec![(user("bob"), 4)], 12),
            "its own account, not the largest"
        );
        let amounts = of_ann[7].ask_back().expect("once asked back is for good");
        assert_eq!((amounts.of_one, amounts.bound, places.taken()), (4, 16, 12));
        assert!(shares.lend(user("ann"), Scarce::Watches).is_err(), "it does not get it again");
        let mut of_dan = lend("dan", 4);
        assert_eq!((asked_back(&mut of_ann), places.taken()), (vec![4], 15), "never below its share");
        assert!(asked_back(&mut of_dan).is_empty());
        assert_eq!(places.told().share_refused, 5, "four were asked back, and one refused");
        drop((of_ann, of_bob, of_cid, of_dan));
        assert_eq!((places.taken(), places.told().callers.len()), (0, 0), "nothing is given back twice");
    }

    #[test]
    fn however_lent_places_came_and_went_as_many_are_asked_back_as_an_account_has_too_many() {
        let shares = Shares::new(1, 16, 1);
        let lend = |name: &str| shares.lend(user(name), Scarce::Watches).expect("a place");
        let mut of_ann: Vec<LentPlace> = (0..8).map(|_| lend("ann")).collect();
        // The first ones went, and others came in their place.
        drop(of_ann.drain(..6));
        of_ann.extend((0..6).map(|_| lend("ann")));
        let _of_others = ["bob", "cid"].map(|name| [(); 4].map(|()| lend(name)));
        assert_eq!(asked_back(&mut of_ann).len(), 4);
        let kept = of_ann.iter().filter(|place| place.is_held).count();
        assert_eq!((kept, shares.places(Scarce::Watches).taken()), (4, 12));
    }

    #[test]
    fn places_that_look_at_once_give_no_more_back_than_others_miss() {
        let shares = Shares::new(1, 16, 1);
        let lend = |name: &str| shares.lend(user(name), Scarce::Watches).expect("a place");
        let places = shares.places(Scarce::Watches);
        for round in 0..300 {
            let mut of_ann: Vec<LentPlace> = (0..8).map(|_| lend("ann")).collect();
            // One more than leaves the next account its share.
            let _of_others = ["bob", "bob", "bob", "bob", "cid"].map(lend);
            let begin = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for place in &mut of_ann[4..] {
                    let begin = &begin;
                    scope.spawn(move || {
                        begin.wait();
                        place.ask_back();
                    });
                }
            });
            assert!((12..=13).contains(&places.taken()), "{} in round {round}", places.taken());
            asked_back(&mut of_ann);
            assert_eq!(places.taken(), 12, "round {round}");
        }
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn of_what_is_on_its_way_one_caller_has_a_quarter_and_all_together_have_a_bound() {
        let shares = Shares::new(1, 1, 8);
        let hold = |name: &str| shares.hold(user(name), Scarce::Arriving);
        let mut held: Vec<_> =
            ["ann", "bob"].map(|name| [(); 2].map(|()| hold(name).expect("a quarter"))).into_iter().flatten().collect();
        assert_eq!(hold("ann").expect_err("its share"), Full::Share { of_one: 2, bound: 8 });
        held.extend(["cid", "dan"].map(|name| [(); 2].map(|()| hold(name).expect("theirs"))).into_iter().flatten());
        assert_eq!(hold("eve").expect_err("nobody has any"), Full::All { bound: 8 });
        let places = shares.places(Scarce::Arriving);
        let told = places.told();
        assert_eq!((told.bound, told.share, told.taken, told.refused, told.share_refused), (8, 2, 8, 1, 1));
        let callers: Vec<_> = told.callers.iter().map(|caller| (caller.name.as_deref(), caller.held)).collect();
        assert_eq!(callers, ["ann", "bob", "cid", "dan"].map(|name| (Some(name), 2)), "who was refused holds nothing");
        drop(held);
        assert_eq!((places.taken(), places.told().callers.len()), (0, 0));
        assert!(hold("eve").is_ok());
    }

    #[test]
    fn a_caller_alone_has_half_and_no_more_than_its_share_once_others_have_some() {
        let room = Resource::new(NodeResourceKind::Bodies, 100, 25);
        let share = Full::Share { of_one: 25, bound: 100 };
        let hold = |name: &str| HeldShare::of(room.of(user(name)));
        let (ann, bob, cid) = (hold("ann"), hold("bob"), hold("cid"));
        ann.hold(50, 0).expect("nobody else has any");
        assert_eq!(ann.hold(51, 0), Err(share));
        bob.hold(25, 0).expect("a quarter, whatever the first one has");
        assert_eq!((bob.hold(26, 0), room.taken()), (Err(share), 75));
        cid.hold(25, 0).expect("so has the next one");
        assert_eq!((hold("dan").hold(1, 0), room.taken()), (Err(Full::All { bound: 100 }), 100));
        // It does not get again what it gives back while half is taken.
        ann.hold(40, 0).expect("less is always there");
        assert_eq!((ann.hold(41, 0), room.taken()), (Err(share), 90));
        drop((bob, cid));
        ann.hold(50, 0).expect("it is alone again");
        assert_eq!(room.taken(), 50);
    }

    #[test]
    fn what_many_take_at_once_is_never_more_than_there_is_nor_is_any_lost() {
        const BOUND: usize = 64;
        let room = Resource::new(NodeResourceKind::Bodies, BOUND, BOUND / 4);
        std::thread::scope(|scope| {
            for n in 0..4usize {
                let (room, holding) = (&room, room.of(user(["ann", "bob"][n % 2])));
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let amount = 1 + (round + n) % 24;
                        if holding.take(amount, 0).is_ok() {
                            let taken = room.taken();
                            assert!((amount..=BOUND).contains(&taken), "{taken}");
                            holding.give_back(amount);
                        }
                    }
                });
            }
        });
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn what_is_held_grows_and_shrinks_and_a_refusal_changes_nothing() {
        let room = Resource::new(NodeResourceKind::Bodies, 100, 60);
        let (one, other) = (HeldShare::of(room.of(user("ann"))), HeldShare::of(room.of(user("bob"))));
        one.hold(50, 0).expect("there is room");
        assert_eq!(one.hold(61, 0), Err(Full::Share { of_one: 60, bound: 100 }));
        assert_eq!(HeldShare::of(room.of(user("ann"))).hold(11, 0), Err(Full::Share { of_one: 60, bound: 100 }));
        assert_eq!((other.hold(51, 0), room.taken()), (Err(Full::All { bound: 100 }), 50));
        other.hold(51, 1).expect("who has a reserve goes beyond");
        one.hold(20, 0).expect("less is always there");
        assert_eq!(room.taken(), 71);
        one.hold(61, 50).expect("beyond its share, too");
        assert_eq!(one.hold(111, 50), Err(Full::Share { of_one: 60, bound: 100 }));
        drop((one, other));
        assert_eq!(room.taken(), 0);
    }
}
