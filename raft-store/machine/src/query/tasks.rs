//! Timed tasks: one, lists of them, queues.
//!
//! Owns the pages and their bounds. Never decides that a task is due: only a claim does.

use super::{Cursor, Moment, ReadPosition, Snapshot};
use crate::codec;
use crate::keyspace::task::{self, QueueRow, TaskRow};
use crate::keyspace::{family, family_range};
use crate::machine::Fault;
use crate::types::{QueueName, TaskId, TaskState, WallMillis};

/// Which tasks of a queue are listed, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskFilter {
    /// Those that wait, in the order in which they are due.
    Scheduled,
    /// Those that somebody works on, by id.
    Claimed,
    /// Those that are not tried any more, the newest last.
    Dead,
    /// Those that wait for a plan, by id.
    Unplanned,
    /// Those that were completed and whose ids are still in use, by id.
    Done,
    /// All, by id.
    All,
}

impl TaskFilter {
    fn fits(self, state: &TaskState) -> bool {
        match self {
            Self::Scheduled => matches!(state, TaskState::Scheduled),
            Self::Claimed => matches!(state, TaskState::Claimed { .. }),
            Self::Dead => matches!(state, TaskState::Dead { .. }),
            Self::Unplanned => matches!(state, TaskState::Unplanned),
            Self::Done => matches!(state, TaskState::Done { .. }),
            Self::All => true,
        }
    }
}

/// What is to be listed of a queue.
#[derive(Debug, Clone)]
pub struct TasksQuery {
    /// The queue.
    pub queue: QueueName,
    /// Which tasks.
    pub filter: TaskFilter,
    /// [`TasksPage::after`] of the page before.
    pub after: Option<Vec<u8>>,
    /// Most tasks.
    pub limit: usize,
    /// The page ends once its tasks take so many bytes.
    pub bytes_max: usize,
    /// Most rows looked at.
    pub rows_max: usize,
}

/// Some tasks of a queue.
#[derive(Debug, Clone)]
pub struct TasksPage {
    /// Where it was evaluated.
    pub at: ReadPosition,
    /// They, in order.
    pub tasks: Vec<(TaskId, TaskRow)>,
    /// Where to go on, while there may be more.
    pub after: Option<Vec<u8>>,
}

/// A queue as it is.
#[derive(Debug, Clone)]
pub struct QueueView {
    /// Its name.
    pub name: QueueName,
    /// What it counts.
    pub row: QueueRow,
    /// When the first of those that wait is due.
    pub first_due: Option<WallMillis>,
}

/// Some queues, in order of their names.
#[derive(Debug, Clone)]
pub struct QueuesPage {
    /// Where it was evaluated.
    pub at: ReadPosition,
    /// They.
    pub queues: Vec<QueueView>,
    /// Whether there are others after them.
    pub more: bool,
}

/// How many tasks there are, over all queues that were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskCounts {
    /// Queues.
    pub queues: u64,
    /// Tasks that wait, those without a plan too.
    pub scheduled: u64,
    /// Tasks that somebody works on.
    pub claimed: u64,
    /// Tasks that are not tried any more.
    pub dead: u64,
    /// Completed tasks whose ids are still in use.
    pub done: u64,
}

/// A task that waits for a plan.
#[derive(Debug, Clone)]
pub struct Unplanned {
    /// Its queue.
    pub queue: QueueName,
    /// It.
    pub id: TaskId,
    /// It as a whole.
    pub row: TaskRow,
}

impl<S: Snapshot> Moment<S> {
    /// A task, if it is there.
    pub fn task(&self, queue: &QueueName, id: &TaskId) -> Result<(ReadPosition, Option<TaskRow>), Fault> {
        Ok((self.at, task_row(self, queue, id)?))
    }

    /// Tasks of a queue. Takes time in proportion to the query's bounds.
    pub fn tasks(&self, query: &TasksQuery) -> Result<TasksPage, Fault> {
        tasks(self, query)
    }

    /// A queue; empty where nothing was scheduled into it yet.
    pub fn queue(&self, name: &QueueName) -> Result<(ReadPosition, QueueView), Fault> {
        let row = self.decoded(task::queue_key(name))?.unwrap_or_default();
        Ok((self.at, queue_view(self, name.clone(), row)?))
    }

    /// Queues after this name, at most `limit`.
    pub fn queues(&self, after: Option<&QueueName>, limit: usize) -> Result<QueuesPage, Fault> {
        queues(self, after, limit)
    }

    /// How many tasks there are; looks at every queue, `queues_max` at most.
    pub fn task_counts(&self, queues_max: usize) -> Result<TaskCounts, Fault> {
        task_counts(self, queues_max)
    }

