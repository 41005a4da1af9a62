//! What calls tell `tracing`.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quorate_client::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fake::{Act, Fake};

/// The spans of the client, each with its name and fields.
#[derive(Debug, Clone, Default)]
struct Spans {
    seen: Arc<Mutex<BTreeMap<u64, BTreeMap<String, String>>>>,
    last: Arc<AtomicU64>,
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().into(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "quorate_client"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = BTreeMap::from([("name".to_owned(), span.metadata().name().to_owned())]);
        span.record(&mut Fields(&mut fields));
        self.seen.lock().insert(id, fields);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(fields) = self.seen.lock().get_mut(&span.into_u64()) {
            values.record(&mut Fields(fields));
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_call_is_a_span_with_one_for_each_attempt() {
    let (fake, client) = Fake::with_client().await;
    fake.script([Act::Reset]);
    let spans = Spans::default();
    let guard = tracing::subscriber::set_default(spans.clone());
    client
        .put("secret/key", Value::json_text("1"))
        .request_id("order-1".parse().expect("an id"))
        .await
        .expect("written");
    drop(guard);
    let seen: Vec<_> = spans.seen.lock().values().cloned().collect();
    let field = |span: usize, name: &str| seen[span].get(name).map(String::as_str);
    assert_eq!((field(0, "name"), field(0, "operation")), (Some("quorate_call"), Some("upsert")), "{seen:?}");
    assert_eq!(field(0, "request_id"), Some("order-1"));
    let attempts: Vec<_> = (0..seen.len()).filter(|span| field(*span, "name") == Some("quorate_attempt")).collect();
    assert_eq!(attempts.len(), 2, "{seen:?}");
    assert_eq!((field(attempts[0], "attempt"), field(attempts[1], "attempt")), (Some("1"), Some("2")));
    assert_eq!(field(attempts[0], "endpoint"), Some(fake.address.as_str()));
    assert!(field(attempts[0], "failure").is_some() && field(attempts[1], "failure").is_none(), "{seen:?}");
    assert!(!format!("{seen:?}").contains("secret"), "a key is nobody's business: {seen:?}");
}
