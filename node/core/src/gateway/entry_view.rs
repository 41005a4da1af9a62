//! Domain types to wire types, where speed does not matter (errors, mostly). The hot path is `render`; a test holds the two
//! to the same JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use quorate_api::{ContentType, EntryView, JsonText};
use quorate_machine::types::{ClusterMillis, ContentKind, Entry, EntryMeta};
use serde_json::value::RawValue;

/// An entry as answers show it, evaluated at `clock`.
pub fn entry_view(key: impl AsRef<[u8]>, entry: &Entry, clock: ClusterMillis) -> EntryView {
    let json = match entry.value.kind {
        ContentKind::Json => json_text(&entry.value.data),
        ContentKind::Bytes => None,
    };
    let meta = &entry.meta;
    let (key, cas) = (key.as_ref().into(), meta.cas_shown_at(clock).map(quorate_api::Cas::new));
    let (create_revision, mod_revision) = (meta.create_revision, meta.mod_revision);
    let bare = EntryView::new(key, content_type(entry.value.kind), cas, create_revision, mod_revision, meta.version);
    EntryView {
        // Text that is stored as JSON was checked when it came in. Should it not be JSON, its bytes are still the truth.
        value_base64: json.is_none().then(|| STANDARD.encode(&entry.value.data)),
        value: json,
        ttl_ms: ttl_ms(meta.expires_at, clock),
        locked: meta.is_locked_at(clock),
        lock_ms: lock_ms(meta, clock),
        session: meta.session.map(|id| id.to_string()),
        ..bare
    }
}

/// Milliseconds left at `clock`.
pub fn ttl_ms(expires_at: Option<ClusterMillis>, clock: ClusterMillis) -> Option<u64> {
    expires_at.map(|deadline| deadline.saturating_sub(clock))
}

/// Milliseconds until its lock ends by itself, where it is locked.
pub fn lock_ms(meta: &EntryMeta, clock: ClusterMillis) -> Option<u64> {
    meta.locked_until.and_then(|until| until.checked_sub(clock)).filter(|left| *left > 0)
}

fn content_type(kind: ContentKind) -> ContentType {
    match kind {
        ContentKind::Json => ContentType::Json,
        ContentKind::Bytes => ContentType::Bytes,
    }
}

/// The text of a JSON value.
pub fn json_text(data: &[u8]) -> Option<JsonText> {
    let text = String::from_utf8(data.to_vec()).ok()?;
    RawValue::from_string(text).ok().map(JsonText)
}
