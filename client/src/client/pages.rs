//! Lists that are given a page at a time: of sessions, locks and elections.
//!
//! Owns nothing of what is on a page; whoever makes one says which.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::call::error::Error;
use crate::call::request::push_query;
use crate::client::Client;

/// A list to be fetched, a page `A` at a time.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// let locks = client.locks().limit(100);
/// let mut page = locks.page().await?;
/// let mut names: Vec<_> = page.locks.into_iter().map(|lock| lock.lock).collect();
/// while let Some(cursor) = page.cursor {
///     page = locks.page_after(&cursor).await?;
///     names.extend(page.locks.into_iter().map(|lock| lock.lock));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until fetched"]
#[derive(Debug, Clone)]
pub struct Pages<'a, A> {
    client: &'a Client,
    route: &'static str,
    limit: Option<u32>,
    page: PhantomData<fn() -> A>,
}

impl<'a, A: DeserializeOwned> Pages<'a, A> {
    pub(crate) fn of(client: &'a Client, route: &'static str) -> Self {
        Self { client, route, limit: None, page: PhantomData }
    }

    /// Most items of a page.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The first page.
    pub async fn page(&self) -> Result<A, Error> {
        self.fetch(None).await
    }

    /// The page after the one that ended with this cursor.
    pub async fn page_after(&self, cursor: &str) -> Result<A, Error> {
        self.fetch(Some(cursor)).await
    }

    async fn fetch(&self, cursor: Option<&str>) -> Result<A, Error> {
        let mut target = self.route.to_owned();
        if let Some(limit) = self.limit {
            push_query(&mut target, "limit", limit);
        }
        if let Some(cursor) = cursor {
            push_query(&mut target, "cursor", cursor);
        }
        self.client.read(target).await
    }
}
