//! What a failed call means for its caller.
//!
//! Owns [`Error`] and its answers to the two questions that matter: was it applied, and may it be tried again. Never
//! guesses: where the outcome of a write is not known, the error says so and carries the id to ask with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Applied, ErrorCode, Name, Problem, Retry, ValueError};
use crate::call::loss::Loss;
use crate::call::reason::Reason;
use crate::call::request_id::RequestId;

/// Why a call did not succeed.
///
/// What lies behind it is its [source](std::error::Error::source).
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: &quorate_client::Client) -> Result<(), quorate_client::Error> {
/// use quorate_client::api::ErrorCode;
/// use quorate_client::Error;
///
/// match client.insert_json("names/ann", "user 7").await {
///     Ok(written) => println!("written at revision {}", written.revision),
///     // The cluster has decided; its code says how.
///     Err(Error::Rejected(problem)) if problem.code == ErrorCode::AlreadyExists => println!("taken"),
///     // It may have been written. The id tells, once a node can be reached.
///     Err(Error::Unknown(gave_up)) => println!("ask for {:?}", gave_up.request_id),
///     Err(error) if error.is_retryable() => println!("later, perhaps: {error}"),
///     Err(error) => return Err(error),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster decided against it; the problem document says why. Definite.
    #[error("{}", .0.detail)]
    Rejected(Box<Problem>),
    /// No node could serve it in time. It was not applied and never will be.
    #[error(transparent)]
    Unavailable(Box<GaveUp>),
    /// A write may have been applied, and no node could tell in time. Ask again with the request id.
    #[error(transparent)]
    Unknown(Box<GaveUp>),
    /// A server answered something that is not Quorate's API.
    #[error("unexpected answer from {address}: {detail}")]
    #[non_exhaustive]
    Protocol {
        /// Who answered.
        address: String,
        /// What is wrong with the answer.
        detail: String,
        /// Whether the call was applied.
        applied: Applied,
        /// The id of the write.
        request_id: Option<RequestId>,
        /// What could not be read, where something could not.
        source: Option<serde_json::Error>,
    },
    /// An update lost the race for its entry every time. Not applied.
    #[error("`{key}` changed under each of {tries} tries to update it")]
    #[non_exhaustive]
    Contended {
        /// The entry.
        key: Name,
        /// How often it was tried.
        tries: u32,
        /// The last refusal, with the entry as it was.
        #[source]
        last: Box<Problem>,
    },
    /// An update found its entry locked by somebody else. Not applied; the lock ends within half a minute, and the update may be tried
    /// again then.
    #[error("`{key}` is locked by somebody else{}", .lock_left.map_or(String::new(), |left| format!(" for {} ms", left.as_millis())))]
    #[non_exhaustive]
    Locked {
        /// The entry.
        key: Name,
        /// How long the lock holds unless it is extended, where that is known.
        lock_left: Option<Duration>,
    },
    /// A mirror did not come to a revision in time. What it has is older.
    #[error("the mirror of `{prefix}` is at revision {reached}, not yet at {revision}")]
    #[non_exhaustive]
    Behind {
        /// What it mirrors.
        prefix: Name,
        /// The revision that was waited for.
        revision: u64,
        /// The revision that it shows.
        reached: u64,
        /// Why it does not follow, where it does not.
        source: Option<Arc<Error>>,
    },
    /// A session is lost, or no renewal of it was confirmed lately: what it holds is not certain, and nothing was done.
    #[error("session {session} {}", .loss.map_or("is suspect: no renewal of it was confirmed lately".to_owned(), |loss| format!("is lost: {loss}")))]
    #[non_exhaustive]
    Session {
        /// Its id.
        session: String,
        /// Why it is lost; `None` where it still lives, but was not renewed for half of its time.
        loss: Option<Loss>,
    },
    /// The time to wait at a barrier was over, and it could not be left. The session may be in it until it leaves, or ends.
    #[error("the barrier `{barrier}` did not open in time, and could not be left: {source}")]
    #[non_exhaustive]
    NotLeft {
        /// Its name.
        barrier: String,
        /// Why it could not be left.
        source: Box<Error>,
    },
    /// The call makes no sense and was not sent.
    #[error("{0}")]
    Invalid(String),
    /// A file of the caller's could not be read or written.
    #[error("{}: {source}", .path.display())]
    #[non_exhaustive]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A value is not of the type asked for, or has no JSON form. Nothing was written by the call.
    #[error("{what}: {source}")]
    #[non_exhaustive]
    Decode {
        /// Which value.
        what: String,
        /// What serde says.
        source: serde_json::Error,
    },
    /// A value is not what it was to be read as.
    #[error("{0}")]
    Value(#[from] ValueError),
}

/// Who says what became of a call that failed.
enum Origin<'a> {
    /// The cluster.
    Problem(&'a Problem),
    /// Nobody; it was tried in vain.
    GaveUp(&'a GaveUp, Applied),
    /// Something that does not speak Quorate's API.
    Stranger(Option<&'a RequestId>, Applied),
    /// This client: nothing was written.
    Client,
}

impl Error {
    fn origin(&self) -> Origin<'_> {
        match self {
            Self::NotLeft { source, .. } => source.origin(),
            Self::Rejected(problem) | Self::Contended { last: problem, .. } => Origin::Problem(problem),
            Self::Unavailable(gave_up) => Origin::GaveUp(gave_up, Applied::No),
            Self::Unknown(gave_up) => Origin::GaveUp(gave_up, Applied::Unknown),
            Self::Protocol { request_id, applied, .. } => Origin::Stranger(request_id.as_ref(), *applied),
            Self::Locked { .. }
            | Self::Behind { .. }
            | Self::Session { .. }
            | Self::Invalid(_)
            | Self::File { .. }
            | Self::Decode { .. }
            | Self::Value(_) => Origin::Client,
        }
    }

    /// Whether the call that failed took effect.
    pub fn applied(&self) -> Applied {
        if let Self::NotLeft { .. } = self {
            return Applied::Unknown;
        }
        match self.origin() {
            Origin::Problem(problem) => problem.applied,
            Origin::GaveUp(_, applied) | Origin::Stranger(_, applied) => applied,
            Origin::Client => Applied::No,
        }
    }

    /// Whether the same call, under the same request id, may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            // An update takes another look at the entry.
            Self::Contended { .. } | Self::Locked { .. } | Self::Behind { .. } => true,
            Self::Session { loss, .. } => loss.is_none(),
            other => match other.origin() {
                Origin::Problem(problem) => problem.retry == Retry::SameRequestId,
                Origin::GaveUp(..) => true,
                Origin::Stranger(..) | Origin::Client => false,
            },
        }
    }

    /// The problem document, where the cluster sent one. For [`Self::Unavailable`] and [`Self::Unknown`] the last one.
    pub fn problem(&self) -> Option<&Problem> {
        match self.origin() {
            Origin::Problem(problem) => Some(problem),
            Origin::GaveUp(GaveUp { last: Failure { kind: FailureKind::Problem(problem), .. }, .. }, _) => {
                Some(problem)
            }
            Origin::GaveUp(..) | Origin::Stranger(..) | Origin::Client => None,
        }
    }

    /// The code of the problem document, where there is one; else the code that a node would have given: `locked` for [`Self::Locked`],
    /// `session_expired` for a [`Self::Session`] that is lost, `timeout` for [`Self::Behind`], and for [`Self::Unavailable`] and
    /// [`Self::Unknown`] where no node said why.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Locked { .. } => Some(ErrorCode::Locked),
            Self::Session { loss, .. } => loss.map(|_| ErrorCode::SessionExpired),
            Self::Behind { .. } => Some(ErrorCode::Timeout),
            other => match other.origin() {
                Origin::GaveUp(..) => Some(other.problem().map_or(ErrorCode::Timeout, |problem| problem.code)),
                Origin::Problem(problem) => Some(problem.code),
                Origin::Stranger(..) | Origin::Client => None,
            },
        }
    }

    /// The id under which `GET /v1/requests/{id}` tells the outcome of the write.
    pub fn request_id(&self) -> Option<&str> {
        match self.origin() {
            Origin::Problem(problem) => Some(&problem.request_id),
            Origin::GaveUp(gave_up, _) => gave_up.request_id.as_ref().map(RequestId::as_str),
            Origin::Stranger(request_id, _) => request_id.map(RequestId::as_str),
            Origin::Client => None,
        }
    }
}

