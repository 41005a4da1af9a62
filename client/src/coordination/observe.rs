//! Observing an election: who leads, each change in order, over whatever happens to nodes and connections.
//!
//! Owns where an observation is. Whatever breaks, it goes on at another node right behind the last change that was handed out.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use futures::stream::{self, Stream};
use http::{HeaderName, HeaderValue, Method};
use serde::de::DeserializeOwned;

use crate::api::{ErrorCode, LeaderEvent, VacantEvent, WatchProgress};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, push_query};
use crate::call::subject;
use crate::client::Client;
use crate::coordination::election::Election;
use crate::transport::EventStream;
use crate::transport::messages::Message;
use crate::transport::stream_end::StreamEnd;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How often a silent node says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// A stream that is silent for so many heartbeats is dead.
const SILENT_HEARTBEATS_MAX: u32 = 3;

/// What an observer sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Leads {
    /// Somebody leads, or says something else of itself.
    Leader(Box<LeaderEvent>),
    /// Nobody leads.
    Nobody(VacantEvent),
}

impl Leads {
    /// The revision of the change.
    pub fn revision(&self) -> u64 {
        match self {
            Self::Leader(event) => event.revision,
            Self::Nobody(event) => event.revision,
        }
    }

    /// Who leads, if anybody does.
    pub fn leader(self) -> Option<LeaderEvent> {
        match self {
            Self::Leader(event) => Some(*event),
            Self::Nobody(_) => None,
        }
    }
}

/// An observation that goes on by itself, at another node where it has to.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// // A proxy that follows the leader.
/// let mut observation = client.election("scheduler").observe().await?;
/// loop {
///     match observation.next().await?.leader() {
///         Some(leader) => println!("to {:?} from now on", leader.value.map(|value| value.0.get().to_owned())),
///         None => println!("to nobody"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Observation {
    client: Client,
    target: String,
    /// Every change up to this revision was handed out, or is ready to be.
    position: Option<u64>,
    stream: Option<(usize, EventStream)>,
    ready: VecDeque<Leads>,
}

impl std::fmt::Debug for Observation {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Observation({} at {:?})", self.target, self.position)
    }
}

impl Election<'_> {
    /// Observes it: first who leads now, then each change.
    pub async fn observe(&self) -> Result<Observation, Error> {
        let (client, mut target) = (self.client().clone(), self.path("/observe")?);
        push_query(&mut target, "heartbeat_ms", HEARTBEAT.as_millis());
        let mut observation = Observation { client, target, position: None, stream: None, ready: VecDeque::new() };
        let patience = observation.client.call_timeout();
        observation.connect(Some(patience)).await?;
        Ok(observation)
    }
}

impl Observation {
    /// Who leads: at first as it is, then after each change. Breaks are gone over. Fails with `compacted` where changes were
    /// missed that can no longer be read, which takes an absence of many minutes; called again it then begins anew, with who
    /// leads by then. May be dropped and called again without losing a change.
    pub async fn next(&mut self) -> Result<Leads, Error> {
        loop {
            if let Some(leads) = self.ready.pop_front() {
                return Ok(leads);
            }
            let Some((node, stream)) = &mut self.stream else {
                self.connect(None).await?;
                continue;
            };
            let node = *node;
            match stream.next(HEARTBEAT * SILENT_HEARTBEATS_MAX).await {
                Ok(message) => self.take(node, &message)?,
                Err(_broken) => self.leave(node),
            }
        }
    }

    /// All of it as a stream, which ends after the first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Leads, Error>> {
        stream::try_unfold(self, |mut observation| async move { Ok(Some((observation.next().await?, observation))) })
    }

    fn leave(&mut self, node: usize) {
        self.stream = None;
        self.client.node_failed(node);
    }

    /// Opens a stream that goes on from where this is.
    async fn connect(&mut self, patience: Option<Duration>) -> Result<(), Error> {
        let mut call = Call::new(Method::GET, self.target.clone(), Intent::Read, Preference::Any)?;
        call.condition = self.position.map(|position| (LAST_EVENT_ID, HeaderValue::from(position)));
        let until = patience.map(|patience| Instant::now() + patience);
        match self.client.open_stream(&call, until).await {
            Ok(opened) => {
                self.stream = Some(opened);
                Ok(())
            }
            Err(error) => {
                if error.code() == Some(ErrorCode::Compacted) {
                    self.position = None;
                }
                Err(error)
            }
        }
    }

    fn take(&mut self, node: usize, message: &Message) -> Result<(), Error> {
        if let Some(strayed) = subject::strayed(&self.target, message.data.as_bytes()) {
            self.leave(node);
            return Err(self.client.strange_answer(node, strayed.to_string()));
        }
        match message.name.as_str() {
            "leader" => {
                let event = Box::new(self.read(node, message)?);
                self.ready.push_back(Leads::Leader(event));
            }
            "vacant" => {
                let event = self.read(node, message)?;
                self.ready.push_back(Leads::Nobody(event));
            }
            "progress" => {
                let WatchProgress { revision, .. } = self.read(node, message)?;
                self.position = self.position.max(Some(revision));
            }
            "end" => {
                let end: StreamEnd = self.read(node, message)?;
                self.leave(node);
                let Some(error) = end.into_error() else { return Ok(()) };
                if error.code() == Some(ErrorCode::Compacted) {
                    self.position = None;
                }
                return Err(error);
            }
            // Of a later version.
            _ => {}
        }
        // The state at the begin is that of a later revision than its change.
        let id = message.id.as_ref().and_then(|id| id.parse().ok());
        self.position = self.position.max(id);
        Ok(())
    }

    /// The JSON of a message. What cannot be read ends the stream; the caller is told.
    fn read<T: DeserializeOwned>(&mut self, node: usize, message: &Message) -> Result<T, Error> {
        serde_json::from_str(&message.data).map_err(|error| {
            self.leave(node);
            let detail = format!("the event `{}` of an election is not what it should be: {error}", message.name);
            self.client.strange_answer(node, detail)
        })
    }
}
