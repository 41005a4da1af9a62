//! Sessions: kept, opened for nobody, ended.

use std::collections::BTreeMap;
use std::time::Duration;

use quorate_client::{RequestId, SessionState, StartSession};
use serde::Deserialize;
use serde_json::json;

use super::{Asked, With, answer};
use crate::failure::{Failure, Outcome};
use crate::things::Thing;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    ttl_ms: Option<u64>,
    owner: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

fn described<'a>(asked: &Asked<'a>) -> Result<StartSession<'a>, Failure> {
    let Open { ttl_ms, owner, labels } = asked.arguments()?;
    let session = asked.client.session().with(ttl_ms, |session, ms| session.ttl(Duration::from_millis(ms)));
    let session = session.with(owner, |session, owner| session.owner(owner));
    Ok(session.with_each(labels, |session, (name, value)| session.label(name, value)))
}

pub async fn open(asked: Asked<'_>) -> Outcome {
    answer(&described(&asked)?.create(RequestId::random()).await?)
}

pub async fn keep(asked: Asked<'_>) -> Outcome {
    let session = described(&asked)?.await?;
    let id = session.id().to_owned();
    asked.keep(Thing::Session(session));
    Ok(json!({"session": id}))
}

pub fn state(asked: &Asked<'_>) -> Outcome {
    let state = match asked.session()?.state() {
        SessionState::Ok => "alive",
        SessionState::Suspect => "suspect",
        SessionState::Lost => "lost",
    };
    Ok(json!({"state": state}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    session: Option<String>,
}

pub async fn end(asked: Asked<'_>) -> Outcome {
    let End { session } = asked.arguments()?;
    if let Some(id) = session {
        return answer(&asked.client.session_by_id(id).end().await?);
    }
    let session = asked.session()?;
    session.end().await?;
    Ok(json!({"session": session.id(), "ended": true}))
}
