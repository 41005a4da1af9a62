//! The refusals of a resource, and the account of it for operators: how much is taken, how often it refused, and who holds most.
//!
//! Owns the counts of refusals, the line in the log about them and about accounts that are held up, and the choice of the accounts that are
//! named. Never refuses anything by itself, and takes no lock: the owner of a resource looks up who holds it, only when it is told.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_api::{NodeCaller, NodeResource, NodeResourceKind};

use crate::gateway::admission::accounts::Account;
use crate::gateway::admission::seldom::Seldom;
use crate::limits;

/// How much of a resource there is, and how much of it is taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Amounts {
    /// How much there is.
    pub bound: usize,
    /// How much one account may have.
    pub of_one: usize,
    /// How much is taken.
    pub taken: usize,
}

/// What of a resource is held, and by whom.
#[derive(Debug)]
pub struct Held {
    /// The amounts of all together.
    pub amounts: Amounts,
    /// Accounts and their amounts, in any order.
    pub accounts: Vec<(Account, usize)>,
}

/// The numbers of a resource, for the metrics.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Its name.
    pub resource: &'static str,
    /// How much there is.
    pub amounts: Amounts,
    /// How often there was no more for anybody.
    pub refused: u64,
    /// How often an account wanted more than its share.
    pub share_refused: u64,
}

impl Held {
    /// The first `count` of those that hold most, the largest first.
    fn top(mut self, count: usize) -> Vec<(Account, usize)> {
        self.accounts.retain(|(_, held)| *held > 0);
        self.accounts.sort_unstable_by(|one, other| (Reverse(one.1), &one.0).cmp(&(Reverse(other.1), &other.0)));
        self.accounts.truncate(count);
        self.accounts
    }

    /// The name of the account that holds most, and how much.
    fn largest(self) -> (String, usize) {
        // It may have been given back meanwhile.
        self.top(1).pop().map_or_else(|| ("nobody".to_owned(), 0), |(account, holds)| (account.to_string(), holds))
    }
}

/// The bound that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// That of all together.
    All,
    /// That of one account.
    Share,
}

/// The refusals of one resource.
#[derive(Debug)]
pub struct Refusals {
    resource: NodeResourceKind,
    of_all: AtomicU64,
    of_share: AtomicU64,
    line: Seldom,
}

impl Refusals {
    /// None yet.
    pub fn new(resource: NodeResourceKind) -> Self {
        let ([of_all, of_share], every) = (Default::default(), Duration::from_secs(limits::REFUSALS_LINE_SECONDS));
        Self { resource, of_all, of_share, line: Seldom::new(every) }
    }

    /// How often there was no more: of all, and of a share.
    fn counts(&self) -> (u64, u64) {
        (self.of_all.load(Ordering::Relaxed), self.of_share.load(Ordering::Relaxed))
    }

    /// Counts one, and logs it if none was logged in the last seconds: `held` is called only then.
    pub fn add(&self, met: Met, held: impl FnOnce() -> Held) {
        let (count, words) = match met {
            Met::All => (
                &self.of_all,
                "all of a resource of this node is taken, and more is refused: `quorate node callers` shows who holds it",
            ),
            Met::Share => (
                &self.of_share,
                "an account has its share of a resource of this node, and is refused more: see `quorate node callers`",
            ),
        };
        self.count(count, words, held);
    }

    /// Counts a place that was asked back as one that its account was refused, and logs it likewise: `held` is what this account holds.
    pub fn add_asked_back(&self, held: impl FnOnce() -> Held) {
        let words = "others hardly find any of a resource of this node, and an account that holds more than its share was asked for some \
                     back: see `quorate node callers`";
        self.count(&self.of_share, words, held);
    }

    fn count(&self, count: &AtomicU64, words: &str, held: impl FnOnce() -> Held) {
        count.fetch_add(1, Ordering::Relaxed);
        self.log(words, held);
    }

    /// Logs `words` with who holds most, if none was logged in the last seconds. Counts nothing.
    pub fn log(&self, words: &str, held: impl FnOnce() -> Held) {
        if !self.line.is_due() {
            return;
        }
        let held = held();
        let (resource, Amounts { bound, of_one: share, taken }) = (self.resource.name(), held.amounts);
        let (account, holds) = held.largest();
        tracing::warn!(resource, bound, share, taken, account, holds, "{words}");
    }

    /// Its numbers, for the metrics.
    pub fn numbers(&self, amounts: Amounts) -> Numbers {
        let (refused, share_refused) = self.counts();
        Numbers { resource: self.resource.name(), amounts, refused, share_refused }
    }

    /// The same with the accounts that hold most, for operators.
    pub fn told(&self, held: Held) -> NodeResource {
        let ((refused, share_refused), resource) = (self.counts(), self.resource);
        let Amounts { bound, of_one, taken } = held.amounts;
        let [bound, share, taken] = [bound, of_one, taken].map(|amount| amount as u64);
        let callers = held.top(limits::CALLERS_TOLD_MAX).into_iter().map(|(account, held)| {
            let (kind, name) = account.told();
            NodeCaller { kind, name, held: held as u64 }
        });
        let (held_up, late, callers) = (None, None, callers.collect());
        NodeResource { resource, bound, share, taken, refused, share_refused, held_up, late, callers }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quorate_api::NodeCallerKind;

    use super::*;

    fn held(accounts: impl IntoIterator<Item = (&'static str, usize)>) -> Held {
        let accounts: Vec<_> =
            accounts.into_iter().map(|(name, held)| (Account::User(Arc::from(name)), held)).collect();
        let taken = accounts.iter().map(|(_, held)| held).sum();
        Held { amounts: Amounts { bound: 100, of_one: 25, taken }, accounts }
    }

    #[test]
    fn those_that_hold_most_are_named_first_and_no_more_than_twenty() {
        let refusals = Refusals::new(NodeResourceKind::Bodies);
        refusals.add(Met::Share, || held([]));
        let told = refusals.told(held([("ann", 1), ("bob", 0), ("cid", 7), ("abe", 1)]));
        assert_eq!((told.bound, told.share, told.taken, told.refused, told.share_refused), (100, 25, 9, 0, 1));
        let callers: Vec<_> = told.callers.iter().map(|caller| (caller.name.as_deref(), caller.held)).collect();
        assert_eq!(callers, [(Some("cid"), 7), (Some("abe"), 1), (Some("ann"), 1)]);
        assert!(told.callers.iter().all(|caller| caller.kind == NodeCallerKind::User));
        let told = refusals.told(held((1..=30).map(|holds| ("many", holds))));
        let amounts: Vec<_> = told.callers.iter().map(|caller| caller.held).collect();
        assert_eq!(amounts, (11..=30).rev().collect::<Vec<u64>>());
    }

    #[test]
    fn every_refusal_counts_and_few_look_for_who_holds_it() {
        let (refusals, mut looked) = (Refusals::new(NodeResourceKind::Waits), 0);
        for met in [Met::All, Met::Share, Met::Share] {
            refusals.add(met, || {
                looked += 1;
                held([("ann", 3)])
            });
        }
        assert_eq!((refusals.counts(), looked), ((1, 2), 1), "one line in ten seconds");
        refusals.add_asked_back(|| panic!("its line came a moment ago"));
        assert_eq!(refusals.counts(), (1, 3));
        refusals.log("held up", || panic!("nor has this one a line of its own"));
        assert_eq!(refusals.counts(), (1, 3), "it was refused nothing");
    }
}
