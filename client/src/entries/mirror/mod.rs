//! A prefix kept in memory: listed once, then followed by a watch.
//!
//! Owns the task that follows, and what is said of how far it is. What is kept, and how it is found, is [`state`]'s.

mod state;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use serde::de::DeserializeOwned;
use tokio::sync::{broadcast, watch};
use tokio::task::AbortHandle;

use crate::api::{EntryView, Name, WatchEvent};
use crate::call::error::Error;
use crate::client::Client;
use crate::entries::kv::Document;
use crate::entries::watch::{Watch, WatchSetup, Watched};
use state::Entries;

/// How often a silent node says how far it is, where nothing else is asked for: so long a [`Mirror::sync`] may take while nothing
/// changes below the prefix. The shortest that nodes take.
const HEARTBEAT_DEFAULT: Duration = Duration::from_millis(500);
/// Changes that a slow reader of [`Mirror::changes`] may be behind.
const CHANGES_KEPT: usize = 1_024;
/// Pauses before a watch that failed is begun anew.
const AGAIN_MIN: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(5);

/// A mirror to be started, from [`Client::mirror`].
#[must_use = "does nothing until started"]
#[derive(Debug, Clone)]
pub struct MirrorSetup {
    client: Client,
    prefix: Name,
    fields: Vec<String>,
    part: Option<(u32, u32)>,
    heartbeat: Duration,
}

/// All entries below a prefix, in memory, kept as they are in the cluster. Cheap to clone; follows until the last clone is dropped.
///
/// Reads are answered at once, from what this process knows: they may be a moment old ([`Mirror::staleness`]), but each shows whole
/// transactions only, and never goes back in time. Who needs to see every write that was acknowledged before asks [`Mirror::sync`]
/// first.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use serde_json::json;
///
/// let users = client.mirror("users/").index_by("email").start().await?;
/// println!("{} users", users.len());
/// for user in users.find_by("email", &json!("ann@example.org")) {
///     println!("{} since revision {}", user.key, user.mod_revision);
/// }
/// // As fresh as a linearizable read, for all that is read after it.
/// users.sync().await?;
/// assert!(users.get("users/ann").is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Mirror {
    shared: Arc<Shared>,
    _follower: Arc<Follower>,
}

struct Shared {
    client: Client,
    prefix: Name,
    entries: RwLock<Entries>,
    /// Everything up to this revision is in `entries`.
    revision: watch::Sender<u64>,
    changes: broadcast::Sender<MirrorChange>,
    health: Mutex<Health>,
}

struct Health {
    heard: Instant,
    trouble: Option<Arc<Error>>,
}

/// The task, which ends with the last handle.
struct Follower(AbortHandle);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What happened to a mirror.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::MirrorChange;
///
/// let mut changes = client.mirror("hosts/").start().await?.changes();
/// loop {
///     match changes.next().await {
///         MirrorChange::Entry { key, entry: Some(_), before: None, .. } => println!("{key} came"),
///         MirrorChange::Entry { key, entry: None, .. } => println!("{key} went"),
///         MirrorChange::Entry { key, .. } => println!("{key} changed"),
///         // Look at all of it anew.
///         _ => println!("anything may have changed"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MirrorChange {
    /// An entry changed.
    #[non_exhaustive]
    Entry {
        /// Which.
        key: Name,
        /// As it is now; `None`: it is gone.
        entry: Option<Arc<EntryView>>,
        /// As the mirror knew it before.
        before: Option<Arc<EntryView>>,
        /// Revision of the change.
        revision: u64,
    },
    /// Anything may have changed: the mirror was filled anew, or who listens was too slow.
    #[non_exhaustive]
    Resynced {
        /// The revision that it was filled with, or is at.
        revision: u64,
    },
}

impl Client {
    /// Keeps all entries whose keys begin with `prefix` in memory, all there are for an empty one.
    pub fn mirror(&self, prefix: impl Into<Name>) -> MirrorSetup {
        MirrorSetup {
            client: self.clone(),
            prefix: prefix.into(),
            fields: Vec::new(),
            part: None,
            heartbeat: HEARTBEAT_DEFAULT,
        }
    }
}

impl MirrorSetup {
    /// Finds entries by this field too, with [`Mirror::find_by`]: a dotted path or a JSON pointer into the document. Several fields
    /// have an index each.
    pub fn index_by(mut self, field: impl Into<String>) -> Self {
        self.fields.push(field.into());
        self
    }

    /// Only the keys of part `index`, from 0, of `of` parts: what workers that share a prefix keep, each its own part. Which part a key
    /// is in never changes, and is the same for watches and lists.
    pub fn part(mut self, index: u32, of: u32) -> Self {
        self.part = Some((index, of));
        self
    }

