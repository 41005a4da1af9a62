//! What this node remembers of tokens and users, as of one access revision.
//!
//! Owns the way from a proof to a person with rights, and what of it is remembered. A change of any user, role or token lets all be
//! forgotten: it is rare, and reading one again costs some microseconds.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use quorate_machine::access::Rights;
use quorate_machine::query::StateFault;
use quorate_machine::types::{ROOT, Revision, RoleName, TokenId, TokenRow, UserName};

use crate::backend::SharedNode;
use crate::gateway::auth::jwt::Verified;
use crate::gateway::auth::proof::{Proof, is_same};

/// Tokens, and users, that are remembered at a time. With more of them in use all are forgotten now and then.
const REMEMBERED_MAX: usize = 8_192;

/// Somebody, and what they may do.
#[derive(Debug)]
pub struct Person {
    /// The name of the user.
    pub name: Arc<str>,
    /// What they may do.
    pub rights: Rights,
    /// The access revision as of which that was read, or an older one.
    pub revision: Revision,
    /// Whether it is `root`, whose rights are not those of the cluster's state.
    pub is_root: bool,
}

/// Why a proof proves nothing.
#[derive(Debug)]
pub struct Doubt {
    /// For who asked.
    pub why: &'static str,
    /// Whether that may change once this node has applied more.
    pub may_be_behind: bool,
}

/// What is remembered.
#[derive(Debug, Default)]
pub struct Memory(RwLock<Remembered>);

/// What a signed token says: a name, and roles.
type Signed = (Box<str>, Box<[String]>);

#[derive(Debug, Default)]
struct Remembered {
    revision: Revision,
    tokens: HashMap<TokenId, Arc<TokenRow>>,
    people: HashMap<Box<str>, Arc<Person>>,
    /// Those of signed tokens, by name and roles.
    signed: HashMap<Signed, Arc<Person>>,
}

static THE_ROOT: LazyLock<Arc<Person>> =
    LazyLock::new(|| Arc::new(Person { name: ROOT.into(), rights: Rights::all(), revision: 0, is_root: true }));

impl Memory {
    /// What is remembered as of this revision.
    fn recall<T>(&self, revision: Revision, find: impl FnOnce(&Remembered) -> Option<T>) -> Option<T> {
        let remembered = self.0.read();
        if remembered.revision == revision { find(&remembered) } else { None }
    }

    /// Remembers what was read after this was the revision. What was read as of an older one than what is remembered by now
    /// may be older too.
    fn remember(&self, revision: Revision, keep: impl FnOnce(&mut Remembered)) {
        let mut remembered = self.0.write();
        if remembered.revision < revision {
            *remembered = Remembered { revision, ..Remembered::default() };
        }
        if remembered.revision == revision {
            keep(&mut remembered);
        }
    }
}

fn insert<K: Hash + Eq, V>(map: &mut HashMap<K, V>, key: K, value: V) {
    if map.len() >= REMEMBERED_MAX {
        map.clear();
    }
    map.insert(key, value);
}

impl Memory {
    /// Who a proof is of, by what this node knows now. The caller knows whether it is the token of `root`.
    pub fn prove(
        &self,
        backend: &SharedNode,
        proof: &Proof,
        is_root: bool,
    ) -> Result<Result<Arc<Person>, Doubt>, StateFault> {
        let doubt = |why, may_be_behind| Ok(Err(Doubt { why, may_be_behind }));
        // Once, and first: all that is read then is as of it or newer, and so is whoever it stamps a command for.
        let revision = backend.access_revision();
        match proof {
            Proof::Root(_) if is_root => Ok(Ok(Arc::clone(&THE_ROOT))),
            Proof::Root(_) => doubt("the token is none that this cluster knows", false),
            Proof::Certificate(name) if &**name == ROOT => Ok(Ok(Arc::clone(&THE_ROOT))),
            Proof::Certificate(name) => match self.person(backend, revision, name)? {
                Some(person) => Ok(Ok(person)),
                None => doubt("there is no user with the name in the certificate", true),
            },
            Proof::Signed(verified) if verified.is_over() => doubt("the time of the token is over", false),
            Proof::Signed(verified) => match self.signed(backend, revision, verified)? {
                Some(person) => Ok(Ok(person)),
                None => doubt("neither the user of the token nor one of its roles is known here", true),
            },
            Proof::Token { id, hash } => {
                let Some(row) = self.token(backend, revision, *id)? else {
                    return doubt("the token is none that this cluster knows, or not any more", true);
                };
                if !is_same(&row.hash, hash) {
                    return doubt("the token is none that this cluster knows", false);
                }
                if row.is_expired_at(backend.wall_now()) {
                    return doubt("the time of the token is over", false);
                }
                match self.person(backend, revision, row.user.as_str())? {
                    Some(person) => Ok(Ok(person)),
                    None => doubt("the user of the token is there no more", true),
                }
            }
        }
    }

