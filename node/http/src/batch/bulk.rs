//! `POST /v1/bulk`: many writes in one request, each on its own.
//!
//! Owns the parts in which a bulk goes through the log, and what is told of one that stops between two. How a body is read
//! is in `bulk_body`, how the answer is written in `bulk_answer`.

use std::time::Instant;

use axum::body::Body;
use quorate_api::{BulkAnswer, BulkRequest, Op, Problem};
use quorate_machine::limits::{BATCH_BYTES_SOFT_MAX, COMMAND_WRITES_MAX};
use quorate_machine::types::{Action, Command, Outcome as Decided, Rejection, Reply, RequestId, Txn};
use quorate_node_core::backend::AppError;
use quorate_node_core::gateway::admission::request_class::RequestClass;
use quorate_node_core::gateway::auth::requirement::Visit;
use quorate_node_core::gateway::failure::{Effect, Failure};
use quorate_node_core::gateway::propose;
use quorate_node_core::gateway::scan::{evaluate, parse};
use quorate_node_core::limits;
use utoipa_axum::routes;

use crate::batch::bulk_answer::{BulkEnd, BulkTally};
use crate::batch::bulk_body::{BulkOp, Form, ParsedBulk};
use crate::context::{Context, RequestContext};
use crate::described::{Common, Reused};
use crate::headers;
use crate::input::body;
use crate::input::extract::Query;
use crate::keys::prefer;
use crate::output::response::{Outcome, ok};
use crate::routes::{BodyLimit, Policy, Routes};

pub fn routes() -> Routes {
    Routes::new()
        .add(Policy::data(RequestClass::Point).with_body(BodyLimit::Bytes(limits::BULK_BODY_BYTES_MAX)), routes!(post))
}

/// Executes up to 10,000 operations, each on its own, in order.
///
/// Every operation has its own outcome, and one that is refused does not keep back the others. An `insert` that finds its key
/// is `skipped`, and what is there stays: the same load may be sent again and again. So is an operation whose `if` does not hold.
/// All kinds of operations are taken but
/// `get`. As `application/x-ndjson` the body is the operations alone, one a line.
///
/// It goes through the log in parts of at most 1,024 operations and 256 KiB, one after the other; an operation sees what those
/// before it did. If the time runs out between two parts, the answer is 504 and `applied` is `unknown`; the same request sent
/// again with the same request id finds what was decided and goes on from there, also through another node.
///
/// With `dry_run` all parts are evaluated at one moment, and each operation sees what those before it would do; a bulk that would
/// read and write more than 64 MiB is refused then. Once the answer is 16 MiB long, the items that follow show no values of entries.
#[utoipa::path(post, path = "/v1/bulk", tag = "entries", operation_id = "bulk",
    params(
        ("dry_run" = Option<bool>, Query, description = "Say what would happen, write nothing; the same as `dry_run` in the body."),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes retries safe; the same as `request_id` in the body.", example = "load-7"),
        ("Prefer" = Option<String>, Header, description = "`return=minimal`: `results` has only those that failed. Granted where `Preference-Applied` says so.", example = "return=minimal"),
        ("Request-Timeout" = Option<u64>, Header, description = "Deadline in milliseconds, for all parts together."),
    ),
    request_body(content(
        (BulkRequest = "application/json", example = json!({"ops": [{"op": "insert", "key": "orders/o42", "value": {"status": "new"}}, {"op": "update", "key": "orders/o41", "patch": [{"op": "inc", "path": "tries", "value": 1}], "if": [{"field": "status", "op": "eq", "value": "new"}]}], "request_id": "load-7"})),
        (Op = "application/x-ndjson", example = json!({"op": "insert", "key": "orders/o42", "value": {"status": "new"}})),
    )),
    responses(
        (status = 200, description = "All operations were decided: `results` says how.", body = BulkAnswer, example = json!({"applied": 1, "skipped": 1, "failed": 0, "results": [{"n": 0, "key": "orders/o42", "outcome": "skipped", "revision": "20", "status": 409, "code": "already_exists", "detail": "`orders/o42` already exists", "current": {"key": "orders/o42", "value": {"status": "paid"}, "content_type": "json", "cas": "17", "create_revision": "12", "mod_revision": "17", "version": 2}}, {"n": 1, "key": "orders/o41", "outcome": "applied", "revision": "21", "cas": "21", "create_revision": "11", "version": 3}], "revision": "21", "index": 33})),
        (status = 507, description = "`quota_exceeded`: the quota is used up or a disk nearly full; parts that only delete still work.", body = Problem, content_type = "application/problem+json"),
        Reused, Common,
    ))]
