//! Writes of entries, alone and together, and of what is found.

use quorate_machine::document::Criteria;
use quorate_machine::keyspace::after_prefix;
use quorate_machine::limits;
use quorate_machine::types::{
    Branch, Change, Check, ClaimOp, Compared, Comparison, ComparisonOperator, ContentKind, Entry, Expect, Expiry,
    Guard, Key, KeyRange, ListOrder, ListOrderBy, ListShown, ListStep, LockSpace, Presence, RemoveStep, RevisionFilter,
    SessionId, Step, Txn, Value, WhereChange, WhereOp, WriteOp,
};

use super::{Generator, Theme};
use crate::names;
use crate::states;

impl Generator<'_> {
    /// A key: of one that is in a state drawn before it, if there is one.
    fn key(&mut self) -> Key {
        let wanted = *self.chance.pick(&states::ENTRY);
        let nth = self.chance.below(names::KEYS.len() as u64);
        if self.chance.percent(60) {
            let keys = names::keys();
            let fitting: Vec<_> =
                keys.iter().filter(|key| states::of_entry(self.picture, key).contains(&wanted)).collect();
            if let Some(key) = fitting.get(nth as usize % fitting.len().max(1)) {
                return (*key).clone();
            }
        }
        names::key(names::KEYS[nth as usize])
    }

    /// A value; where indexes are built there are often two alike.
    fn value(&mut self) -> Value {
        if self.theme == Theme::Collections && self.chance.percent(30) {
            return names::json(names::VALUES[2]);
        }
        match self.chance.percent(12) {
            true => Value { kind: ContentKind::Bytes, data: vec![b'{'; self.chance.below(40) as usize] },
            false => names::json(self.chance.text(&names::VALUES)),
        }
    }

    /// A change, and whether there is to be an entry for it; what goes with a session is often locked, so that the two meet.
    fn change(&mut self, key: &Key) -> (Change, Presence) {
        let ms = match self.chance.weighted(&[12, 50, 8, 30]) {
            0 => self.chance.between(1, 20),
            1 => self.chance.between(100, 900),
            2 => 0,
            _ => limits::LOCK_MS_MAX,
        };
        let patch = self.chance.pick(&self.texts.patches).clone();
        let value = self.value();
        let clock = self.picture.vars.clock;
        let is_open = |entry: &Entry| entry.meta.session.is_some() && !entry.meta.is_locked_at(clock);
        if self.picture.live(key).is_some_and(is_open) && self.chance.percent(25) {
            return (Change::Lock(ms.max(1)), Presence::Any);
        }
        let change = match self.chance.weighted(&[10, 16, 9, 12, 9, 6, 14, 7, 6, 7, 7]) {
            0 => return (Change::Put(value), Presence::Absent),
            1 => Change::Put(value),
            2 => return (Change::Put(value), Presence::Present),
            3 => Change::Patch(patch),
            4 => Change::Remove,
            5 => Change::Touch,
            6 => Change::Lock(ms),
            7 => Change::Extend(ms),
            8 => Change::Unlock,
            9 => Change::Claim { ms, patch: None },
            _ => Change::Claim { ms, patch: Some(patch) },
        };
        (change, Presence::Any)
    }

    fn expect(&mut self, key: &Key) -> Expect {
        let current = self.picture.live(key);
        let current =
            current.map(|entry| (self.picture.token(key, entry), entry.meta.is_locked_at(self.picture.vars.clock)));
        let wrong = 1 + self.chance.below(self.picture.vars.revision);
        // Who has the key to a lock uses it.
        let draw = match current {
            Some((_, true)) if self.chance.percent(75) => 3 + 2 * self.chance.below(2) as usize,
            _ => self.chance.weighted(&[52, 6, 8, 20, 4, 5, 5]),
        };
        let current = current.map_or(wrong, |(cas, _)| cas);
        match draw {
            0 => Expect::ANY,
            1 => Expect::ABSENT,
            2 => Expect::PRESENT,
            3 => Expect::cas(current),
            4 => Expect::cas(wrong),
            5 => Expect::any_of(vec![wrong, current]),
            _ => Expect::none_of(vec![if self.chance.percent(50) { current } else { wrong }]),
        }
    }

    fn criteria(&mut self) -> Criteria {
        self.chance.pick(&self.texts.criteria).clone()
    }

    /// A session that lives, or one that is over or never was.
    pub(super) fn some_session(&mut self) -> SessionId {
        let living: Vec<_> = self.picture.sessions.keys().copied().collect();
        let number = 1 + self.chance.below(self.picture.vars.revision + 2);
        let chosen = SessionId::chosen(number as i64 % 4).filter(|_| self.chance.percent(30));
        let other = chosen.unwrap_or(SessionId(number));
        match self.chance.percent(90) {
            true => self.chance.maybe(&living).copied().unwrap_or(other),
            false => other,
        }
    }

    fn guard(&mut self) -> Option<Box<Guard>> {
        if !self.chance.percent(12) {
            return None;
        }
        let holders: Vec<_> = self.picture.holders.keys().collect();
        let (nth, token) = (self.chance.below(3), self.chance.below(self.picture.vars.revision));
        let space = if self.chance.percent(50) { LockSpace::Lock } else { LockSpace::Election };
        if self.chance.percent(70)
            && let Some((lock, token)) = self.chance.maybe(&holders)
        {
            return Some(Box::new(Guard { lock: lock.clone(), token: *token }));
        }
        Some(Box::new(Guard { lock: names::lock(space, nth), token }))
    }

    fn expiry(&mut self) -> Expiry {
        match self.chance.weighted(&[25, 15, 25, 33, 2]) {
            0 => Expiry::Keep,
            1 => Expiry::Never,
            2 => Expiry::Usual,
            3 => Expiry::After(self.chance.pick(&[0, 1, 300, 700]) + self.chance.below(500)),
            _ => Expiry::After(limits::TTL_MS_MAX + self.chance.below(2)),
        }
    }

    /// One write.
    pub(super) fn write(&mut self) -> WriteOp {
        if self.theme == Theme::Collections && self.chance.percent(30) {
            return self.plain_upsert();
        }
        let key = self.key();
        self.write_of(key)
    }

    fn write_of(&mut self, key: Key) -> WriteOp {
        let (change, presence) = self.change(&key);
        let mut expect = self.expect(&key);
        if presence != Presence::Any {
            expect.presence = presence;
        }
        let condition = match self.chance.percent(15) {
            true => self.criteria(),
            false => self.texts.criteria[0].clone(),
        };
        let had = self.picture.live(&key).and_then(|entry| entry.meta.session);
        let session = match self.chance.weighted(&[55, 15, 30]) {
            0 => None,
            1 => had,
            _ => Some(self.some_session()),
        };
        let (expiry, guard) = (self.expiry(), self.guard());
        WriteOp { key, expect, condition, change, expiry, return_previous: self.chance.percent(50), session, guard }
    }

    /// One that fills a collection.
    fn plain_upsert(&mut self) -> WriteOp {
        let key = names::key(self.chance.text(&["c/1", "c/1\0", "c/2", "c/2/x"]));
        let (expect, condition, change) = (Expect::ANY, self.texts.criteria[0].clone(), Change::Put(self.value()));
        let session = self.chance.percent(30).then(|| self.some_session());
        let expiry = *self.chance.pick(&[Expiry::Never, Expiry::Never, Expiry::After(200)]);
        let (return_previous, guard) = (false, None);
        WriteOp { key, expect, condition, change, expiry, return_previous, session, guard }
    }

    /// A transaction in which no key is written twice, mostly.
    pub(super) fn txn(&mut self, depth: u32) -> Txn {
        let checks = (0..self.chance.below(3)).map(|_| self.check()).collect();
        let then = self.steps(depth);
        let otherwise = if self.chance.percent(40) { self.steps(depth) } else { Vec::new() };
        Txn { checks, then, otherwise }
    }

    fn check(&mut self) -> Check {
        let key = self.key();
        let expect = match self.chance.percent(70) {
            true => Expect::ANY,
            false => self.expect(&key),
        };
        let condition = match self.chance.percent(30) {
            true => self.criteria(),
            false => self.texts.criteria[0].clone(),
        };
        Check { key, expect, condition }
    }

    fn steps(&mut self, depth: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut written: Vec<Key> = Vec::new();
        for _ in 0..self.chance.weighted(&[6, 60, 26, 8]) {
            let key = self.key();
            if self.chance.percent(30) {
                steps.push(self.range_step(depth));
                continue;
            }
            match self.chance.weighted(&[10, 85, 5]) {
                0 => steps.push(Step::Get(key)),
                1 if !written.contains(&key) => {
                    written.push(key.clone());
                    steps.push(Step::Write(self.write_of(key)));
                }
                _ if depth == 0 => steps.push(Step::Txn(self.txn(1))),
                _ => steps.push(Step::Get(key)),
            }
        }
        steps
    }

    /// A range: of one key, with a prefix, between two keys, or of what is no key.
    fn range(&mut self) -> KeyRange {
        match self.chance.weighted(&[40, 30, 30, 5]) {
            0 => KeyRange::of_key(self.key().as_bytes()),
            1 => {
                let start = self.prefix();
                let end = after_prefix(&start);
                KeyRange::new(start, end)
            }
            2 => {
                let (start, end) = (self.key().into_bytes(), self.chance.percent(70).then(|| self.key().into_bytes()));
                KeyRange::new(start, end)
            }
            // Of a key that is too long to be one.
            _ => {
                let mut key = self.key().into_bytes();
                key.resize(limits::KEY_BYTES_MAX + 1 + self.chance.below(2) as usize, b'k');
                KeyRange::of_key(&key)
            }
        }
    }

    fn range_step(&mut self, depth: u32) -> Step {
        let range = self.range();
        match self.chance.weighted(&[25, 45, 30]) {
            0 => Step::List(self.list_step(range)),
            1 => Step::Remove(RemoveStep { range, return_previous: self.chance.percent(50) }),
            _ if depth == 0 => {
                let comparisons = (0..self.chance.below(3)).map(|_| self.comparison()).collect();
                let (then, otherwise) = (self.steps(1), self.steps(1));
                Step::Branch(Branch { comparisons, then, otherwise })
            }
            _ => Step::List(self.list_step(range)),
        }
    }

    fn list_step(&mut self, range: KeyRange) -> ListStep {
        let by = *self.chance.pick(&[
            ListOrderBy::Key,
            ListOrderBy::Version,
            ListOrderBy::CreateRevision,
            ListOrderBy::ModRevision,
            ListOrderBy::Value,
        ]);
        let order = ListOrder { by, descending: self.chance.percent(50) };
        let filter = RevisionFilter { max_mod: self.picture.vars.revision / 2, ..RevisionFilter::ALL };
        let filter = if self.chance.percent(30) { filter } else { RevisionFilter::ALL };
        let shown = *self.chance.pick(&[ListShown::Entries, ListShown::Keys, ListShown::Count]);
        // Also what is not yet, and what is none.
        let newest = self.picture.vars.revision;
        let at = match self.chance.weighted(&[80, 12, 4, 4]) {
            0 => None,
            1 => Some(newest - self.chance.below(4).min(newest)),
            2 => Some(newest + 1),
            _ => Some(0),
        };
        ListStep { range, limit: self.chance.below(3), order, filter, shown, at }
    }

    fn comparison(&mut self) -> Comparison {
        let range = self.range();
        let operators = [
            ComparisonOperator::Equal,
            ComparisonOperator::NotEqual,
            ComparisonOperator::Greater,
            ComparisonOperator::Less,
        ];
        let meta =
            self.picture.entries.iter().find(|(key, _)| range.contains(key.as_bytes())).map(|(_, entry)| entry.meta);
        let near = |number: Option<u64>| number.map_or(0, |number| number as i64);
        let with = match self.chance.below(5) {
            0 => Compared::Version(near(meta.map(|meta| meta.version))),
            1 => Compared::CreateRevision(near(meta.map(|meta| meta.create_revision))),
            2 => Compared::ModRevision(near(meta.map(|meta| meta.mod_revision))),
            3 => Compared::Lease(near(meta.and_then(|meta| meta.session).map(|id| id.lease() as u64))),
            _ => Compared::Value(self.value().data),
        };
        Comparison { range, operator: *self.chance.pick(&operators), with }
    }

    /// Writes of what is found.
    pub(super) fn update_where(&mut self) -> WhereOp {
        let change = match self.chance.percent(70) {
            true => WhereChange::Patch { patch: self.chance.pick(&self.texts.patches).clone(), expiry: self.expiry() },
            false => WhereChange::Remove,
        };
        let criteria = self.criteria();
        let condition = match self.chance.percent(25) {
            true => self.criteria(),
            false => self.texts.criteria[0].clone(),
        };
        let (limit, guard) = (self.chance.between(1, 4) as u32, self.guard());
        let after = self.chance.percent(15).then(|| self.key());
        WhereOp { prefix: self.prefix(), criteria, condition, change, limit, after, guard }
    }

    fn prefix(&mut self) -> Vec<u8> {
        self.chance.pick(&names::PREFIXES).as_bytes().to_vec()
    }

    /// Locks of what is found.
    pub(super) fn claim(&mut self) -> ClaimOp {
        let patch = self.chance.percent(40).then(|| self.chance.pick(&self.texts.patches).clone());
        let criteria = self.criteria();
        let (limit, guard) = (self.chance.between(1, 3) as u32, self.guard());
        let lock_ms = *self.chance.pick(&[1, 200, 600, 900]);
        ClaimOp {
            prefix: self.prefix(),
            criteria,
            order: self.chance.pick(&self.texts.orders).clone(),
            limit,
            lock_ms,
            patch,
            guard,
        }
    }
}
