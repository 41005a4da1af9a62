//! Sessions: a sign of life that entries, locks, leaderships and places in barriers hang on.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::decimal;
use super::name::Name;
use super::strict::given;

/// Most sessions that one request renews.
///
/// # Examples
///
/// ```
/// use quorate_api::{RenewRequest, SESSIONS_RENEWED_MAX};
///
/// let ids: Vec<String> = (1..=3_000).map(|id| id.to_string()).collect();
/// let requests = ids.chunks(SESSIONS_RENEWED_MAX).map(|ids| RenewRequest { sessions: ids.to_vec() });
/// assert_eq!(requests.len(), 3);
/// ```
pub const SESSIONS_RENEWED_MAX: usize = 1_024;

/// The body of `POST /v1/sessions`.
///
/// # Examples
///
/// ```
/// use quorate_api::SessionRequest;
///
/// let request = SessionRequest { ttl_ms: Some(5_000), owner: Some("web-3".into()), ..Default::default() };
/// assert_eq!(serde_json::to_string(&request)?, r#"{"ttl_ms":5000,"owner":"web-3"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
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

/// The answer of `POST /v1/sessions`.
///
/// # Examples
///
/// ```
/// use quorate_api::SessionAnswer;
///
/// let answer: SessionAnswer = serde_json::from_str(
///     r#"{"session":"17","ttl_ms":5000,"expires_in_ms":5000,"renew_in_ms":1666,"owner":"web-3",
///         "labels":{"zone":"a"},"revision":"17","index":28}"#,
/// )?;
/// assert_eq!((answer.session.as_str(), answer.renew_in_ms), ("17", 1_666));
/// assert_eq!(answer.labels["zone"], "a");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionAnswer {
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
    /// Revision at which it was created.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which it was created.
    pub index: u64,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// The answer of `POST /v1/sessions/{id}/renew`. To renew again is harmless, so it takes no request id.
///
/// # Examples
///
/// ```
/// use quorate_api::RenewedAnswer;
///
/// let answer: RenewedAnswer = serde_json::from_str(
///     r#"{"session":"17","ttl_ms":5000,"expires_in_ms":5000,"renew_in_ms":1666,"revision":"20","index":31}"#,
/// )?;
/// assert_eq!(answer.expires_in_ms, 5_000);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::RenewRequest;
///
/// let request = RenewRequest { sessions: vec!["17".into(), "23".into()] };
/// assert_eq!(serde_json::to_string(&request)?, r#"{"sessions":["17","23"]}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    /// The ids of the sessions to renew.
    #[schema(min_items = 1, max_items = 1024)]
    pub sessions: Vec<String>,
}

/// What became of each session of a [`RenewRequest`], in order.
///
/// # Examples
///
/// ```
/// use quorate_api::{RenewAnswer, Renewal};
///
/// let answer: RenewAnswer = serde_json::from_str(
///     r#"{"sessions":[{"session":"17","ttl_ms":5000,"expires_in_ms":5000,"renew_in_ms":1666},
///         {"session":"23","expired":true}],"revision":"20","index":31}"#,
/// )?;
/// let gone = answer.sessions.iter().filter(|one| matches!(one, Renewal::Expired(_)));
/// assert_eq!(gone.count(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::Renewal;
///
/// let one: Renewal = serde_json::from_str(r#"{"session":"23","expired":true}"#)?;
/// match one {
///     Renewal::Renewed(session) => println!("again in {} ms", session.renew_in_ms),
///     Renewal::Expired(session) => assert_eq!(session.session, "23"),
///     _ => {}
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::SessionRenewed;
///
/// let renewed: SessionRenewed = serde_json::from_str(
///     r#"{"session":"17","ttl_ms":5000,"expires_in_ms":5000,"renew_in_ms":1666}"#,
/// )?;
/// assert!(renewed.renew_in_ms < renewed.expires_in_ms);
/// # Ok::<(), serde_json::Error>(())
/// ```
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
///
/// # Examples
///
/// ```
/// use quorate_api::SessionExpired;
///
/// let gone: SessionExpired = serde_json::from_str(r#"{"session":"23","expired":true}"#)?;
/// assert!(gone.expired);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionExpired {
    /// The id that was given.
    pub session: String,
    /// `true`
    pub expired: bool,
}

