//! A stream of a case: what is sent and what comes back are steps of it.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use serde_json::{Value, json};
use tonic::Status;

use crate::case::{Case, PATIENCE, failed};
use crate::client::{Answers, Etcd};
use crate::forms::Form;

/// How long nothing has to come.
const MOMENT: Duration = Duration::from_millis(400);

/// A call that streams.
pub struct Stream {
    call: &'static str,
    form: Form,
    sender: Option<mpsc::UnboundedSender<Vec<u8>>>,
    answers: Opening,
}

/// A number of an answer, 0 where it is left out.
fn number(answer: &Value, pointer: &str) -> i64 {
    answer.pointer(pointer).and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A server may answer the call itself only with its first message.
enum Opening {
    Asked(tokio::task::JoinHandle<Result<Answers<Bytes>, Status>>),
    Open(Answers<Bytes>),
    Over,
}

impl Case {
    /// Opens a stream over a connection of its own.
    pub async fn open(&mut self, name: &'static str) -> Stream {
        let mut etcd = Etcd::of(self.node).await;
        etcd.token.clone_from(&self.etcd.token);
        Stream::open(etcd, name)
    }
}

impl Stream {
    /// Opens one.
    pub fn open(mut etcd: Etcd, call: &'static str) -> Self {
        let form = Form::of(call);
        let (sender, requests) = mpsc::unbounded();
        let opening = tokio::spawn(async move { etcd.exchange_raw(form.path, requests).await });
        Self { call, form, sender: Some(sender), answers: Opening::Asked(opening) }
    }

    /// Sends a request.
    pub fn send(&mut self, case: &mut Case, request: Value) {
        let understood = self.send_quietly(request);
        case.note(self.call, Some(understood), None);
    }

    /// Sends a request that is no step. The answer is how it was understood.
    pub fn send_quietly(&mut self, request: Value) -> Value {
        let (bytes, understood) = self.form.encode(request);
        if let Some(sender) = &self.sender {
            // Where the stream is over, the next answer says so.
            let _ = sender.unbounded_send(bytes);
        }
        understood
    }

    /// Sends nothing more.
    pub fn close(&mut self) {
        self.sender = None;
    }

    /// Reads an answer.
    pub async fn receive(&mut self, case: &mut Case) -> Value {
        let answer = self.next_quietly().await;
        case.note(self.call, None, Some(answer.clone()));
        answer
    }

    /// Notes that nothing comes: there is nothing to wait for that would show it, so this waits for a moment.
    pub async fn receive_nothing(&mut self, case: &mut Case) {
        let answer = self.next_within(MOMENT).await;
        case.note(self.call, None, Some(answer));
    }

    /// Reads answers until they have brought so many events, and notes these and whose they are: how many came at once is chance.
    /// That those of one revision came at once is not.
    pub async fn receive_events(&mut self, case: &mut Case, count: usize) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        let mut last = 0;
        while events.len() < count {
            let mut answer = self.next_quietly().await;
            let Some(Value::Array(new)) = answer.get_mut("events").map(Value::take) else {
                case.note(self.call, None, Some(json!({ "instead of events": answer })));
                break;
            };
            let revision = |event: Option<&Value>| event.map_or(0, |event| number(event, "/kv/mod_revision"));
            if revision(new.first()) <= last || revision(new.last()) > number(&answer, "/header/revision") {
                case.note(self.call, None, Some(json!({ "out of order": new })));
            }
            last = revision(new.last());
            events.extend(new);
        }
        case.note(self.call, None, Some(json!({ "events": events })));
        events
    }

    /// Reads so many answers and notes them by watch: which of some watches is told first is chance.
    pub async fn receive_by_watch(&mut self, case: &mut Case, count: usize) {
        let mut answers = Vec::new();
        for _ in 0..count {
            answers.push(self.next_quietly().await);
        }
        answers.sort_by_key(|answer| number(answer, "/watch_id"));
        for answer in answers {
            case.note(self.call, None, Some(answer));
        }
    }

    /// Reads an answer that is no step.
    pub async fn next_quietly(&mut self) -> Value {
        self.next_within(PATIENCE).await
    }

    async fn next_within(&mut self, patience: Duration) -> Value {
        match tokio::time::timeout(patience, self.next_answer()).await {
            Ok(Some(Ok(answer))) => self.form.decode(answer),
            Ok(Some(Err(status))) => failed(&status),
            Ok(None) => json!("end"),
            Err(_) => json!("nothing"),
        }
    }

    async fn next_answer(&mut self) -> Option<Result<Bytes, Status>> {
        if let Opening::Asked(opening) = &mut self.answers {
            match opening.await.expect("it does not panic") {
                Ok(answers) => self.answers = Opening::Open(answers),
                Err(status) => {
                    self.answers = Opening::Over;
                    return Some(Err(status));
                }
            }
        }
        match &mut self.answers {
            Opening::Open(answers) => answers.next().await,
            _ => None,
        }
    }
}
