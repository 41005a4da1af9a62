//! Sessions by their ids, whoever holds them: looked at, listed, renewed once, ended.

use http::Method;

use crate::api::{RenewedAnswer, SessionEnded, SessionList, SessionView};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, segment_path};
use crate::client::Client;
use crate::client::pages::Pages;
use crate::client::pending::Pending;

/// A session by its id, from [`Client::session_by_id`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(session: &quorate_client::Session, client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let one = client.session_by_id("17");
/// if let Some(session) = one.get().await? {
///     println!("{} since {}: {:?}", session.owner, session.created, session.holds);
/// }
/// // By hand: whoever it was is gone, and the others need not wait for it.
/// one.end().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SessionById<'a> {
    client: &'a Client,
    id: String,
}

impl Client {
    /// The session with this id.
    pub fn session_by_id(&self, id: impl Into<String>) -> SessionById<'_> {
        SessionById { client: self, id: id.into() }
    }

    /// All sessions, the oldest first.
    pub fn sessions(&self) -> Pages<'_, SessionList> {
        Pages::of(self, "/v1/sessions")
    }
}

impl<'a> SessionById<'a> {
    /// What it is, and what hangs on it; `None` if there is no such session, or not any more.
    pub async fn get(&self) -> Result<Option<SessionView>, Error> {
        self.client.read_if_there(self.path("")?).await
    }

    /// Lets it live for its time from now. Fails with `session_expired`.
    pub async fn renew(&self) -> Result<RenewedAnswer, Error> {
        // To renew twice is as good as once.
        let call = Call::new(Method::POST, self.path("/renew")?, Intent::Read, Preference::Leader)?;
        self.client.fetch(call).await
    }

    /// Ends it with all that hangs on it. Fails with `session_expired`.
    pub fn end(&self) -> Pending<'a, SessionEnded> {
        Pending::bare(self.client, Method::DELETE, self.path(""))
    }

    fn path(&self, verb: &str) -> Result<String, Error> {
        segment_path("/v1/sessions/", &self.id, verb, "the id of a session")
    }
}
