//! Users, roles and tokens, and who the caller is.
//!
//! Owns the calls. Judges nothing: the cluster does.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;

use crate::api::{
    AccessCheckAnswer, AuditAnswer, Grant, Name, Permission, RoleAnswer, RoleList, RoleRemoved, RoleRequest,
    SelfAnswer, TokenCreated, TokenList, TokenRemoved, TokenRequest, UserAnswer, UserList, UserRemoved, UserRequest,
};
use crate::call::error::Error;
use crate::call::operation::milliseconds;
use crate::call::request::{RequestId, name_path, push_name, push_query};
use crate::client::Client;
use crate::client::pages::Pages;
use crate::client::pending::Pending;

const USERS: &str = "/v1/access/users/";
const ROLES: &str = "/v1/access/roles/";

/// Users, roles and tokens, from [`Client::access`].
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use std::time::Duration;
///
/// use quorate_client::api::{Grant, Permission};
///
/// let access = client.access();
/// let orders = Grant { permission: Permission::Write, prefix: "orders/".into() };
/// access.set_role("clerk", [orders]).await?;
/// access.set_user("ann", ["clerk"]).await?;
/// let token = access.create_token("ann").expires_in(Duration::from_secs(86_400)).await?;
/// println!("for {}: {}", token.user, token.token.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    client: &'a Client,
}

impl Client {
    /// Users, roles and tokens.
    pub fn access(&self) -> Access<'_> {
        Access { client: self }
    }
}

impl<'a> Access<'a> {
    /// Who changed a key, who tried to, and when: a page of it, from a revision on, or behind the page that ended with a cursor.
    pub async fn audit(
        &self,
        key: impl Into<Name>,
        from: Option<u64>,
        cursor: Option<&str>,
    ) -> Result<AuditAnswer, Error> {
        let mut target = "/v1/audit".to_owned();
        push_name(&mut target, "key", &key.into());
        if let Some(from) = from {
            push_query(&mut target, "from", from);
        }
        if let Some(cursor) = cursor {
            push_query(&mut target, "cursor", cursor);
        }
        self.client.read(target).await
    }

    /// Whom the cluster takes this client for, and everything that one may do.
    pub async fn who_am_i(&self) -> Result<SelfAnswer, Error> {
        self.client.read("/v1/access/self".to_owned()).await
    }

    /// Whether a user may do something with a name: the caller, or with `user` another one, about whom only those may ask who may
    /// administer everything. Fails with `not_found` where there is no such user.
    pub async fn may(
        &self,
        user: Option<&str>,
        permission: Permission,
        name: impl Into<Name>,
    ) -> Result<AccessCheckAnswer, Error> {
        self.check(user, permission, ("name", &name.into())).await
    }

    /// [`Self::may`] for all names that begin with `prefix`; for everything where that is empty.
    pub async fn may_on_prefix(
        &self,
        user: Option<&str>,
        permission: Permission,
        prefix: impl Into<Name>,
    ) -> Result<AccessCheckAnswer, Error> {
        self.check(user, permission, ("prefix", &prefix.into())).await
    }

    async fn check(
        &self,
        user: Option<&str>,
        permission: Permission,
        (kind, what): (&str, &Name),
    ) -> Result<AccessCheckAnswer, Error> {
        let mut target = "/v1/access/check".to_owned();
        let permission = serde_json::to_value(permission).ok().and_then(|name| name.as_str().map(str::to_owned));
        push_query(&mut target, "permission", permission.unwrap_or_default());
        push_name(&mut target, kind, what);
        if let Some(user) = user {
            push_query(&mut target, "user", user);
        }
        self.client.read(target).await
    }

    /// Makes a user, or gives one other roles, which must all exist. Fails with `not_found`.
    pub fn set_user<I>(&self, name: &str, roles: I) -> Pending<'a, UserAnswer>
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        let request = UserRequest { roles: roles.into_iter().map(Into::into).collect(), request_id: None };
        Pending::with(self.client, Method::PUT, user_path(name), &request)
    }

    /// Removes a user, and its tokens with it. Fails with `not_found`.
    pub fn remove_user(&self, name: &str) -> Pending<'a, UserRemoved> {
        Pending::bare(self.client, Method::DELETE, user_path(name))
    }

    /// A user; `None` if there is none of this name.
    pub async fn user(&self, name: &str) -> Result<Option<UserAnswer>, Error> {
        self.client.read_if_there(user_path(name)?).await
    }

    /// All users, by name.
    pub fn users(&self) -> Pages<'a, UserList> {
        Pages::of(self.client, "/v1/access/users")
    }

    /// Makes a role, or gives one other grants: they hold at once for all who have it.
    pub fn set_role(&self, name: &str, grants: impl IntoIterator<Item = Grant>) -> Pending<'a, RoleAnswer> {
        let request = RoleRequest { grants: grants.into_iter().collect(), request_id: None };
        Pending::with(self.client, Method::PUT, role_path(name), &request)
    }

    /// Removes a role. Fails with `not_found`, and with `in_use` while a user has it.
    pub fn remove_role(&self, name: &str) -> Pending<'a, RoleRemoved> {
        Pending::bare(self.client, Method::DELETE, role_path(name))
    }

    /// A role; `None` if there is none of this name.
    pub async fn role(&self, name: &str) -> Result<Option<RoleAnswer>, Error> {
        self.client.read_if_there(role_path(name)?).await
    }

    /// All roles, by name.
    pub fn roles(&self) -> Pages<'a, RoleList> {
        Pages::of(self.client, "/v1/access/roles")
    }

    /// Gives a user a token. Fails with `not_found`, and with `request_id_reused` where an earlier try was carried out whose answer
    /// got lost: the secret is lost with it.
    pub fn create_token(&self, user: impl Into<String>) -> CreateToken<'a> {
        let request = TokenRequest { user: user.into(), ..TokenRequest::default() };
        CreateToken { client: self.client, request, id: None }
    }

    /// Removes a token by its public id. Fails with `not_found`.
    pub fn remove_token(&self, id: &str) -> Pending<'a, TokenRemoved> {
        Pending::bare(self.client, Method::DELETE, name_path("/v1/access/tokens/", id, "the id of a token"))
    }

    /// All tokens, by id, without their secrets.
    pub fn tokens(&self) -> Pages<'a, TokenList> {
        Pages::of(self.client, "/v1/access/tokens")
    }
}

fn user_path(name: &str) -> Result<String, Error> {
    name_path(USERS, name, "the name of a user")
}

fn role_path(name: &str) -> Result<String, Error> {
    name_path(ROLES, name, "the name of a role")
}

/// A token to be made, from [`Access::create_token`].
#[must_use = "does nothing until awaited"]
#[derive(Debug, Clone)]
pub struct CreateToken<'a> {
    client: &'a Client,
    request: TokenRequest,
    id: Option<RequestId>,
}

impl CreateToken<'_> {
    /// After so long it is good for nothing any more; without this, it never ends by itself.
    pub fn expires_in(mut self, life: Duration) -> Self {
        self.request.expires_in_ms = Some(milliseconds(life));
        self
    }

    /// What it is for, for people.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.request.note = Some(note.into());
        self
    }

    /// An id of one's own instead of a random one.
    pub fn request_id(mut self, id: RequestId) -> Self {
        self.id = Some(id);
        self
    }
}

impl<'a> IntoFuture for CreateToken<'a> {
    type Output = Result<TokenCreated, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let path = Ok("/v1/access/tokens".to_owned());
        let pending = Pending::with(self.client, Method::POST, path, &self.request);
        pending.request_id(self.id.unwrap_or_else(RequestId::random)).into_future()
    }
}
