//! JSON of the hot answers, written straight into one buffer.
//!
//! Owns the JSON of entries, writes and pages. The wire types of `quorate_api` say what it must look like; the
//! tests parse it into them and write it back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_api::Failed;
use quorate_machine::query::ReadPosition;
use quorate_machine::types::{ClusterMillis, ContentKind, Entry, EntryMeta, Key, Reply, Revision, Shown, Written};
use quorate_node_core::gateway::entry_view;

/// Room for everything of an entry's JSON but key and value.
const FRAME_BYTES: usize = 256;

/// Appends a number in decimal.
pub fn number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        // A remainder of ten fits a byte.
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a JSON string.
pub fn string(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    serde_json::to_writer(out, text).expect("a string written into memory cannot fail");
}

/// Appends the key of what an object is about, as a field: in base64 and under another name where it is no text.
pub fn key(out: &mut Vec<u8>, key: &Key) {
    match std::str::from_utf8(key.as_bytes()) {
        Ok(text) => {
            out.extend_from_slice(b"\"key\":");
            string(out, text);
        }
        Err(_) => {
            out.extend_from_slice(b"\"key_base64\":\"");
            base64(out, key.as_bytes());
            out.push(b'"');
        }
    }
}

/// Appends a small thing of a wire type, where speed does not matter.
pub fn json(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    serde_json::to_writer(out, value).expect("wire types are JSON, and memory takes it");
}