pub async fn post(context: Context, body: Body) -> Outcome {
    let mut query = Query::parse(context.head.uri.query());
    let dry_run = query.flag("dry_run");
    query.finish()?;
    let form = match headers::says_stream(&context.head) {
        true => Form::Lines,
        false => Form::Object(headers::json_kind(&context.head, "a bulk")?),
    };
    let body = body::collect_long(&context, body, limits::BULK_BODY_BYTES_MAX).await?;
    let parsed = parse(&context, body, move |body| ParsedBulk::read(body, form)).await?;
    context.take_request_id(parsed.request_id)?;
    let minimal = prefer::wants_minimal(&context.head);
    // Its parts go through the log one after the other.
    context.costs(parsed.ops.len().min(COMMAND_WRITES_MAX), parsed.ops.len())?;
    let course = Course::new(parsed.ops, minimal);
    let course = match dry_run || parsed.dry_run {
        true => {
            context.only_looks();
            rehearse(&context, course).await?
        }
        false => carry_out(&context, course).await?,
    };
    let revision = course.end.revision;
    let mut response = ok(headers::JSON, course.tally.finish(course.end));
    response.headers_mut().insert(headers::REVISION, revision.into());
    if minimal {
        prefer::say_minimal(&mut response);
    }
    Ok(response)
}

/// Puts one part after the other through the log.
async fn carry_out(context: &RequestContext, mut course: Course) -> Result<Course, Failure> {
    let caller = context.caller();
    // All of it, before the first part takes effect.
    caller.admit(context.deadline, &|visit| course.requirements(visit)).await?;
    let id = RequestId(context.request_id());
    let mut made = context.answer_share().makes();
    while let Some(part) = course.part() {
        if course.next > 0 {
            context.end_part().await.map_err(|failure| course.stopped(failure))?;
        }
        // For each part anew, or bulks would keep others from room as long as they take.
        let room = context.take_values_room_of_part(part.values_asked()).await;
        room.map_err(|failure| course.stopped(failure))?;
        let reply = propose::propose(&caller, part, id.of_part(course.next), context.deadline).await;
        course.take(&reply.map_err(|failure| course.stopped(failure))?)?;
        made.grow_to(course.tally.shown_bytes());
    }
    Ok(course)
}

/// Evaluates one part after the other, each seeing what those before it would do.
async fn rehearse(context: &RequestContext, mut course: Course) -> Result<Course, Failure> {
    let wanted = |visit: &mut Visit<'_>| course.requirements(visit);
    context.admit_read(&wanted).await?;
    course.end.dry_run = true;
    let deadline = context.deadline;
    let rehearsed = evaluate(context, move |backend| {
        let mut outcome = Ok(());
        backend.rehearse(&mut |reply| {
            let next = course.rehearsed(reply, deadline);
            next.unwrap_or_else(|failure| {
                outcome = Err(failure);
                None
            })
        })?;
        Ok(outcome.map(|()| course))
    });
    rehearsed.await?
}

/// How far a bulk is.
struct Course {
    ops: Vec<BulkOp>,
    /// The first operation that is not decided.
    next: usize,
    tally: BulkTally,
    /// As of the last part.
    end: BulkEnd,
}

impl Course {
    fn new(ops: Vec<BulkOp>, minimal: bool) -> Self {
        let tally = BulkTally::new(ops.len(), minimal);
        let end = BulkEnd { revision: 0, index: 0, replayed: true, dry_run: false };
        Self { ops, next: 0, tally, end }
    }

    /// What all operations require.
    fn requirements(&self, visit: &mut Visit<'_>) {
        self.ops.iter().for_each(|op| op.op.requirements(visit));
    }

    /// The next part. It depends on nothing but the operations and where it begins, so that a retry has the same parts.
    fn part(&self) -> Option<Action> {
        let left = &self.ops[self.next..];
        let (first, _) = left.split_first()?;
        let mut bytes = first.bytes;
        let fits = |op: &&BulkOp| {
            bytes += op.bytes;
            bytes <= BATCH_BYTES_SOFT_MAX
        };
        // The first one goes however large it is.
        let count = 1 + left[1..].iter().take(COMMAND_WRITES_MAX - 1).take_while(fits).count();
        Some(Action::Bulk(left[..count].iter().map(|op| op.op.clone()).collect()))
    }

