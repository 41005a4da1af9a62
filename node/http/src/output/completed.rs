//! An operation that succeeded, before it is known whether a response or a line of a stream carries its answer.
//!
//! Owns what both have to say of it. Never decides anything.

use http::{StatusCode, header};
use quorate_api::path;
use quorate_machine::query::ReadPosition;
use quorate_machine::types::{ClusterMillis, Entry, EntryMeta, Key, Reply, Revision, Written};

use crate::headers;
use crate::output::render;
use crate::output::response::{Answer, created, etag_value, ok};

/// The answer to a read of one entry, or to a write.
#[derive(Debug)]
pub struct Completed {
    /// The body of the answer.
    pub json: Vec<u8>,
    revision: Revision,
    /// The token that the entry has now, where there is one.
    cas: Option<u64>,
    /// Where the write was decided, if it was one and took effect.
    pub decided: Option<Decided>,
    /// The path of the entry, if the write made it.
    location: Option<String>,
}

/// Where a write took effect.
#[derive(Debug, Clone, Copy)]
pub struct Decided {
    /// Log index.
    pub index: u64,
    /// Revision.
    pub revision: Revision,
    /// Cluster clock.
    pub clock: ClusterMillis,
    /// Whether this is the kept answer of an earlier try.
    pub replayed: bool,
    /// The entry after it, where there is one.
    pub meta: Option<EntryMeta>,
}

impl Completed {
    /// An entry was found.
    pub fn read(key: &Key, entry: &Entry, at: ReadPosition) -> Self {
        let cas = entry.meta.cas_shown_at(at.clock);
        Self { json: render::read(key, entry, at), revision: at.revision, cas, decided: None, location: None }
    }

    /// A write took effect, or would have. `may_create`: it is of a kind that makes entries.
    pub fn write(key: &Key, reply: &Reply, written: &Written, dry_run: bool, may_create: bool) -> Self {
        // What a dry run would have made is not there to be referred to.
        let cas = written.meta.filter(|_| !dry_run).map(|meta| meta.cas);
        let Reply { index, revision, clock, replayed, .. } = *reply;
        let decided = Decided { index, revision, clock, replayed, meta: written.meta };
        let json = render::write(key, reply, written, dry_run);
        // Each change counts one version, and the first is that of its creation.
        let is_new = may_create && !dry_run && written.meta.is_some_and(|meta| meta.version == 1);
        let location = is_new.then(|| format!("/v1/kv/{}", path::encode(key)));
        Self { json, revision, cas, decided: Some(decided).filter(|_| !dry_run), location }
    }

    /// A write that leaves the value took effect, or would have, and is answered as a read of the entry after it. `None`
    /// where there is no entry.
    pub fn read_by_write(key: &Key, reply: &Reply, written: &Written, dry_run: bool) -> Option<Self> {
        let (meta, previous) = (written.meta?, written.previous.as_ref()?);
        let EntryMeta { expires_at, locked_until, .. } = meta;
        // It shows its caller the key of a lock that it took. A dry run locks nothing and makes no revision: it shows the entry as it is, with
        // the times that it would have.
        let meta = if dry_run { EntryMeta { expires_at, locked_until, ..*previous.meta() } } else { meta };
        let shown = if dry_run { meta.cas_shown_at(reply.clock) } else { Some(meta.cas) };
        let json = render::read_by_write(key, reply, meta, shown, previous, dry_run);
        let cas = shown.filter(|_| !dry_run);
        Some(Self { json, revision: reply.revision, cas, decided: None, location: None })
    }

    /// This, with the entry in its body.
    pub fn showing(self, key: &Key, entry: &Entry, at: ReadPosition) -> Self {
        Self { location: self.location, ..Self::read(key, entry, at) }
    }

    /// The status that goes with it.
    pub fn status(&self) -> StatusCode {
        if self.location.is_some() { StatusCode::CREATED } else { StatusCode::OK }
    }

    /// As a response of its own.
    pub fn into_response(self) -> Answer {
        let mut response = ok(headers::JSON, self.json);
        let fields = response.headers_mut();
        fields.insert(headers::REVISION, self.revision.into());
        if let Some(cas) = self.cas {
            fields.insert(header::ETAG, etag_value(cas));
        }
        match self.location {
            Some(location) => created(response, location),
            None => response,
        }
    }
}
