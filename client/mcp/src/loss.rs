//! What an agent held and lost.
//!
//! Owns how it is told: once by refusing the next call that would change something, and as a note in answers to reads before that.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::refusal::Refusal;

/// What was lost, and why, until the agent was told.
#[derive(Debug, Default)]
pub struct Lost {
    what: BTreeMap<String, String>,
    /// Whether it went with a session.
    with_session: bool,
}

impl Lost {
    /// All of it went with this session.
    pub fn add_session(&mut self, session: &str, why: &str, what: impl IntoIterator<Item = String>) {
        let why = format!("session {session} is lost: {why}");
        let before = self.what.len();
        self.what.extend(what.into_iter().map(|what| (what, why.clone())));
        self.with_session |= self.what.len() > before;
    }

    pub fn add(&mut self, what: String, why: String) {
        self.what.insert(what, why);
    }

    pub fn is_empty(&self) -> bool {
        self.what.is_empty()
    }

    /// The refusal of a call that would have changed something.
    pub fn refusal(&self) -> Refusal {
        let what = self.what.iter().map(|(what, why)| format!("{what} ({why})")).collect::<Vec<_>>().join(", ");
        let code = if self.with_session { "session_lost" } else { "claim_lost" };
        Refusal::new(code, format!("you do not hold this any more: {what}")).with("lost", self.names()).next(
            "nothing was done by this call. Others may have what you held: read again what it protected, and get it \
             anew before you go on. The next call is carried out",
        )
    }

    /// The note in an answer that changed nothing.
    pub fn note(&self, answer: &mut Map<String, Value>) {
        answer.insert("lost".into(), self.names());
    }

    fn names(&self) -> Value {
        json!(self.what.keys().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_told_of_all_that_it_lost() {
        let mut lost = Lost::default();
        lost.add("claim k".into(), "it was held for 30 s".into());
        assert_eq!(lost.refusal().code(), "claim_lost");
        lost.add_session("17", "no renewal was confirmed in time", ["lock a".to_owned()]);
        let told = lost.refusal().into_json();
        assert_eq!((&told["error"], &told["applied"]), (&json!("session_lost"), &json!("no")));
        assert_eq!(told["lost"], json!(["claim k", "lock a"]));
        assert!(told["message"].as_str().is_some_and(|message| message.contains("session 17")), "{told}");
    }

    #[test]
    fn a_session_on_which_nothing_hung_is_no_loss() {
        let mut lost = Lost::default();
        lost.add_session("17", "it is over", []);
        assert!(lost.is_empty());
    }
}
