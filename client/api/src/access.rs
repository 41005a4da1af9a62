//! Users, roles and tokens: who may do what.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::name::{Name, named};
use super::strict::{given, objects};

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Permission {
    /// Reads, searches and watches.
    Read,
    /// Changes entries, schedules and works on tasks, takes numbers. Reads too.
    Write,
    /// Locks documents, takes locks, stands for election, meets at barriers and latches. Reads too.
    Lock,
    /// All of these, and the rules of collections. On the empty prefix also members, backups, users and roles.
    Admin,
    /// Takes backups of everything and does nothing else. On the empty prefix alone.
    Backup,
    /// Sees how the nodes and the cluster are: status, metrics, members; no entry and no name of one. On the empty prefix alone.
    Monitor,
}

/// One permission on all names with a prefix: keys, and the names of locks, queues, sequences and so on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Grant {
    /// What is allowed.
    pub permission: Permission,
    /// On what; empty for everything.
    pub prefix: Name,
}

named!(Grant, prefix);

/// The body of `PUT /v1/access/users/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserRequest {
    /// The roles that it has from now on, at most 64. All of them must exist.
    #[schema(max_items = 64)]
    pub roles: Vec<String>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// A user as it is: the answer of `PUT` and `GET` of `/v1/access/users/{name}`.
    #[derive(Eq)]
    pub struct UserAnswer: decided_unless_listed {
        /// Its name.
        #[schema(max_length = 128)]
        pub user: String,
        /// Its roles, in order of names.
        pub roles: Vec<String>,
        /// When it was made, by the cluster's wall clock.
        #[schema(format = DateTime)]
        pub created: String,
        /// Revision at which its roles were last set.
        #[serde(with = "decimal")]
        #[schema(schema_with = decimal::shown)]
        pub set_revision: u64,
    }

    /// The answer of `GET /v1/access/users`.
    #[derive(Eq)]
    pub struct UserList: page {
        /// Users, by name.
        pub users: Vec<UserAnswer>,
    }

    /// The answer of `DELETE /v1/access/users/{name}`.
    #[derive(Eq)]
    pub struct UserRemoved: decided {
        /// Its name.
        #[schema(max_length = 128)]
        pub user: String,
        /// How many tokens went with it.
        pub tokens: u64,
    }
}

/// The body of `PUT /v1/access/roles/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleRequest {
    /// What those who have it may do from now on, at most 64 grants.
    #[schema(max_items = 64)]
    #[serde(deserialize_with = "objects")]
    pub grants: Vec<Grant>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// A role as it is: the answer of `PUT` and `GET` of `/v1/access/roles/{name}`.
    #[derive(Eq)]
    pub struct RoleAnswer: decided_unless_listed {
        /// Its name.
        #[schema(max_length = 128)]
        pub role: String,
        /// What those who have it may do.
        pub grants: Vec<Grant>,
        /// When it was made, by the cluster's wall clock.
        #[schema(format = DateTime)]
        pub created: String,
        /// Revision at which its grants were last set.
        #[serde(with = "decimal")]
        #[schema(schema_with = decimal::shown)]
        pub set_revision: u64,
    }

    /// The answer of `GET /v1/access/roles`.
    #[derive(Eq)]
    pub struct RoleList: page {
        /// Roles, by name.
        pub roles: Vec<RoleAnswer>,
    }

    /// The answer of `DELETE /v1/access/roles/{name}`.
    #[derive(Eq)]
    pub struct RoleRemoved: decided {
        /// Its name.
        #[schema(max_length = 128)]
        pub role: String,
    }
}

/// The text of a token, such as `qt_0123456789abcdef_…`: who has it is its user.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct Secret(pub String);

/// Silent, so that no log line has it by accident.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The body of `POST /v1/access/tokens`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Whose it is to be.
    #[schema(min_length = 1, max_length = 128)]
    pub user: String,
    /// After how many milliseconds it is good for nothing any more; without it, it never ends by itself.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3153600000000_u64, nullable = false)]
    pub expires_in_ms: Option<u64>,
    /// What it is for, for people; at most 256 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, nullable = false)]
    pub note: Option<String>,
    /// Of the request. A retry under it never shows the secret again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `POST /v1/access/tokens`.
    #[derive(Eq)]
    pub struct TokenCreated: at {
        /// What its bearer sends as `Authorization: Bearer …`. Shown this once: the cluster keeps only a hash.
        #[schema(value_type = String)]
        pub token: Secret,
        /// Its public id.
        #[schema(max_length = 16)]
        pub id: String,
        /// Whose it is.
        #[schema(max_length = 128)]
        pub user: String,
        /// From when on it is good for nothing any more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(format = DateTime)]
        pub expires: Option<String>,
    }
}

/// A token as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct TokenView {
    /// Its public id.
    #[schema(max_length = 16)]
    pub id: String,
    /// Whose it is.
    #[schema(max_length = 128)]
    pub user: String,
    /// What it is for; empty where nobody said.
    pub note: String,
    /// When it was made, by the cluster's wall clock.
    #[schema(format = DateTime)]
    pub created: String,
    /// From when on it is good for nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires: Option<String>,
    /// Whether that moment is over by the wall clock of the state.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
}

answers! {
    /// The answer of `GET /v1/access/tokens`.
    #[derive(Eq)]
    pub struct TokenList: page {
        /// Tokens, by id.
        pub tokens: Vec<TokenView>,
    }

    /// The answer of `DELETE /v1/access/tokens/{id}`.
    #[derive(Eq)]
    pub struct TokenRemoved: decided {
        /// Its public id.
        #[schema(max_length = 16)]
        pub id: String,
    }
}

/// Who asks, and what that one may do: the answer of `GET /v1/access/self`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SelfAnswer {
    /// The user that the request is of. Absent where the node asks nobody who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Everything that is allowed.
    pub grants: Vec<Grant>,
    /// Revision at which users, roles or tokens last changed; 0 while there never were any.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub access_revision: u64,
}

/// Whether somebody may do something: the answer of `GET /v1/access/check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct AccessCheckAnswer {
    /// Whose rights were looked at. Absent where the node asks nobody who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What was asked about.
    pub permission: Permission,
    /// On this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Or on all names that begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Name>,
    /// Whether they may.
    pub allowed: bool,
    /// Revision at which users, roles or tokens last changed.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub access_revision: u64,
}

named!(AccessCheckAnswer, name, prefix);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_told_in_json_and_nowhere_else() {
        let secret = Secret("qt_0000000000000001_x".into());
        assert_eq!(serde_json::to_string(&secret).ok().as_deref(), Some("\"qt_0000000000000001_x\""));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
