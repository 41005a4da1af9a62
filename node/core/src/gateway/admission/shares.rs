//! What a node has few of and callers hold for long: watches, and places of those who wait.
//!
//! Owns that one caller has no more than half of them, also where nothing else is configured. A caller is an
//! [`Account`]: a user, or where nobody is asked who they are an address. Knows only those who hold something.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::gateway::admission::accounts::Account;

/// Something that a node has few of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Scarce {
    /// Places of requests that wait for something to happen.
    Waits,
    /// Watches, and observers of elections.
    Watches,
}

/// How many kinds there are.
const KINDS: usize = 2;

/// What each caller holds.
#[derive(Debug)]
pub struct Shares {
    /// Most of each kind for one caller.
    most: [usize; KINDS],
    held: Mutex<BTreeMap<Account, [usize; KINDS]>>,
}

impl Shares {
    /// Nobody holds anything of so many waits and watches.
    pub fn new(waits: usize, watches: usize) -> Arc<Self> {
        // Of one place somebody may have that.
        let most = [waits, watches].map(|all| all.div_ceil(2));
        Arc::new(Self { most, held: Mutex::default() })
    }

    /// Most of a kind for one caller.
    pub fn most(&self, what: Scarce) -> usize {
        self.most[what as usize]
    }

    /// Holds one more, until what is returned is dropped; `None` where the caller has its half.
    pub fn hold(self: &Arc<Self>, account: Account, what: Scarce) -> Option<HeldShare> {
        let mut held = self.held.lock();
        let count = &mut held.entry(account.clone()).or_default()[what as usize];
        if *count >= self.most(what) {
            return None;
        }
        *count += 1;
        Some(HeldShare { shares: Arc::clone(self), account, what })
    }
}

/// One of them.
#[derive(Debug)]
pub struct HeldShare {
    shares: Arc<Shares>,
    account: Account,
    what: Scarce,
}

impl Drop for HeldShare {
    fn drop(&mut self) {
        let mut held = self.shares.held.lock();
        if let Some(counts) = held.get_mut(&self.account) {
            counts[self.what as usize] = counts[self.what as usize].saturating_sub(1);
            if *counts == [0; KINDS] {
                held.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Account {
        Account::User(name.into())
    }

    #[test]
    fn one_caller_has_half_and_others_have_theirs() {
        let shares = Shares::new(4, 1);
        let first = shares.hold(user("ann"), Scarce::Waits).expect("there is room");
        let _second = shares.hold(user("ann"), Scarce::Waits).expect("two of four");
        assert!(shares.hold(user("ann"), Scarce::Waits).is_none());
        assert!(shares.hold(user("bob"), Scarce::Waits).is_some());
        assert!(shares.hold(user("ann"), Scarce::Watches).is_some(), "each kind by itself, and of one that");
        drop(first);
        assert!(shares.hold(user("ann"), Scarce::Waits).is_some());
    }

    #[test]
    fn who_holds_nothing_is_forgotten() {
        let shares = Shares::new(4, 4);
        let held = ["ann", "bob"].map(|name| shares.hold(user(name), Scarce::Watches));
        assert_eq!(shares.held.lock().len(), 2);
        drop(held);
        assert!(shares.held.lock().is_empty());
    }
}
