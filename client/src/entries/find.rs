//! Finds: entries by what holds of them, one page, all pages as a stream, or only the count.

use futures::stream::{self, Stream};
use serde::Serialize;

use crate::api::{CountAnswer, CountRequest, Criterion, FindAnswer, FindRequest, Name, Operator, ReadConsistency};
use crate::call::criteria::Criteria;
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, json_body};
use crate::client::Client;

/// A find to be fetched, by [`Find::page`], [`Find::pages`] or [`Find::count`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::api::{Criterion, Operator};
///
/// let found = client
///     .find("orders/")
///     .filter("status", Operator::Eq, "new")
///     .matching(Criterion::any([Criterion::new("total", Operator::Gte, 50), Criterion::exists("voucher", true)]))
///     .order_by("-total")
///     .fields(["total", "customer.name"])
///     .limit(20)
///     .page()
///     .await?;
/// println!("{} found, {} looked at", found.entries.len(), found.examined);
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until fetched"]
#[derive(Debug, Clone)]
pub struct Find<'a> {
    client: &'a Client,
    request: FindRequest,
    criteria: Criteria,
}

impl Client {
    /// Finds entries whose keys begin with `prefix`, any key for an empty one. Without filters it finds all of them.
    pub fn find(&self, prefix: impl Into<Name>) -> Find<'_> {
        let request = FindRequest { prefix: Some(prefix.into()), ..FindRequest::default() };
        Find { client: self, request, criteria: Criteria::default() }
    }
}

impl<'a> Find<'a> {
    /// Only where this field compares so, on top of all other filters.
    pub fn filter(self, field: impl Into<String>, op: Operator, value: impl Into<serde_json::Value>) -> Self {
        self.matching(Criterion::new(field, op, value))
    }

    /// Only where this holds, on top of all other filters.
    pub fn matching(mut self, criterion: Criterion) -> Self {
        self.criteria.add(&criterion);
        self
    }

    /// Takes the criterion as JSON text, such as `{"field": "price", "op": "lt", "value": 1.50}`, and keeps numbers as they are written.
    pub fn matching_json(mut self, criterion: &str) -> Self {
        self.criteria.add_json(criterion);
        self
    }

    /// Ordered by this field, after those named before; `-` before the path for the greatest first. Without it, by key.
    pub fn order_by(mut self, field: impl Into<String>) -> Self {
        self.request.order_by.get_or_insert_default().push(field.into());
        self
    }

    /// Most entries of a page, up to 1000.
    pub fn limit(mut self, limit: u32) -> Self {
        self.request.limit = Some(limit);
        self
    }

    /// Shows only these fields of each document.
    pub fn fields<T: Into<String>>(mut self, fields: impl IntoIterator<Item = T>) -> Self {
        self.request.fields.get_or_insert_default().extend(fields.into_iter().map(Into::into));
        self
    }

    /// Without values.
    pub fn keys_only(mut self) -> Self {
        self.request.keys_only = Some(true);
        self
    }

    /// As it was at this revision.
    pub fn revision(mut self, revision: u64) -> Self {
        self.request.revision = Some(revision);
        self
    }

    /// Whatever the asked node has: fast, maybe stale.
    pub fn local(mut self) -> Self {
        self.request.consistency = Some(ReadConsistency::Local);
        self
    }

    /// The first page.
    pub async fn page(&self) -> Result<FindAnswer, Error> {
        self.fetch(None).await
    }

    /// The page after the one that ended with this cursor, of the same moment.
    pub async fn page_after(&self, cursor: &str) -> Result<FindAnswer, Error> {
        self.fetch(Some(cursor.to_owned())).await
    }

    /// All pages, fetched one by one as the stream is read. All show the same moment; a page may be empty. Ends after the
    /// first error.
    pub fn pages(self) -> impl Stream<Item = Result<FindAnswer, Error>> + use<'a> {
        enum At {
            Page(Option<String>),
            End,
        }
        stream::try_unfold((self, At::Page(None)), |(find, at)| async move {
            let At::Page(cursor) = at else { return Ok(None) };
            let page = find.fetch(cursor).await?;
            let next = page.cursor.clone().map_or(At::End, |cursor| At::Page(Some(cursor)));
            Ok(Some((page, (find, next))))
        })
    }

    /// How many there are, without fetching any: asks again until everything was counted. The answer is that of the last
    /// part, with the sums of all.
    pub async fn count(&self) -> Result<CountAnswer, Error> {
        let FindRequest { prefix, revision, consistency, .. } = self.request.clone();
        let criteria = self.criteria.checked()?.map(<[_]>::to_vec);
        let mut request = CountRequest { prefix, criteria, cursor: None, revision, consistency, min_revision: None };
        let (mut count, mut examined) = (0, 0);
        loop {
            let part: CountAnswer = self.client.fetch(self.call("/v1/count", &request)?).await?;
            count += part.count;
            examined += part.examined;
            if part.cursor.is_none() {
                let mut whole = part;
                (whole.count, whole.examined) = (count, examined);
                return Ok(whole);
            }
            request.cursor = part.cursor;
        }
    }

    async fn fetch(&self, cursor: Option<String>) -> Result<FindAnswer, Error> {
        let request =
            FindRequest { criteria: self.criteria.checked()?.map(<[_]>::to_vec), cursor, ..self.request.clone() };
        self.client.fetch(self.call("/v1/find", &request)?).await
    }

    fn call(&self, route: &'static str, request: &impl Serialize) -> Result<Call, Error> {
        let local = self.request.consistency == Some(ReadConsistency::Local);
        let preference = if local { Preference::Any } else { self.client.read_preference() };
        Ok(Call::post(route, json_body(request)?, Intent::Read, preference))
    }
}