/// Whether there is no such thing, as opposed to no such path.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Rejected(problem) if problem.code == ErrorCode::NotFound && problem.errors.is_empty())
}

/// A call that was tried until its time or its tries ran out.
///
/// # Examples
///
/// ```
/// use quorate_client::blocking::Run;
/// use quorate_client::{Client, Error, RetryPolicy};
///
/// let client = Client::builder().endpoints("127.0.0.1:1").retry(RetryPolicy::default().attempts_max(2)).build()?;
/// let Err(Error::Unavailable(gave_up)) = client.get("greeting").run() else { panic!("somebody answered") };
/// assert_eq!((gave_up.attempts, gave_up.last.address.as_str()), (2, "127.0.0.1:1"));
/// // A read has no id; of a write it is there to ask with.
/// assert_eq!(gave_up.request_id, None);
/// # Ok::<(), quorate_client::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct GaveUp {
    /// The id of the write; reads have none.
    pub request_id: Option<RequestId>,
    /// How often it was sent or tried to be sent.
    pub attempts: u32,
    /// How long that took.
    pub elapsed: Duration,
    /// What went wrong the last time.
    pub last: Failure,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tries = if self.attempts == 1 { "try" } else { "tries" };
        write!(out, "gave up after {} {tries} in {} ms; the last: ", self.attempts, self.elapsed.as_millis())?;
        self.last.fmt(out)?;
        match &self.last.kind {
            FailureKind::OtherCluster { theirs, .. } => write!(
                out,
                "; if {theirs} has replaced ours, as a restore does, try again: the client goes over once it has heard nothing else for \
                 10 s; if not, put that node right, or take it off the endpoints"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for GaveUp {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.last)
    }
}

