//! Changes and entries as events of a watch.
//!
//! Owns their text. Knows nothing of where a stream is. The wire types of `quorate_api` say what it must look like; the
//! tests parse it into them and write it back.

use quorate_api::{DeleteCause, WatchEnd, WatchEndCode, WatchProgress};
use quorate_machine::keyspace::changes::{Cause, ValueChange};
use quorate_machine::query::FeedPosition;
use quorate_machine::types::{ClusterMillis, Entry, Key, Revision};

use crate::output::render;
use crate::watch::options::WatchView;
use crate::watch::sse;

/// Room for everything of an event but key and values.
const FRAME_BYTES: usize = 512;

/// A change and what is known of its entry.
pub struct Shown<'a> {
    /// The key.
    pub key: &'a Key,
    /// The revision of the change.
    pub revision: Revision,
    /// What it was.
    pub change: &'a ValueChange,
    /// The entry after it.
    pub entry: Option<&'a Entry>,
    /// The entry before it, where it is to be shown.
    pub before: Option<&'a Entry>,
}

/// An event without its id and its end, which depend on what follows it.
pub fn change(shown: &Shown<'_>, view: &WatchView) -> Vec<u8> {
    let Shown { revision, change, .. } = *shown;
    let name = shown.key;
    let value_bytes = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.value.data.len() * 4 / 3);
    let room = FRAME_BYTES + 3 * name.as_bytes().len() + value_bytes(shown.entry) + value_bytes(shown.before);
    let mut out = Vec::with_capacity(room);
    let kind = if change.cause.is_removal() { "delete" } else { "put" };
    begin(&mut out, kind, revision);
    let start = out.len();
    render::field(&mut out, "index", change.index.into());
    out.push(b',');
    render::key(&mut out, name);
    if let Some(entry) = shown.entry {
        out.extend_from_slice(b",\"entry\":");
        render::open_changed(&mut out, name, entry, change.clock, !view.keys_only, change.locks);
        out.push(b'}');
    }
    if let Some(cause) = cause(change.cause) {
        out.extend_from_slice(b",\"cause\":");
        render::json(&mut out, &cause);
    }
    if let Some(before) = shown.before {
        out.extend_from_slice(b",\"prev\":");
        render::open_changed(&mut out, name, before, change.clock, !view.keys_only, false);
        out.push(b'}');
    }
    out.push(b'}');
    render::to_one_line(&mut out[start..]);
    out.push(b'\n');
    out
}

/// The id of an event and its end; without an id where more of its revision follows.
pub fn end_event(out: &mut Vec<u8>, id: Option<FeedPosition>) {
    if let Some(FeedPosition { revision, index }) = id {
        out.extend_from_slice(b"id: ");
        render::number(out, revision);
        out.push(b'.');
        render::number(out, index.into());
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Appends an entry that was there when the watch began.
pub fn initial(
    out: &mut Vec<u8>,
    name: &Key,
    entry: &Entry,
    revision: Revision,
    clock: ClusterMillis,
    keys_only: bool,
) {
    begin(out, "put", revision);
    let start = out.len();
    out.push(b',');
    render::key(out, name);
    out.extend_from_slice(b",\"entry\":");
    render::open_entry(out, name, entry, clock, !keys_only);
    out.extend_from_slice(b"},\"initial\":true}");
    render::to_one_line(&mut out[start..]);
    out.extend_from_slice(b"\n\n");
}

/// Everything up to this revision was sent.
pub fn progress(out: &mut Vec<u8>, name: &str, revision: Revision) {
    sse::event(out, name, Some(revision), &WatchProgress { revision });
}

/// The last words.
pub fn end(
    code: WatchEndCode,
    detail: String,
    oldest_revision: Option<Revision>,
    revision: Option<Revision>,
) -> Vec<u8> {
    let mut out = Vec::new();
    sse::event(&mut out, "end", None, &WatchEnd { code, detail, oldest_revision, revision });
    out
}

fn begin(out: &mut Vec<u8>, kind: &str, revision: Revision) {
    for part in ["event: ", kind, "\ndata: {\"type\":\"", kind, "\""] {
        out.extend_from_slice(part.as_bytes());
    }
    render::token(out, "revision", revision);
}

fn cause(cause: Cause) -> Option<DeleteCause> {
    match cause {
        Cause::Written => None,
        Cause::Removed => Some(DeleteCause::Removed),
        Cause::Expired => Some(DeleteCause::Expired),
        Cause::SessionEnded => Some(DeleteCause::SessionEnded),
    }
}
