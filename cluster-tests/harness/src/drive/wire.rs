//! Operations of histories as requests over HTTP, and their answers.
//!
//! Owns the table of what an answer makes of an operation: decided, failed for certain, unknown, or outside of the contract. Never
//! sends anything.

use quorate_client::api::{
    AcquireAnswer, Applied, BulkAnswer, BulkOutcome, CampaignAnswer, Cas, EntryView, ErrorCode, FindAnswer, JsonText,
    ListAnswer, Problem, ReleaseAnswer, RenewedAnswer, ResignAnswer, SessionAnswer, SessionEnded, TaskAnswer,
    TaskClaimAnswer, TaskScheduled, TxnAnswer, TxnResult, WatchEvent, WriteAnswer, code_name,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::http::{Answer, Request};
use cluster_histories::operation::{Change, Hold, Operation, Step, Txn, Write};
use cluster_histories::record::{
    Came, Claimed, Decided, Entry, Event, Item, Outcome, Refused, Seen, StepSeen, TxnSeen, Written,
};

/// Refusals of requests that make no sense: none of ours should be told that.
const ABSURD: [ErrorCode; 5] = [
    ErrorCode::Internal,
    ErrorCode::InvalidArgument,
    ErrorCode::MethodNotAllowed,
    ErrorCode::UnknownField,
    ErrorCode::UnsupportedMediaType,
];

/// How an operation is asked for, under this request id where it has one.
pub fn request_of(operation: &Operation, request_id: Option<&str>) -> Request {
    let post = |route: String, mut body: Value| {
        if let Some(id) = request_id {
            body["request_id"] = id.into();
        }
        Request::post(route, body.to_string())
    };
    match operation {
        Operation::Get { key } => Request::get(format!("/v1/kv/{key}")),
        Operation::Local { key, min_revision: None } => Request::get(format!("/v1/kv/{key}?consistency=local")),
        Operation::Local { key, min_revision: Some(least) } => {
            Request::get(format!("/v1/kv/{key}?min_revision={least}"))
        }
        Operation::List { prefix } => Request::get(format!("/v1/kv?limit=1000&prefix={prefix}")),
        Operation::Find { prefix, at_least } => {
            let criteria = json!([{"field": "n", "op": "gte", "value": at_least}]);
            post("/v1/find".into(), json!({"prefix": prefix, "where": criteria, "limit": 1_000}))
        }
        Operation::Write(write) => post("/v1/ops".into(), op_of(write)),
        Operation::Bulk { writes } => {
            post("/v1/bulk".into(), json!({"ops": writes.iter().map(op_of).collect::<Vec<_>>()}))
        }
        Operation::Txn(txn) => post("/v1/txn".into(), txn_of(txn)),
        Operation::OpenSession { ttl_ms } => post("/v1/sessions".into(), json!({"ttl_ms": ttl_ms})),
        Operation::Renew { session } => post(format!("/v1/sessions/{session}/renew"), json!({})),
        Operation::EndSession { session } => {
            let request = Request::new("DELETE", format!("/v1/sessions/{session}"));
            request_id.map_or(request.clone(), |id| request.request_id(id))
        }
        Operation::Acquire { hold, session, wait_ms } => {
            let route = match hold {
                Hold::Lock(name) => format!("/v1/locks/{name}/acquire"),
                Hold::Election(name) => format!("/v1/elections/{name}/campaign"),
            };
            post(route, json!({"session": session, "wait_ms": wait_ms, "poll_ms": 0}))
        }
        Operation::Release { hold: Hold::Lock(name), token } => {
            post(format!("/v1/locks/{name}/release"), json!({"token": token}))
        }
        Operation::Release { hold: Hold::Election(name), token } => {
            post(format!("/v1/elections/{name}/resign"), json!({"term": token}))
        }
        Operation::Schedule { queue, task, delay_ms } => {
            let backoff = json!({"initial_ms": 20, "max_ms": 100});
            let body = json!({"id": task, "delay_ms": delay_ms, "max_attempts": 1_000, "backoff": backoff});
            post(format!("/v1/tasks/{queue}"), body)
        }
        Operation::Claim { queue, limit, lease_ms } => {
            post(format!("/v1/tasks/{queue}/claim"), json!({"limit": limit, "lease_ms": lease_ms}))
        }
        Operation::Complete { queue, task, token } => {
            post(format!("/v1/tasks/{queue}/complete"), json!({"id": task, "token": token}))
        }
        Operation::Fail { queue, task, token } => {
            post(format!("/v1/tasks/{queue}/fail"), json!({"id": task, "token": token, "error": "unlucky"}))
        }
    }
}

/// A write as `POST /v1/ops` takes it.
fn op_of(write: &Write) -> Value {
    let (op, value) = match &write.change {
        Change::Put(value) => ("upsert", Some(value)),
        Change::Insert(value) => ("insert", Some(value)),
        Change::Replace(value) => ("replace", Some(value)),
        Change::Remove => ("remove", None),
        Change::Adjust { .. } => ("update", None),
        Change::Lock(_) => ("lock", None),
        Change::Unlock => ("unlock", None),
    };
    let mut body = Map::from_iter([("op".to_owned(), op.into()), ("key".to_owned(), write.key.as_str().into())]);
    let mut put = |name: &str, value: Option<Value>| value.and_then(|value| body.insert(name.to_owned(), value));
    put("value", value.cloned());
    put("cas", write.cas.map(|cas| cas.to_string().into()));
    put("ttl_ms", write.ttl_ms.map(Value::from));
    put("wait_ms", write.wait_ms.map(Value::from));
    if let Change::Adjust { amount, by, at_least } = &write.change {
        let patch = json!([{"op": "inc", "path": "n", "value": amount}, {"op": "set", "path": "by", "value": by}]);
        put("patch", Some(patch));
        put("if", at_least.map(|least| json!([{"field": "n", "op": "gte", "value": least}])));
    }
    if let Change::Lock(ms) = write.change {
        put("lock_ms", Some(ms.into()));
    }
    let guard = write.guard.as_ref().map(|guard| match &guard.hold {
        Hold::Lock(name) => json!({"lock": name, "token": guard.token}),
        Hold::Election(name) => json!({"election": name, "token": guard.token}),
    });
    put("guard", guard);
    Value::Object(body)
}

fn txn_of(txn: &Txn) -> Value {
    let check = |check: &cluster_histories::operation::Check| match check.cas {
        Some(cas) => json!({"key": check.key, "cas": cas.to_string()}),
        None => json!({"key": check.key, "exists": false}),
    };
    let step = |step: &Step| match step {
        Step::Get(key) => json!({"op": "get", "key": key}),
        Step::Write(write) => op_of(write),
    };
    let steps = |steps: &[Step]| steps.iter().map(step).collect::<Vec<_>>();
    let checks: Vec<_> = txn.checks.iter().map(check).collect();
    json!({"if": checks, "then": steps(&txn.then), "else": steps(&txn.otherwise)})
}

/// What an answer makes of an operation.
pub fn outcome_of(operation: &Operation, answer: &Answer) -> Outcome {
    let absurd = |why: &str| Outcome::Absurd(format!("{why}: status {}, {}", answer.status, answer.text()));
    if answer.is_success() {
        return match decided(operation, answer) {
            Ok(decided) => Outcome::Decided(decided),
            Err(fault) => absurd(&fault.0),
        };
    }
    let problem: Problem = match serde_json::from_slice(&answer.body) {
        Ok(problem) => problem,
        Err(error) => return absurd(&error.to_string()),
    };
    if problem.status != answer.status || ABSURD.contains(&problem.code) {
        return absurd("none of our requests should be told so");
    }
    let code = code_name(problem.code);
    let at = problem.revision.zip(problem.index);
    match (problem.applied, at, operation) {
        (Applied::Unknown, ..) => Outcome::Unknown(format!("{code}: {}", problem.detail)),
        // A repeat is told of the session as it is now: it began, and has ended before anybody knew its number.
        (Applied::Yes, _, Operation::OpenSession { .. }) if problem.code == ErrorCode::SessionExpired => {
            Outcome::Unknown(format!("{code}: {}", problem.detail))
        }
        (Applied::Yes, ..) => absurd("applied, and yet an error"),
        (Applied::No, Some((revision, index)), Operation::Get { .. } | Operation::Local { .. })
            if problem.code == ErrorCode::NotFound =>
        {
            Outcome::Decided(Decided { revision, index, replayed: problem.replayed, seen: Seen::Entry(None) })
        }
        (Applied::No, Some((revision, index)), _) if !operation.is_read() => {
            match problem.current.map(entry_of).transpose() {
                Ok(current) => {
                    let seen = Seen::Refused(Refused { code, current });
                    Outcome::Decided(Decided { revision, index, replayed: problem.replayed, seen })
                }
                Err(fault) => absurd(&fault.0),
            }
        }
        (Applied::No, ..) => Outcome::Failed(format!("{code}: {}", problem.detail)),
    }
}

/// Why an answer is not what the contract promises.
struct Fault(String);

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Fault> {
    Ok(serde_json::from_slice(&answer.body)?)
}

/// A successful answer.
fn decided(operation: &Operation, answer: &Answer) -> Result<Decided, Fault> {
    let at = |(revision, index, replayed), seen| Ok(Decided { revision, index, replayed, seen });
    match operation {
        Operation::Get { .. } | Operation::Local { .. } => {
            let entry: EntryView = read(answer)?;
            let place = entry.revision.zip(entry.index).ok_or_else(|| Fault("a read without revision".into()))?;
            at((place.0, place.1, false), Seen::Entry(Some(entry_of(entry)?)))
        }
        Operation::List { .. } => {
            let list: ListAnswer = read(answer)?;
            let entries = whole_page(list.entries, list.cursor.is_none())?;
            at((list.revision, list.index, false), Seen::Entries(entries))
        }
        Operation::Find { .. } => {
            let found: FindAnswer = read(answer)?;
            let entries = whole_page(found.entries, found.cursor.is_none())?;
            at((found.revision, found.index, false), Seen::Entries(entries))
        }
        Operation::Write(_) => {
            let told: WriteAnswer = read(answer)?;
            let written = written_of(told.cas, told.create_revision, told.version);
            at((told.revision, told.index, told.replayed), Seen::Written(written))
        }
        Operation::Bulk { .. } => {
            let told: BulkAnswer = read(answer)?;
            at((told.revision, told.index, told.replayed), Seen::Items(items_of(told.results)?))
        }
        Operation::Txn(_) => {
            let told: TxnAnswer = read(answer)?;
            let steps = told.results.into_iter().map(step_of).collect::<Result<_, _>>()?;
            at((told.revision, told.index, told.replayed), Seen::Txn(TxnSeen { succeeded: told.succeeded, steps }))
        }
        _ => coordinated(operation, answer),
    }
}

/// A successful answer about sessions, locks, elections or tasks.
fn coordinated(operation: &Operation, answer: &Answer) -> Result<Decided, Fault> {
    let at = |(revision, index, replayed), seen| Ok(Decided { revision, index, replayed, seen });
    match operation {
        Operation::OpenSession { .. } => {
            let told: SessionAnswer = read(answer)?;
            at((told.revision, told.index, told.replayed), Seen::Session(told.session))
        }
        Operation::Renew { .. } => {
            let told: RenewedAnswer = read(answer)?;
            at((told.revision, told.index, false), Seen::Session(told.session))
        }
        Operation::EndSession { .. } => {
            let told: SessionEnded = read(answer)?;
            at((told.revision, told.index, told.replayed), Seen::Session(told.session))
        }
        Operation::Acquire { hold: Hold::Lock(_), .. } => {
            let told: AcquireAnswer = read(answer)?;
            let seen = told.token.map_or(Seen::Waiting, |token| Seen::Held { token });
            at((told.revision, told.index, told.replayed), seen)
        }
        Operation::Acquire { hold: Hold::Election(_), .. } => {
            let told: CampaignAnswer = read(answer)?;
            let seen = told.term.map_or(Seen::Waiting, |token| Seen::Held { token });
            at((told.revision, told.index, told.replayed), seen)
        }
        Operation::Release { hold: Hold::Lock(_), .. } => {
            let told: ReleaseAnswer = read(answer)?;
            at((told.revision, told.index, told.replayed), Seen::Done)
        }
        Operation::Release { hold: Hold::Election(_), .. } => {
            let told: ResignAnswer = read(answer)?;
            at((told.revision, told.index, told.replayed), Seen::Done)
        }
        Operation::Schedule { .. } => {
            let told: TaskScheduled = read(answer)?;
            let place = told.revision.zip(told.index).ok_or_else(|| Fault("a schedule without revision".into()))?;
            at((place.0, place.1, told.replayed), Seen::Done)
        }
        Operation::Claim { .. } => {
            let told: TaskClaimAnswer = read(answer)?;
            let claimed = |task: quorate_client::api::TaskClaimed| Claimed {
                task: task.id,
                token: task.token,
                attempt: task.attempt.into(),
            };
            let tasks = told.tasks.into_iter().map(claimed).collect();
            at((told.revision, told.index, told.replayed), Seen::Claimed(tasks))
        }
        _ => {
            let told: TaskAnswer = read(answer)?;
            at((told.revision, told.index, told.replayed), Seen::Done)
        }
    }
}

fn whole_page(entries: Vec<EntryView>, is_whole: bool) -> Result<Vec<Entry>, Fault> {
    if !is_whole {
        return Err(Fault("there is more than a page".into()));
    }
    entries.into_iter().map(entry_of).collect()
}

fn parse(text: Option<JsonText>) -> Result<Value, Fault> {
    Ok(serde_json::from_str(text.ok_or_else(|| Fault("an entry without its value".into()))?.0.get())?)
}

fn entry_of(view: EntryView) -> Result<Entry, Fault> {
    let EntryView { key, value, cas, create_revision, mod_revision, version, .. } = view;
    let cas = cas.map(Cas::number);
    Ok(Entry { key: key.to_string(), value: parse(value)?, cas, create_revision, mod_revision, version })
}

fn written_of(cas: Option<Cas>, create_revision: Option<u64>, version: Option<u64>) -> Written {
    Written { cas: cas.map(Cas::number), create_revision, version }
}

fn items_of(items: Vec<quorate_client::api::BulkResult>) -> Result<Vec<Item>, Fault> {
    let item = |item: quorate_client::api::BulkResult| {
        let came = match (item.outcome, item.code) {
            (BulkOutcome::Applied, _) => Came::Written(written_of(item.cas, item.create_revision, item.version)),
            (_, Some(code)) => {
                let current = item.current.map(entry_of).transpose()?;
                Came::Refused(Refused { code: code_name(code), current })
            }
            (_, None) => return Err(Fault("an operation was refused without a code".into())),
        };
        Ok(Item { revision: item.revision, came })
    };
    items.into_iter().map(item).collect()
}

fn step_of(result: TxnResult) -> Result<StepSeen, Fault> {
    match result {
        TxnResult::Read(read) => Ok(StepSeen::Entry(read.entry.map(entry_of).transpose()?)),
        TxnResult::Written(told) => Ok(StepSeen::Written(written_of(told.cas, told.create_revision, told.version))),
        TxnResult::Txn(_) => Err(Fault("no transaction in a transaction was asked for".into())),
    }
}

/// A change as a watch shows it, or what is wrong with it.
pub fn event_of(event: WatchEvent) -> Result<Event, String> {
    let index = event.index.ok_or("an event without place in its revision")?;
    let entry = event.entry.map(entry_of).transpose().map_err(|fault| fault.0)?;
    Ok(Event { revision: event.revision, index, key: event.key.to_string(), entry })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &Value) -> Answer {
        Answer { status, headers: Vec::new(), body: body.to_string().into_bytes() }
    }

    fn problem(code: ErrorCode, applied: Applied, at: Option<u64>) -> Answer {
        let problem = Problem { revision: at, index: at, ..Problem::new(code, applied, "why") };
        answer(code.status(), &serde_json::to_value(problem).expect("JSON"))
    }

    #[test]
    fn each_kind_of_answer_makes_of_a_write_what_it_says() {
        let put = Operation::Write(Write::put("k", 1));
        let written = json!({"key": "k", "revision": 7, "index": 9, "cas": "7", "create_revision": 7, "version": 1});
        let outcome = |answer: &Answer| outcome_of(&put, answer);
        let Outcome::Decided(decided) = outcome(&answer(200, &written)) else { panic!("it was written") };
        assert_eq!((decided.revision, decided.index), (7, 9));
        assert!(matches!(outcome(&answer(200, &json!({}))), Outcome::Absurd(_)));
        assert!(matches!(outcome(&answer(502, &json!("a proxy"))), Outcome::Absurd(_)));
        for (code, applied, at, kind) in [
            (ErrorCode::CasMismatch, Applied::No, Some(3), "decided"),
            (ErrorCode::GuardFailed, Applied::No, Some(3), "decided"),
            (ErrorCode::NoLeader, Applied::No, None, "failed"),
            (ErrorCode::TooManyRequests, Applied::No, None, "failed"),
            (ErrorCode::Timeout, Applied::Unknown, None, "unknown"),
            (ErrorCode::InvalidArgument, Applied::No, None, "absurd"),
            (ErrorCode::Internal, Applied::Unknown, None, "absurd"),
        ] {
            let text = serde_json::to_value(outcome(&problem(code, applied, at))).expect("JSON");
            assert!(text.get(kind).is_some(), "{code:?} is {text}, not {kind}");
        }
        // A repeat is told that the session began, and has ended.
        let (open, ended) = (Operation::OpenSession { ttl_ms: 1_000 }, ErrorCode::SessionExpired);
        assert!(matches!(outcome_of(&open, &problem(ended, Applied::Yes, Some(3))), Outcome::Unknown(_)));
        assert!(matches!(outcome(&problem(ended, Applied::Yes, Some(3))), Outcome::Absurd(_)));
        let get = Operation::Get { key: "k".into() };
        let absent = outcome_of(&get, &problem(ErrorCode::NotFound, Applied::No, Some(3)));
        assert!(matches!(absent, Outcome::Decided(Decided { seen: Seen::Entry(None), .. })));
    }
}