/// The answer of `DELETE /v1/sessions/{id}`.
///
/// # Examples
///
/// ```
/// use quorate_api::SessionEnded;
///
/// let answer: SessionEnded = serde_json::from_str(
///     r#"{"session":"17","ended":true,"count":3,"revision":"20","index":31}"#,
/// )?;
/// assert_eq!(answer.count, 3, "a lock and two entries went with it");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionEnded {
    /// Its id.
    pub session: String,
    /// `true`
    pub ended: bool,
    /// How many things hung on it and went with it.
    pub count: u64,
    /// Revision at which it ended, with all that hung on it.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which it ended.
    pub index: u64,
    /// Whether this is the kept answer of an earlier try with the same request id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replayed: bool,
}

/// A session as it is: the answer of `GET /v1/sessions/{id}`.
///
/// # Examples
///
/// ```
/// use quorate_api::SessionView;
///
/// let session: SessionView = serde_json::from_str(
///     r#"{"session":"17","owner":"web-3","labels":{},"ttl_ms":5000,"expires_in_ms":3900,
///         "created":"2026-11-21T08:00:00.000Z","age_ms":61000,"holds":{"locks":[],"elections":[],
///         "barriers":[],"keys":["services/web-3"],"count":1},"revision":"20","index":31}"#,
/// )?;
/// assert_eq!(session.holds.map(|holds| holds.keys), Some(vec!["services/web-3".to_owned()]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionView {
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
    /// Revision at which it was read. Absent where the session is part of a list.
    #[serde(default, with = "decimal::optional", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = decimal::shown, required = false)]
    pub revision: Option<u64>,
    /// Log index at which it was read. Absent where the session is part of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
}

/// What hangs on a session and goes with it.
///
/// # Examples
///
/// ```
/// use quorate_api::SessionHolds;
///
/// let holds: SessionHolds = serde_json::from_str(
///     r#"{"locks":[{"name":"books","state":"held","token":"18"}],"elections":[],"barriers":[],
///         "keys":["services/web-3"],"tasks":["parcels/p1"],"count":3}"#,
/// )?;
/// assert_eq!((holds.locks[0].token, holds.count), (Some(18), 3));
/// # Ok::<(), serde_json::Error>(())
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// use quorate_api::{Name, SessionHolds};
    ///
    /// let holds: SessionHolds = serde_json::from_str(
    ///     r#"{"locks":[],"elections":[],"barriers":[],"keys":["a"],"keys_base64":["YS//"],"count":2}"#,
    /// )?;
    /// assert_eq!(holds.names()?, [Name::from("a"), Name::from(b"a/\xff")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn names(&self) -> Result<Vec<Name>, base64::DecodeError> {
        let others = self.keys_base64.iter().map(|text| STANDARD.decode(text).map(Name::from));
        self.keys.iter().map(|text| Ok(text.into())).chain(others).collect()
    }
}

/// A lock or an election that a session has to do with.
///
/// # Examples
///
/// ```
/// use quorate_api::{LockState, SessionHold};
///
/// let hold: SessionHold = serde_json::from_str(r#"{"name":"books","state":"waiting","place":"19"}"#)?;
/// assert_eq!((hold.state, hold.place, hold.token), (LockState::Waiting, Some(19), None));
/// # Ok::<(), serde_json::Error>(())
/// ```
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

/// The answer of `GET /v1/sessions`.
///
/// # Examples
///
/// ```
/// use quorate_api::SessionList;
///
/// let list: SessionList = serde_json::from_str(
///     r#"{"sessions":[{"session":"17","owner":"web-3","labels":{},"ttl_ms":5000,"expires_in_ms":3900,
///         "created":"2026-11-21T08:00:00.000Z","age_ms":61000}],"revision":"20","index":31}"#,
/// )?;
/// assert_eq!((list.sessions[0].owner.as_str(), list.cursor), ("web-3", None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct SessionList {
    /// Sessions, the oldest first.
    pub sessions: Vec<SessionView>,
    /// Give this back as `cursor` to go on. Absent once all were shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Revision at which the list was evaluated.
    #[serde(with = "decimal")]
    #[schema(schema_with = decimal::shown)]
    pub revision: u64,
    /// Log index at which the list was evaluated.
    pub index: u64,
}
