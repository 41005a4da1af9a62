//! The look at a state's database: every row by itself, then what rows say of one another.
//!
//! Owns the one pass over all rows and the questions it asks on the way. Opens the database for reading alone, and holds the
//! collections and some counts, never the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quorate_machine::codec;
use quorate_machine::document::Json;
use quorate_machine::keyspace::digest::{RowHasher, covers};
use quorate_machine::keyspace::lock_queue::{self, LockHead};
use quorate_machine::keyspace::session::{self, AttachedKind, SessionRow};
use quorate_machine::keyspace::task::{self, QueueRow, TaskRow};
use quorate_machine::keyspace::{access, deadline, entry, family, family_range, fault, index, lock, timer};
use quorate_machine::machine::Sizes;
use quorate_machine::query::StateFault;
use quorate_machine::rules::candidates;
use quorate_machine::types::{
    ClusterMillis, CollectionRow, ContentKind, Revision, RoleRow, SessionId, TaskState, TokenRow, UserRow,
};
use rocksdb::{DB, ReadOptions};

use super::check_kept::KeptCounts;
use super::check_quotas::QuotaCounts;
use super::check_rows::{self, NAMES};
use crate::meta::AppliedRecord;
use crate::state::{Db, rocks_fault};

/// Faults told; of further ones only the number is.
const FAULTS_MAX: usize = 20;

/// What was found.
#[derive(Debug, Default)]
pub struct Findings {
    /// Rows of each family, in order.
    pub counts: Vec<(&'static str, u64)>,
    /// What is wrong.
    pub faults: Vec<String>,
    /// Faults beyond those.
    pub more_faults: u64,
    /// The applied row.
    pub record: Option<AppliedRecord>,
}

impl Findings {
    fn fault(&mut self, what: String) {
        match self.faults.len() < FAULTS_MAX {
            true => self.faults.push(what),
            false => self.more_faults += 1,
        }
    }
}

/// Looks at all of a database. `progress` is told the rows so far.
pub fn check(dir: &Path, mut progress: impl FnMut(u64)) -> Result<Findings, StateFault> {
    let rocks = Db::open_to_look(dir)?;
    let record = Db::peek_applied(dir)?;
    let mut looking = Looking::new(&rocks, record)?;
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    let mut rows = rocks.raw_iterator_opt(options);
    rows.seek_to_first();
    let mut seen = 0;
    while let Some((row_key, value)) = rows.item() {
        looking.row(row_key, value)?;
        seen += 1;
        if seen % 10_000 == 0 {
            progress(seen);
        }
        rows.next();
    }
    if let Err(error) = rows.status() {
        looking.found.fault(format!("after {seen} rows: {error}"));
    } else {
        looking.finish();
    }
    progress(seen);
    Ok(looking.found)
}

/// What is counted for each queue: tasks in each state.
type QueueCounts = [u64; 5];

struct Looking<'d> {
    rocks: &'d DB,
    record: AppliedRecord,
    found: Findings,
    hasher: RowHasher,
    digest: u128,
    sizes: Sizes,
    by_family: BTreeMap<u8, u64>,
    collections: BTreeMap<Vec<u8>, CollectionRow>,
    /// Index entries that entries ask for, and that there are.
    index_rows: BTreeMap<u64, (u64, u64)>,
    /// Indexes that failed or were dropped, of which rows may be left.
    to_clear: BTreeSet<u64>,
    deadlines: u64,
    locks: u64,
    attached_entries: (u64, u64),
    first_timer: Option<ClusterMillis>,
    /// Sessions that ended and have not given back all tasks that were claimed with them. Timers come before what hangs on sessions.
    ending_sessions: BTreeSet<Vec<u8>>,
    queues: BTreeMap<Vec<u8>, QueueCounts>,
    /// Roles of all users together.
    roles_of_users: u64,
    quotas: QuotaCounts,
    kept: KeptCounts,
    /// Work that was set aside, by the family of its row.
    parked: BTreeMap<u8, u64>,
}

