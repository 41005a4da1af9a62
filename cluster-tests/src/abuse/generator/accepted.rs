//! Whether nodes take the dear requests: one that is refused as it stands makes no work, and its wave shows nothing.
//!
//! Owns the preparation of what they look into, and the judgement of one answer to each. Never asks twice what was answered, but where the node
//! was busy.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::combination::{Caller, Shape};
use super::dear::list_of;
use super::field::Field;
use super::operations::Operation;
use super::wave::Wave;
use crate::abuse::asker::{Asker, Told};
use crate::abuse::attacks::source;
use crate::abuse::way::Way;

/// How long an answer is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Longest wait for an answer that may come late, or goes on. A refusal of the form of a request comes at once.
const LASTS: Duration = Duration::from_millis(300);
/// How often a request is sent to a node that is busy, and the time between.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);
/// The part of an answer that is shown.
const SHOWN: usize = 300;

/// Requests with many operations, by their names: each operation is answered with a line, or as one of the results. The answer succeeds though all
/// of them failed.
const IN_LINES: &str = "post /v1/ops in lines";
const BULKS: [&str; 2] = ["post /v1/bulk", "post /v1/bulk in lines"];

/// Writes the document that dear requests look into, and asks each dear request of these waves once, as a tenant may. Names those that a node
/// does not take, and nothing else where the document could not be written: what looks into it would find nothing.
pub async fn not_taken(field: &Field, waves: &[Wave], list_bytes: usize) -> Vec<String> {
    if let Err(why) = write_list(field, list_bytes).await {
        return vec![format!("the document for dear requests is not written: {why}")];
    }
    let dear = waves.iter().filter(|wave| wave.shape == Shape::Dear).flat_map(|wave| &wave.combinations);
    let operations = dear.map(|one| &one.operation).filter(|operation| operation.has_dear());
    let operations: BTreeMap<_, _> = operations.map(|one| ((one.way, one.name.as_str()), &**one)).collect();
    let mut all = Vec::new();
    for ((way, name), operation) in operations {
        if let Err(why) = ask(field, operation).await {
            all.push(format!("{way}, {name}: its dear request is not taken: {why}"));
        }
    }
    all
}

