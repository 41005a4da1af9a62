//! Quotas: what principals, and all names with a prefix, may take of the store.
//!
//! Owns the calls. Judges nothing: the cluster does.

use http::Method;

use crate::api::{Name, QuotaAnswer, QuotaList, QuotaRemoved, QuotaRequest};
use crate::call::error::Error;
use crate::call::request::name_path;
use crate::client::Client;
use crate::client::pages::Pages;
use crate::client::pending::Pending;

const PRINCIPALS: &str = "/v1/quotas/principals/";
const PREFIXES: &str = "/v1/quotas/prefixes/";
const DEFAULT: &str = "/v1/quotas/default";

/// Quotas, from [`Client::quotas`]. Only who may administer everything may ask.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::api::QuotaRequest;
///
/// let bounds = QuotaRequest { entries: Some(10_000), bytes: Some(64 << 20), ..QuotaRequest::default() };
/// client.quotas().set_prefix("tenants/acme/", bounds).await?;
/// for quota in client.quotas().prefixes().page().await?.quotas {
///     println!("{:?}: {:?} of {:?}", quota.prefix, quota.used, quota.bounds);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Quotas<'a> {
    client: &'a Client,
}

impl Client {
    /// Quotas.
    pub fn quotas(&self) -> Quotas<'_> {
        Quotas { client: self }
    }
}

impl<'a> Quotas<'a> {
    /// Sets the quota of a principal: its sessions and locks. What it has beyond it already stays.
    pub fn set_principal(&self, name: &str, bounds: QuotaRequest) -> Pending<'a, QuotaAnswer> {
        Pending::with(self.client, Method::PUT, principal_path(name), &bounds)
    }

    /// Removes the quota of a principal: it has that of every principal from then on. Fails with `not_found`.
    pub fn remove_principal(&self, name: &str) -> Pending<'a, QuotaRemoved> {
        Pending::bare(self.client, Method::DELETE, principal_path(name))
    }

    /// The quota of a principal, its own or that of every principal, with what it uses.
    pub async fn principal(&self, name: &str) -> Result<QuotaAnswer, Error> {
        self.client.read(principal_path(name)?).await
    }

    /// Principals that have a quota of their own or use something, by name.
    pub fn principals(&self) -> Pages<'a, QuotaList> {
        Pages::of(self.client, "/v1/quotas/principals")
    }

    /// Sets the quota of all names with a prefix: their entries, bytes and tasks. What is there beyond it already stays.
    pub fn set_prefix(&self, prefix: impl Into<Name>, bounds: QuotaRequest) -> Pending<'a, QuotaAnswer> {
        Pending::with(self.client, Method::PUT, prefix_path(&prefix.into()), &bounds)
    }

    /// Removes the quota of a prefix. Fails with `not_found`.
    pub fn remove_prefix(&self, prefix: impl Into<Name>) -> Pending<'a, QuotaRemoved> {
        Pending::bare(self.client, Method::DELETE, prefix_path(&prefix.into()))
    }

    /// The quota of a prefix, with what there is below it; `None` if it has none.
    pub async fn prefix(&self, prefix: impl Into<Name>) -> Result<Option<QuotaAnswer>, Error> {
        self.client.read_if_there(prefix_path(&prefix.into())?).await
    }

    /// The prefixes that have a quota, in order.
    pub fn prefixes(&self) -> Pages<'a, QuotaList> {
        Pages::of(self.client, "/v1/quotas/prefixes")
    }

    /// Sets the quota of every principal that has none of its own.
    pub fn set_default(&self, bounds: QuotaRequest) -> Pending<'a, QuotaAnswer> {
        Pending::with(self.client, Method::PUT, Ok(DEFAULT.to_owned()), &bounds)
    }

    /// Removes what was set for every principal: what holds without an operator holds again. Fails with `not_found`.
    pub fn remove_default(&self) -> Pending<'a, QuotaRemoved> {
        Pending::bare(self.client, Method::DELETE, Ok(DEFAULT.to_owned()))
    }

    /// The quota of every principal that has none of its own.
    pub async fn default_quota(&self) -> Result<QuotaAnswer, Error> {
        self.client.read(DEFAULT.to_owned()).await
    }
}

fn principal_path(name: &str) -> Result<String, Error> {
    name_path(PRINCIPALS, name, "the name of a principal")
}

fn prefix_path(prefix: &Name) -> Result<String, Error> {
    name_path(PREFIXES, prefix, "a prefix")
}