impl<'d> Looking<'d> {
    fn new(rocks: &'d DB, record: AppliedRecord) -> Result<Self, StateFault> {
        let mut looking = Self {
            rocks,
            record,
            found: Findings::default(),
            hasher: RowHasher::default(),
            digest: 0,
            sizes: Sizes::default(),
            by_family: BTreeMap::new(),
            collections: BTreeMap::new(),
            index_rows: BTreeMap::new(),
            to_clear: BTreeSet::new(),
            deadlines: 0,
            locks: 0,
            attached_entries: (0, 0),
            first_timer: None,
            ending_sessions: BTreeSet::new(),
            queues: BTreeMap::new(),
            roles_of_users: 0,
            quotas: QuotaCounts::default(),
            kept: KeptCounts::default(),
            parked: BTreeMap::new(),
        };
        // Entries come before the collections that say which indexes they are in.
        looking.read_collections()?;
        looking.quotas = QuotaCounts::begin(rocks)?;
        Ok(looking)
    }

    fn read_collections(&mut self) -> Result<(), StateFault> {
        let (start, end) = family_range(family::COLLECTION);
        let mut rows = self.rocks.raw_iterator();
        rows.seek(&start);
        while let Some((row_key, value)) = rows.item().filter(|(row_key, _)| **row_key < *end) {
            // One that cannot be decoded is told when it comes.
            if let Ok(row) = codec::decode::<CollectionRow>(value) {
                self.collections.insert(row_key[1..].to_vec(), row);
            }
            rows.next();
        }
        rows.status().map_err(rocks_fault)
    }

    fn row(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        *self.by_family.entry(row_key.first().copied().unwrap_or_default()).or_default() += 1;
        if covers(row_key) {
            self.digest = self.digest.wrapping_add(self.hasher.hash(row_key, value));
            let Sizes { entries, live_bytes, history_bytes } = Sizes::of_rows([(row_key, value)]);
            self.sizes.entries += entries;
            self.sizes.live_bytes += live_bytes;
            self.sizes.history_bytes += history_bytes;
        }
        if let Err(error) = check_rows::decode(row_key, value) {
            self.found.fault(format!("row {}: {error}", row_key.escape_ascii()));
            return Ok(());
        }
        self.quotas.row(row_key, value)?;
        self.kept.row(row_key, value)?;
        match row_key.first().copied().unwrap_or_default() {
            family::ENTRY => self.entry(row_key, value),
            family::INDEX => self.index_row(row_key),
            family::DROPPED_INDEX => {
                index::decode_dropped(row_key).map(|id| _ = self.to_clear.insert(id)).map_err(Into::into)
            }
            family::TIMER => self.timer(row_key),
            family::SESSION => self.session(row_key, value),
            family::ATTACHED => self.attached(row_key),
            family::LOCK_HEAD => self.lock_head(row_key, value),
            family::TASK => self.task(row_key, value),
            family::QUEUE => self.queue(row_key, value),
            family::USER => self.user(row_key, value),
            family::ROLE => self.access_at(row_key, codec::decode::<RoleRow>(value)?.revision),
            family::TOKEN => self.token(row_key, value),
            family::PARKED => self.parked(row_key),
            _ => Ok(()),
        }
    }

    /// Whether what the row at hand asks for is there.
    fn expect(&mut self, row_key: &[u8], wanted: &[u8]) -> Result<(), StateFault> {
        // Work that was set aside is there under another key.
        if self.rocks.get_pinned(wanted).map_err(rocks_fault)?.is_none()
            && self.rocks.get_pinned(fault::parked_key(wanted)).map_err(rocks_fault)?.is_none()
        {
            let (row_key, wanted) = (row_key.escape_ascii(), wanted.escape_ascii());
            self.found.fault(format!("row {row_key} asks for row {wanted}, which is missing"));
        }
        Ok(())
    }

