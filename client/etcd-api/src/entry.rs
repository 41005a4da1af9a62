//! Entries and events.

use crate::define::{enumeration, messages};

messages! {
    KeyValue {
        1 key: bytes,
        2 create_revision: int64 [alias = "createRevision"],
        3 mod_revision: int64 [alias = "modRevision"],
        4 version: int64,
        5 value: bytes,
        6 lease: int64,
    }
}

enumeration!(EventEventType { Put = 0 "PUT", Delete = 1 "DELETE" });

messages! {
    Event {
        1 r#type: enumeration "EventEventType",
        2 kv: optional KeyValue,
        3 prev_kv: optional KeyValue [alias = "prevKv"],
    }
}
