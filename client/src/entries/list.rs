//! Listings: one page, all pages as a stream, or only the count.

use futures::stream::{self, Stream};
use http::Method;

use crate::api::{ListAnswer, Name};
use crate::call::endpoints::Preference;
use crate::call::error::Error;
use crate::call::request::{Call, Intent, push_name, push_query};
use crate::client::Client;

/// A listing to be fetched, by [`List::page`] or [`List::pages`].
#[must_use = "does nothing until fetched"]
#[derive(Debug, Clone)]
pub struct List<'a> {
    client: &'a Client,
    prefix: Name,
    limit: Option<u32>,
    revision: Option<u64>,
    part: Option<(u32, u32)>,
    keys_only: bool,
    sizes: bool,
    reverse: bool,
    local: bool,
}

impl Client {
    /// Lists the entries whose keys begin with `prefix`; all of them for an empty one.
    pub fn list(&self, prefix: impl Into<Name>) -> List<'_> {
        let prefix = prefix.into();
        List {
            client: self,
            prefix,
            limit: None,
            revision: None,
            part: None,
            keys_only: false,
            sizes: false,
            reverse: false,
            local: false,
        }
    }
}

impl<'a> List<'a> {
    /// Most entries of a page, up to 1000.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = Some(limit);
        self
    }

    /// As it was at this revision.
    pub fn revision(mut self, revision: u64) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Only the keys of part `index`, from 0, of `of` parts: what workers that share a prefix list, each its own part. A page looks at
    /// as many entries as without, and shows those of the part. Which part a key is in never changes, and is the same for watches.
    pub fn part(mut self, index: u32, of: u32) -> Self {
        self.part = Some((index, of));
        self
    }

    /// Without values.
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// Adds the number of bytes of each value ([`EntryView::value_bytes`](crate::api::EntryView::value_bytes)), also to entries without
    /// their values.
    pub fn sizes(mut self) -> Self {
        self.sizes = true;
        self
    }

    /// From the end backwards.
    pub fn reverse(mut self) -> Self {
        self.reverse = true;
        self
    }

    /// Whatever the asked node has: fast, maybe stale.
    pub fn local(mut self) -> Self {
        self.local = true;
        self
    }

    /// The first page.
    pub async fn page(&self) -> Result<ListAnswer, Error> {
        self.client.fetch(self.call(self.range())?).await
    }

    /// The page after the one that ended with this cursor. Of the same revision.
    pub async fn page_after(&self, cursor: &str) -> Result<ListAnswer, Error> {
        let mut target = String::from("/v1/kv");
        push_query(&mut target, "cursor", cursor);
        self.push_common(&mut target);
        self.client.fetch(self.call(target)?).await
    }

    /// All pages, fetched one by one as the stream is read. All show the same revision. Ends after the first error.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
    /// use std::pin::pin;
    ///
    /// use futures::TryStreamExt;
    ///
    /// let mut pages = pin!(client.list("orders/").pages());
    /// while let Some(page) = pages.try_next().await? {
    ///     for entry in page.entries {
    ///         println!("{}", entry.key);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn pages(self) -> impl Stream<Item = Result<ListAnswer, Error>> + use<'a> {
        enum At {
            Start,
            Cursor(String),
            End,
        }
        stream::try_unfold((self, At::Start), |(list, at)| async move {
            let mut page = match at {
                At::Start => list.page().await?,
                At::Cursor(cursor) => list.page_after(&cursor).await?,
                At::End => return Ok(None),
            };
            let next = page.cursor.take().map_or(At::End, At::Cursor);
            Ok(Some((page, (list, next))))
        })
    }

    /// How many entries there are, without fetching any.
    pub async fn count(&self) -> Result<ListAnswer, Error> {
        let mut target = self.range();
        push_query(&mut target, "count_only", true);
        self.client.fetch(self.call(target)?).await
    }

    fn range(&self) -> String {
        let mut target = String::from("/v1/kv");
        push_name(&mut target, "prefix", &self.prefix);
        if let Some(revision) = self.revision {
            push_query(&mut target, "revision", revision);
        }
        if let Some((index, of)) = self.part {
            push_query(&mut target, "part", index);
            push_query(&mut target, "of", of);
        }
        if self.reverse {
            push_query(&mut target, "reverse", true);
        }
        self.push_common(&mut target);
        target
    }

    /// What a cursor does not stand for.
    fn push_common(&self, target: &mut String) {
        if let Some(limit) = self.limit {
            push_query(target, "limit", limit);
        }
        if self.keys_only {
            push_query(target, "keys_only", true);
        }
        if self.sizes {
            push_query(target, "sizes", true);
        }
        if self.local {
            push_query(target, "consistency", "local");
        }
    }

    fn call(&self, target: String) -> Result<Call, Error> {
        let preference = if self.local { Preference::Any } else { self.client.read_preference() };
        Call::new(Method::GET, target, Intent::Read, preference)
    }
}
