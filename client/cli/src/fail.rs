//! How a command fails: exit code, and on standard error what was wrong, whether it was applied, and what to do next.
//!
//! Owns the document of a failure, one form for those of nodes, of the client and of this program. Never decides whether to fail.

use std::fmt;
use std::process::ExitCode;

use quorate_client::Error;
use quorate_client::api::{Applied, ErrorCode, Problem, Retry, code_name};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::arguments::Arguments;
use crate::form::Form;
use crate::pretty::compact;
use crate::tree::Node;
use crate::yaml;

const ERROR: u8 = 1;
const USAGE: u8 = 2;
/// Exit code where the state of things is not what was asked for.
pub const CONDITION: u8 = 3;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failed {
    /// The client says so.
    Client(Error),
    /// The command line does not make sense.
    Usage(String),
    /// The state of things is not what the command needs; no node said so, but one would have by this code.
    Condition(ErrorCode, String),
    /// Some of what was asked for was refused, the rest was done.
    Partly(String),
    /// It ended before its end; some of it was done.
    Stopped(String),
    /// Anything else.
    Other(String),
    /// A command that was run, or a signal, decides the exit code; the rest was said by it.
    Ended(u8),
    /// With an exit code of its own.
    Exit(u8, String),
    /// Nobody reads our output any more, as in `quorate list --all | head`.
    OutputClosed,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(detail) => Self::Usage(detail),
            error => Self::Client(error),
        }
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            // A write may have been applied: its answer could not be printed.
            _ => Self::Stopped(format!("cannot write the output: {error}")),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => error.fmt(out),
            Self::Usage(text)
            | Self::Condition(_, text)
            | Self::Partly(text)
            | Self::Stopped(text)
            | Self::Exit(_, text)
            | Self::Other(text) => out.write_str(text),
            Self::Ended(code) => write!(out, "the command ended with exit code {code}"),
            Self::OutputClosed => out.write_str("the output was closed"),
        }
    }
}

impl Failed {
    /// A file that cannot be written.
    pub fn from_io(error: std::io::Error) -> Self {
        Self::Other(format!("cannot write the file: {error}"))
    }

    /// A wrong command line.
    pub fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    /// An unmet condition.
    pub fn condition(text: impl Into<String>) -> Self {
        Self::Condition(ErrorCode::ConditionNotMet, text.into())
    }

    /// Something that is not there.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self::Condition(ErrorCode::NotFound, text.into())
    }

    /// Refusals among what was done.
    pub fn partly(text: impl Into<String>) -> Self {
        Self::Partly(text.into())
    }

    /// An end before the end.
    pub fn stopped(text: impl Into<String>) -> Self {
        Self::Stopped(text.into())
    }

    /// A fault with an exit code of its own.
    pub fn exit(code: u8, text: impl Into<String>) -> Self {
        Self::Exit(code, text.into())
    }

    /// Whether it may be over if the same is tried again later: no node could be reached, or a session was lost.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Client(error) if error.is_retryable() || matches!(error, Error::Session { .. }))
    }

    /// Any other fault.
    pub fn other(text: impl Into<String>) -> Self {
        Self::Other(text.into())
    }

    /// Says it on standard error, in the form asked for; to people, by the names that arguments have.
    pub fn report(self, form: Form, arguments: &Arguments) -> ExitCode {
        if !matches!(self, Self::OutputClosed | Self::Ended(_)) {
            match (form, self.json()) {
                (Form::Json, Ok(json)) => say!("{}", json.get()),
                (Form::Yaml, Ok(json)) => match Node::of(&json) {
                    Ok(node) => crate::said::raw(format!("---\n{}", yaml::document(&node)).as_bytes()),
                    Err(_) => say!("{}", self.text(arguments)),
                },
                _ => say!("{}", self.text(arguments)),
            }
        }
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Client(error) => code_of(error),
            Self::Usage(_) => USAGE,
            // Nothing can be asked that another answer could come of.
            Self::Condition(ErrorCode::NoLeader | ErrorCode::Timeout, _) => ERROR,
            Self::Condition(..) | Self::Partly(_) => CONDITION,
            Self::Stopped(_) | Self::Other(_) => ERROR,
            Self::Ended(code) | Self::Exit(code, _) => *code,
            Self::OutputClosed => 0,
        }
    }

    fn text(&self, arguments: &Arguments) -> String {
        let mut lines = vec![format!("error: {}", arguments.named(&self.to_string()))];
        if let Self::Client(error) = self {
            if let Some(problem) = error.problem() {
                lines.extend(faults(problem).map(|fault| format!("  {}", arguments.named(&fault))));
                lines.extend(problem.failed.iter().map(failed));
                lines.extend(current(problem));
            }
            if !matches!(error, Error::File { .. }) {
                lines.push(format!("  applied: {}", applied(error.applied())));
            }
            lines.extend(advice(error).map(|advice| format!("  next: {advice}")));
        }
        lines.join("\n")
    }

    /// The document of it: that of the node where one refused, else the same fields.
    pub fn json(&self) -> serde_json::Result<Box<RawValue>> {
        if let Self::Client(Error::Rejected(problem)) = self {
            return to_raw_value(problem);
        }
        let (cause, applied) = self.cause();
        let client = match self {
            Self::Client(error) => Some(error),
            _ => None,
        };
        to_raw_value(&Document {
            type_uri: cause.type_uri(),
            title: cause.title(),
            status: cause.status(),
            detail: self.to_string(),
            code: cause.code(),
            applied,
            retry: cause.retry(),
            request_id: client.and_then(Error::request_id),
            last: client.and_then(Error::problem),
        })
    }

    fn cause(&self) -> (Cause, Applied) {
        match self {
            Self::Client(error) => {
                let cause = match (error.code(), error) {
                    (Some(code), _) => Cause::Api(code),
                    (None, Error::Protocol { .. }) => Cause::Stranger,
                    (None, _) => Cause::Other,
                };
                (cause, error.applied())
            }
            Self::Usage(_) => (Cause::Api(ErrorCode::InvalidArgument), Applied::No),
            Self::Condition(code, _) => (Cause::Api(*code), Applied::No),
            Self::Partly(_) => (Cause::Partly, Applied::Yes),
            Self::Stopped(_) => (Cause::Stopped, Applied::Unknown),
            Self::Other(_) | Self::Ended(_) | Self::Exit(..) | Self::OutputClosed => (Cause::Other, Applied::No),
        }
    }
}