/// Makes the line breaks of JSON blanks. A value is kept as its writer formatted it, over several lines perhaps, and within
/// strings JSON has no raw line breaks: so this changes nothing but the formatting.
pub fn to_one_line(json: &mut [u8]) {
    for byte in json {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Appends what a refusal points at, as a field that is left out where there is nothing.
pub fn failed(out: &mut Vec<u8>, failed: &[Failed]) {
    if !failed.is_empty() {
        out.extend_from_slice(b",\"failed\":");
        json(out, &failed);
    }
}

/// Appends a comma and a field with a number.
pub fn field(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    number(out, value);
}

/// Appends a comma and a field with a number that is handed back or compared: a string, since it can be beyond what JavaScript counts.
pub fn token(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":\"");
    number(out, value);
    out.push(b'"');
}

/// An entry, without its closing brace.
pub fn open_entry(out: &mut Vec<u8>, key: &Key, entry: &Entry, clock: ClusterMillis, with_value: bool) {
    let data = with_value.then_some(&entry.value.data[..]);
    key_and_value(out, key, data, entry.value.kind);
    metadata(out, &entry.meta, entry.meta.cas_shown_at(clock), clock);
}

/// What an answer to a write shows of a value, and how that is to be read.
fn data_of(shown: &Shown) -> (Option<&[u8]>, ContentKind) {
    match shown {
        Shown::Whole(entry) => (Some(&entry.value.data[..]), entry.value.kind),
        Shown::Bare { kind, .. } => (None, *kind),
    }
}

/// What is known of an entry beside its value, with this token.
fn metadata(out: &mut Vec<u8>, meta: &EntryMeta, shown: Option<u64>, clock: ClusterMillis) {
    token_and_numbers(out, meta, shown, clock);
    if let Some(left) = entry_view::lock_ms(meta, clock) {
        out.extend_from_slice(b",\"locked\":true");
        field(out, "lock_ms", left);
    }
    session(out, meta);
}

/// An entry as a change left it, without its closing brace. A change that locked it does not show the token; for how long
/// it locked is not known any more.
pub fn open_changed(
    out: &mut Vec<u8>,
    key: &Key,
    entry: &Entry,
    clock: ClusterMillis,
    with_value: bool,
    is_locked: bool,
) {
    key_and_value(out, key, with_value.then_some(&entry.value.data[..]), entry.value.kind);
    token_and_numbers(out, &entry.meta, (!is_locked).then_some(entry.meta.cas), clock);
    if is_locked {
        out.extend_from_slice(b",\"locked\":true");
    }
    session(out, &entry.meta);
}

fn session(out: &mut Vec<u8>, meta: &EntryMeta) {
    if let Some(id) = meta.session {
        token(out, "session", id.0);
    }
}

fn key_and_value(out: &mut Vec<u8>, key: &Key, data: Option<&[u8]>, kind: ContentKind) {
    out.push(b'{');
    self::key(out, key);
    match (kind, data) {
        (_, None) => {}
        (ContentKind::Json, Some(data)) => {
            out.extend_from_slice(b",\"value\":");
            out.extend_from_slice(data);
        }
        (ContentKind::Bytes, Some(data)) => {
            out.extend_from_slice(b",\"value_base64\":\"");
            base64(out, data);
            out.push(b'"');
        }
    }
    let kind: &[u8] = match kind {
        ContentKind::Json => b",\"content_type\":\"json\"",
        ContentKind::Bytes => b",\"content_type\":\"bytes\"",
    };
    out.extend_from_slice(kind);
}

fn token_and_numbers(out: &mut Vec<u8>, meta: &EntryMeta, shown: Option<u64>, clock: ClusterMillis) {
    match shown {
        Some(cas) => token(out, "cas", cas),
        None => out.extend_from_slice(b",\"cas\":null"),
    }
    token(out, "create_revision", meta.create_revision);
    token(out, "mod_revision", meta.mod_revision);
    field(out, "version", meta.version);
    if let Some(left) = entry_view::ttl_ms(meta.expires_at, clock) {
        field(out, "ttl_ms", left);
    }
}

fn base64(out: &mut Vec<u8>, data: &[u8]) {
    let start = out.len();
    out.resize(start + data.len().div_ceil(3) * 4, 0);
    let written = STANDARD.encode_slice(data, &mut out[start..]).expect("the room was made to measure");
    debug_assert_eq!(start + written, out.len());
}

/// The answer to a read: `EntryView` with `revision` and `index`.
pub fn read(key: &Key, entry: &Entry, at: ReadPosition) -> Vec<u8> {
    let value_bytes = entry.value.data.len();
    let mut out = Vec::with_capacity(FRAME_BYTES + key.as_bytes().len() + value_bytes + value_bytes / 3);
    open_entry(&mut out, key, entry, at.clock, true);
    token(&mut out, "revision", at.revision);
    field(&mut out, "index", at.index);
    out.push(b'}');
    out
}

/// The answer to a write: `WriteAnswer`.
pub fn write(key: &Key, reply: &Reply, written: &Written, dry_run: bool) -> Vec<u8> {
    let previous_bytes = written.previous.as_ref().map_or(0, |shown| FRAME_BYTES + shown.value_bytes() * 4 / 3);
    let mut out = Vec::with_capacity(FRAME_BYTES + key.as_bytes().len() + previous_bytes);
    out.push(b'{');
    self::key(&mut out, key);
    token(&mut out, "revision", reply.revision);
    field(&mut out, "index", reply.index);
    what_was_written(&mut out, key, written, reply.clock, true, dry_run.then_some(reply.revision));
    switches(&mut out, reply.replayed, dry_run);
    out.push(b'}');
    out
}

/// The entry after a write and the one before, as fields of its answer. The value of the one before may be left out. `tried_at` is the
/// revision at which a dry run was evaluated.
pub fn what_was_written(
    out: &mut Vec<u8>,
    key: &Key,
    written: &Written,
    clock: ClusterMillis,
    with_value: bool,
    tried_at: Option<Revision>,
) {
    if let Some(meta) = &written.meta {
        write_meta(out, meta, clock, tried_at);
    }
    if let Some(previous) = &written.previous {
        out.extend_from_slice(b",\"prev\":");
        shown(out, key, previous, clock, with_value);
    }
}

/// The last fields of an answer to what may write.
pub fn switches(out: &mut Vec<u8>, replayed: bool, dry_run: bool) {
    if replayed {
        out.extend_from_slice(b",\"replayed\":true");
    }
    if dry_run {
        out.extend_from_slice(b",\"dry_run\":true");
    }
}

/// The answer to a write that is a read too: the value that was there before, which is there still, and the metadata after it
/// with this token.
pub fn read_by_write(
    key: &Key,
    reply: &Reply,
    meta: EntryMeta,
    cas: Option<u64>,
    previous: &Shown,
    dry_run: bool,
) -> Vec<u8> {
    let value_bytes = previous.value_bytes();
    let mut out = Vec::with_capacity(FRAME_BYTES + key.as_bytes().len() + value_bytes + value_bytes / 3);
    let (data, kind) = data_of(previous);
    key_and_value(&mut out, key, data, kind);
    metadata(&mut out, &meta, cas, reply.clock);
    token(&mut out, "revision", reply.revision);
    field(&mut out, "index", reply.index);
    switches(&mut out, reply.replayed, dry_run);
    out.push(b'}');
    out
}

/// An entry in an answer to a write. One without its value looks as in a listing of keys.
pub fn shown(out: &mut Vec<u8>, key: &Key, shown: &Shown, clock: ClusterMillis, with_value: bool) {
    let ((data, kind), meta) = (data_of(shown), shown.meta());
    key_and_value(out, key, data.filter(|_| with_value), kind);
    metadata(out, meta, meta.cas_shown_at(clock), clock);
    out.push(b'}');
}

fn write_meta(out: &mut Vec<u8>, meta: &EntryMeta, clock: ClusterMillis, tried_at: Option<Revision>) {
    // A dry run makes no revision: the number would be that of another write.
    if tried_at.is_none() {
        token(out, "cas", meta.cas);
    }
    if tried_at.is_none_or(|at| meta.create_revision <= at) {
        token(out, "create_revision", meta.create_revision);
    }
    field(out, "version", meta.version);
    if let Some(left) = entry_view::ttl_ms(meta.expires_at, clock) {
        field(out, "ttl_ms", left);
    }
    if let Some(left) = entry_view::lock_ms(meta, clock) {
        field(out, "lock_ms", left);
    }
}

/// The part of each value that a page shows.
#[derive(Debug, Clone, Copy)]
pub struct ValuesShown {
    /// The value itself.
    pub values: bool,
    /// How many bytes it has.
    pub sizes: bool,
}

/// A page: `ListAnswer`. `entries` come in the order of the page.
pub fn page<'a>(
    entries: impl Iterator<Item = &'a (Key, Entry)>,
    shown: ValuesShown,
    count: u64,
    cursor: Option<&str>,
    at: ReadPosition,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(4_096);
    out.extend_from_slice(b"{\"entries\":[");
    for (position, (key, entry)) in entries.enumerate() {
        if position > 0 {
            out.push(b',');
        }
        open_entry(&mut out, key, entry, at.clock, shown.values);
        if shown.sizes {
            field(&mut out, "value_bytes", entry.value.data.len() as u64);
        }
        out.push(b'}');
    }
    out.push(b']');
    field(&mut out, "count", count);
    if let Some(cursor) = cursor {
        out.extend_from_slice(b",\"cursor\":");
        string(&mut out, cursor);
    }
    token(&mut out, "revision", at.revision);
    field(&mut out, "index", at.index);
    out.push(b'}');
    out
}

