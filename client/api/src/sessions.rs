//! Sessions: a sign of life that entries, locks, leaderships and places in barriers hang on.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::answers;
use super::decimal;
use super::name::Name;
use super::strict::given;

/// Most sessions that one request renews.
pub const SESSIONS_RENEWED_MAX: usize = 1_024;

/// The body of `POST /v1/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionRequest {
    /// Milliseconds without a renewal after which it ends, 100 to 86400000; 10000 without it.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 100, maximum = 86400000, nullable = false)]
    pub ttl_ms: Option<u64>,
    /// Whose it is, for people; at most 256 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256, nullable = false)]
    pub owner: Option<String>,
    /// What else is to be known of it; at most 16, names and values of at most 256 bytes.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub labels: Option<BTreeMap<String, String>>,
    /// Makes retries safe: the outcome is kept at least 15 minutes and returned again.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

answers! {
    /// The answer of `POST /v1/sessions`.
    #[derive(Eq)]
    pub struct SessionAnswer: decided {
        /// Its id, a decimal number.
        pub session: String,
        /// Milliseconds without a renewal after which it ends.
        pub ttl_ms: u64,
        /// Milliseconds after which it ends unless it is renewed, from the moment that it was created.
        pub expires_in_ms: u64,
        /// After how many milliseconds to renew it: a third of `ttl_ms`.
        pub renew_in_ms: u64,
        /// Whose it is; empty where nobody said.
        pub owner: String,
        /// What else is known of it.
        pub labels: BTreeMap<String, String>,
    }
}

/// The answer of `POST /v1/sessions/{id}/renew`. To renew again is harmless, so it takes no request id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct RenewedAnswer {
    /// Its id.
    pub session: String,
    /// Milliseconds without a renewal after which it ends.
    pub ttl_ms: u64,
    /// Milliseconds after which it ends unless it is renewed again, from the moment of this renewal.
    pub expires_in_ms: u64,
    /// After how many milliseconds to renew it: a third of `ttl_ms`.
    pub renew_in_ms: u64,
    /// Revision at which it was renewed; a renewal takes none of its own.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which it was renewed.
    pub index: u64,
}

/// The body of `POST /v1/sessions/renew`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// The ids of the sessions to renew.
    #[schema(min_items = 1, max_items = 1024)]
    pub sessions: Vec<String>,
}

/// What became of each session of a [`RenewRequest`], in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct RenewAnswer {
    /// Each session.
    pub sessions: Vec<Renewal>,
    /// Revision at which they were renewed; a renewal takes none of its own.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which they were renewed.
    pub index: u64,
}

/// What became of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Renewal {
    /// It goes on.
    Renewed(SessionRenewed),
    /// There is no such session, or not any more.
    Expired(SessionExpired),
}

/// A session that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionRenewed {
    /// Its id.
    pub session: String,
    /// Milliseconds without a renewal after which it ends.
    pub ttl_ms: u64,
    /// Milliseconds after which it ends unless it is renewed again, from the moment of this renewal.
    pub expires_in_ms: u64,
    /// After how many milliseconds to renew it: a third of `ttl_ms`.
    pub renew_in_ms: u64,
}

/// A session that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionExpired {
    /// The id that was given.
    pub session: String,
    /// `true`
    pub expired: bool,
}

answers! {
    /// The answer of `DELETE /v1/sessions/{id}`.
    #[derive(Eq)]
    pub struct SessionEnded: decided {
        /// Its id.
        pub session: String,
        /// `true`
        pub ended: bool,
        /// How many things hung on it and went with it.
        pub count: u64,
    }

    /// A session as it is: the answer of `GET /v1/sessions/{id}`.
    #[derive(Eq)]
    pub struct SessionView: at_unless_listed {
        /// Its id.
        pub session: String,
        /// Whose it is; empty where nobody said.
        pub owner: String,
        /// What else is known of it.
        pub labels: BTreeMap<String, String>,
        /// Milliseconds without a renewal after which it ends.
        pub ttl_ms: u64,
        /// Milliseconds left to it unless it is renewed.
        pub expires_in_ms: u64,
        /// When it was created, by the cluster's wall clock.
        #[schema(format = DateTime)]
        pub created: String,
        /// Milliseconds since it was created.
        pub age_ms: u64,
        /// What hangs on it. Absent where the session is part of a list.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub holds: Option<SessionHolds>,
    }
}

/// What hangs on a session and goes with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionHolds {
    /// Locks that it holds or waits for.
    pub locks: Vec<SessionHold>,
    /// Elections that it leads or stands in.
    pub elections: Vec<SessionHold>,
    /// Barriers that it is in.
    pub barriers: Vec<String>,
    /// Entries written with it, those whose keys are texts.
    pub keys: Vec<String>,
    /// Entries written with it whose keys are no texts, in base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys_base64: Vec<String>,
    /// Tasks that are claimed with it, each as `queue/id`.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// How many things they are; the lists show the first 100 of each kind.
    pub count: u64,
}

impl SessionHolds {
    /// The keys of the entries written with it, texts and others. Fails where a node sent what is not base64.
    pub fn names(&self) -> Result<Vec<Name>, base64::DecodeError> {
        let others = self.keys_base64.iter().map(|text| STANDARD.decode(text).map(Name::from));
        self.keys.iter().map(|text| Ok(text.into())).chain(others).collect()
    }
}

/// A lock or an election that a session has to do with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionHold {
    /// Its name.
    pub name: String,
    /// Whether the session holds it.
    pub state: super::LockState,
    /// Of a holder: its fencing token, or its term.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub token: Option<u64>,
    /// Of a waiter: its place; smaller ones come first.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub place: Option<u64>,
}

answers! {
    /// The answer of `GET /v1/sessions`.
    #[derive(Eq)]
    pub struct SessionList: page {
        /// Sessions, the oldest first.
        pub sessions: Vec<SessionView>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(encoded: &str) -> SessionHolds {
        let text = format!(
            r#"{{"locks":[],"elections":[],"barriers":[],"keys":["a"],"keys_base64":["{encoded}"],"count":2}}"#
        );
        serde_json::from_str(&text).expect("what a session holds")
    }

    #[test]
    fn keys_that_are_no_texts_are_names_too() {
        assert_eq!(holds("YS//").names().expect("base64"), [Name::from("a"), Name::from(b"a/\xff")]);
        assert!(holds("?").names().is_err());
    }
}
