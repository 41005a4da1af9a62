//! The members of the cluster: who they are, and changes of them.
//!
//! Owns the calls. Every change may be asked for again: what is so already is done. Judges nothing: the leader does.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;

use crate::api::{AddMemberRequest, MembersAnswer, MembersChanged, RepairAnswer, ReplaceMemberRequest};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, RequestId};
use crate::client::Client;

/// For one node: longer than a change mostly takes, for the leader waits for others. Asking again goes on where it ended.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);
const ROUTE: &str = "/v1/cluster/members";

impl Client {
    /// The members of the cluster.
    pub fn members(&self) -> Members<'_> {
        Members { client: self }
    }
}

/// The members of the cluster.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let members = client.members();
/// for member in members.list().await?.members {
///     println!("{} {:?} at {}", member.id, member.role, member.client_addr);
/// }
/// // A fourth node that was started and waits.
/// let changed = members.add(4, "10.0.0.4:7200", false).await?;
/// println!("{}", changed.explanation.join(" "));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    client: &'a Client,
}

impl<'a> Members<'a> {
    pub(crate) fn client(&self) -> &'a Client {
        self.client
    }

    /// All of them, as the leader knows them.
    pub async fn list(&self) -> Result<MembersAnswer, Error> {
        self.client.fetch(Call::new(Method::GET, ROUTE.into(), Intent::Read, Preference::Leader)?).await
    }

    /// Takes in a node that was started and waits, as a learner. With `promote` it votes once it caught up, which is waited
    /// for.
    pub fn add(&self, id: u64, peer_addr: impl Into<String>, promote: bool) -> ChangeMembers<'a> {
        self.change(Change::Add(AddMemberRequest { id, peer_addr: peer_addr.into(), promote }))
    }

    /// Gives a learner that has caught up a vote.
    pub fn promote(&self, id: u64) -> ChangeMembers<'a> {
        self.change(Change::Promote(id))
    }

    /// Takes the vote of a member, which stays a learner.
    pub fn demote(&self, id: u64) -> ChangeMembers<'a> {
        self.change(Change::Demote(id))
    }

    /// Lets a member go.
    pub fn remove(&self, id: u64) -> ChangeMembers<'a> {
        self.change(Change::Remove(id))
    }

    /// Lets the learner `new` vote in place of `old`, which goes, in one step.
    pub fn replace(&self, old: u64, new: u64) -> ChangeMembers<'a> {
        self.change(Change::Replace(old, new))
    }

    /// Rebuilds the state of a member in quarantine from the leader's.
    pub async fn repair(&self, id: u64) -> Result<RepairAnswer, Error> {
        let call = Call::new(Method::POST, format!("{ROUTE}/{id}/repair"), Intent::Read, Preference::Leader)?;
        self.client.fetch(call).await
    }

    fn change(&self, wanted: Change) -> ChangeMembers<'a> {
        ChangeMembers { client: self.client, wanted, dry_run: false, force: false, timeout: None }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Add(AddMemberRequest),
    Promote(u64),
    Demote(u64),
    Remove(u64),
    Replace(u64, u64),
}

/// A change of the members, made when awaited.
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct ChangeMembers<'a> {
    client: &'a Client,
    wanted: Change,
    dry_run: bool,
    force: bool,
    timeout: Option<Duration>,
}

impl ChangeMembers<'_> {
    /// Only asks what it would come to.
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Makes it also where it is unwise. Where it would cost quorum it is refused all the same.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn call(self) -> Result<Call, Error> {
        let switches = format!("?dry_run={}&force={}", self.dry_run, self.force);
        let intent = Intent::Write(RequestId::random());
        let empty = serde_json::Map::new();
        let mut call = match self.wanted {
            Change::Add(request) => Call::post_to(format!("{ROUTE}{switches}"), &request, intent),
            Change::Promote(id) => Call::post_to(format!("{ROUTE}/{id}/promote{switches}"), &empty, intent),
            Change::Demote(id) => Call::post_to(format!("{ROUTE}/{id}/demote{switches}"), &empty, intent),
            Change::Remove(id) => {
                Call::new(Method::DELETE, format!("{ROUTE}/{id}{switches}"), intent, Preference::Leader)
            }
            Change::Replace(old, new) => {
                let request = ReplaceMemberRequest { with: new };
                Call::post_to(format!("{ROUTE}/{old}/replace{switches}"), &request, intent)
            }
        }?;
        call.timeout = self.timeout;
        call.attempt = Some(ATTEMPT_MAX);
        Ok(call)
    }
}

impl<'a> IntoFuture for ChangeMembers<'a> {
    type Output = Result<MembersChanged, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let client = self.client;
        client.ask(self.call())
    }
}