    /// Takes what was decided of the part that begins at `next`.
    fn take(&mut self, reply: &Reply) -> Result<(), Failure> {
        let items = match &reply.outcome {
            Decided::Bulk(items) => items,
            Decided::Rejected(rejection) => return Err(self.rejected(reply, rejection)),
            _ => return Err(self.stopped(propose::confused(reply))),
        };
        let before = self.next;
        for item in items {
            let Some(op) = self.ops.get(self.next) else { break };
            if !self.tally.add(self.next, op, item, reply.clock) {
                break;
            }
            self.next += 1;
        }
        if self.next == before {
            // The first one is always decided: going on would never end.
            return Err(self.stopped(propose::confused(reply)));
        }
        let replayed = self.end.replayed && reply.replayed;
        let revision = self.tally.revision_shown(reply.revision);
        self.end = BulkEnd { revision, index: reply.index, replayed, ..self.end };
        Ok(())
    }

    /// Takes what a part would come to, and gives the next one.
    fn rehearsed(&mut self, reply: Option<Reply>, deadline: Instant) -> Result<Option<Command>, Failure> {
        match reply.as_ref().map(|reply| (reply, &reply.outcome)) {
            Some((_, Decided::Rejected(Rejection::TooMuch { limit }))) => {
                return Err(Failure::too_large("/ops", "what a dry run reads and writes", *limit, None));
            }
            Some((reply, _)) if self.tally.is_only_tried() => self.take(reply)?,
            Some((reply, _)) => self.tally.only_tries(reply.revision),
            // An empty transaction tells the revision at which all of it is evaluated.
            None => return propose::rehearsal("", Action::Txn(Txn::default())).map(Some),
        }
        if Instant::now() >= deadline {
            return Err(Failure::from_app(AppError::TimeoutNotProposed, Effect::Read));
        }
        // Nothing in a bulk depends on who asks.
        self.part().map(|action| propose::rehearsal("", action)).transpose()
    }

    /// A part that was refused as such.
    fn rejected(&self, reply: &Reply, rejection: &Rejection) -> Failure {
        self.stopped(Failure::from_rejection("", reply, rejection))
    }

    /// What is told of a bulk of which parts took effect, now or in an earlier try: it is not known of the whole.
    fn stopped(&self, failure: Failure) -> Failure {
        let has_applied = self.tally.applied() > 0 && !self.end.dry_run;
        if has_applied { failure.after_a_part(self.next, self.ops.len()) } else { failure }
    }
}

#[cfg(test)]
mod tests {
    use quorate_machine::document::Criteria;
    use quorate_machine::types::{Change, Expect, Expiry, Key, WriteOp};

    use super::*;

    fn course(sizes: &[usize]) -> Course {
        let op = |(n, bytes): (usize, &usize)| {
            let (key, condition) = (Key::new(n.to_string()).expect("a key"), Criteria::default());
            let (expect, change) = (Expect::ANY, Change::Remove);
            let op = WriteOp {
                key,
                expect,
                condition,
                change,
                expiry: Expiry::Keep,
                return_previous: false,
                session: None,
                guard: None,
            };
            BulkOp { op, bytes: *bytes }
        };
        Course::new(sizes.iter().enumerate().map(op).collect(), false)
    }

    fn parts(sizes: &[usize]) -> Vec<usize> {
        let mut course = course(sizes);
        let mut parts = Vec::new();
        while let Some(Action::Bulk(ops)) = course.part() {
            course.next += ops.len();
            parts.push(ops.len());
        }
        parts
    }

    #[test]
    fn parts_have_as_many_operations_and_bytes_as_they_may() {
        assert_eq!(parts(&[10; 2_500]), [1_024, 1_024, 452]);
        assert_eq!(parts(&[100 * 1024; 5]), [2, 2, 1]);
        assert_eq!(parts(&[1 << 20, 10, 10, 1 << 20, 1 << 20, 10]), [1, 2, 1, 1, 1]);
        assert_eq!(parts(&[BATCH_BYTES_SOFT_MAX - 10, 10, 1]), [2, 1]);
        assert_eq!(parts(&[]), [0; 0]);
    }
}
