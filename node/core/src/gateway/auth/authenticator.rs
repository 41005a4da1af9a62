//! How callers prove who they are.
//!
//! Owns the settings of authentication, what is remembered of people, and who is slowed down. Tokens and rights are remembered as of
//! one access revision, so nothing that was taken away is remembered for longer than this node takes to hear of it; and a command
//! carries that revision into the log, where another one refuses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::alive_table::AliveTable;
use crate::backend::SharedNode;
use crate::connection::origin::Neighbour;
use crate::gateway::auth::audit::AuditFile;
use crate::gateway::auth::jwt::JwtVerifier;
use crate::gateway::auth::known::{Doubt, Memory, Person};
use crate::gateway::auth::proof::{Brought, Proof, hash_of};
use crate::gateway::auth::root::RootToken;
use crate::gateway::auth::throttle::Throttle;
use crate::gateway::failure::Failure;
use crate::metrics::{MetricsSource, Sample};
use crate::per_second::PerSecond;

/// Who has to say who they are.
#[derive(Debug, Clone, Default)]
pub enum AuthSettings {
    /// Nobody.
    #[default]
    Open,
    /// Whoever asks for more than whether the node lives.
    Guarded {
        /// The token of `root`, if there is one.
        root: Option<Arc<RootToken>>,
        /// Whose signed tokens are believed, if anybody's.
        jwt: Option<Arc<JwtVerifier>>,
    },
}

/// Why a request does not prove who asks.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
enum Unproved {
    /// It does not say it.
    Missing,
    /// What it says proves nothing.
    Wrong,
    /// Its address did that too often: nobody looked.
    Slowed,
}

const UNPROVED: [&str; 3] = ["missing", "wrong", "slowed"];

/// How often somebody was not let in.
#[derive(Debug, Default)]
pub struct AuthCounts {
    unproved: [AtomicU64; UNPROVED.len()],
    refused: AtomicU64,
}

impl AuthCounts {
    fn note(&self, unproved: Unproved) {
        self.unproved[unproved as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// The numbers for the metrics.
pub struct AuthSamples(pub Arc<AuthCounts>);

impl MetricsSource for AuthSamples {
    fn sample(&self, out: &mut Vec<Sample>) {
        let help = "Requests that did not prove who asks, by reason";
        out.extend(UNPROVED.into_iter().zip(&self.0.unproved).map(|(reason, count)| {
            Sample::counter("authentication_failures", help, count.load(Ordering::Relaxed)).labelled("reason", reason)
        }));
        let help = "Requests and lines of streams that were refused for want of a permission";
        out.push(Sample::counter("permission_refusals", help, self.0.refused.load(Ordering::Relaxed)));
    }
}

/// Proves who sends a request.
#[derive(Debug)]
pub struct Authenticator {
    settings: AuthSettings,
    memory: Memory,
    throttle: Throttle,
    slowed_signatures: PerSecond,
    strangers: AskingPlaces<Neighbour>,
    rightless: AskingPlaces<Arc<str>>,
    counts: Arc<AuthCounts>,
    audit: Option<Arc<AuditFile>>,
}

/// Requests at a time for which a node asks the leader whether it is behind: since it does not know their proof, and as many since it knows no
/// right of their callers. They share its answers; what is bounded is how many of them wait where there is none.
const ASKING_MAX: usize = 64;

/// Places of one address, or of one known user: a flood of bad tokens keeps nobody out whose token or first right has not reached this node
/// yet.
const ASKING_OF_ONE_MAX: usize = ASKING_MAX / 4;

/// Signatures that are looked at for all addresses together that were slowed down: a hundredth of a processor.
const SLOWED_SIGNATURES_A_SECOND: u64 = 100;

/// When to come again where there was no such place.
const ASKING_RETRY: Duration = Duration::from_secs(1);

/// A place among requests for which the leader is asked, until it is dropped.
#[derive(Debug)]
pub struct AskingPlace<'a> {
    _of_one: OwnedSemaphorePermit,
    _of_all: SemaphorePermit<'a>,
}

/// The places of such requests, and how many of them each `K` has.
#[derive(Debug)]
struct AskingPlaces<K> {
    all: Semaphore,
    of_one: AliveTable<K, Semaphore>,
}

/// Why there is no such place.
#[derive(Debug, Clone, Copy)]
enum NoPlace {
    /// One has as many as one may have.
    OfOne,
    /// All are taken.
    OfAll,
}

impl<K> Default for AskingPlaces<K> {
    /// Nobody asks.
    fn default() -> Self {
        Self { all: Semaphore::new(ASKING_MAX), of_one: AliveTable::default() }
    }
}

impl<K: Ord> AskingPlaces<K> {
    /// A place of this one. A refusal takes nothing.
    fn take(&self, of: K) -> Result<AskingPlace<'_>, NoPlace> {
        let of_one = self.of_one.get(of, || Semaphore::new(ASKING_OF_ONE_MAX));
        let of_one = of_one.try_acquire_owned().map_err(|_full| NoPlace::OfOne)?;
        let of_all = self.all.try_acquire().map_err(|_full| NoPlace::OfAll)?;
        Ok(AskingPlace { _of_one: of_one, _of_all: of_all })
    }
}

impl Authenticator {
    /// One with these settings. Writes, refusals and administration are told to `audit`.
    pub fn new(settings: AuthSettings, audit: Option<Arc<AuditFile>>) -> Self {
        Self {
            settings,
            memory: Memory::default(),
            throttle: Throttle::default(),
            slowed_signatures: PerSecond::new(SLOWED_SIGNATURES_A_SECOND),
            strangers: AskingPlaces::default(),
            rightless: AskingPlaces::default(),
            counts: Arc::default(),
            audit,
        }
    }