    /// How often a node says how far it is while nothing happens below the prefix: 0.5 to 60 s, default 0.5 s. [`Mirror::sync`] may
    /// take as long.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// Fills it, and follows from then on. Returns once all is there.
    pub async fn start(self) -> Result<Mirror, Error> {
        let mut watch = self.watch().start().await?;
        let entries = fill(&mut watch).await?;
        let revision = watch.revision().unwrap_or_default();
        let shared = Arc::new(Shared {
            client: self.client.clone(),
            prefix: self.prefix.clone(),
            entries: RwLock::new(Entries::of(&self.fields, entries)),
            revision: watch::Sender::new(revision),
            changes: broadcast::Sender::new(CHANGES_KEPT),
            health: Mutex::new(Health { heard: Instant::now(), trouble: None }),
        });
        let task = tokio::spawn(follow(self, shared.clone(), watch));
        Ok(Mirror { shared, _follower: Arc::new(Follower(task.abort_handle())) })
    }

    fn watch(&self) -> WatchSetup {
        let watch = self.client.watch(self.prefix.clone()).initial().heartbeat(self.heartbeat);
        match self.part {
            Some((index, of)) => watch.part(index, of),
            None => watch,
        }
    }
}

/// The entries with which a watch begins.
async fn fill(watch: &mut Watch) -> Result<Vec<EntryView>, Error> {
    let mut entries = Vec::new();
    loop {
        match watch.next().await? {
            Watched::Event(event) => entries.extend(event.entry),
            Watched::Restarted => entries.clear(),
            Watched::Synced(_) => return Ok(entries),
        }
    }
}

/// Follows for good. What cannot be followed any more is filled anew.
async fn follow(setup: MirrorSetup, shared: Arc<Shared>, mut watch: Watch) {
    loop {
        let error = match shared.follow(&mut watch).await {
            Ok(never) => match never {},
            Err(error) => error,
        };
        tracing::debug!(target: "quorate_client", prefix = %shared.prefix, %error, "a mirror is filled anew");
        shared.on_trouble(error);
        let mut pause = AGAIN_MIN;
        watch = loop {
            match shared.refill(&setup).await {
                Ok(watch) => break watch,
                Err(error) => shared.on_trouble(error),
            }
            tokio::time::sleep(pause.mul_f64(0.5 + rand::random::<f64>() / 2.0)).await;
            pause = (pause * 2).min(AGAIN_MAX);
        };
    }
}

impl Shared {
    async fn follow(&self, watch: &mut Watch) -> Result<std::convert::Infallible, Error> {
        let mut events = Vec::new();
        loop {
            match watch.step().await? {
                Some(Watched::Event(event)) => events.push(*event),
                // Only at the begin of a watch, which is over.
                Some(Watched::Synced(_) | Watched::Restarted) | None => {}
            }
            // The rest of a revision is at hand: all of it takes effect at once.
            if !watch.has_more() {
                self.apply(std::mem::take(&mut events));
                self.reached(watch.revision().unwrap_or_default());
            }
        }
    }

    fn apply(&self, events: Vec<WatchEvent>) {
        if events.is_empty() {
            return;
        }
        let mut entries = self.entries.write();
        for WatchEvent { key, entry, revision, .. } in events {
            let entry = entry.map(Arc::new);
            let before = entries.set(&key, entry.clone());
            // Nobody may be listening.
            let _ = self.changes.send(MirrorChange::Entry { key, entry, before, revision });
        }
    }

    /// Begins a new watch and exchanges everything for what it brings.
    async fn refill(&self, setup: &MirrorSetup) -> Result<Watch, Error> {
        let mut watch = setup.watch().start().await?;
        let filled = Entries::of(&setup.fields, fill(&mut watch).await?);
        let revision = watch.revision().unwrap_or_default();
        *self.entries.write() = filled;
        let _ = self.changes.send(MirrorChange::Resynced { revision });
        self.reached(revision);
        Ok(watch)
    }

    fn reached(&self, revision: u64) {
        *self.health.lock() = Health { heard: Instant::now(), trouble: None };
        self.revision.send_if_modified(|known| std::mem::replace(known, revision) != revision);
    }

    fn on_trouble(&self, error: Error) {
        self.health.lock().trouble = Some(Arc::new(error));
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Mirror(`{}`: {} entries at {})", self.shared.prefix, self.len(), self.revision())
    }
}

impl Mirror {
    /// The prefix.
    pub fn prefix(&self) -> &Name {
        &self.shared.prefix
    }