    /// The end of a lock is noted until it has come; then the entry says by itself that it has.
    fn lock(&mut self, row_key: &[u8], wanted: &[u8], until: u64) -> Result<(), StateFault> {
        if until > self.record.vars.clock {
            self.locks += 1;
            return self.expect(row_key, wanted);
        }
        for row_key in [wanted.to_vec(), fault::parked_key(wanted)] {
            self.locks += u64::from(self.rocks.get_pinned(row_key).map_err(rocks_fault)?.is_some());
        }
        Ok(())
    }

    fn entry(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let (key, row) = (entry::decode_key(row_key)?, entry::decode(value)?);
        let revision = self.record.vars.revision;
        if row.meta.cas > revision {
            self.found.fault(format!("row {} has cas {}, beyond {revision}", row_key.escape_ascii(), row.meta.cas));
        }
        if let Some(at) = row.meta.expires_at {
            self.deadlines += 1;
            self.expect(row_key, &deadline::row_key(at, key))?;
        }
        if let Some(until) = row.meta.locked_until {
            self.lock(row_key, &lock::row_key(until, key), until)?;
        }
        if let Some(id) = row.meta.session {
            self.attached_entries.0 += 1;
            self.expect(row_key, &session::attached_key(id, AttachedKind::Entry, key))?;
        }
        let Some(collection) = candidates(key).find_map(|name| self.collections.get(name)) else { return Ok(()) };
        let document = Json::parse_stored(row.data).ok().filter(|_| row.kind == ContentKind::Json);
        let mut wanted = Vec::new();
        for (rule, state) in collection.rules.indexes().iter().zip(&collection.indexes) {
            if state.holds(key) {
                wanted.push((
                    state.id,
                    rule.key_of(document.as_ref()).map(|values| index::row_key(state.id, &values, key)),
                ));
            }
        }
        for (id, wanted) in wanted {
            self.index_rows.entry(id).or_default().0 += 1;
            match wanted {
                Ok(wanted) => self.expect(row_key, &wanted)?,
                Err(fault) => self.found.fault(format!("row {} cannot be indexed: {fault:?}", row_key.escape_ascii())),
            }
        }
        Ok(())
    }

    fn index_row(&mut self, row_key: &[u8]) -> Result<(), StateFault> {
        let (id, _) = index::decode_key(row_key, 0)?;
        self.index_rows.entry(id).or_default().1 += 1;
        Ok(())
    }

    fn timer(&mut self, row_key: &[u8]) -> Result<(), StateFault> {
        let (at, kind, subject) = timer::decode_key(row_key)?;
        if kind == timer::TimerKind::SessionTasks {
            self.ending_sessions.insert(subject.to_vec());
        }
        self.first_timer = Some(self.first_timer.map_or(at, |first| first.min(at)));
        Ok(())
    }

    /// Work that was set aside: its row is gone, and asked for all the same.
    fn parked(&mut self, row_key: &[u8]) -> Result<(), StateFault> {
        let work = fault::decode_parked(row_key)?;
        if self.rocks.get_pinned(work).map_err(rocks_fault)?.is_none() {
            *self.parked.entry(work.first().copied().unwrap_or_default()).or_default() += 1;
        }
        Ok(())
    }

    fn session(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let (id, row) = (session::decode_key(row_key)?, codec::decode::<SessionRow>(value)?);
        let (start, end) = session::attached_to(id);
        let found = self.count(&start, &end)?;
        if found != u64::from(row.attached) {
            self.found.fault(format!("{} things are counted on session {id}, there are {found}", row.attached));
        }
        let bytes = self.entry_bytes(&start, &end)?;
        if bytes != row.bytes {
            self.found.fault(format!("session {id} says {} bytes of entries, they have {bytes}", row.bytes));
        }
        self.expect(row_key, &timer::row_key(row.armed_at, timer::TimerKind::Session, &id.0.to_be_bytes()))
    }

