//! Target `api`: what the API accepts, apply can do, and whatever reads what that left can read it.
//!
//! One request each. A whole server makes commands of it, a state machine in memory applies them, and then everything that reads entries,
//! values, rules and rows is asked to: changes and claims of all that is there, conversions, an index over each field, the end of a
//! session, expiry, history, compaction, and what a restore does. Nothing of that may fault, and each invariant of the rows holds.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::Duration;

use quorate_crossing::store::{Store, batch};
use quorate_machine::types::{Action, Command, Maintenance};

use super::http::Doorkeeper;
use super::samples;

/// Whatever was not answered by then waits for something, or will never be whole.
const PROMPT: Duration = Duration::from_millis(4);
/// Steps that the work of the store's own may take here.
const STEPS_MAX: usize = 200;

thread_local! {
    static API: RefCell<Doorkeeper> = RefCell::new(Doorkeeper::new());
}

/// See the head of this file.
pub fn check(data: &[u8]) {
    judge(data, PROMPT);
}

/// Does what a request asks for, and reads what that left; how many commands it became within this time.
pub fn judge(request: &[u8], within: Duration) -> usize {
    let commands = API.with_borrow_mut(|api| api.commands_of(request, within));
    if !commands.is_empty() {
        let mut life = Life { store: furnished().clone() };
        commands.iter().for_each(|command| life.apply(command));
        life.go_on();
    }
    commands.len()
}

/// A state in which most requests find what they are about.
fn furnished() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        let mut life = Life { store: Store::default() };
        let made = samples::life().commands;
        made.iter().for_each(|command| life.apply(command));
        life.store
    })
}

/// What reads all there is, as commands that the API made of requests.
fn readers() -> &'static [Command] {
    static READERS: OnceLock<Vec<Command>> = OnceLock::new();
    READERS.get_or_init(|| super::http::commands_of(&requests_of_readers()))
}

fn requests_of_readers() -> Vec<Vec<u8>> {
    let request = |method: &str, target: &str, body: &str| {
        let length = body.len();
        format!("{method} {target} HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    };
    let holds = r#"[{"not":{"any":[{"field":"n","op":"gt","value":1},{"field":"a.b","op":"lt","value":0.5},{"field":"v","op":"eq","value":1e300},{"field":"at","op":"lte","value":{"now":true}}]}}]"#;
    let each = |prefix: &str| {
        vec![
            request("POST", "/v1/update_where", &format!(r#"{{"prefix":"{prefix}","patch":{{"seen":1}}}}"#)),
            request(
                "POST",
                "/v1/update_where",
                &format!(r#"{{"prefix":"{prefix}","where":{holds},"patch":{{"m":null}}}}"#),
            ),
            request(
                "POST",
                "/v1/claim",
                &format!(r#"{{"prefix":"{prefix}","where":{holds},"patch":{{"by":"w"}},"limit":9}}"#),
            ),
        ]
    };
    let rules = r#"{"fields":{"n":{"type":"double"},"at":{"type":"datetime"}},"indexes":[["v"],["n","-a.b"],["at"],{"fields":["e"],"unique":true}]}"#;
    let mut all = each("");
    all.push(request("PUT", "/v1/collections/d", rules));
    all.push(request("PUT", "/v1/collections/c", rules));
    all.extend(each("d"));
    all.extend(each("c/"));
    all.push(request(
        "POST",
        "/v1/ops",
        r#"{"op":"update","key":"d","patch":[{"op":"inc","path":"n","value":1},{"op":"max","path":"v","value":1}]}"#,
    ));
    all.push(request("POST", "/v1/tasks/q/claim", r#"{"limit":100,"lease_ms":1000}"#));
    all
}

/// A state and the life it leads.
struct Life {
    store: Store,
}

impl Life {
    fn apply(&mut self, command: &Command) {
        self.at(self.store.vars.clock.max(1_000), std::slice::from_ref(command));
    }

    fn at(&mut self, clock: u64, commands: &[Command]) {
        let (_, contained) = self.store.apply_contained(&[batch(clock, commands)]);
        assert!(contained.is_empty(), "what the API accepted faults: {contained:?} at {commands:?}");
    }

    fn maintain(&mut self, step: Maintenance) {
        self.apply(&Command::unnamed(Action::Maintain(step)));
    }

    /// Lets everything read what there is.
    fn go_on(&mut self) {
        self.store.check();
        for command in readers() {
            self.apply(command);
            (0..4).for_each(|_| self.maintain(Maintenance::Indexes { rows_max: 64 }));
        }
        self.store.check();
        // All that ends with time does.
        for clock in [10_000, 100_000, 400_000_000_000] {
            self.at(clock, &[]);
            self.maintain(Maintenance::ExpireDue { limit: 100 });
        }
        readers().iter().for_each(|command| self.apply(command));
        self.store.check();
        let newest = self.store.vars.revision;
        for _ in 0..STEPS_MAX {
            self.maintain(Maintenance::Compact { revision: newest, groups_max: 64 });
            if self.store.vars.oldest_revision >= newest {
                break;
            }
        }
        self.store.begin_epoch();
        self.store.check();
    }
}

/// Requests that carry values, numbers and texts.
pub fn samples() -> Vec<Vec<u8>> {
    let forms = super::extremes::requests();
    samples::spread(&forms, 28).map(|form| form.with("{\"n\":1.5e3}", "5", "2024-02-29T12:00:00Z")).collect()
}
