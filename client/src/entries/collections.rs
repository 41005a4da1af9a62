//! Collections: the rules that hold for all documents below a name.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, Method};
use serde::de::DeserializeOwned;

use crate::api::{Cas, CollectionAnswer, CollectionList, CollectionRemoved, CollectionRules};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, RequestId, etag, json_body, name_path, push_query};
use crate::client::Client;

/// A collection by its name, from [`Client::collection`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::api::{CollectionRules, IndexRule};
///
/// let members = client.collection("members");
/// let rules = CollectionRules {
///     required: vec!["email".into()],
///     indexes: vec![IndexRule::unique(["email"])],
///     ..Default::default()
/// };
/// members.put(rules).if_absent().await?;
/// println!("{:?}", members.get().await?.map(|collection| collection.indexes));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Collection<'a> {
    client: &'a Client,
    name: String,
}

impl Client {
    /// The collection of this name, whether it is declared or not: what is below `name/`.
    pub fn collection(&self, name: impl Into<String>) -> Collection<'_> {
        Collection { client: self, name: name.into() }
    }

    /// All collections that are declared. Page after page, so what is declared meanwhile may be there or not.
    pub async fn collections(&self) -> Result<CollectionList, Error> {
        let mut all: Option<CollectionList> = None;
        loop {
            let mut target = "/v1/collections".to_owned();
            if let Some(cursor) = all.as_ref().and_then(|list| list.cursor.as_ref()) {
                push_query(&mut target, "cursor", cursor);
            }
            let mut page: CollectionList = self.read(target).await?;
            let mut collections = all.map_or_else(Vec::new, |list| list.collections);
            collections.append(&mut page.collections);
            page.collections = collections;
            if page.cursor.is_none() {
                return Ok(page);
            }
            all = Some(page);
        }
    }
}

impl<'a> Collection<'a> {
    /// Its rules and indexes; `None` if it is not declared.
    pub async fn get(&self) -> Result<Option<CollectionAnswer>, Error> {
        self.client.read_if_there(self.path()?).await
    }

    /// Declares it, or sets all its rules anew. Indexes are built in the background, see [`Collection::get`].
    pub fn put(&self, rules: CollectionRules) -> CollectionWrite<'a, CollectionAnswer> {
        CollectionWrite::new(self.clone(), Some(rules))
    }

    /// Takes its rules away; its documents stay.
    pub fn delete(&self) -> CollectionWrite<'a, CollectionRemoved> {
        CollectionWrite::new(self.clone(), None)
    }

    fn path(&self) -> Result<String, Error> {
        name_path("/v1/collections/", &self.name, "the name of a collection")
    }
}

/// A change of rules to be awaited, and then answered by an `A`. Carries a request id from the beginning, so its retries are safe.
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct CollectionWrite<'a, A> {
    answer: PhantomData<fn() -> A>,
    collection: Collection<'a>,
    rules: Option<CollectionRules>,
    condition: Option<Condition>,
    request_id: RequestId,
    timeout: Option<Duration>,
}

#[derive(Debug, Clone)]
enum Condition {
    Absent,
    Cas(Cas),
}

impl<'a, A> CollectionWrite<'a, A> {
    fn new(collection: Collection<'a>, rules: Option<CollectionRules>) -> Self {
        let (request_id, answer) = (RequestId::random(), PhantomData);
        Self { answer, collection, rules, condition: None, request_id, timeout: None }
    }

    /// Only while its rules have this token.
    pub fn cas(mut self, cas: Cas) -> Self {
        self.condition = Some(Condition::Cas(cas));
        self
    }

    /// Only if it is not declared. For [`Collection::put`].
    pub fn if_absent(mut self) -> Self {
        self.condition = Some(Condition::Absent);
        self
    }

    /// An id of one's own instead of a random one: to repeat a change whose outcome stayed unknown.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.request_id = id;
        self
    }

    /// Deadline instead of the client's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn header(&self) -> Result<Option<(HeaderName, HeaderValue)>, Error> {
        match &self.condition {
            None => Ok(None),
            Some(Condition::Cas(cas)) => Ok(Some((IF_MATCH, etag(*cas)))),
            Some(Condition::Absent) if self.rules.is_some() => Ok(Some((IF_NONE_MATCH, HeaderValue::from_static("*")))),
            Some(Condition::Absent) => Err(Error::Invalid("what is to be deleted has to be there".into())),
        }
    }

    fn call(self) -> Result<Call, Error> {
        let (method, body) = match &self.rules {
            Some(rules) => (Method::PUT, json_body(rules)?),
            None => (Method::DELETE, Bytes::new()),
        };
        let condition = self.header()?;
        let intent = Intent::Write(self.request_id);
        let mut call = Call::new(method, self.collection.path()?, intent, Preference::Leader)?;
        call.content_type = self.rules.is_some().then(|| HeaderValue::from_static("application/json"));
        (call.body, call.condition, call.timeout) = (body, condition, self.timeout);
        Ok(call)
    }
}

impl<'a, A: DeserializeOwned + Send + 'a> IntoFuture for CollectionWrite<'a, A> {
    type Output = Result<A, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let client = self.collection.client;
        client.ask(self.call())
    }
}
