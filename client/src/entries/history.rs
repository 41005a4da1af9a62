//! The history of an entry: what it was from one change to the next, and who changed it.
//!
//! Owns how a version is put together: the audit trail says which revisions changed the entry, a read of each what it was there.

use std::collections::VecDeque;

use futures::stream::{self, Stream, StreamExt, TryStreamExt};

use crate::api::{AuditAnswer, AuditView, EntryView, Name};
use crate::call::error::Error;
use crate::client::Client;

/// Reads of versions at once.
const AT_ONCE: usize = 8;
/// Effects, in the audit trail, of what makes a version.
const CHANGED: &str = "changed";
const REMOVED: &str = "removed";

/// The history of an entry to be fetched, by [`History::page`], [`History::pages`] or [`History::last`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::pin::pin;
///
/// use futures::TryStreamExt;
///
/// let mut pages = pin!(client.history("orders/o42").pages());
/// while let Some(page) = pages.try_next().await? {
///     for version in page.versions {
///         println!("{} {:?}", version.change.time, version.entry.map(|entry| entry.value));
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "does nothing until fetched"]
#[derive(Debug, Clone)]
pub struct History<'a> {
    client: &'a Client,
    key: Name,
    from: Option<u64>,
}

/// What an entry was from one change to the next.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Version {
    /// Who changed it, and when.
    pub change: AuditView,
    /// As it was after that; `None` where it was removed.
    pub entry: Option<EntryView>,
}

/// A page of a history.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HistoryPage {
    /// The oldest first. May be none, though more pages follow.
    pub versions: Vec<Version>,
    /// For the next page, while there may be more.
    pub cursor: Option<String>,
    /// Changes of before this revision are compacted.
    pub oldest_revision: u64,
    /// Revision up to which this is whole.
    pub revision: u64,
}

impl Client {
    /// The versions of an entry, the oldest first, as far back as history was not compacted. A read of one that is compacted meanwhile
    /// fails with `compacted`.
    pub fn history(&self, key: impl Into<Name>) -> History<'_> {
        History { client: self, key: key.into(), from: None }
    }
}

impl<'a> History<'a> {
    /// Only versions of this revision and later ones.
    pub fn from(mut self, revision: u64) -> Self {
        self.from = Some(revision);
        self
    }

    /// The first page.
    pub async fn page(&self) -> Result<HistoryPage, Error> {
        self.fetch(None).await
    }

    /// The page after the one that ended with this cursor.
    pub async fn page_after(&self, cursor: &str) -> Result<HistoryPage, Error> {
        self.fetch(Some(cursor)).await
    }

    /// All pages, fetched one by one as the stream is read. Ends after the first error.
    pub fn pages(self) -> impl Stream<Item = Result<HistoryPage, Error>> + use<'a> {
        enum At {
            Page(Option<String>),
            End,
        }
        stream::try_unfold((self, At::Page(None)), |(history, at)| async move {
            let At::Page(cursor) = at else { return Ok(None) };
            let page = history.fetch(cursor.as_deref()).await?;
            let next = page.cursor.clone().map_or(At::End, |cursor| At::Page(Some(cursor)));
            Ok(Some((page, (history, next))))
        })
    }

    /// The last so many versions, the oldest of them first. No other version is read.
    pub async fn last(&self, versions: usize) -> Result<Vec<Version>, Error> {
        let mut last = VecDeque::new();
        let mut cursor = None;
        loop {
            let trail = self.trail(cursor.as_deref()).await?;
            last.extend(trail.lines.into_iter().filter(is_change));
            last.drain(..last.len().saturating_sub(versions));
            match trail.cursor {
                Some(next) => cursor = Some(next),
                None => return self.versions(last).await,
            }
        }
    }

    async fn fetch(&self, cursor: Option<&str>) -> Result<HistoryPage, Error> {
        let AuditAnswer { lines, cursor, oldest_revision, revision, .. } = self.trail(cursor).await?;
        let versions = self.versions(lines.into_iter().filter(is_change)).await?;
        Ok(HistoryPage { versions, cursor, oldest_revision, revision })
    }

    async fn trail(&self, cursor: Option<&str>) -> Result<AuditAnswer, Error> {
        self.client.access().audit(&self.key, self.from, cursor).await
    }

    async fn versions(&self, changes: impl IntoIterator<Item = AuditView>) -> Result<Vec<Version>, Error> {
        let versions = changes.into_iter().map(|change| self.version(change));
        stream::iter(versions).buffered(AT_ONCE).try_collect().await
    }

    async fn version(&self, change: AuditView) -> Result<Version, Error> {
        let entry = match change.effect.as_str() {
            REMOVED => None,
            _ => self.client.get(&self.key).revision(change.revision).await?,
        };
        Ok(Version { change, entry })
    }
}

/// Locks, and what was refused, make no version.
fn is_change(line: &AuditView) -> bool {
    matches!(line.effect.as_str(), CHANGED | REMOVED)
}
