//! Ranges of keys, and entries as etcd shows them.

use bytes::Bytes;
use quorate_etcd_api::Error;
use quorate_etcd_api::entry::KeyValue;
use quorate_etcd_api::kv::{RangeRequest, RangeRequestSortOrder, RangeRequestSortTarget};
use quorate_machine::document::Json;
use quorate_machine::types::{
    ContentKind, Entry, Key, KeyRange, ListOrder, ListOrderBy, ListShown, ListStep, RevisionFilter, SessionId, Value,
};
use quorate_threads::background;

use crate::status::{Status, known};

/// From a key and an end: one key where there is none, all from the key on where it is `\0`.
pub fn key_range(key: &Bytes, range_end: &Bytes) -> Result<KeyRange, Status> {
    if key.is_empty() {
        return Err(known(Error::EmptyKey));
    }
    Ok(span(key, range_end))
}

/// From this key on, which may be empty here. Where it is longer than a key may be, the range has just those keys that it would have in
/// etcd, which has longer ones: none of its own name, and those behind it.
pub fn span(key: &Bytes, range_end: &Bytes) -> KeyRange {
    match &range_end[..] {
        [] => KeyRange::of_key(key),
        // No key is below the one of this byte but the empty one, which there is not.
        [0] => KeyRange::new(key.to_vec(), None),
        end => KeyRange::new(key.to_vec(), Some(end.to_vec())),
    }
}

/// A key of an entry.
pub fn key(bytes: &Bytes) -> Result<Key, Status> {
    if bytes.is_empty() {
        return Err(known(Error::EmptyKey));
    }
    Key::new(bytes.to_vec()).map_err(|error| Status::invalid_argument(format!("quorate: {error}")))
}

/// A value as it is stored. JSON objects and lists are documents for who reads them over HTTP; all else is bytes.
pub fn value(data: &Bytes) -> Value {
    let may_be_json = matches!(data.trim_ascii_start().first(), Some(b'{' | b'['));
    let is_json = may_be_json && background::in_place(data.len(), || Json::parse(data).is_ok());
    let kind = if is_json { ContentKind::Json } else { ContentKind::Bytes };
    Value { kind, data: data.to_vec() }
}

/// An entry with its key.
pub fn key_value(key: &Key, entry: Entry) -> KeyValue {
    let Entry { meta, value } = entry;
    KeyValue {
        key: Bytes::copy_from_slice(key.as_bytes()),
        create_revision: meta.create_revision as i64,
        mod_revision: meta.mod_revision as i64,
        version: meta.version as i64,
        value: value.data.into(),
        lease: meta.session.map_or(0, SessionId::lease),
    }
}

/// What a request asks for, whatever the revision.
pub fn list_step(request: &RangeRequest) -> Result<ListStep, Status> {
    let range = key_range(&request.key, &request.range_end)?;
    let by = match RangeRequestSortTarget::try_from(request.sort_target) {
        Ok(RangeRequestSortTarget::Key) => ListOrderBy::Key,
        Ok(RangeRequestSortTarget::Version) => ListOrderBy::Version,
        Ok(RangeRequestSortTarget::Create) => ListOrderBy::CreateRevision,
        Ok(RangeRequestSortTarget::Mod) => ListOrderBy::ModRevision,
        Ok(RangeRequestSortTarget::Value) => ListOrderBy::Value,
        Err(_) => return Err(known(Error::InvalidSortOption)),
    };
    let order = match RangeRequestSortOrder::try_from(request.sort_order) {
        // A target without an order is ascending, but for keys, which come so anyway.
        Ok(RangeRequestSortOrder::None | RangeRequestSortOrder::Ascend) => ListOrder { by, descending: false },
        Ok(RangeRequestSortOrder::Descend) => ListOrder { by, descending: true },
        Err(_) => return Err(known(Error::InvalidSortOption)),
    };
    let shown = match (request.count_only, request.keys_only) {
        (true, _) => ListShown::Count,
        (false, true) => ListShown::Keys,
        (false, false) => ListShown::Entries,
    };
    // 0 bounds nothing, at either end.
    let lowest = |bound: i64| u64::try_from(bound).unwrap_or(0);
    let highest = |bound: i64| if bound == 0 { u64::MAX } else { u64::try_from(bound).unwrap_or(0) };
    let filter = RevisionFilter {
        min_mod: lowest(request.min_mod_revision),
        max_mod: highest(request.max_mod_revision),
        min_create: lowest(request.min_create_revision),
        max_create: highest(request.max_create_revision),
    };
    let limit = u64::try_from(request.limit).unwrap_or(0);
    Ok(ListStep { range, limit, order, filter, shown, at: None })
}