    fn token(
        &self,
        backend: &SharedNode,
        revision: Revision,
        id: TokenId,
    ) -> Result<Option<Arc<TokenRow>>, StateFault> {
        if let Some(row) = self.recall(revision, |remembered| remembered.tokens.get(&id).cloned()) {
            return Ok(Some(row));
        }
        let Some(row) = backend.token(id)?.found.map(Arc::new) else { return Ok(None) };
        self.remember(revision, |remembered| insert(&mut remembered.tokens, id, Arc::clone(&row)));
        Ok(Some(row))
    }

    /// Who brings a signed token: with the rights of the cluster's user of that name, if there is one, and of the cluster's roles that the
    /// token names. Nobody where there is neither.
    fn signed(
        &self,
        backend: &SharedNode,
        revision: Revision,
        verified: &Verified,
    ) -> Result<Option<Arc<Person>>, StateFault> {
        let key = (Box::from(verified.user()), Box::from(verified.roles()));
        if let Some(person) = self.recall(revision, |remembered| remembered.signed.get(&key).cloned()) {
            return Ok(Some(person));
        }
        let Ok(user) = UserName::new(verified.user()) else { return Ok(None) };
        let own = backend.rights_of(&user)?;
        let mut is_known = own.is_some();
        let mut grants = own.map_or_else(Vec::new, |rights| rights.grants().to_vec());
        for name in verified.roles().iter().filter_map(|name| RoleName::new(name.as_str()).ok()) {
            if let Some(row) = backend.role(&name)?.found {
                is_known = true;
                grants.extend(row.grants);
            }
        }
        if !is_known {
            return Ok(None);
        }
        let person = Person { name: verified.user().into(), rights: Rights::new(grants), revision, is_root: false };
        let person = Arc::new(person);
        self.remember(revision, |remembered| insert(&mut remembered.signed, key, Arc::clone(&person)));
        Ok(Some(person))
    }

    fn person(&self, backend: &SharedNode, revision: Revision, name: &str) -> Result<Option<Arc<Person>>, StateFault> {
        if let Some(person) = self.recall(revision, |remembered| remembered.people.get(name).cloned()) {
            return Ok(Some(person));
        }
        let Ok(user) = UserName::new(name) else { return Ok(None) };
        let Some(rights) = backend.rights_of(&user)? else { return Ok(None) };
        let person = Arc::new(Person { name: name.into(), rights, revision, is_root: false });
        self.remember(revision, |remembered| insert(&mut remembered.people, name.into(), Arc::clone(&person)));
        Ok(Some(person))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(revision: Revision) -> Arc<Person> {
        Arc::new(Person { name: "ann".into(), rights: Rights::default(), revision, is_root: false })
    }

    #[test]
    fn what_is_older_than_what_is_remembered_is_not() {
        let memory = Memory::default();
        let keep = |revision| {
            memory.remember(revision, |remembered| insert(&mut remembered.people, "ann".into(), person(revision)));
        };
        let recalled = |revision| memory.recall(revision, |remembered| remembered.people.get("ann").cloned());
        keep(5);
        assert_eq!(recalled(5).expect("remembered").revision, 5);
        assert!(recalled(6).is_none());
        keep(6);
        keep(5);
        assert!(recalled(5).is_none(), "forgotten with its revision");
        assert_eq!(recalled(6).expect("remembered").revision, 6);
    }

    #[test]
    fn it_stays_bounded() {
        let mut map = HashMap::new();
        (0..3 * REMEMBERED_MAX).for_each(|key| insert(&mut map, key, ()));
        assert!(map.len() <= REMEMBERED_MAX);
    }
}