    /// An entry.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Arc<EntryView>> {
        self.shared.entries.read().get(key.as_ref()).cloned()
    }

    /// An entry with its value decoded.
    pub fn get_json<T: DeserializeOwned>(&self, key: impl AsRef<[u8]>) -> Result<Option<Document<T>>, Error> {
        let Some(entry) = self.get(key) else { return Ok(None) };
        Ok(Some(Document { content: entry.json()?, entry: EntryView::clone(&entry) }))
    }

    /// The entries whose keys begin with `prefix`, by key, all of one moment.
    pub fn list(&self, prefix: impl AsRef<[u8]>) -> Vec<Arc<EntryView>> {
        self.shared.entries.read().list(prefix.as_ref())
    }

    /// The entries whose field has this value, by key: numbers are compared by value, and an array has each of its elements. Fails with
    /// [`Error::Invalid`] where [`MirrorSetup::index_by`] did not name the field.
    pub fn try_find_by(&self, field: &str, value: &serde_json::Value) -> Result<Vec<Arc<EntryView>>, Error> {
        let found = self.shared.entries.read().find(field, value);
        found.ok_or_else(|| Error::Invalid(format!("the mirror of `{}` has no index by `{field}`", self.prefix())))
    }

    /// [`Self::try_find_by`] for a field that is known to be indexed.
    ///
    /// # Panics
    ///
    /// Where [`MirrorSetup::index_by`] did not name the field.
    pub fn find_by(&self, field: &str, value: &serde_json::Value) -> Vec<Arc<EntryView>> {
        self.try_find_by(field, value).unwrap_or_else(|error| panic!("{error}"))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.shared.entries.read().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The revision up to which it shows every change.
    pub fn revision(&self) -> u64 {
        *self.shared.revision.borrow()
    }

    /// How long ago the cluster last said that this is how things are: mostly less than the heartbeat.
    pub fn staleness(&self) -> Duration {
        self.shared.health.lock().heard.elapsed()
    }

    /// Why it does not follow at the moment; `None` while it does. It keeps trying in any case, and answers from what it has.
    pub fn trouble(&self) -> Option<Arc<Error>> {
        self.shared.health.lock().trouble.clone()
    }

    /// Asks the cluster which revision it is at, and waits until the mirror is there: what is read after this is as fresh as a
    /// linearizable read. Returns the revision. Fails with [`Error::Behind`] where that takes longer than the deadline of the client.
    pub async fn sync(&self) -> Result<u64, Error> {
        let asked = self.shared.client.list(self.prefix()).keys_only().limit(1).page().await?;
        self.wait_for(asked.revision).await
    }

    /// Waits until the mirror shows this revision, such as that of a write of one's own; returns the one that it shows. Fails as
    /// [`Self::sync`] does.
    pub async fn wait_for(&self, revision: u64) -> Result<u64, Error> {
        let mut reached = self.shared.revision.subscribe();
        let waited =
            tokio::time::timeout(self.shared.client.call_timeout(), reached.wait_for(|at| *at >= revision)).await;
        match waited {
            Ok(Ok(at)) => Ok(*at),
            // The sender lives as long as we do.
            Ok(Err(_)) | Err(_) => {
                let (prefix, reached, source) = (self.prefix().clone(), self.revision(), self.trouble());
                Err(Error::Behind { prefix, revision, reached, source })
            }
        }
    }

    /// What happens to it from now on.
    pub fn changes(&self) -> MirrorChanges {
        MirrorChanges { changes: self.shared.changes.subscribe(), mirror: self.clone() }
    }
}

/// The changes of a mirror, from [`Mirror::changes`].
pub struct MirrorChanges {
    changes: broadcast::Receiver<MirrorChange>,
    mirror: Mirror,
}

impl fmt::Debug for MirrorChanges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "MirrorChanges of {:?}", self.mirror)
    }
}

impl MirrorChanges {
    /// The next change, which the mirror shows by then. May be dropped and called again. Who is more than some hundred changes behind
    /// is told [`MirrorChange::Resynced`] instead of them.
    pub async fn next(&mut self) -> MirrorChange {
        match self.changes.recv().await {
            Ok(change) => change,
            // The sender lives as long as the mirror, which is held here; what is left is that we were too slow.
            Err(_) => MirrorChange::Resynced { revision: self.mirror.revision() },
        }
    }

    /// All of them as a stream.
    pub fn into_stream(self) -> impl futures::Stream<Item = MirrorChange> {
        futures::stream::unfold(self, |mut changes| async move { Some((changes.next().await, changes)) })
    }
}
