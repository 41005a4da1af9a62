//! An operation that succeeded, before it is known whether a response or a line of a stream carries its answer.
//!
//! Owns what both have to say of it. Never decides anything.

use http::header;
use quorate_store::state::ReadPosition;
use quorate_store::types::{Entry, Reply, Revision, Written};

use super::{Answer, headers, ok, render};

/// The answer to a read of one entry, or to a write.
#[derive(Debug)]
pub struct Done {
    /// The body of the answer.
    pub json: Vec<u8>,
    revision: Revision,
    /// The token that the entry has now, where there is one.
    cas: Option<u64>,
}

impl Done {
    /// An entry was found.
    pub fn read(key: &str, entry: &Entry, at: ReadPosition) -> Self {
        Self { json: render::read(key, entry, at), revision: at.revision, cas: entry.meta.cas_shown_at(at.clock) }
    }

    /// A write took effect, or would have.
    pub fn write(key: &str, reply: &Reply, written: &Written, dry_run: bool) -> Self {
        // What a dry run would have made is not there to be referred to.
        let cas = written.meta.filter(|_| !dry_run).map(|meta| meta.cas);
        Self { json: render::write(key, reply, written, dry_run), revision: reply.revision, cas }
    }

    /// As a response of its own.
    pub fn into_response(self) -> Answer {
        let mut response = ok(headers::JSON, self.json);
        let fields = response.headers_mut();
        fields.insert(headers::REVISION, self.revision.into());
        if let Some(cas) = self.cas {
            fields.insert(header::ETAG, headers::etag_value(cas));
        }
        response
    }
}