    /// Whether nobody has to say who they are.
    pub fn is_open(&self) -> bool {
        matches!(self.settings, AuthSettings::Open)
    }

    /// Who a proof is of, by what this node knows now.
    pub fn prove(&self, backend: &SharedNode, proof: &Proof) -> Result<Result<Arc<Person>, Doubt>, Failure> {
        if let Proof::Signed(verified) = proof
            && !self.jwt().is_some_and(|jwt| jwt.believes(verified))
        {
            let why = "the key that signed the token is none of the issuer's any more";
            return Ok(Err(Doubt { why, may_be_behind: false }));
        }
        let is_root = matches!(proof, Proof::Root(hash) if self.is_root(hash));
        self.memory.prove(backend, proof, is_root).map_err(|fault| Failure::from_fault(&fault))
    }

    /// Whether this is the token of `root`.
    fn is_root(&self, hash: &quorate_machine::types::SecretHash) -> bool {
        match &self.settings {
            AuthSettings::Guarded { root: Some(root), .. } => root.is(hash),
            AuthSettings::Guarded { root: None, .. } | AuthSettings::Open => false,
        }
    }

    /// Who verifies signed tokens, where somebody's are believed.
    pub fn jwt(&self) -> Option<&Arc<JwtVerifier>> {
        match &self.settings {
            AuthSettings::Guarded { jwt, .. } => jwt.as_ref(),
            AuthSettings::Open => None,
        }
    }

    /// The proof that what a request brings is, if it is one.
    ///
    /// # Errors
    /// Why it is none.
    pub async fn proof(&self, brought: Brought, from: Neighbour) -> Result<Proof, Failure> {
        let text = match brought {
            Brought::Proof(proof) => return Ok(proof),
            Brought::Signed(text) => text,
        };
        let hash = hash_of(&text);
        // The token of `root` is whatever stands in its file.
        let Some(jwt) = self.jwt().filter(|_| !self.is_root(&hash)) else { return Ok(Proof::Root(hash)) };
        // A signature costs more than all else that a stranger may ask for, so few are looked at for addresses that guess. Some are: behind one
        // address there are many, and each comes with a new token now and then.
        let is_cheap = jwt.remembers(&hash.0) || self.throttle.wait(from, Instant::now()).is_none();
        if !is_cheap && !self.slowed_signatures.admit() {
            self.too_often(from)?;
        }
        let mut no_place = None;
        let may_ask = || self.ask_for_stranger(from).map_err(|failure| no_place = Some(failure)).ok();
        let verified = jwt.verify(&text, may_ask).await;
        // If the issuer had to be asked and was not, nobody knows whether the token is good: it is no failure of its address. New keys come to
        // many behind one address at once.
        verified.map(Proof::Signed).map_err(|why| no_place.unwrap_or_else(|| self.unknown(from, why)))
    }

    /// Notes something for the audit log. The event is only made where there is one.
    pub fn note<E: Serialize>(&self, event: impl FnOnce() -> Option<E>) {
        if let Some(audit) = &self.audit
            && let Some(event) = event()
        {
            audit.take(&event);
        }
    }

    /// Whether there is an audit log.
    pub fn notes(&self) -> bool {
        self.audit.is_some()
    }

    /// What is counted.
    pub fn counts(&self) -> Arc<AuthCounts> {
        Arc::clone(&self.counts)
    }

