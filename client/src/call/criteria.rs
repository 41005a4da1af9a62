//! The criteria of a write or a find, as they are gathered.
//!
//! Owns that what is wrong with one is told when the request is sent, not where it was said. What criteria mean is for the
//! nodes to say.

use serde_json::value::{RawValue, to_raw_value};

use crate::api::{Criterion, JsonText};
use crate::call::error::Error;

/// Criteria that must all hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Criteria {
    list: Vec<JsonText>,
    wrong: Option<String>,
}

impl Criteria {
    /// Adds one.
    pub fn add(&mut self, criterion: &Criterion) {
        match to_raw_value(criterion) {
            Ok(text) => self.list.push(JsonText(text)),
            Err(error) => self.wrong = Some(format!("a criterion has no JSON form: {error}")),
        }
    }

    /// Adds one as JSON text, with its numbers as they are written.
    pub fn add_json(&mut self, criterion: &str) {
        match serde_json::from_str::<Box<RawValue>>(criterion) {
            Ok(text) => self.list.push(JsonText(text)),
            Err(error) => self.wrong = Some(format!("a criterion is not JSON: {error}")),
        }
    }

    /// All of them, if they are right.
    pub fn list(&self) -> Result<Vec<JsonText>, Error> {
        Ok(self.checked()?.map(<[_]>::to_vec).unwrap_or_default())
    }

    /// All of them, if they are right; `None` where there are none.
    pub fn checked(&self) -> Result<Option<&[JsonText]>, Error> {
        match &self.wrong {
            Some(wrong) => Err(Error::Invalid(wrong.clone())),
            None => Ok(Some(self.list.as_slice()).filter(|list| !list.is_empty())),
        }
    }
}
