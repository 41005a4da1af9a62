//! A state as a person would tell it: what there is, by name.
//!
//! Owns reading it from the rows. Generator, table of pairs and model look at this and at nothing else of a store.

use std::collections::{BTreeMap, BTreeSet};

use quorate_machine::codec::{self, CodecError};
use quorate_machine::keyspace::collection;
use quorate_machine::keyspace::fault;
use quorate_machine::keyspace::history::{self, Version};
use quorate_machine::keyspace::lock_queue::{self, HolderRow, LockHead, WaiterRow};
use quorate_machine::keyspace::session::{self, AttachedKind, SessionRow};
use quorate_machine::keyspace::task::{self, TaskRow};
use quorate_machine::keyspace::{access, entry, family, gates, members, quota};
use quorate_machine::machine::Vars;
use quorate_machine::rules::CollectionName;
use quorate_machine::types::{
    BarrierRow, Counted, Entry, InvitationRow, Key, LatchRow, LockName, Name, NodeDisk, PrefixUse, PrincipalUse,
    QueueName, QuotaBounds, QuotaRow, QuotaState, QuotaSubject, Revision, RoleName, RoleRow, SessionId, TaskId,
    TokenId, TokenRow, UserName, UserRow,
};
use quorate_machine::types::{CollectionRow, IndexStage};

use crate::store::Store;

/// What there is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Picture {
    /// The scalars.
    pub vars: Vars,
    /// Log index of the last entry.
    pub index: u64,
    /// Entries, those that are expired and not removed included.
    pub entries: BTreeMap<Key, Entry>,
    /// What opens the locks on them, those that ended by themselves included.
    pub lock_keys: BTreeMap<Key, u64>,
    /// Keys of which the history knows that they were removed.
    pub removed: BTreeSet<Key>,
    /// Sessions.
    pub sessions: BTreeMap<SessionId, SessionRow>,
    /// What kinds of things hang on each session.
    pub attached: BTreeMap<SessionId, BTreeSet<u8>>,
    /// Locks and elections.
    pub heads: BTreeMap<LockName, LockHead>,
    /// Holders by lock and token.
    pub holders: BTreeMap<(LockName, Revision), HolderRow>,
    /// Waiters by lock and place.
    pub waiters: BTreeMap<(LockName, Revision), WaiterRow>,
    /// Barriers.
    pub barriers: BTreeMap<Name, BarrierRow>,
    /// Who is in which barrier.
    pub parties: BTreeSet<(Name, SessionId)>,
    /// Latches.
    pub latches: BTreeMap<Name, LatchRow>,
    /// Tasks.
    pub tasks: BTreeMap<(QueueName, TaskId), TaskRow>,
    /// Collections.
    pub collections: BTreeMap<CollectionName, CollectionRow>,
    /// Indexes that are to be cleared.
    pub dropped: usize,
    /// Audit groups.
    pub groups: usize,
    /// Users.
    pub users: BTreeMap<UserName, UserRow>,
    /// Roles.
    pub roles: BTreeMap<RoleName, RoleRow>,
    /// Tokens.
    pub tokens: BTreeMap<TokenId, TokenRow>,
    /// Invitations.
    pub invitations: BTreeMap<TokenId, InvitationRow>,
    /// Nodes that were removed.
    pub removed_members: BTreeSet<NodeDisk>,
    /// Quotas.
    pub quotas: BTreeMap<QuotaSubject, QuotaRow>,
    /// What is counted for prefixes.
    pub prefix_uses: BTreeMap<Vec<u8>, PrefixUse>,
    /// What is counted for principals.
    pub principal_uses: BTreeMap<String, PrincipalUse>,
    /// What holds for all quotas together.
    pub quota_state: QuotaState,
    /// Work that is set aside.
    pub parked: Vec<Vec<u8>>,
}

impl Picture {
    /// Reads it.
    pub fn of(store: &Store) -> Self {
        let mut picture = Self { vars: store.vars.clone(), index: store.index, ..Self::default() };
        for (row_key, row) in &store.view.0 {
            picture.take(row_key, row);
        }
        picture
    }