    /// Tasks that wait for a plan, at most `limit`. May take long: it looks among the traces of all that were planned.
    pub fn unplanned_tasks(&self, limit: usize) -> Result<Vec<Unplanned>, Fault> {
        // Behind the last one are traces alone.
        let limit = limit.min(usize::try_from(self.vars.unplanned).unwrap_or(usize::MAX));
        if limit == 0 {
            return Ok(Vec::new());
        }
        let (start, end) = family_range(family::TASK_UNPLANNED);
        let mut rows = self.rows(&start, &end);
        rows.seek_to_first();
        let mut found = Vec::new();
        while let Some(row_key) = rows.key().filter(|_| found.len() < limit) {
            let (queue, id) = task::decode_unplanned(row_key)?;
            let row = task_row(self, &queue, &id)?.ok_or_else(|| lost(&queue, &id))?;
            found.push(Unplanned { queue, id, row });
            rows.next();
        }
        rows.status()?;
        Ok(found)
    }
}

fn task_row(moment: &Moment<impl Snapshot>, queue: &QueueName, id: &TaskId) -> Result<Option<TaskRow>, Fault> {
    moment.decoded(task::row_key(queue, id))
}

fn tasks(moment: &Moment<impl Snapshot>, query: &TasksQuery) -> Result<TasksPage, Fault> {
    let TasksQuery { queue, filter, after, limit, bytes_max, rows_max } = query;
    let (first, end) = match filter {
        TaskFilter::Scheduled => task::due_range(queue, (0, 0), None),
        TaskFilter::Dead => task::dead_range(queue),
        _ => task::of_queue(queue),
    };
    // A place of another queue or list leads nowhere.
    let start =
        after.as_ref().map_or(first.clone(), |after| [after.as_slice(), &[0]].concat()).clamp(first, end.clone());
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    let mut page = TasksPage { at: moment.at, tasks: Vec::new(), after: None };
    let (mut looked, mut bytes) = (0, 0);
    let mut last = Vec::new();
    while let Some((row_key, value)) = rows.item() {
        if page.tasks.len() >= *limit || bytes >= *bytes_max || looked >= *rows_max {
            page.after = Some(last);
            break;
        }
        looked += 1;
        last = row_key.to_vec();
        let (id, row) = match filter {
            TaskFilter::Scheduled | TaskFilter::Dead => {
                let id = task::decode_id(value)?;
                let row = task_row(moment, queue, &id)?.ok_or_else(|| lost(queue, &id))?;
                (id, row)
            }
            _ => (task::decode_key(row_key)?.1, codec::decode::<TaskRow>(value)?),
        };
        if filter.fits(&row.head.state) {
            bytes += row.payload.data.len() + row.head.last_error.as_ref().map_or(0, String::len) + value.len();
            page.tasks.push((id, row));
        }
        rows.next();
    }
    rows.status()?;
    Ok(page)
}

fn queues(moment: &Moment<impl Snapshot>, after: Option<&QueueName>, limit: usize) -> Result<QueuesPage, Fault> {
    let (first, end) = family_range(family::QUEUE);
    let start = after.map_or(first, |name| [task::queue_key(name).as_slice(), &[0]].concat());
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    let mut page = QueuesPage { at: moment.at, queues: Vec::new(), more: false };
    while let Some((row_key, row)) = rows.item() {
        if page.queues.len() >= limit {
            page.more = true;
            break;
        }
        let (name, row) = (task::decode_queue(row_key)?, codec::decode(row)?);
        page.queues.push(queue_view(moment, name, row)?);
        rows.next();
    }
    rows.status()?;
    Ok(page)
}

fn task_counts(moment: &Moment<impl Snapshot>, queues_max: usize) -> Result<TaskCounts, Fault> {
    let mut counts = TaskCounts::default();
    let (start, end) = family_range(family::QUEUE);
    let mut rows = moment.rows(&start, &end);
    rows.seek_to_first();
    for _ in 0..queues_max {
        let Some(row) = rows.value() else { break };
        let row: QueueRow = codec::decode(row)?;
        counts.queues += 1;
        counts.scheduled += row.scheduled + row.unplanned;
        counts.claimed += row.claimed;
        counts.dead += row.dead;
        counts.done += row.kept;
        rows.next();
    }
    rows.status()?;
    Ok(counts)
}

fn queue_view(moment: &Moment<impl Snapshot>, name: QueueName, row: QueueRow) -> Result<QueueView, Fault> {
    let mut view = QueueView { name, row, first_due: None };
    if view.row.scheduled > 0 {
        let (start, end) = task::due_range(&view.name, view.row.due_from, None);
        let mut rows = moment.rows(&start, &end);
        rows.seek_to_first();
        rows.status()?;
        view.first_due = rows.key().map(task::decode_due).transpose()?.map(|(due, _)| due);
    }
    Ok(view)
}

fn lost(queue: &QueueName, id: &TaskId) -> Fault {
    Fault::Invariant(format!("the task {id} of the queue {queue} stands among those of its state and is not there"))
}