    /// Counts a request that was refused for want of a permission.
    pub fn count_refused(&self) {
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// That an address has to wait, if it has.
    fn too_often(&self, from: Neighbour) -> Result<(), Failure> {
        match self.throttle.wait(from, Instant::now()) {
            None => Ok(()),
            Some(left) => {
                self.counts.note(Unproved::Slowed);
                Err(Failure::too_many("too many failed authentications from this address").after(left))
            }
        }
    }

    /// A place among those for whom the leader is asked; for no address that brought too much already that proves nothing, and for one
    /// address a quarter of them.
    pub fn ask_for_stranger(&self, from: Neighbour) -> Result<AskingPlace<'_>, Failure> {
        self.too_often(from)?;
        self.strangers.take(from).map_err(|no_place| {
            let why = match no_place {
                NoPlace::OfOne => {
                    "too many at a time of this address bring a token or certificate that this node does not know"
                }
                NoPlace::OfAll => "too many at a time bring a token or certificate that this node does not know",
            };
            Failure::too_many(why).after(ASKING_RETRY)
        })
    }

    /// A place among those without any right for whom the leader is asked, for a request of this user. They proved who they are, so their
    /// address is no reason to refuse it.
    pub fn ask_for_rightless(&self, user: &Arc<str>) -> Result<AskingPlace<'_>, Failure> {
        self.rightless.take(Arc::clone(user)).map_err(|no_place| {
            let why = match no_place {
                NoPlace::OfOne => "too many requests at a time of this user, of whom this node knows no right",
                NoPlace::OfAll => "too many at a time ask of whom this node knows no right",
            };
            Failure::too_many(why).after(ASKING_RETRY)
        })
    }

    /// A request that does not say who asks.
    pub fn missing(&self, from: Neighbour) -> Failure {
        self.refuse(from, Unproved::Missing, "the request does not say who asks; send `Authorization: Bearer TOKEN`")
    }

    /// A request of which it cannot be told who asks.
    pub fn unknown(&self, from: Neighbour, why: &str) -> Failure {
        self.refuse(from, Unproved::Wrong, why)
    }

    fn refuse(&self, from: Neighbour, unproved: Unproved, why: &str) -> Failure {
        if let Err(failure) = self.too_often(from) {
            return failure;
        }
        self.throttle.failed(from, Instant::now());
        self.counts.note(unproved);
        Failure::unauthenticated(why)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn of_those_without_any_right_one_user_has_a_quarter_of_the_places() {
        let authenticator = Authenticator::new(AuthSettings::Open, None);
        let ask = |name: &str| authenticator.ask_for_rightless(&Arc::from(name));
        let refusal = |name: &str| ask(name).expect_err("there is no place").detail().to_owned();
        let ask_all = |name: &str| (0..ASKING_OF_ONE_MAX).map(|_| ask(name).expect("a place")).collect::<Vec<_>>();
        let mut of_ann = ask_all("ann");
        assert_eq!(refusal("ann"), "too many requests at a time of this user, of whom this node knows no right");
        let _of_others = ["bob", "cid", "dan"].map(ask_all);
        assert_eq!(refusal("eve"), "too many at a time ask of whom this node knows no right");
        of_ann.pop();
        drop(ask("eve").expect("what one gives back is anybody's"));
        of_ann.push(ask("ann").expect("who was refused holds nothing"));
        assert!(ask("ann").is_err());
    }

    #[test]
    fn of_those_whom_a_node_does_not_know_one_address_has_a_quarter_of_the_places() {
        let authenticator = Authenticator::new(AuthSettings::Open, None);
        let address = |last: u8| Neighbour::from(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let ask = |last: u8| authenticator.ask_for_stranger(address(last));
        let refusal = |last: u8| ask(last).expect_err("there is no place").detail().to_owned();
        let ask_all = |last: u8| (0..ASKING_OF_ONE_MAX).map(|_| ask(last).expect("a place")).collect::<Vec<_>>();
        let mut of_first = ask_all(1);
        assert_eq!(
            refusal(1),
            "too many at a time of this address bring a token or certificate that this node does not know"
        );
        let _of_others = [2, 3, 4].map(ask_all);
        assert_eq!(refusal(5), "too many at a time bring a token or certificate that this node does not know");
        of_first.pop();
        drop(ask(5).expect("what one gives back is anybody's"));
        of_first.push(ask(1).expect("who was refused holds nothing"));
        assert!(ask(1).is_err());
        let place = authenticator.ask_for_rightless(&Arc::from("ann"));
        drop(place.expect("places of those who are known, and have no right, are others"));
    }
}
