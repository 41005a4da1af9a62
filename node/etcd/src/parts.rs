//! A range in parts, all of one revision: what etcd's `RangeStream` answers with.
//!
//! Owns what stands in which part: put together they are the answer to the same `Range`. What is not in order of key has to be read as a
//! whole before its first entry is known, and is one part.

use quorate_etcd_api::entry::KeyValue;
use quorate_etcd_api::kv::{RangeRequest, RangeResponse};
use quorate_machine::query::ListQuery;
use quorate_machine::types::{Key, KeyRange, ListOrder, ListShown, ListStep, Revision, RevisionFilter};
use quorate_node_core::backend::Consistency;
use quorate_node_core::gateway::auth::requirement::{Permission, Requirement, Visit};
use quorate_node_core::gateway::call::Call;
use quorate_node_core::gateway::scan::scan;
use quorate_node_core::limits;

use crate::header::header;
use crate::past;
use crate::range::{self, key_value};
use crate::status::Status;

/// A range that is being read.
pub struct Parts {
    request: RangeRequest,
    next: Next,
}

/// Where it goes on.
enum Next {
    Begin,
    After { key: Key, at: Revision, left: usize, more: bool },
    End,
}

impl Parts {
    /// Those of what this asks for.
    pub fn new(request: RangeRequest) -> Self {
        Self { request, next: Next::Begin }
    }

    /// The next part; `None` after the last.
    pub async fn next(&mut self, call: &Call) -> Result<Option<RangeResponse>, Status> {
        let next = std::mem::replace(&mut self.next, Next::End);
        if matches!(next, Next::End) {
            return Ok(None);
        }
        let step = range::list_step(&self.request)?;
        let cost = match &next {
            Next::After { left, .. } => past::cost_of_page(*left),
            Next::Begin | Next::End => past::cost(&step),
        };
        let wanted = |visit: &mut Visit<'_>| visit(Requirement::on_range(Permission::Read, &step.range));
        if matches!(next, Next::Begin) {
            call.caller().admit(call.deadline, &wanted).await?;
        }
        // Each part has a deadline, a place and a turn of its own.
        let call = match past::named(&step) {
            Some(_) => call.lasting(),
            None => call.next_scan().await?,
        };
        call.costs(cost, cost)?;
        // Who may read it is asked for each part: that may change meanwhile.
        let fresh = match next {
            Next::Begin if !self.request.serializable => Consistency::Linearizable,
            _ => Consistency::Local,
        };
        call.caller().admit_read(fresh, call.deadline, &wanted).await?;
        match next {
            Next::Begin => self.begin(&call, step).await.map(Some),
            Next::After { key, at, left, more } => {
                let start = [key.as_bytes(), &[0]].concat();
                let range = KeyRange::new(start, step.range.end().map(<[u8]>::to_vec));
                let part = past::part(&call, query(&step, range, Some(at), left)).await?;
                let mut answer = RangeResponse::default();
                self.take(part, left, more, &mut answer);
                Ok(Some(answer))
            }
            Next::End => Ok(None),
        }
    }

    /// The first part, which has the header and the count.
    async fn begin(&mut self, call: &Call, step: ListStep) -> Result<RangeResponse, Status> {
        let revision = past::revision_of(self.request.revision);
        if !is_in_order(&step) {
            return past::read(call, step, revision).await;
        }
        let left = step.limit();
        let part = past::part(call, query(&step, step.range.clone(), revision, left)).await?;
        let at = part.at;
        let all = query(&step, step.range.clone(), Some(at), usize::MAX);
        let (_, count) = scan(call, move |backend| backend.count(&all)).await?;
        let now = if revision.is_some() { call.api.revision() } else { at };
        let mut answer =
            RangeResponse { header: Some(header(&call.api, now)), count: count as i64, ..RangeResponse::default() };
        self.take(part, left, count > left as u64, &mut answer);
        Ok(answer)
    }

    /// Puts the entries of a part into an answer, and notes where it goes on. `more` is whether there are entries beyond the limit.
    fn take(&mut self, part: past::Part, left: usize, more: bool, answer: &mut RangeResponse) {
        let last = part.entries.last().map(|(key, _)| key.clone());
        let left = left.saturating_sub(part.entries.len());
        answer.kvs = part.entries.into_iter().map(|(key, entry)| key_value(&key, entry)).collect::<Vec<KeyValue>>();
        match last {
            Some(key) if part.is_cut => self.next = Next::After { key, at: part.at, left, more },
            _ => answer.more = more,
        }
    }
}

fn is_in_order(step: &ListStep) -> bool {
    let is_one = step.range.key().is_some();
    !is_one && step.order == ListOrder::BY_KEY && step.filter == RevisionFilter::ALL && step.shown != ListShown::Count
}

fn query(step: &ListStep, range: KeyRange, revision: Option<Revision>, limit: usize) -> ListQuery {
    ListQuery {
        start: range.start().to_vec(),
        end: range.end().map(<[u8]>::to_vec),
        revision,
        limit,
        bytes_max: limits::ETCD_FRAGMENT_BYTES,
        keys_only: step.shown == ListShown::Keys,
        reverse: false,
    }
}
