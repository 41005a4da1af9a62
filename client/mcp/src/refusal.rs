//! How a call is refused.
//!
//! Owns the words for an agent: a code, what is wrong, whether anything was applied, what is there now, and what to do next. A refusal is an
//! answer of the tool, never an error of the protocol, which agents do not get to read.

use quorate_client::Error;
use quorate_client::api::{Applied, ErrorCode, Problem, code_name};
use serde_json::{Map, Value};

use crate::shown::Budget;

/// Why a call did not do what it was to do.
#[derive(Debug)]
pub struct Refusal {
    code: String,
    message: String,
    applied: Applied,
    next: Option<String>,
    more: Map<String, Value>,
}

impl Refusal {
    /// Nothing was applied, unless something else is said.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), applied: Applied::No, next: None, more: Map::new() }
    }

    /// Arguments that make no sense.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new("invalid_argument", message).next("correct the arguments")
    }

    /// What the agent had better do.
    pub fn next(mut self, advice: impl Into<String>) -> Self {
        self.next = Some(advice.into());
        self
    }

    /// What else is known.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    #[cfg(test)]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The error of a call, with as much of the current entry as fits.
    pub fn of(error: &Error, budget: &mut Budget) -> Self {
        let mut refusal = Self::new(code(error), error.to_string());
        refusal.applied = error.applied();
        refusal.next = Some(advice(error));
        if let (true, Some(id)) = (error.applied() == Applied::Unknown, error.request_id()) {
            refusal = refusal.with("request_id", id);
        }
        match error {
            Error::Rejected(problem) => refusal.told(problem, budget),
            _ => refusal,
        }
    }

    /// What the cluster told besides.
    fn told(mut self, problem: &Problem, budget: &mut Budget) -> Self {
        if let Some(entry) = &problem.current {
            self = self.with("current", budget.entry(entry));
        }
        if !problem.failed.is_empty() {
            let failed = problem.failed.iter().map(|failed| {
                let mut shown = Map::new();
                shown.insert("condition".into(), failed.pointer.as_str().into());
                shown.insert("detail".into(), failed.detail.as_str().into());
                if let Some(actual) = &failed.actual {
                    budget.put_json(&mut shown, "found", actual.0.get(), None);
                }
                Value::Object(shown)
            });
            let failed: Vec<_> = failed.collect();
            self = self.with("failed", failed);
        }
        if problem.errors.len() > 1 {
            let faults = problem.errors.iter().map(|fault| format!("{}: {}", fault.pointer, fault.detail));
            self = self.with("faults", faults.collect::<Vec<_>>());
        }
        match problem.oldest_revision {
            Some(oldest) => self.with("oldest_revision", oldest.to_string()),
            None => self,
        }
    }

    /// As the agent gets it.
    pub fn into_json(self) -> Value {
        let applied = match self.applied {
            Applied::No => "no",
            Applied::Yes => "yes",
            Applied::Unknown => "unknown",
        };
        let mut all = Map::new();
        all.insert("error".into(), self.code.into());
        all.insert("message".into(), self.message.into());
        all.insert("applied".into(), applied.into());
        all.extend(self.more);
        if let Some(next) = self.next {
            all.insert("next".into(), next.into());
        }
        Value::Object(all)
    }
}

/// The code of the cluster, or what the client found out without one.
fn code(error: &Error) -> String {
    match error {
        Error::Unavailable(_) => "unavailable".into(),
        Error::Unknown(_) => "outcome_unknown".into(),
        Error::Session { loss: None, .. } => "session_suspect".into(),
        Error::Session { .. } => "session_lost".into(),
        Error::Invalid(_) => "invalid_argument".into(),
        Error::Protocol { .. } => "unexpected_answer".into(),
        error => error.code().map_or_else(|| "client_error".to_owned(), code_name),
    }
}

fn advice(error: &Error) -> String {
    match error {
        Error::Unavailable(_) => "no node could answer in time: call again later".into(),
        Error::Unknown(_) => "request_show with this request_id tells whether it was applied; or read the entry".into(),
        Error::Session { loss: None, .. } => {
            "the cluster did not confirm the session lately: wait some seconds, then call session_show".into()
        }
        Error::Rejected(problem) => advice_for(problem).into(),
        Error::Invalid(_) => "correct the arguments".into(),
        _ => "call session_show; tell the user if it happens again".into(),
    }
}

