//! A call that did not succeed, and how the suite sees it.

use std::fmt;

use quorate_client::Error;
use quorate_client::api::{Applied, ErrorCode, Retry};
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub enum Failure {
    /// What the client says.
    Client(Error),
    /// There is no such thing, which the client answers with `None`.
    Missing,
    /// A file asks for what there is not, or the cluster does not do what it is told. No step expects that.
    Suite(String),
}

/// What a call comes to: its answer as the API writes it, or the failure.
pub type Outcome = Result<Value, Failure>;

impl Failure {
    /// The fields of an error, as the API has them.
    pub fn fields(&self) -> Result<Value, String> {
        match self {
            Self::Client(error) => fields_of(error),
            Self::Missing => Ok(json!({
                "code": ErrorCode::NotFound, "applied": Applied::No, "retry": Retry::AfterReading,
            })),
            Self::Suite(why) => Err(why.clone()),
        }
    }
}

fn fields_of(error: &Error) -> Result<Value, String> {
    let problem = error.problem().map(serde_json::to_value).transpose().map_err(|error| error.to_string())?;
    let mut fields = match problem {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    fields.insert("applied".to_owned(), json!(error.applied()));
    if let Some(code) = error.code() {
        fields.insert("code".to_owned(), json!(code));
        fields.entry("retry").or_insert(json!(code.retry()));
    }
    Ok(Value::Object(fields))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(error) => write!(out, "{error} (code {:?})", error.code()),
            Self::Missing => out.write_str("not found"),
            Self::Suite(why) => out.write_str(why),
        }
    }
}
