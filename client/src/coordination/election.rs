//! Elections.
//!
//! Owns the handle of a leadership, and what others see of it. Standing for it is `queue_place`'s.

use std::time::Duration;

use http::Method;

use crate::api::{
    CampaignRequest, ElectionAnswer, ElectionList, Guard, LeaderView, ProclaimAnswer, ProclaimRequest, ResignAnswer,
};
use crate::call::error::Error;
use crate::call::loss::Loss;
use crate::call::op::patch_text;
use crate::call::operation::milliseconds;
use crate::call::value::Value;
use crate::client::Client;
use crate::client::pages::Pages;
use crate::client::pending::Pending;
use crate::coordination::queue_place::{self, Held, PlaceRequest, Queue};
use crate::coordination::session::Session;

/// An election to stand in, from [`Session::elect`].
#[must_use = "stands for nothing until it campaigns"]
#[derive(Debug, Clone)]
pub struct Campaign<'a> {
    session: &'a Session,
    name: String,
    value: Option<Value>,
    delay: Option<Duration>,
    wait: Option<Duration>,
}

impl Session {
    /// The election of this name, for this session to stand in: as long as it takes, if nothing else is said. Who has stood
    /// longest leads next.
    pub fn elect(&self, name: impl Into<String>) -> Campaign<'_> {
        Campaign { session: self, name: name.into(), value: None, delay: None, wait: None }
    }
}

impl Campaign<'_> {
    /// What we say of ourselves once we lead, such as an address: JSON.
    pub fn value(mut self, value: Value) -> Self {
        self.value = Some(value);
        self
    }

    /// How long nobody leads after our session was not renewed in time, at most a minute.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// How long to stand, at most; then it fails with `locked`.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Waits until we lead. Drop the future, and we do not stand any more. Fails with [`Error::Session`] when the session is
    /// lost meanwhile, and with [`Error::Invalid`] at once where this session leads or stands already.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::time::Duration;
    ///
    /// // Lead, until that is lost, and then stand again.
    /// loop {
    ///     let session = client.session().ttl(Duration::from_secs(5)).await?;
    ///     let leadership = session.elect("scheduler").campaign().await?;
    ///     println!("we lead in term {}", leadership.term()?);
    ///     println!("no more: {}", leadership.lost().await);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn campaign(self) -> Result<Leadership, Error> {
        let request = CampaignRequest {
            session: self.session.id().to_owned(),
            value: self.value.as_ref().map(patch_text).transpose()?,
            delay_ms: self.delay.map(milliseconds),
            ..CampaignRequest::default()
        };
        let queue = Queue::Election(self.name);
        let held = queue_place::take(self.session, queue, PlaceRequest::Election(request), self.wait).await?;
        Ok(Leadership { held })
    }
}

/// A leadership, until it is resigned or dropped, or its session is lost. As with a lock, what must not be done by two leaders
/// takes a guard.
///
/// # Examples
///
/// ```no_run
/// # async fn example(session: &quorate_client::Session) -> Result<(), quorate_client::Error> {
/// use quorate_client::Value;
///
/// let leadership = session.elect("scheduler").campaign().await?;
/// let client = session.client();
/// client.put_json("schedule/last", &1).guarded_by(&leadership).await?;
/// leadership.proclaim(Value::json("ready")?).await?;
/// // The next candidate leads at once.
/// leadership.resign().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Leadership {
    held: Held,
}

impl Leadership {
    /// The name of the election.
    pub fn name(&self) -> &str {
        self.held.queue().name()
    }

    /// The session that leads.
    pub fn session(&self) -> &Session {
        self.held.session()
    }

    /// The term: a fencing token, greater than that of every leader before. Fails with [`Error::Session`] unless we certainly
    /// lead at this moment.
    pub fn term(&self) -> Result<u64, Error> {
        self.held.token()
    }

    /// For writes that are applied only while we lead, which the cluster decides when it applies them.
    pub fn guard(&self) -> Guard {
        Guard::election(self.name(), self.held.unchecked_token())
    }

    /// Says something else of ourselves. Fails with `not_lock_holder` if we do not lead any more.
    pub fn proclaim(&self, value: Value) -> Pending<'_, ProclaimAnswer> {
        self.session().client().election(self.name()).proclaim(self.held.unchecked_token(), value)
    }

    /// Waits until it is lost with its session.
    pub async fn lost(&self) -> Loss {
        self.held.lost().await
    }

    /// Gives it up; the next candidate leads at once. Fails with `not_lock_holder` if it was lost before.
    pub async fn resign(self) -> Result<(), Error> {
        self.held.give_up().await
    }
}

impl From<&Leadership> for Guard {
    fn from(leadership: &Leadership) -> Self {
        leadership.guard()
    }
}

/// An election by its name, from [`Client::election`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let scheduler = client.election("scheduler");
/// match scheduler.leader().await? {
///     Some(leader) => println!("{} since {}", leader.owner, leader.since),
///     None => println!("{} stand", scheduler.get().await?.candidate_count),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Election<'a> {
    client: &'a Client,
    queue: Queue,
}

impl Client {
    /// The election of this name.
    pub fn election(&self, name: impl Into<String>) -> Election<'_> {
        Election { client: self, queue: Queue::Election(name.into()) }
    }

    /// All elections in which somebody leads or stands, by name.
    pub fn elections(&self) -> Pages<'_, ElectionList> {
        Pages::of(self, "/v1/elections")
    }
}

impl<'a> Election<'a> {
    /// Who leads, and who stands.
    pub async fn get(&self) -> Result<ElectionAnswer, Error> {
        self.client.read(self.queue.path("")?).await
    }

    /// Who leads, if anybody does.
    pub async fn leader(&self) -> Result<Option<LeaderView>, Error> {
        Ok(self.get().await?.leader)
    }

    pub(crate) fn client(&self) -> &'a Client {
        self.client
    }

    pub(crate) fn path(&self, verb: &str) -> Result<String, Error> {
        self.queue.path(verb)
    }

    /// Lets the leader of this term say something else of itself. Fails with `not_lock_holder`.
    pub fn proclaim(&self, term: u64, value: Value) -> Pending<'a, ProclaimAnswer> {
        match patch_text(&value) {
            Ok(value) => {
                let request = ProclaimRequest { term, value, request_id: None };
                Pending::with(self.client, Method::POST, self.queue.path("/proclaim"), &request)
            }
            Err(error) => Pending::bare(self.client, Method::POST, Err(error)),
        }
    }

    /// Takes leadership from the leader of this term, who is not asked and not told. Fails with `not_lock_holder`.
    pub fn resign(&self, term: u64) -> Pending<'a, ResignAnswer> {
        self.queue.release(self.client, term)
    }

    /// Gives up whatever this session has there.
    pub fn resign_session(&self, session: &str) -> Pending<'a, ResignAnswer> {
        self.queue.leave(self.client, session)
    }
}