/// Of every code, so that a new one is not forgotten.
fn advice_for(problem: &Problem) -> &'static str {
    let is_locked = problem.current.as_ref().is_some_and(|entry| entry.locked);
    match problem.code {
        ErrorCode::CasMismatch | ErrorCode::Locked if is_locked => {
            "somebody has claimed this entry: work on another one, or wait; if the claim is yours, use claim_complete"
        }
        ErrorCode::CasMismatch => "the entry changed since you read it: decide on `current`, then write with its cas",
        ErrorCode::AlreadyExists => "somebody made it before you: decide on `current`, then write with its cas",
        ErrorCode::ConditionNotMet => "decide on `current`; `failed` says which condition does not hold",
        ErrorCode::GuardFailed => {
            "this lock or leadership is not held by that token any more: stop what you do under it"
        }
        ErrorCode::NotLockHolder => "it is not yours any more: read it again before you do anything else with it",
        ErrorCode::Locked => "somebody else has it: wait, or do something else first",
        ErrorCode::NotFound => "there is nothing of this name: make it with entry_insert, or list what there is",
        ErrorCode::Compacted => "that part of the past is gone: list anew and go on from the revision of the list",
        ErrorCode::SessionExpired => "the session is over, and all that hung on it: call session_show",
        ErrorCode::InvalidArgument | ErrorCode::UnknownField | ErrorCode::InvalidDocument => "correct the arguments",
        ErrorCode::UniqueViolation => "another document has these values already: find it, or choose others",
        ErrorCode::PreconditionRequired => "this collection takes no blind writes: read the entry and give its cas",
        ErrorCode::TooDear => {
            "use fewer conditions or patch operations on this entry, or split it over several entries"
        }
        ErrorCode::TooLarge => "make it smaller, or split it over several entries",
        ErrorCode::PermissionDenied | ErrorCode::Unauthenticated => {
            "you may not do this: ask the user for the permission"
        }
        ErrorCode::DifferentSettings => "it is in use in another mode or with other slots: ask with the same ones",
        ErrorCode::AlreadyQueued => "you have a place in this queue already: give it up first",
        ErrorCode::NoLeader | ErrorCode::NotReady | ErrorCode::Quarantined | ErrorCode::Timeout => {
            "the cluster is not ready: call again in some seconds"
        }
        ErrorCode::TooManyRequests => "wait some seconds, then call again",
        ErrorCode::QuotaExceeded => "there is no room: delete what is not needed, or tell the user",
        ErrorCode::InUse | ErrorCode::ChangeRefused => "something else needs it as it is",
        ErrorCode::RequestIdReused
        | ErrorCode::Internal
        | ErrorCode::MethodNotAllowed
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::Other(_) => "tell the user",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rejected(problem: Problem) -> Value {
        Refusal::of(&Error::Rejected(Box::new(problem)), &mut Budget::new(1_000)).into_json()
    }

    #[test]
    fn a_refused_cas_brings_the_current_value_and_what_to_do() {
        let mut problem = Problem::new(ErrorCode::CasMismatch, Applied::No, "`k` has cas 9, not 7");
        let text = r#"{"key":"k","value":{"a":1},"content_type":"json","cas":"9","create_revision":"1","mod_revision":"9","version":2}"#;
        problem.current = Some(serde_json::from_str(text).expect("an entry"));
        let told = rejected(problem);
        assert_eq!(told["error"], "cas_mismatch");
        assert_eq!((&told["applied"], &told["current"]["cas"]), (&json!("no"), &json!("9")));
        assert_eq!(told["current"]["value"], json!({"a": 1}));
        assert!(told["next"].as_str().is_some_and(|next| next.contains("`current`")), "{told}");
    }

    #[test]
    fn a_locked_entry_is_told_from_a_changed_one() {
        let mut problem = Problem::new(ErrorCode::CasMismatch, Applied::No, "locked");
        let text = r#"{"key":"k","value":1,"content_type":"json","cas":null,"create_revision":"1","mod_revision":"9","version":2,"locked":true}"#;
        problem.current = Some(serde_json::from_str(text).expect("an entry"));
        let told = rejected(problem);
        assert!(told["next"].as_str().is_some_and(|next| next.contains("claimed")), "{told}");
        assert_eq!(told["current"]["locked"], true);
    }

    #[test]
    fn every_code_has_advice() {
        for code in ErrorCode::ALL {
            let told = rejected(Problem::new(code, Applied::Unknown, "so it is"));
            assert_eq!(told["applied"], "unknown");
            assert!(told["next"].as_str().is_some_and(|next| !next.is_empty()), "{told}");
        }
    }
}