#[cfg(test)]
pub mod tests {
    use quorate_api::{EntryView, ListAnswer, WriteAnswer};
    use quorate_machine::types::{Outcome, Value};

    use super::*;

    const AT: ReadPosition = ReadPosition { index: 90, revision: 80, clock: 1_000, oldest_revision: 1 };

    /// An entry of two versions.
    pub fn entry(kind: ContentKind, data: &[u8], expires_at: Option<u64>) -> Entry {
        let meta = EntryMeta {
            create_revision: 5,
            mod_revision: 7,
            version: 2,
            cas: u64::MAX,
            expires_at,
            locked_until: None,
            session: None,
        };
        Entry { meta, value: Value { kind, data: data.to_vec() } }
    }

    fn name(bytes: impl Into<Vec<u8>>) -> Key {
        Key::new(bytes).expect("a key")
    }

    /// Parses into the wire type and writes it back: any difference in names, order or absence shows.
    pub fn same_as<T: serde::Serialize + serde::de::DeserializeOwned>(rendered: &[u8]) -> T {
        let parsed: T = serde_json::from_slice(rendered).expect("the rendered text is the wire type");
        let again = serde_json::to_vec(&parsed).expect("wire types are JSON");
        assert_eq!(String::from_utf8_lossy(rendered), String::from_utf8_lossy(&again));
        parsed
    }

