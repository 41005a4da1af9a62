//! A new value for an entry that was read: written only if that is still what is there, and with all else as it is.
//!
//! Owns what `edit`, `update` and `revert` have in common.

use quorate_client::api::{EntryView, ErrorCode, Name, Problem, WriteAnswer};
use quorate_client::{Error, Value, Write};
use serde_json::json;

use crate::fail::Failed;
use crate::fence::Fence;
use crate::{Context, output};

/// A write on the cas that was read; where nothing was there, a creation. Session and time to live stay.
pub fn on<'a>(
    context: &'a Context,
    key: &Name,
    read: Option<&EntryView>,
    value: Value,
    fence: &Fence,
) -> Result<Write<'a>, Failed> {
    let write = context.client.put(key, value);
    let Some(entry) = read else { return fence.on(write.if_absent()) };
    let Some(cas) = entry.cas else {
        let detail = format!("`{key}` is locked by another client; wait until the lock ends");
        return Err(Failed::Condition(ErrorCode::Locked, detail));
    };
    // The time that was left when it was read would be given anew: an editor may be open for long.
    let write = write.cas(cas).keep_ttl();
    fence.on(match &entry.session {
        Some(session) => write.session(session),
        None => write,
    })
}

/// The entry as it is, where a write was refused because that is not what was read.
pub async fn current(context: &Context, key: &Name, error: Error) -> Result<Option<EntryView>, Failed> {
    match error {
        Error::Rejected(problem) if lost_the_race(&problem) => match problem.current {
            Some(entry) if entry.value.is_some() || entry.value_base64.is_some() => Ok(Some(entry)),
            _ => Ok(context.client.get(key).await?),
        },
        error => Err(error.into()),
    }
}

fn lost_the_race(problem: &Problem) -> bool {
    matches!(problem.code, ErrorCode::CasMismatch | ErrorCode::AlreadyExists | ErrorCode::NotFound)
        && problem.errors.is_empty()
}

/// The bytes of a value: the text of JSON, else what was stored. Nothing for no entry.
pub fn bytes(entry: Option<&EntryView>) -> Result<Vec<u8>, Failed> {
    let bytes = entry.map(EntryView::bytes).transpose().map_err(Error::from)?;
    Ok(bytes.flatten().unwrap_or_default())
}

/// Says that there was nothing to write.
pub fn tell_unchanged(context: &Context, key: &Name) -> Result<(), Failed> {
    let (field, name) = key.in_json("key");
    output::answer(context.shared.output, &json!({field: name, "unchanged": true}), || format!("unchanged: {key}"))
}

/// Says what was written.
pub fn tell(context: &Context, answer: &WriteAnswer) -> Result<(), Failed> {
    match context.shared.output.data() {
        Some(form) => output::show(form, answer),
        None => output::written(answer, "written"),
    }
}
