//! What a write hangs on: the session that its entry goes with, and the lock or leadership that it needs.
//!
//! Owns the options. What `quorate lock` and `quorate elect` tell the command that they run stands in `guarded`.

use quorate_client::Write;
use quorate_client::api::Guard;

use crate::fail::Failed;
use crate::guarded::{ELECTION_ENV, FENCING_TOKEN_ENV, LOCK_ENV, TERM_ENV};
use crate::refined::Refined;

/// The options of a write that needs a lock or a leadership.
#[derive(Debug, clap::Args)]
pub struct Fence {
    /// Only while the lock or leadership holds for which `quorate lock` or `quorate elect` runs this command; exit code 3 if
    /// it does not any more.
    #[arg(long, conflicts_with_all = ["guard_lock", "guard_election"])]
    guarded: bool,
    /// Only while the token of --guard-token holds this lock.
    #[arg(long, value_name = "NAME", requires = "guard_token", conflicts_with = "guard_election")]
    guard_lock: Option<String>,
    /// Only while the token of --guard-token is the term of the leader of this election.
    #[arg(long, value_name = "NAME", requires = "guard_token")]
    guard_election: Option<String>,
    /// The fencing token.
    #[arg(long, value_name = "TOKEN")]
    guard_token: Option<u64>,
}

impl Fence {
    /// The guard, if there is to be one.
    pub fn guard(&self) -> Result<Option<Guard>, Failed> {
        match (&self.guard_lock, &self.guard_election, self.guard_token) {
            (Some(lock), _, Some(token)) => Ok(Some(Guard::lock(lock, token))),
            (_, Some(election), Some(token)) => Ok(Some(Guard::election(election, token))),
            (None, None, Some(_)) => Err(Failed::usage("--guard-token needs --guard-lock or --guard-election")),
            _ if self.guarded => from_env().map(Some),
            _ => Ok(None),
        }
    }

    /// The write with it.
    pub fn on<'a, A>(&self, write: Write<'a, A>) -> Result<Write<'a, A>, Failed> {
        Ok(write.given(self.guard()?, Write::guarded_by))
    }
}

/// The innermost of those that run this command: it has taken the names of the others away.
fn from_env() -> Result<Guard, Failed> {
    let pair = |name: &str, token: &str| Some((std::env::var(name).ok()?, std::env::var(token).ok()?));
    let number = |token: String| {
        token.parse().map_err(|_| Failed::usage(format!("the token in the environment is no number: `{token}`")))
    };
    match (pair(LOCK_ENV, FENCING_TOKEN_ENV), pair(ELECTION_ENV, TERM_ENV)) {
        (Some((lock, token)), None) => Ok(Guard::lock(lock, number(token)?)),
        (None, Some((election, term))) => Ok(Guard::election(election, number(term)?)),
        _ => Err(Failed::usage("--guarded is for commands that `quorate lock` or `quorate elect` runs")),
    }
}
