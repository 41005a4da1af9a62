//! Watches: the changes of some keys as they happen, over whatever happens to nodes and connections.
//!
//! Owns where a watch is: which revisions were handed out whole. Whatever breaks, it goes on at another node right behind them, so
//! nobody is shown an event twice, out of order, or a part of a transaction.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures::stream::{self, Stream};
use http::{HeaderName, HeaderValue, Method};

use crate::api::{Criterion, Name, WatchEvent, WatchEventKind, WatchProgress};
use crate::call::criteria::Criteria;
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, push_name, push_query};
use crate::client::Client;
use crate::transport::EventStream;
use crate::transport::messages::Message;
use crate::transport::stream_end::StreamEnd;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How often a silent node says that it is there, where nothing else is asked for.
const HEARTBEAT_DEFAULT: Duration = Duration::from_secs(5);
/// A stream that is silent for so many heartbeats is dead.
const SILENT_HEARTBEATS_MAX: u32 = 3;

/// A watch to be begun, by [`WatchSetup::start`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::api::{Criterion, Operator, WatchEventKind};
///
/// let mut watch = client
///     .watch("orders/")
///     .filter(&Criterion::new("status", Operator::Eq, "paid"))
///     .only(WatchEventKind::Put)
///     .prev()
///     .start()
///     .await?;
/// while let Some(event) = watch.next().await?.event() {
///     println!("{} was {:?} before", event.key, event.prev.map(|entry| entry.version));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until started"]
#[derive(Debug, Clone)]
pub struct WatchSetup {
    client: Client,
    keys: Keys,
    criteria: Criteria,
    kind: Option<WatchEventKind>,
    part: Option<(u32, u32)>,
    prev: bool,
    keys_only: bool,
    local: bool,
    start: Start,
    heartbeat: Duration,
    patience: Option<Duration>,
}

#[derive(Debug, Clone)]
enum Keys {
    Key(Name),
    Prefix(Name),
    Range(Name, Option<Name>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Now,
    Initial,
    From(u64),
}

/// What a watch hands out.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::Watched;
///
/// let mut watch = client.watch("settings/").initial().start().await?;
/// let mut settings = std::collections::BTreeMap::new();
/// loop {
///     match watch.next().await? {
///         Watched::Event(event) => match event.entry {
///             Some(entry) => drop(settings.insert(event.key, entry)),
///             None => drop(settings.remove(&event.key)),
///         },
///         Watched::Synced(revision) => println!("{} settings as of {revision}", settings.len()),
///         Watched::Restarted => settings.clear(),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Watched {
    /// A change, or an entry that was there when the watch began: see [`WatchEvent::initial`].
    Event(Box<WatchEvent>),
    /// All initial entries were handed out, as of this revision; changes follow.
    Synced(u64),
    /// The stream broke among the initial entries: those handed out so far count no more, all of them come anew.
    Restarted,
}

impl Client {
    /// Watches the keys that begin with `prefix`; all keys for an empty one. Without more it shows what changes from now on.
    pub fn watch(&self, prefix: impl Into<Name>) -> WatchSetup {
        WatchSetup {
            client: self.clone(),
            keys: Keys::Prefix(prefix.into()),
            criteria: Criteria::default(),
            kind: None,
            part: None,
            prev: false,
            keys_only: false,
            local: false,
            start: Start::Now,
            heartbeat: HEARTBEAT_DEFAULT,
            patience: None,
        }
    }
}

impl WatchSetup {
    /// Only this key, instead of a prefix.
    pub fn key(mut self, key: impl Into<Name>) -> Self {
        self.keys = Keys::Key(key.into());
        self
    }

    /// The keys from `start`, inclusive, to `end`, exclusive or `None` for no end, instead of a prefix.
    pub fn range(mut self, start: impl Into<Name>, end: Option<Name>) -> Self {
        self.keys = Keys::Range(start.into(), end);
        self
    }

    /// First all entries as they are, then what changes.
    pub fn initial(mut self) -> Self {
        self.start = Start::Initial;
        self
    }

    /// From this revision on. Fails with `compacted` where that can no longer be read.
    pub fn from(mut self, revision: u64) -> Self {
        self.start = Start::From(revision);
        self
    }

    /// Only changes of entries of which this holds, after the change, or before it where they are gone.
    pub fn filter(mut self, criterion: &Criterion) -> Self {
        self.criteria.add(criterion);
        self
    }

    /// Takes the criterion as JSON text, such as `{"field": "price", "op": "lt", "value": 1.50}`, and keeps numbers as they are written.
    pub fn filter_json(mut self, criterion: &str) -> Self {
        self.criteria.add_json(criterion);
        self
    }