    /// Bytes of the entries among what hangs on a session.
    fn entry_bytes(&self, start: &[u8], end: &[u8]) -> Result<u64, StateFault> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(end);
        let mut rows = self.rocks.raw_iterator_opt(options);
        rows.seek(start);
        let mut bytes = 0;
        while let Some((attached, _)) = rows.item() {
            if let (_, AttachedKind::Entry, key) = session::decode_attached(attached)? {
                bytes +=
                    self.rocks.get_pinned(entry::row_key(key)).map_err(rocks_fault)?.map_or(0, |row| row.len() as u64);
            }
            rows.next();
        }
        rows.status().map_err(rocks_fault)?;
        Ok(bytes)
    }

    fn attached(&mut self, row_key: &[u8]) -> Result<(), StateFault> {
        let (id, kind, _) = session::decode_attached(row_key)?;
        if kind == AttachedKind::Entry {
            self.attached_entries.1 += 1;
        }
        // What could not be taken away with its session stays behind.
        let is_parked = self.rocks.get_pinned(fault::parked_key(row_key)).map_err(rocks_fault)?.is_some();
        let is_ending = is_parked || (kind == AttachedKind::Task && self.is_ending(id)?);
        if is_ending { Ok(()) } else { self.expect(row_key, &session::row_key(id)) }
    }

    /// Whether a session is to give back tasks, also where that was set aside.
    fn is_ending(&self, id: SessionId) -> Result<bool, StateFault> {
        if self.ending_sessions.contains(id.0.to_be_bytes().as_slice()) {
            return Ok(true);
        }
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(fault::parked_key(&[family::TIMER + 1]));
        let mut rows = self.rocks.raw_iterator_opt(options);
        rows.seek(fault::parked_key(&[family::TIMER]));
        let is_of_it = |row_key: &[u8]| {
            let timer = fault::decode_parked(row_key).and_then(timer::decode_key);
            matches!(timer, Ok((_, timer::TimerKind::SessionTasks, subject)) if subject == id.0.to_be_bytes())
        };
        while let Some((row_key, _)) = rows.item() {
            if is_of_it(row_key) {
                return Ok(true);
            }
            rows.next();
        }
        rows.status().map_err(rocks_fault)?;
        Ok(false)
    }

    fn lock_head(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let (lock, head) = (lock_queue::decode_head_key(row_key)?, codec::decode::<LockHead>(value)?);
        let (start, end) = lock_queue::holders_of(&lock);
        let holders = self.count(&start, &end)?;
        let (start, end) = lock_queue::waiters_of(&lock);
        let waiters = self.count(&start, &end)?;
        if (holders, waiters) != (head.holders.into(), head.waiters.into()) {
            self.found.fault(format!("{lock:?} has {holders} holders and {waiters} waiters, and says {head:?}"));
        }
        Ok(())
    }

    fn task(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let ((queue, id), row) = (task::decode_key(row_key)?, codec::decode::<TaskRow>(value)?);
        let head = &row.head;
        let (state, wanted) = match &head.state {
            TaskState::Scheduled => (0, task::due_key(&queue, head.due, head.number)),
            TaskState::Claimed { until, .. } => {
                (1, timer::row_key(*until, timer::TimerKind::TaskLease, &task::subject(&queue, &id)))
            }
            TaskState::Dead { at } => (2, task::dead_key(&queue, *at, head.number)),
            TaskState::Unplanned => (3, task::unplanned_key(&queue, &id)),
            TaskState::Done { until } => {
                (4, timer::row_key(*until, timer::TimerKind::TaskKept, &task::subject(&queue, &id)))
            }
        };
        self.queues.entry(task::queue_key(&queue)).or_default()[state] += 1;
        self.expect(row_key, &wanted)
    }

    fn queue(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let row: QueueRow = codec::decode(value)?;
        let found = self.queues.remove(row_key).unwrap_or_default();
        let said = [row.scheduled, row.claimed, row.dead, row.unplanned, row.kept];
        if found != said {
            let queue = task::decode_queue(row_key)?;
            self.found.fault(format!("queue {queue} counts {said:?} tasks in its states, there are {found:?}"));
        }
        Ok(())
    }

    fn user(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let (name, row) = (access::decode_user(row_key)?, codec::decode::<UserRow>(value)?);
        for role in &row.roles {
            self.roles_of_users += 1;
            self.expect(row_key, &access::role_key(role))?;
            self.expect(row_key, &access::role_user_key(role, &name))?;
        }
        self.access_at(row_key, row.revision)
    }

    fn token(&mut self, row_key: &[u8], value: &[u8]) -> Result<(), StateFault> {
        let (id, row) = (access::decode_token(row_key)?, codec::decode::<TokenRow>(value)?);
        self.expect(row_key, &access::user_key(&row.user))?;
        self.expect(row_key, &access::user_token_key(&row.user, id))?;
        self.access_at(row_key, row.revision)
    }

    /// A user, a role or a token was set at this revision: nothing of them may be newer than the access revision.
    fn access_at(&mut self, row_key: &[u8], revision: Revision) -> Result<(), StateFault> {
        let last = self.record.vars.access;
        if revision > last {
            let what = row_key.escape_ascii();
            self.found.fault(format!("row {what} was set at revision {revision}, behind the access revision {last}"));
        }
        Ok(())
    }

    fn count(&self, start: &[u8], end: &[u8]) -> Result<u64, StateFault> {
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(end);
        let mut rows = self.rocks.raw_iterator_opt(options);
        rows.seek(start);
        let mut count = 0;
        while rows.valid() {
            count += 1;
            rows.next();
        }
        rows.status().map_err(rocks_fault)?;
        Ok(count)
    }

    /// What only shows once all rows were seen.
    fn finish(&mut self) {
        let vars = self.record.vars.clone();
        let of = |family: u8| self.by_family.get(&family).copied().unwrap_or(0);
        let work = |family: u8| of(family) + self.parked.get(&family).copied().unwrap_or(0);
        let mut pairs = vec![
            ("deadlines, of which entries have", work(family::DEADLINE), self.deadlines),
            ("ends of locks, of which entries have", work(family::LOCK), self.locks),
            ("entries that hang on sessions, by themselves", self.attached_entries.1, self.attached_entries.0),
            ("sessions, counted as", of(family::SESSION), vars.sessions),
            ("collections, counted as", of(family::COLLECTION), vars.collections),
            ("tasks to be planned, counted as", work(family::TASK_UNPLANNED), vars.unplanned),
            ("tokens by user, of which there are by id", of(family::USER_TOKEN), of(family::TOKEN)),
            ("users by role, of which users have", of(family::ROLE_USER), self.roles_of_users),
        ];
        let states = self.collections.values().flat_map(|row| &row.indexes).map(|state| state.id);
        for id in states {
            let (wanted, there) = self.index_rows.remove(&id).unwrap_or_default();
            // The rows of one that failed are there until they are cleared, step by step.
            if wanted == 0 && self.to_clear.contains(&id) {
                continue;
            }
            pairs.push(("rows of one index, of which entries ask for", there, wanted));
        }
        for (what, found, said) in pairs {
            if found != said {
                self.found.fault(format!("there are {found} {what} {said}"));
            }
        }
        for (queue, counts) in std::mem::take(&mut self.queues) {
            self.found.fault(format!("tasks {counts:?} of {}, which has no row", queue.escape_ascii()));
        }
        for fault in self.quotas.faults().into_iter().chain(self.kept.faults()) {
            self.found.fault(fault);
        }
        if self.digest != vars.digest() {
            self.found.fault(format!("the rows have digest {:032x}, not {:032x}", self.digest, vars.digest()));
        }
        if self.sizes != vars.sizes {
            self.found.fault(format!("the rows amount to {:?}, and {:?} is said", self.sizes, vars.sizes));
        }
        if self.first_timer.is_some_and(|first| vars.next_timer.is_none_or(|next| next > first)) {
            self.found
                .fault(format!("a timer at {:?}, and none before {:?} is said", self.first_timer, vars.next_timer));
        }
        self.found.counts =
            NAMES.iter().map(|(family, name)| (*name, of(*family))).filter(|(_, rows)| *rows > 0).collect();
        self.found.record = Some(self.record.clone());
    }
}
