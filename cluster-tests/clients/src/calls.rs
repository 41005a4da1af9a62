//! The calls of the suite, each by what the client has; a file for each area.

mod collections;
mod coordination;
mod entries;
mod locks;
mod many;
mod operations;
pub mod process;
mod sessions;
mod streams;
mod tasks;

use std::time::Duration;

use quorate_client::{Client, Session, Value as Written};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::things::{Thing, Things};

pub use streams::{next, start, stop};

/// How long a lock and a leadership are waited for where a step does not say.
const WAIT_DEFAULT: Duration = Duration::from_secs(10);

/// A call as a step asks for it.
pub struct Asked<'a> {
    pub client: &'a Client,
    pub things: &'a Things,
    /// The name of what it makes.
    pub names: Option<&'a str>,
    /// The name of what it is made on.
    pub of: Option<&'a str>,
    pub with: Value,
}

/// Makes the call of this name.
pub async fn call(name: &str, asked: Asked<'_>) -> Outcome {
    match name {
        "get" => entries::get(asked).await,
        "put" | "insert" | "replace" | "remove" | "patch" => entries::write(name, asked).await,
        "touch" => entries::touch(asked).await,
        "increment" => entries::increment(asked).await,
        "update" => entries::update(asked).await,
        "get_and_lock" => entries::get_and_lock(asked).await,
        "unlock" => entries::unlock(asked).await,
        "history" => entries::history(asked).await,
        "request" => entries::request(asked).await,
        "stream" => entries::stream(asked).await,
        "list" => many::list(asked).await,
        "list_all" => many::list_all(asked).await,
        "find" => many::find(asked).await,
        "count" => many::count(asked).await,
        "claim" => many::claim(asked).await,
        "update_where" => many::update_where(asked).await,
        "delete_where" => many::delete_where(asked).await,
        "bulk" => many::bulk(asked).await,
        "txn" => many::txn(asked).await,
        "session_open" => sessions::open(asked).await,
        "session_keep" => sessions::keep(asked).await,
        "session_state" => sessions::state(&asked),
        "session_end" => sessions::end(asked).await,
        "close_stderr" => process::close_stderr(),
        "wall_ahead" => process::wall_ahead(&asked),
        "lock" => locks::lock(asked).await,
        "lock_try" => locks::lock_try(asked).await,
        "unlock_named" => locks::unlock(asked).await,
        "guarded_put" => locks::guarded_put(asked).await,
        "campaign" => coordination::campaign(asked).await,
        "resign" => coordination::resign(asked).await,
        "leader" => coordination::leader(asked).await,
        "barrier_enter" => coordination::barrier_enter(asked).await,
        "latch_create" => coordination::latch_create(asked).await,
        "latch_count_down" => coordination::latch_count_down(asked).await,
        "latch_wait" => coordination::latch_wait(asked).await,
        "schedule" => tasks::schedule(asked).await,
        "task_claim" => tasks::claim(asked).await,
        "task_complete" => tasks::complete(asked).await,
        "task_fail" => tasks::fail(asked).await,
        "task" => tasks::get(asked).await,
        "worker" => tasks::worker(asked).await,
        "mirror_get" => streams::mirror_get(asked).await,
        "mirror_keys" => streams::mirror_keys(asked).await,
        "collection_put" => collections::put(asked).await,
        "collection_get" => collections::get(asked).await,
        "collection_delete" => collections::delete(asked).await,
        "sequence_next" => collections::sequence_next(asked).await,
        "members" => collections::members(asked).await,
        unknown => Err(Failure::Suite(format!("there is no call `{unknown}`"))),
    }
}

impl Asked<'_> {
    /// The arguments; one that the call does not have is an error.
    fn arguments<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        // Through text: some types of the API keep the text of a part.
        serde_json::from_str(&self.with.to_string()).map_err(|error| Failure::Suite(format!("{error}: {}", self.with)))
    }

    /// [`Self::arguments`] that are types of the API.
    fn arguments_of_api<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let with = crate::names::to_api(self.with.clone());
        serde_json::from_str(&with.to_string()).map_err(|error| Failure::Suite(format!("{error}: {with}")))
    }

    /// The name of what it is made on.
    fn of(&self) -> Result<&str, Failure> {
        self.of.ok_or_else(|| Failure::Suite("the step does not say of what".to_owned()))
    }

    fn session(&self) -> Result<Session, Failure> {
        self.things.of(self.of()?, Thing::session)
    }

    /// Keeps what the call made, if the step has a name for it.
    fn keep(&self, thing: Thing) {
        if let Some(name) = self.names {
            self.things.add(name, thing);
        }
    }
}

/// As the API writes it.
fn answer(answer: &impl Serialize) -> Outcome {
    serde_json::to_value(answer).map_err(|error| Failure::Suite(format!("the answer has no JSON form: {error}")))
}

/// The same, where `None` says that there is nothing.
fn found(found: Option<impl Serialize>) -> Outcome {
    found.map_or(Err(Failure::Missing), |found| answer(&found))
}

fn json_value(value: &Value) -> Written {
    Written::json_text(value.to_string())
}

/// A value that may be `null`, where no value is something else.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A part of the keys: its number, and of how many.
fn part(index: Option<u32>, of: Option<u32>) -> Result<Option<(u32, u32)>, Failure> {
    match (index, of) {
        (None, None) => Ok(None),
        (Some(index), Some(of)) => Ok(Some((index, of))),
        _ => Err(Failure::Suite("`part` and `of` belong together".to_owned())),
    }
}

/// A revision or a token: a whole number, or its digits.
struct Digits(u64);

impl<'de> Deserialize<'de> for Digits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = match Value::deserialize(deserializer)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        read.map(Self).ok_or_else(|| serde::de::Error::custom("it is no whole number"))
    }
}

/// Applies a refinement to a call where the step has a value for it.
trait With: Sized {
    fn with<T>(self, value: Option<T>, refine: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            Some(value) => refine(self, value),
            None => self,
        }
    }

    fn with_each<T>(self, values: impl IntoIterator<Item = T>, refine: impl Fn(Self, T) -> Self) -> Self {
        values.into_iter().fold(self, refine)
    }

    fn with_if(self, wanted: bool, refine: impl FnOnce(Self) -> Self) -> Self {
        if wanted { refine(self) } else { self }
    }
}

impl<T> With for T {}