/// One attempt that brought no final answer.
#[derive(Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The node it was sent to, `host:port`.
    pub address: String,
    /// What happened.
    pub kind: FailureKind,
}

impl Failure {
    /// Whether a node said what is wrong.
    pub(crate) fn is_said(&self) -> bool {
        matches!(self.kind, FailureKind::Problem(_) | FailureKind::OtherCluster { .. })
    }

    /// Whether a node of another cluster was there.
    pub(crate) fn is_of_stranger(&self) -> bool {
        matches!(self.kind, FailureKind::OtherCluster { .. })
    }

    /// Whether a write could have been applied, or could still be, by this attempt.
    pub fn leaves_fate_open(&self) -> bool {
        match &self.kind {
            FailureKind::Connect(_) | FailureKind::Tls(_) | FailureKind::NotSent(_) => false,
            // It may have been applied there, which is not here.
            FailureKind::OtherCluster { .. } => false,
            FailureKind::Broken(_) | FailureKind::TimedOut(_) | FailureKind::Strange(_) => true,
            FailureKind::Problem(problem) => problem.applied != Applied::No,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.address, self.kind.reason())
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            FailureKind::Connect(error) => Some(error),
            FailureKind::Tls(reason) | FailureKind::NotSent(reason) | FailureKind::Broken(reason) => reason.source(),
            FailureKind::Problem(problem) => Some(&**problem),
            FailureKind::TimedOut(_) | FailureKind::Strange(_) | FailureKind::OtherCluster { .. } => None,
        }
    }
}

impl FailureKind {
    /// In words.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Connect(error) => format!("cannot connect: {error}"),
            Self::Tls(reason) => format!("no secure connection: {reason}"),
            Self::NotSent(reason) => format!("could not send: {reason}"),
            Self::Broken(reason) => format!("the connection broke: {reason}"),
            Self::TimedOut(after) => format!("no answer in {} ms", after.as_millis()),
            Self::Problem(problem) => format!("{}: {}", problem.title, problem.detail),
            Self::Strange(what) => what.clone(),
            Self::OtherCluster { theirs, ours } => format!("it is a node of cluster {theirs}, and not of ours, {ours}"),
        }
    }
}

/// The ways an attempt can fail.
#[derive(Debug)]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection came about.
    Connect(std::io::Error),
    /// One side does not believe the other's certificate, or does not speak TLS.
    Tls(Reason),
    /// The connection was lost before the request went out.
    NotSent(Reason),
    /// The connection was lost after that.
    Broken(Reason),
    /// The request went out, and no answer came.
    TimedOut(Duration),
    /// The node answered that it cannot serve this now.
    Problem(Box<Problem>),
    /// A 5xx that is no problem document, as proxies send it.
    Strange(String),
    /// A node of another cluster is at this address: what it says is not believed, and it gets no further calls. A write that went to it
    /// as the first of all may have been applied there. The client's cluster is the one that it heard of first, until it goes over: at
    /// once when more than half of several endpoints are of another one, else once given ones have said so for 10 s, and none of its own
    /// said anything.
    #[non_exhaustive]
    OtherCluster {
        /// The id of its cluster.
        theirs: String,
        /// The id of the client's.
        ours: String,
    },
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_leads_to_what_the_system_said() {
        let kind = FailureKind::Connect(std::io::ErrorKind::ConnectionRefused.into());
        let last = Failure { address: "n:1".into(), kind };
        let gave_up = GaveUp { request_id: None, attempts: 1, elapsed: Duration::ZERO, last };
        let error = Error::Unavailable(Box::new(gave_up));
        let failure = error.source().expect("the last attempt");
        let said = failure.source().and_then(|source| source.downcast_ref::<std::io::Error>()).expect("of the system");
        assert_eq!(said.kind(), std::io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn an_error_in_doubt_names_both_clusters_and_how_to_go_on() {
        let kind = FailureKind::OtherCluster { theirs: "feed".into(), ours: "c0de".into() };
        let last = Failure { address: "n:1".into(), kind };
        let said = GaveUp { request_id: None, attempts: 2, elapsed: Duration::ZERO, last }.to_string();
        for word in ["n:1", "feed", "c0de", "try again", "endpoints"] {
            assert!(said.contains(word), "{said}");
        }
    }

    #[test]
    fn words_of_a_reason_do_not_hide_its_error() {
        let broken = Reason::of(std::io::Error::other("reset"));
        assert_eq!((broken.as_str(), broken.source().is_some()), ("reset", true));
        let failure = Failure { address: "n:1".into(), kind: FailureKind::Broken(broken) };
        assert!(failure.source().is_some_and(|source| source.is::<std::io::Error>()));
    }
}