    #[test]
    fn rendered_entries_are_the_wire_type() {
        for (key, entry) in [
            (&b"a/b"[..], entry(ContentKind::Json, br#"{"n": 1.0}"#, Some(1_500))),
            ("q\"\\\u{0}ü\n".as_bytes(), entry(ContentKind::Bytes, b"\x00\xff12", None)),
            (&b"e"[..], entry(ContentKind::Bytes, b"", None)),
            (&b"n"[..], entry(ContentKind::Json, b"null", None)),
            (&b"n/\xFF"[..], entry(ContentKind::Json, b"1", None)),
        ] {
            let key = name(key);
            let rendered = read(&key, &entry, AT);
            same_as::<EntryView>(&rendered);
            let mut view = entry_view::entry_view(&key, &entry, AT.clock);
            (view.revision, view.index) = (Some(AT.revision), Some(AT.index));
            assert_eq!(String::from_utf8_lossy(&rendered), serde_json::to_string(&view).expect("JSON"));
        }
    }

    #[test]
    fn rendered_writes_and_pages_are_the_wire_types() {
        let old = entry(ContentKind::Json, b"[1]", Some(3_000));
        let (whole, bare) = (Shown::Whole(old.clone()), Shown::Whole(old.clone()).to_bare());
        for (meta, previous, replayed, dry_run) in [
            (Some(old.meta), Some(whole), true, false),
            (Some(old.meta), Some(bare), false, true),
            (None, None, false, true),
        ] {
            let written = Written { meta, previous };
            let outcome = Outcome::Written(written.clone());
            let reply = Reply { index: 3, revision: 2, clock: 1_000, replayed, outcome };
            same_as::<WriteAnswer>(&write(&name("k"), &reply, &written, dry_run));
            if let (Some(meta), Some(previous)) = (written.meta, &written.previous) {
                let rendered = read_by_write(&name(b"\xFE"), &reply, meta, Some(meta.cas), previous, dry_run);
                assert_eq!(same_as::<EntryView>(&rendered).dry_run, dry_run);
                let shows_value = String::from_utf8_lossy(&rendered).contains("\"value\":[1]");
                assert_eq!(shows_value, previous.entry().is_some());
            }
        }
        let entries = [(name("a"), old.clone()), (name(b"b/\xFF"), old)];
        for (values, sizes) in [(true, false), (false, false), (true, true), (false, true)] {
            let shown = ValuesShown { values, sizes };
            same_as::<ListAnswer>(&page(entries.iter(), shown, 2, Some("abc"), AT));
            same_as::<ListAnswer>(&page(entries.iter(), shown, 2, None, AT));
            same_as::<ListAnswer>(&page(std::iter::empty(), shown, 7, None, AT));
        }
    }

    #[test]
    fn a_dry_run_shows_nothing_that_it_would_have_made() {
        let old = entry(ContentKind::Json, b"1", None);
        for (create_revision, shown) in [(80, Some(80)), (81, None)] {
            let meta = EntryMeta { create_revision, cas: 81, ..old.meta };
            let written = Written { meta: Some(meta), previous: None };
            let outcome = Outcome::Written(written.clone());
            let reply = Reply { index: 90, revision: 80, clock: 1_000, replayed: false, outcome };
            let rendered = write(&name("k"), &reply, &written, true);
            let answer: WriteAnswer = same_as(&rendered);
            assert_eq!((answer.cas, answer.create_revision, answer.version), (None, shown, Some(2)));
        }
    }

    #[test]
    fn numbers_are_decimal() {
        for value in [0, 7, 10, 99, 1_234_567_890, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), value.to_string());
        }
    }
}