/// The cause of a failure: an error code of a node, or one that only this program has.
enum Cause {
    Api(ErrorCode),
    Partly,
    Stopped,
    Stranger,
    Other,
}

impl Cause {
    fn code(&self) -> String {
        match self {
            Self::Api(code) => code_name(*code),
            Self::Partly => "partly_failed".into(),
            Self::Stopped => "stopped".into(),
            Self::Stranger => "unexpected_answer".into(),
            Self::Other => "failed".into(),
        }
    }

    /// A node has a page for each of its codes; for ours RFC 9457 has a word.
    fn type_uri(&self) -> String {
        match self {
            Self::Api(code) => format!("/errors/{}", code_name(*code)),
            _ => "about:blank".into(),
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Api(code) => code.title(),
            Self::Partly => "Some of it was refused",
            Self::Stopped => "It ended before its end",
            Self::Stranger => "The answer is not of Quorate's API",
            Self::Other => "The command failed",
        }
    }

    fn status(&self) -> u16 {
        match self {
            Self::Api(code) => code.status(),
            Self::Partly => 207,
            Self::Stranger => 502,
            Self::Stopped | Self::Other => 500,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Api(code) => code.retry(),
            Self::Partly | Self::Stopped => Retry::AfterReading,
            Self::Stranger | Self::Other => Retry::Never,
        }
    }
}

/// The fields of a [`Problem`] that every failure has, in its order.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    type_uri: String,
    title: &'static str,
    status: u16,
    detail: String,
    code: String,
    applied: Applied,
    retry: Retry,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// The last attempt's problem document. Its `applied` is about that attempt alone, so the document has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<&'a Problem>,
}

fn code_of(error: &Error) -> u8 {
    match error {
        Error::Rejected(problem) => match problem.code {
            ErrorCode::AlreadyExists
            | ErrorCode::AlreadyQueued
            | ErrorCode::CasMismatch
            | ErrorCode::ConditionNotMet
            | ErrorCode::DifferentSettings
            | ErrorCode::GuardFailed
            | ErrorCode::InUse
            | ErrorCode::Locked
            | ErrorCode::NotLockHolder
            | ErrorCode::PreconditionRequired
            | ErrorCode::SessionExpired
            | ErrorCode::UniqueViolation => CONDITION,
            // A wrong command line that only a node could tell from a right one.
            ErrorCode::InvalidArgument | ErrorCode::UnknownField => USAGE,
            // Without `errors` it is about the key, with them about the path.
            ErrorCode::NotFound if problem.errors.is_empty() => CONDITION,
            _ => ERROR,
        },
        Error::Locked { .. } => CONDITION,
        Error::Invalid(_) => USAGE,
        _ => ERROR,
    }
}

fn faults(problem: &Problem) -> impl Iterator<Item = String> + '_ {
    // The detail of a malformed request has its only fault.
    let is_told = problem.errors.len() == 1 && problem.code != ErrorCode::InvalidDocument;
    let shown = if is_told { &[] } else { problem.errors.as_slice() };
    shown.iter().map(|fault| format!("{}: {}", fault.pointer, fault.detail))
}

fn failed(failed: &quorate_client::api::Failed) -> String {
    let actual =
        failed.actual.as_ref().map(|actual| format!("; found {}", compact(actual.0.get()))).unwrap_or_default();
    format!("  {}: {}{actual}", failed.pointer, failed.detail)
}

fn current(problem: &Problem) -> Option<String> {
    let entry = problem.current.as_ref()?;
    let value = entry.value.as_ref().map_or_else(|| "(bytes)".to_owned(), |value| compact(value.0.get()));
    Some(format!("  current: {value}  cas {}", crate::cas_text::shown(entry.cas, "none (locked)")))
}

fn applied(applied: Applied) -> &'static str {
    match applied {
        Applied::No => "no",
        Applied::Yes => "yes",
        _ => "unknown",
    }
}

fn advice(error: &Error) -> Option<String> {
    Some(match error {
        Error::Unknown(_) | Error::Protocol { applied: Applied::Unknown, .. } => {
            let id = error.request_id()?;
            format!(
                "`quorate request {id}` tells its outcome; the same command with `--request-id {id}` is safe to repeat"
            )
        }
        Error::Unavailable(_) => "`quorate status` shows which nodes answer; the command can be repeated".into(),
        Error::Protocol { .. } => "check --endpoints".into(),
        Error::Rejected(problem) => match problem.retry {
            Retry::AfterReading if problem.current.as_ref().is_some_and(|entry| entry.locked) => {
                "wait until the lock ends, or write with its key as cas".into()
            }
            Retry::AfterReading if problem.current.is_some() => "decide on the current value, use its cas".into(),
            Retry::SameRequestId => "repeat the command later".into(),
            _ => return None,
        },
        Error::Contended { .. } => "repeat the command when fewer clients write this entry".into(),
        _ => return None,
    })
}
