//! Whether nodes take the dear requests: one that is refused as it stands makes no work, and its wave shows nothing.
//!
//! Owns the preparation of what they look into, and the judgement of one answer to each. Never asks twice what was answered, but where the node
//! was busy.

use std::collections::BTreeMap;
use std::time::Duration;

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
/// How long one is waited for that may come late, or goes on: what is wrong with a request is told at once.
const LASTS: Duration = Duration::from_millis(300);
/// How often a request is sent to a node that is busy, and the time between.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);
/// The part of an answer that is shown.
const SHOWN: usize = 300;

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
    let Operation { way, dear, lasts, .. } = operation;
    let request = way.by(dear.clone(), field.token_of(Caller::Tenant));
    let mut last = String::new();
    for _ in 0..TRIES {
        let asking = async { Asker::open(*way, source(0), field.nodes[0]).await?.ask(&request).await };
        match tokio::time::timeout(if *lasts { LASTS } else { ANSWER_MAX }, asking).await {
            Err(_goes_on) if *lasts => return Ok(()),
            Err(_late) => last = "no answer in time".to_owned(),
            Ok(Err(error)) => last = error.to_string(),
            Ok(Ok(told)) if is_taken(&told) => return Ok(()),
            Ok(Ok(told)) => {
                last = said_in(&told);
                if !told.is_refusal() {
                    break;
                }
            }
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

/// Tells whether a node did what was asked, or found in the state that it could not be done, or not with so little work.
fn is_taken(told: &Told) -> bool {
    const TOO_DEAR: &[u8] = b"\"too_dear\"";
    let is_too_dear = || told.body.windows(TOO_DEAR.len()).any(|part| part == TOO_DEAR);
    told.is_success() || matches!(told.status, 409 | 412 | 423) || told.status == 413 && is_too_dear()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_unless_it_is_refused_as_it_stands() {
        let told = |status, code, body: &'static str| Told { status, code, term: None, body: body.into() };
        for taken in [
            told(200, None, ""),
            told(200, Some(0), ""),
            told(412, None, ""),
            told(413, None, "{\"code\":\"too_dear\"}"),
        ] {
            assert!(is_taken(&taken), "{taken:?}");
        }
        for refused in [
            told(400, None, ""),
            told(403, None, ""),
            told(404, None, ""),
            told(413, None, "{\"code\":\"too_large\"}"),
            told(429, None, ""),
            told(200, Some(3), ""),
        ] {
            assert!(!is_taken(&refused), "{refused:?}");
        }
    }
}