    fn take(&mut self, row_key: &[u8], row: &[u8]) {
        match row_key[0] {
            family::ENTRY => {
                let key = Key::new(entry::decode_key(row_key).unwrap()).unwrap();
                let row = entry::decode(row).unwrap();
                self.lock_keys.extend(row.key.map(|lock_key| (key.clone(), lock_key)));
                self.entries.insert(key, row.to_entry());
            }
            family::HISTORY => {
                let (key, _) = history::decode_key(row_key).unwrap();
                if let Version::Tombstone = history::decode(row).unwrap() {
                    self.removed.insert(Key::new(key).unwrap());
                }
            }
            family::SESSION => insert(&mut self.sessions, session::decode_key(row_key), codec::decode(row)),
            family::ATTACHED => {
                let (id, kind, subject) = session::decode_attached(row_key).unwrap();
                self.attached.entry(id).or_default().insert(kind as u8);
                if kind == AttachedKind::Barrier {
                    self.parties.insert((gates::name_of(subject).unwrap(), id));
                }
            }
            family::LOCK_HEAD => insert(&mut self.heads, lock_queue::decode_head_key(row_key), codec::decode(row)),
            family::HOLDER => insert(&mut self.holders, lock_queue::decode_holder(row_key), codec::decode(row)),
            family::WAITER => insert(&mut self.waiters, lock_queue::decode_waiter(row_key), codec::decode(row)),
            family::BARRIER => insert(&mut self.barriers, gates::decode_barrier(row_key), codec::decode(row)),
            family::LATCH => insert(&mut self.latches, gates::decode_latch(row_key), codec::decode(row)),
            family::TASK => insert(&mut self.tasks, task::decode_key(row_key), codec::decode(row)),
            family::COLLECTION => insert(&mut self.collections, collection::decode_key(row_key), codec::decode(row)),
            family::DROPPED_INDEX => self.dropped += 1,
            family::AUDIT => self.groups += 1,
            family::USER => insert(&mut self.users, access::decode_user(row_key), codec::decode(row)),
            family::ROLE => insert(&mut self.roles, access::decode_role(row_key), codec::decode(row)),
            family::TOKEN => insert(&mut self.tokens, access::decode_token(row_key), codec::decode(row)),
            family::INVITATION => {
                insert(&mut self.invitations, members::decode_invitation(row_key), codec::decode(row))
            }
            family::REMOVED_MEMBER => {
                self.removed_members.insert(members::decode_removed(row_key).unwrap());
            }
            family::QUOTA => insert(&mut self.quotas, quota::decode_key(row_key), codec::decode(row)),
            family::QUOTA_USE => match quota::decode_use_key(row_key).unwrap() {
                QuotaSubject::Prefix(prefix) => _ = self.prefix_uses.insert(prefix, codec::decode(row).unwrap()),
                QuotaSubject::Principal(name) => _ = self.principal_uses.insert(name, codec::decode(row).unwrap()),
                QuotaSubject::Default => panic!("something is counted for nobody"),
            },
            family::QUOTA_STATE => self.quota_state = codec::decode(row).unwrap(),
            family::PARKED => self.parked.push(fault::decode_parked(row_key).unwrap().to_vec()),
            _ => {}
        }
    }

    /// The entry of a key, unless it is expired.
    pub fn live(&self, key: &Key) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !entry.is_expired_at(self.vars.clock))
    }

    /// The token that a write of an entry has to name.
    pub fn token(&self, key: &Key, entry: &Entry) -> u64 {
        let lock_key = self.lock_keys.get(key).filter(|_| entry.meta.is_locked_at(self.vars.clock));
        lock_key.copied().unwrap_or(entry.meta.cas)
    }

    /// Whether a token is the one of an entry: while a lock holds its key is, afterwards each of the two.
    pub fn has_token(&self, key: &Key, entry: &Entry, token: u64) -> bool {
        let ended = self.lock_keys.get(key).filter(|_| !entry.meta.is_locked_at(self.vars.clock));
        token == self.token(key, entry) || ended == Some(&token)
    }

    /// The bounds that hold for somebody, once they are counted.
    pub fn bounds_of(&self, subject: &QuotaSubject) -> Option<QuotaBounds> {
        let own = self.quotas.get(subject).map(|row| row.bounds);
        match subject {
            QuotaSubject::Prefix(prefix) => own.filter(|_| self.prefix_uses[prefix].from.is_none()),
            QuotaSubject::Principal(name) if !name.is_empty() => {
                let usual = || self.quotas.get(&QuotaSubject::Default).map_or(QuotaBounds::USUAL, |row| row.bounds);
                Some(own.unwrap_or_else(usual))
            }
            QuotaSubject::Principal(_) | QuotaSubject::Default => None,
        }
    }

    /// How much somebody has of something, as it is counted.
    pub fn used_of(&self, subject: &QuotaSubject, what: Counted) -> u64 {
        match subject {
            QuotaSubject::Prefix(prefix) => self.prefix_uses.get(prefix).map_or(0, |used| match what {
                Counted::Entries => used.entries,
                Counted::Bytes => used.bytes,
                Counted::Tasks => used.tasks,
                Counted::Sessions | Counted::Locks => 0,
            }),
            QuotaSubject::Principal(name) => self.principal_uses.get(name).map_or(0, |used| match what {
                Counted::Sessions => used.sessions,
                Counted::Locks => used.locks,
                Counted::Entries | Counted::Bytes | Counted::Tasks => 0,
            }),
            QuotaSubject::Default => 0,
        }
    }

    /// The collection that a key belongs to.
    pub fn collection_of(&self, key: &Key) -> Option<&CollectionRow> {
        let of = |name: &CollectionName| {
            let (start, end) = collection::keys(name);
            (start.as_slice()..end.as_slice()).contains(&key.as_bytes())
        };
        self.collections.iter().find(|(name, _)| of(name)).map(|(_, row)| row)
    }

    /// Whether a collection has an index that is being built.
    pub fn is_building(row: &CollectionRow) -> bool {
        row.indexes.iter().any(|state| matches!(state.stage, IndexStage::Building(_)))
    }

    /// The next moments of cluster clock at which something is over.
    pub fn moments(&self) -> Vec<u64> {
        let mut moments = BTreeSet::new();
        for entry in self.entries.values() {
            moments.extend(entry.meta.expires_at);
            moments.extend(entry.meta.locked_until);
        }
        moments.extend(self.sessions.values().map(|row| row.expires_at));
        moments.extend(self.waiters.values().map(|row| row.until));
        moments.extend(self.heads.values().filter_map(|head| head.not_before));
        moments.retain(|at| *at > self.vars.clock && *at - self.vars.clock < 100_000);
        moments.into_iter().collect()
    }
}

/// Takes a row.
fn insert<K: Ord, V>(rows: &mut BTreeMap<K, V>, key: Result<K, CodecError>, row: Result<V, CodecError>) {
    rows.insert(key.unwrap(), row.unwrap());
}
