//! The table of tools.
//!
//! Owns their names and what an agent reads of each. Every agent reads all of it before it does anything, so it is short.

use crate::tool::{Effect, Tool};
use crate::tools::{claims, elections, entries, locks, reads, sessions, tasks, watches};

/// All tools, or those that only read.
pub fn tools(read_only: bool) -> Vec<Tool> {
    let all = [entry_tools(), claim_tools(), lock_tools(), election_tools(), task_tools(), other_tools()];
    // What the agent itself holds is nothing where it may hold nothing.
    let is_of_use = |tool: &Tool| !read_only || (tool.only_reads() && tool.name() != "session_show");
    all.into_iter().flatten().filter(is_of_use).collect()
}

fn entry_tools() -> Vec<Tool> {
    use Effect::{AddsOnce, Overwrites, OverwritesOnce, Reads};
    vec![
        Tool::new(
            "entry_get",
            Reads,
            "Read one entry. `cas` is its version: give it back when you write, and the write is refused if somebody changed the entry \
             meanwhile.",
            reads::get,
        ),
        Tool::new("entry_list", Reads, "List entries by the prefix of their keys.", reads::list),
        Tool::new("entry_find", Reads, "Find JSON documents by what holds of their fields.", reads::find),
        Tool::new(
            "entry_history",
            Reads,
            "The last versions of an entry, oldest first: when, by whom, and what it was.",
            reads::history,
        ),
        Tool::new(
            "entry_put",
            OverwritesOnce,
            "Write an entry, whether it is there or not. Give the `cas` that you read, or you may overwrite what others wrote. A refusal \
             brings the current entry.",
            entries::put,
        ),
        Tool::new("entry_insert", AddsOnce, "Make an entry; refused if there is one.", entries::insert),
        Tool::new("entry_replace", OverwritesOnce, "Overwrite an entry; refused if there is none.", entries::replace),
        Tool::new(
            "entry_patch",
            Overwrites,
            "Change parts of a JSON document in one step, such as a counter, without reading it before.",
            entries::patch,
        ),
        Tool::new("entry_delete", OverwritesOnce, "Delete an entry.", entries::delete),
    ]
}

fn claim_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "claim_next",
            Effect::Adds,
            "Claim the first entry that matches and that nobody has claimed, such as the next work item: nobody else gets it or writes it \
             until you call claim_complete or claim_release, or disconnect. It is kept for you by itself.",
            claims::next,
        ),
        Tool::new(
            "claim_complete",
            Effect::Overwrites,
            "Finish an entry that you claimed: write its result, or delete it. Refused if the claim was lost; then nothing is written.",
            claims::complete,
        ),
        Tool::new(
            "claim_release",
            Effect::Overwrites,
            "Give back an entry that you claimed, for others to claim.",
            claims::release,
        ),
    ]
}

fn lock_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "lock_acquire",
            Effect::AddsOnce,
            "Take the lock of a name, before you change what it stands for. You hold it until lock_release or until you disconnect. If \
             somebody has it, the refusal says who. `token` is its fencing token: greater than that of every holder before. Writes with \
             guard_lock are applied only while you hold it.",
            locks::acquire,
        ),
        Tool::new("lock_release", Effect::OverwritesOnce, "Release a lock that you hold.", locks::release),
        Tool::new(
            "lock_show",
            Effect::Reads,
            "Who holds a lock, with its fencing token, and who waits for it. Without a name: which locks are in use.",
            locks::show,
        ),
    ]
}

fn election_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "election_campaign",
            Effect::AddsOnce,
            "Become the one leader of a name, such as the agent that merges. You lead until election_resign or until you disconnect. If \
             somebody leads, the refusal says who.",
            elections::campaign,
        ),
        Tool::new("election_resign", Effect::OverwritesOnce, "Stop leading.", elections::resign),
        Tool::new("election_show", Effect::Reads, "Who leads, and what the leader says of itself.", elections::show),
    ]
}

fn task_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "task_schedule",
            Effect::Adds,
            "Put a task into a queue, to be done once, at a time, or again and again.",
            tasks::schedule,
        ),
        Tool::new(
            "task_claim",
            Effect::Adds,
            "Claim the next task of a queue that is due. It comes back to the queue if you neither complete, fail nor extend it within its \
             lease, or disconnect.",
            tasks::claim,
        ),
        Tool::new(
            "task_complete",
            Effect::Overwrites,
            "Say that a task that you claimed is done. Refused if the claim was lost.",
            tasks::complete,
        ),
        Tool::new(
            "task_fail",
            Effect::Overwrites,
            "Say that an attempt at a task that you claimed failed, or give it back; it is tried again later.",
            tasks::fail,
        ),
        Tool::new("task_extend", Effect::OverwritesOnce, "Keep a task that you claimed for longer.", tasks::extend),
        Tool::new("task_list", Effect::Reads, "List the tasks of a queue, or all queues.", tasks::list),
    ]
}

fn other_tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "watch_wait",
            Effect::Reads,
            "Wait until entries change, and get the changes in order. Give the `from` of the answer to the next call, and you miss nothing.",
            watches::wait,
        ),
        Tool::new(
            "session_show",
            Effect::Reads,
            "Who you are to others, and all that you hold: locks, claims, leaderships, tasks.",
            sessions::show,
        ),
        Tool::new(
            "request_show",
            Effect::Reads,
            "Whether a write was applied whose outcome was unknown.",
            sessions::request,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn names(read_only: bool) -> Vec<String> {
        tools(read_only).iter().map(|tool| tool.name().to_owned()).collect()
    }

    #[test]
    fn who_may_only_read_gets_no_tool_that_writes() {
        let reading = names(true);
        assert_eq!(
            reading,
            [
                "entry_get",
                "entry_list",
                "entry_find",
                "entry_history",
                "lock_show",
                "election_show",
                "task_list",
                "watch_wait",
                "request_show",
            ]
        );
        assert_eq!(names(false).len(), 27);
    }

    #[test]
    fn every_tool_says_what_it_does_and_what_it_takes() {
        for tool in tools(false) {
            let shown = tool.shown();
            assert!(shown.description.as_ref().is_some_and(|text| text.ends_with('.')), "{}", shown.name);
            let annotations = shown.annotations.as_ref().expect("has annotations");
            assert_eq!(annotations.read_only_hint, Some(tool.only_reads()), "{}", shown.name);
            let schema = Value::Object((*shown.input_schema).clone());
            assert_eq!(schema["type"], "object", "{}", shown.name);
            assert_eq!(schema["additionalProperties"], false, "{}", shown.name);
            let none = serde_json::Map::new();
            for (name, argument) in schema["properties"].as_object().unwrap_or(&none) {
                let says = argument["description"].as_str().is_some_and(|text| text.ends_with('.'));
                assert!(says, "{}: {name} says nothing: {argument}", shown.name);
            }
        }
    }

    #[test]
    fn the_table_is_short_enough_to_be_read_by_every_agent() {
        let text: usize =
            tools(false).iter().map(|tool| serde_json::to_string(tool.shown()).expect("JSON").len()).sum();
        assert!(text < 24_000, "{text} bytes");
    }
}