    /// Only events of this kind.
    pub fn only(mut self, kind: WatchEventKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Only the keys of part `index`, from 0, of `of` parts: what workers that share a prefix watch, each its own part. Which part a key
    /// is in never changes, and is the same for listings.
    pub fn part(mut self, index: u32, of: u32) -> Self {
        self.part = Some((index, of));
        self
    }

    /// With the entry as it was before each change.
    pub fn prev(mut self) -> Self {
        self.prev = true;
        self
    }

    /// Without values.
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Begins with whatever the asked node has, maybe stale.
    pub fn local(mut self) -> Self {
        self.local = true;
        self
    }

    /// How often a node says that it is there while nothing happens: 0.5 to 60 s, default 5 s. One that is silent for three
    /// times as long is left for another.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// For how long to try to go on after a break before [`Watch::next`] fails; without it for ever. The first stream has the
    /// deadline of the client in any case.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Begins it: from when this returns on, nothing is missed.
    pub async fn start(self) -> Result<Watch, Error> {
        let target = self.target()?;
        let mut watch = Watch {
            target,
            position: None,
            stream: None,
            incomplete: Vec::new(),
            ready: VecDeque::new(),
            is_synced: self.start != Start::Initial,
            has_initial: false,
            setup: self,
        };
        let patience = watch.setup.client.call_timeout();
        watch.connect(Some(patience)).await?;
        Ok(watch)
    }

    /// The URL of the stream, the same for each try.
    fn target(&self) -> Result<String, Error> {
        let mut target = String::from("/v1/watch");
        match &self.keys {
            Keys::Key(key) => push_name(&mut target, "key", key),
            Keys::Prefix(prefix) => push_name(&mut target, "prefix", prefix),
            Keys::Range(start, end) => {
                push_name(&mut target, "start", start);
                if let Some(end) = end {
                    push_name(&mut target, "end", end);
                }
            }
        }
        if let Some((index, of)) = self.part {
            push_query(&mut target, "part", index);
            push_query(&mut target, "of", of);
        }
        if let Some(criteria) = self.criteria.checked()? {
            let text = serde_json::to_string(criteria);
            let text =
                text.map_err(|source| Error::Decode { what: "the criteria have no JSON form".into(), source })?;
            push_query(&mut target, "where", text);
        }
        match self.kind {
            None => {}
            Some(WatchEventKind::Put) => push_query(&mut target, "events", "put"),
            Some(_) => push_query(&mut target, "events", "delete"),
        }
        for (name, is_set) in [("prev", self.prev), ("keys_only", self.keys_only)] {
            if is_set {
                push_query(&mut target, name, true);
            }
        }
        if self.local {
            push_query(&mut target, "consistency", "local");
        }
        match self.start {
            Start::Now => {}
            Start::Initial => push_query(&mut target, "initial", true),
            Start::From(revision) => push_query(&mut target, "from", revision),
        }
        push_query(&mut target, "heartbeat_ms", self.heartbeat.as_millis());
        Ok(target)
    }
}

/// A watch that goes on by itself, at another node where it has to.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let mut watch = client.watch("settings/").start().await?;
/// loop {
///     let Some(event) = watch.next().await?.event() else { continue };
///     println!("{:?} {}", event.kind, event.key);
///     // A revision is whole once there is nothing more at hand.
///     if !watch.has_more() {
///         println!("up to {:?}", watch.revision());
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Watch {
    setup: WatchSetup,
    target: String,
    /// Everything up to this revision was handed out, or is ready to be.
    position: Option<u64>,
    stream: Option<(usize, EventStream)>,
    /// Events of a revision of which more may come.
    incomplete: Vec<WatchEvent>,
    ready: VecDeque<Watched>,
    is_synced: bool,
    /// Whether initial entries were handed out that a new stream would bring again.
    has_initial: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Watch({} at {:?})", self.target, self.position)
    }
}

impl Watch {
    /// The next event. Breaks are gone over, so this fails only where it makes no sense to go on: with `compacted`
    /// ([`crate::api::ErrorCode::Compacted`], with the oldest revision that can be read) where what follows is lost to this watch, and a
    /// new one with [`WatchSetup::initial`] is the way out; or once [`WatchSetup::patience`] is at its end. May be dropped and
    /// called again without losing an event.
    pub async fn next(&mut self) -> Result<Watched, Error> {
        loop {
            if let Some(watched) = self.step().await? {
                return Ok(watched);
            }
        }
    }