/// Writes the document. Nodes serve honest clients meanwhile, and may be busy for a moment.
async fn write_list(field: &Field, bytes: usize) -> Result<(), String> {
    let request = Way::Http1.by(list_of(bytes), field.token_of(Caller::Tenant));
    let mut last = String::new();
    for _ in 0..TRIES {
        match request.send_within(field.nodes[0], ANSWER_MAX).await {
            Ok(answer) if answer.is_success() => return Ok(()),
            Ok(answer) => last = said_in(&Told::from(answer)),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(last)
}

async fn ask(field: &Field, operation: &Operation) -> Result<(), String> {
    let Operation { way, name, dear, lasts, .. } = operation;
    let request = way.by(dear.clone(), field.token_of(Caller::Tenant));
    let mut last = String::new();
    for _ in 0..TRIES {
        let asking = async { Asker::open(*way, source(0), field.nodes[0]).await?.ask(&request).await };
        match tokio::time::timeout(if *lasts { LASTS } else { ANSWER_MAX }, asking).await {
            Err(_goes_on) if *lasts => return Ok(()),
            Err(_late) => last = "no answer in time".to_owned(),
            Ok(Err(error)) => last = error.to_string(),
            Ok(Ok(told)) if told.is_internal() => return Err(format!("a fault of the node: {}", said_in(&told))),
            Ok(Ok(told)) => match Came::of(name, &told) {
                Came::Taken => return Ok(()),
                Came::Busy(why) => last = why,
                Came::Refused(why) => return Err(why),
            },
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(last)
}

/// The answer in words, as far as it is shown.
fn said_in(told: &Told) -> String {
    let said = String::from_utf8_lossy(&told.body[..told.body.len().min(SHOWN)]);
    format!("status {}, code {:?}: {said}", told.status, told.code)
}

/// The outcome of a dear request, or of one operation of it.
#[derive(Debug)]
enum Came {
    /// The node did what was asked, or found in the state that it could not be done, or not with so little work.
    Taken,
    /// There was no room for it just then, in these words.
    Busy(String),
    /// It is not taken as it stands, in these words.
    Refused(String),
}

impl Came {
    fn of(name: &str, told: &Told) -> Self {
        const TOO_DEAR: &[u8] = b"\"too_dear\"";
        let is_too_dear = || told.body.windows(TOO_DEAR.len()).any(|part| part == TOO_DEAR);
        if told.is_success() {
            Self::of_all(parts_of(name, &told.body).as_deref(), told)
        } else if told.is_refusal() {
            Self::Busy(said_in(told))
        } else if is_decided(told.status.into(), is_too_dear()) {
            Self::Taken
        } else {
            Self::Refused(said_in(told))
        }
    }

    /// A request is taken if one of its operations is and none is refused: some may have had no room for their answers.
    fn of_all(parts: Option<&[Value]>, told: &Told) -> Self {
        let Some(parts) = parts else { return Self::Taken };
        let (mut is_one_taken, mut busy) = (false, None);
        for part in parts {
            match Self::of_part(part) {
                Self::Taken => is_one_taken = true,
                Self::Busy(why) => busy = Some(why),
                Self::Refused(why) => return Self::Refused(why),
            }
        }
        match busy {
            _ if is_one_taken => Self::Taken,
            Some(why) => Self::Busy(why),
            None => Self::Refused(format!("no operation of it is answered: {}", said_in(told))),
        }
    }

    fn of_part(part: &Value) -> Self {
        let code = [&part["code"], &part["answer"]["code"]].into_iter().find_map(Value::as_str).unwrap_or_default();
        let said = || -> String { part.to_string().chars().take(SHOWN).collect() };
        match part["status"].as_u64() {
            Some(200..300) => Self::Taken,
            None if part["outcome"] == "applied" => Self::Taken,
            Some(status) if is_decided(status, code == "too_dear") => Self::Taken,
            Some(429 | 500..) if code != "internal" => Self::Busy(said()),
            _ => Self::Refused(said()),
        }
    }
}

/// The answers to the operations of a request that has many.
fn parts_of(name: &str, body: &[u8]) -> Option<Vec<Value>> {
    if name == IN_LINES {
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        // A line that is no JSON is refused, and shown as it is.
        let text = |line: &[u8]| Value::from(String::from_utf8_lossy(line));
        return Some(lines.map(|line| serde_json::from_slice(line).unwrap_or_else(|_| text(line))).collect());
    }
    BULKS.contains(&name).then(|| {
        // A body that is no JSON has no results.
        let answer: Value = serde_json::from_slice(body).unwrap_or_default();
        answer["results"].as_array().cloned().unwrap_or_default()
    })
}

/// Tells whether this is the status of what was looked into: the entry is not as it has to be, or it would take too much work to tell.
fn is_decided(status: u64, is_too_dear: bool) -> bool {
    matches!(status, 409 | 412 | 423) || status == 413 && is_too_dear
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abuse::generator::operations::names;

    fn told(status: u16, code: Option<u16>, body: impl Into<String>) -> Told {
        let body: String = body.into();
        Told { status, code, term: None, body: body.into() }
    }

    fn line(status: u16, answer: &str) -> String {
        format!("{{\"n\":1,\"status\":{status},\"term\":\"3\",\"leader\":1,\"answer\":{answer}}}\n")
    }

    fn bulk(results: &[&str]) -> String {
        format!("{{\"applied\":0,\"skipped\":1,\"failed\":1,\"results\":[{}],\"revision\":\"7\"}}", results.join(","))
    }

    const UNMET: &str = r#"{"n":0,"key":"x/list","outcome":"skipped","status":412,"code":"condition_not_met"}"#;
    const TOO_DEAR: &str = r#"{"n":1,"key":"x/list","outcome":"failed","status":413,"code":"too_dear"}"#;
    const APPLIED: &str = r#"{"n":2,"key":"x/list","outcome":"applied","revision":"7","cas":"7"}"#;
    const MISSING: &str = r#"{"n":3,"key":"x/list","outcome":"failed","status":404,"code":"not_found"}"#;

    #[test]
    fn a_request_is_taken_unless_it_is_refused_as_it_stands() {
        for taken in [
            told(200, None, ""),
            told(200, Some(0), ""),
            told(412, None, ""),
            told(413, None, r#"{"code":"too_dear"}"#),
        ] {
            assert!(matches!(Came::of("post /v1/ops", &taken), Came::Taken), "{taken:?}");
        }
        for refused in [
            told(400, None, ""),
            told(403, None, ""),
            told(404, None, ""),
            told(413, None, r#"{"code":"too_large"}"#),
            told(200, Some(3), ""),
        ] {
            assert!(matches!(Came::of("post /v1/ops", &refused), Came::Refused(_)), "{refused:?}");
        }
        assert!(matches!(Came::of("post /v1/ops", &told(429, None, "")), Came::Busy(_)));
    }

    #[test]
    fn of_many_operations_each_is_judged_by_itself() {
        let known = names();
        for name in [IN_LINES].into_iter().chain(BULKS) {
            assert!(known.iter().any(|(_, known)| known == name), "there is no `{name}`");
        }
        let (unmet, busy) = (line(412, r#"{"code":"condition_not_met"}"#), line(429, r#"{"code":"overloaded"}"#));
        let lines = |body: String| Came::of(IN_LINES, &told(200, None, body));
        assert!(matches!(lines(line(200, r#"{"key":"x/list"}"#) + &unmet), Came::Taken));
        assert!(matches!(lines(line(413, r#"{"code":"too_dear"}"#)), Came::Taken));
        // Others of the same account may have filled the room for answers.
        assert!(matches!(lines(busy.clone() + &unmet + &busy), Came::Taken));
        assert!(matches!(lines(busy), Came::Busy(_)));
        for refused in [
            String::new(),
            "no JSON\n".to_owned(),
            unmet.clone() + &line(400, r#"{"code":"invalid_request"}"#),
            unmet.clone() + &line(500, r#"{"code":"internal"}"#),
            unmet + &line(413, r#"{"code":"too_large"}"#),
        ] {
            assert!(matches!(lines(refused.clone()), Came::Refused(_)), "{refused}");
        }
        for name in BULKS {
            let came = |body: String| Came::of(name, &told(200, None, body));
            assert!(matches!(came(bulk(&[UNMET, TOO_DEAR, APPLIED])), Came::Taken));
            for refused in [String::new(), bulk(&[]), bulk(&[UNMET, MISSING])] {
                assert!(matches!(came(refused.clone()), Came::Refused(_)), "{refused}");
            }
        }
    }
}