    /// The next event; `None` where something else happened, after which [`Self::revision`] may be another.
    pub(crate) async fn step(&mut self) -> Result<Option<Watched>, Error> {
        if let Some(watched) = self.ready.pop_front() {
            return Ok(Some(watched));
        }
        let Some((node, stream)) = &mut self.stream else {
            self.connect(self.setup.patience).await?;
            return Ok(None);
        };
        let node = *node;
        match stream.next(self.setup.heartbeat * SILENT_HEARTBEATS_MAX).await {
            Ok(message) => self.take(node, &message)?,
            Err(_broken) => self.leave(node),
        }
        Ok(self.ready.pop_front())
    }

    /// The revision up to which everything was handed out by [`Self::next`], or will be next. A new watch
    /// [`from`](WatchSetup::from) the one after it goes on where this one is, with the same keys and filters; `None` before all
    /// initial entries came.
    pub fn revision(&self) -> Option<u64> {
        self.position
    }

    /// Whether [`Self::next`] has something at hand: the rest of a revision is, once its first event was handed out.
    pub fn has_more(&self) -> bool {
        !self.ready.is_empty()
    }

    /// All events as a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Watched, Error>> {
        stream::try_unfold(self, |mut watch| async move { Ok(Some((watch.next().await?, watch))) })
    }

    /// Leaves a stream that is of no more use. What did not come whole comes again.
    fn leave(&mut self, node: usize) {
        self.stream = None;
        self.incomplete.clear();
        self.setup.client.node_failed(node);
    }

    /// Opens a stream that goes on from where the watch is.
    async fn connect(&mut self, patience: Option<Duration>) -> Result<(), Error> {
        let call = self.call()?;
        let until = patience.map(|patience| Instant::now() + patience);
        let (node, stream) = self.setup.client.open_stream(&call, until).await?;
        if !self.is_synced && std::mem::take(&mut self.has_initial) {
            self.ready.push_back(Watched::Restarted);
        }
        if self.is_synced && self.position.is_none() {
            self.position = match self.setup.start {
                Start::From(revision) => Some(revision.saturating_sub(1)),
                Start::Now | Start::Initial => stream.revision,
            };
        }
        self.stream = Some((node, stream));
        Ok(())
    }

    fn call(&self) -> Result<Call, Error> {
        let mut call = Call::new(Method::GET, self.target.clone(), Intent::Read, Preference::Any)?;
        // The first stream begins as its URL says.
        call.condition =
            self.position.filter(|_| self.is_synced).map(|position| (LAST_EVENT_ID, HeaderValue::from(position)));
        Ok(call)
    }

    fn take(&mut self, node: usize, message: &Message) -> Result<(), Error> {
        match message.name.as_str() {
            "put" | "delete" => {
                let event: WatchEvent = self.read(node, message)?;
                if event.initial {
                    self.has_initial = true;
                    self.ready.push_back(Watched::Event(Box::new(event)));
                    return Ok(());
                }
                let revision = event.revision;
                self.incomplete.push(event);
                if message.id.is_some() {
                    let whole = self.incomplete.drain(..).map(|event| Watched::Event(Box::new(event)));
                    self.ready.extend(whole);
                    self.position = Some(revision);
                }
            }
            "synced" => {
                let WatchProgress { revision, .. } = self.read(node, message)?;
                (self.position, self.is_synced) = (Some(revision), true);
                self.ready.push_back(Watched::Synced(revision));
            }
            "progress" => {
                let WatchProgress { revision, .. } = self.read(node, message)?;
                self.position = self.position.max(Some(revision));
                self.setup.client.on_sign_of_life(node);
            }
            "end" => {
                let end: StreamEnd = self.read(node, message)?;
                self.leave(node);
                return end.into_error().map_or(Ok(()), Err);
            }
            // Of a later version.
            _ => {}
        }
        Ok(())
    }

    /// The JSON of a message. What cannot be read ends the stream, not the watch; the caller is told.
    fn read<T: serde::de::DeserializeOwned>(&mut self, node: usize, message: &Message) -> Result<T, Error> {
        serde_json::from_str(&message.data).map_err(|error| {
            self.leave(node);
            let detail = format!("the event `{}` of a watch is not what it should be: {error}", message.name);
            self.setup.client.strange_answer(node, detail)
        })
    }
}

impl Watched {
    /// The event, if it is one.
    pub fn event(self) -> Option<WatchEvent> {
        match self {
            Self::Event(event) => Some(*event),
            Self::Synced(_) | Self::Restarted => None,
        }
    }
}
