package quorate

// Timed tasks: scheduling, claiming, and what to do with dead ones. Owns that whatever is done to a claimed task carries the token of its claim,
// and until when the claim is certain to hold. Working a queue off is worker.go's.

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"

	"quorate.dev/go/api"
)

// TaskQueue is a queue of timed tasks by its name. It is there once a task was scheduled into it.
type TaskQueue struct {
	c    *Client
	name string
}

// Tasks is the queue of this name.
func (c *Client) Tasks(queue string) *TaskQueue { return &TaskQueue{c, queue} }

// TaskOptions refine a task. Without any it is due at once.
type TaskOptions struct {
	// ID makes it safe to schedule the same thing twice: while it is in use, another task with it is not scheduled. Where that task is
	// dead, the schedule is refused (already_exists).
	ID string
	// At is when it is due.
	At time.Time
	// Delay is after what time it is due.
	Delay time.Duration
	// Every makes it come again every so often.
	Every time.Duration
	// Cron makes it come again by this pattern: minute, hour, day of month, month, day of week; or six fields with seconds first.
	Cron string
	// Zone is the time zone of the pattern, by its IANA name; UTC without it.
	Zone string
	// MaxAttempts is most attempts.
	MaxAttempts int
	// Backoff is the pauses between attempts.
	Backoff *api.TaskBackoff
	// Keep is how long its id stays in use after it was completed.
	Keep time.Duration
	// Replace takes the place of a task with its id that waits or is dead; refused where that is worked on or was completed.
	Replace bool
	// DryRun says what would be scheduled, and changes nothing.
	DryRun bool
	// RequestID repeats one whose outcome stayed unknown; without it there is a new one.
	RequestID string
}

// Spec is a task as a part of [TaskQueue.ScheduleAll]. The payload is as the value of [Client.Put].
func (o *TaskOptions) Spec(payload any) (api.TaskSpec, error) {
	if o == nil {
		o = &TaskOptions{}
	}
	spec := api.TaskSpec{
		ID: o.ID, DelayMs: optionalMillis(o.Delay), EveryMs: optionalMillis(o.Every), Cron: o.Cron, Zone: o.Zone,
		MaxAttempts: o.MaxAttempts, Backoff: o.Backoff, KeepMs: optionalMillis(o.Keep), Replace: o.Replace, DryRun: o.DryRun,
	}
	if !o.At.IsZero() {
		spec.ExecuteAt = api.MomentOf(o.At)
	}
	text, bytes, err := valueOf(payload)
	if spec.Payload = text; bytes != nil {
		spec.PayloadBase64 = &bytes
	}
	if err == nil {
		err = notNegative(span{"Delay", o.Delay}, span{"Every", o.Every}, span{"Keep", o.Keep})
	}
	return spec, err
}

// Name of the queue.
func (q *TaskQueue) Name() string { return q.name }

func (q *TaskQueue) path(rest string) (string, error) {
	return named("/v1/tasks/", q.name, rest, "the name of a queue")
}

// post writes what is about this task, or about the queue where it is empty.
func post[T any](ctx context.Context, q *TaskQueue, verb, task, requestID string, body any) (*T, error) {
	path, err := q.path(verb)
	if err != nil {
		return nil, err
	}
	return fetch[T](ctx, q.c, writeCall(http.MethodPost, path, requestID, body).of("ID", task))
}

// Schedule schedules a task.
func (q *TaskQueue) Schedule(ctx context.Context, payload any, options *TaskOptions) (*api.TaskScheduled, error) {
	spec, err := options.Spec(payload)
	if err != nil {
		return nil, err
	}
	id := ""
	if options != nil {
		id = options.RequestID
	}
	return post[api.TaskScheduled](ctx, q, "", spec.ID, id, spec)
}

// ScheduleAll schedules several tasks at once, at most 1,000. Without a request id there is a new one.
func (q *TaskQueue) ScheduleAll(ctx context.Context, tasks []api.TaskSpec, requestID string) (*api.TasksScheduled, error) {
	return post[api.TasksScheduled](ctx, q, "", "", requestID, api.TaskSpecs{Tasks: tasks})
}

// Cancel takes a task away, whatever its state.
func (q *TaskQueue) Cancel(ctx context.Context, id string) (*api.TaskAnswer, error) {
	return post[api.TaskAnswer](ctx, q, "/cancel", id, "", api.TaskCancel{ID: id})
}

// Requeue schedules a dead task again.
func (q *TaskQueue) Requeue(ctx context.Context, id string) (*api.TasksRequeued, error) {
	return post[api.TasksRequeued](ctx, q, "/requeue", id, "", api.TaskRequeue{ID: id})
}

// RequeueOldest schedules those dead tasks again that died first, at most 1,000.
func (q *TaskQueue) RequeueOldest(ctx context.Context, limit int) (*api.TasksRequeued, error) {
	return post[api.TasksRequeued](ctx, q, "/requeue", "", "", api.TaskRequeue{Limit: limit})
}

// Stats is what the queue counts.
func (q *TaskQueue) Stats(ctx context.Context) (*api.QueueStats, error) {
	return get[api.QueueStats](ctx, q.c)(q.path("/stats"))
}

// Get gives a task. Fails with [ErrNotFound].
func (q *TaskQueue) Get(ctx context.Context, id string) (*api.TaskView, error) {
	rest, err := named("/task/", id, "", "the id of a task")
	if err != nil {
		return nil, err
	}
	path, err := q.path(rest)
	if err != nil {
		return nil, err
	}
	return fetch[api.TaskView](ctx, q.c, q.c.readCall(path).of("ID", id))
}

// List gives the tasks in one state, all of them for an empty one, a page after the other. The last is the first error.
func (q *TaskQueue) List(ctx context.Context, state api.TaskState) iter.Seq2[*api.TaskView, error] {
	if state == "" {
		state = "all"
	}
	path, err := q.path("")
	if err != nil {
		return func(yield func(*api.TaskView, error) bool) { yield(nil, err) }
	}
	return listed(ctx, q.c, path, func(a *api.TaskList) string { return a.Cursor },
		func(a *api.TaskList) []*api.TaskView { return pointers(a.Tasks) }, "state", string(state))
}

// TaskQueues gives what the queues count, by name. The last is the first error.
func (c *Client) TaskQueues(ctx context.Context) iter.Seq2[*api.QueueStats, error] {
	return listed(ctx, c, "/v1/tasks", func(a *api.QueueList) string { return a.Cursor },
		func(a *api.QueueList) []*api.QueueStats { return pointers(a.Queues) })
}

// ClaimTasksOptions refine a claim of tasks.
type ClaimTasksOptions struct {
	// Limit is most tasks, up to 100; default 1.
	Limit int
	// Lease is how long the claim holds, 1 s to 24 h; default 30 s.
	Lease time.Duration
	// Wait is how long to wait for something to be due, up to a minute.
	Wait time.Duration
	// Worker says who works on them, for people.
	Worker string
	// Session is the id of one with which the claim is over at the latest.
	Session string
	// RequestID repeats a claim whose outcome stayed unknown; without it there is a new one.
	RequestID string
}

// Task is one that is ours. What is done to it is refused with [ErrNotLockHolder] once the claim is over.
type Task struct {
	// TaskClaimed is the task as it was claimed.
	api.TaskClaimed

	queue     *TaskQueue
	heldUntil time.Time
}

// Claim claims tasks that are due; none where nothing is.
func (q *TaskQueue) Claim(ctx context.Context, options *ClaimTasksOptions) ([]*Task, error) {
	if options == nil {
		options = &ClaimTasksOptions{}
	}
	if err := notNegative(span{"Lease", options.Lease}, span{"Wait", options.Wait}); err != nil {
		return nil, err
	}
	path, err := q.path("/claim")
	if err != nil {
		return nil, err
	}
	wanted := writeCall(http.MethodPost, path, options.RequestID, api.TaskClaim{
		Limit: options.Limit, LeaseMs: optionalMillis(options.Lease), WaitMs: optionalMillis(options.Wait), Worker: options.Worker,
		Session: options.Session,
	})
	wanted.hold = options.Wait
	began := time.Now()
	answer, err := fetch[api.TaskClaimAnswer](ctx, q.c, wanted)
	if err != nil {
		return nil, err
	}
	// The claim was made after the request came and had waited so long.
	after := began.Add(millis(answer.WaitedMs))
	var tasks []*Task
	for _, claimed := range answer.Tasks {
		tasks = append(tasks, &Task{TaskClaimed: claimed, queue: q, heldUntil: after.Add(millis(claimed.LeaseMs))})
	}
	return tasks, nil
}

// Queue that the task is from.
func (t *Task) Queue() *TaskQueue { return t.queue }

// HeldUntil is until when the claim holds at least, as it was made: nobody else gets the task before.
func (t *Task) HeldUntil() time.Time { return t.heldUntil }

// Bytes of the payload: those that were scheduled, or the text of its JSON.
func (t *Task) Bytes() []byte {
	if t.Payload != nil {
		return t.Payload
	}
	return t.PayloadBase64
}

// Extend lets the claim hold for so long from now.
func (t *Task) Extend(ctx context.Context, lease time.Duration) (*api.TaskAnswer, error) {
	return t.queue.Extend(ctx, t.ID, t.Token, lease)
}

// Complete says that the task is done.
func (t *Task) Complete(ctx context.Context) (*api.TaskAnswer, error) {
	return t.queue.Complete(ctx, t.ID, t.Token, "")
}

// Fail ends the attempt: it is tried again after a pause, as long as it has attempts left.
func (t *Task) Fail(ctx context.Context, reason string) (*api.TaskAnswer, error) {
	return t.queue.Fail(ctx, api.TaskFail{ID: t.ID, Token: t.Token, Error: reason}, "")
}

// Release gives it back as if it had not been claimed.
func (t *Task) Release(ctx context.Context) (*api.TaskAnswer, error) {
	return t.queue.Fail(ctx, api.TaskFail{ID: t.ID, Token: t.Token, Release: true}, "")
}

// Extend lets the claim of a task hold for so long from now.
func (q *TaskQueue) Extend(ctx context.Context, id string, token uint64, lease time.Duration) (*api.TaskAnswer, error) {
	if err := notNegative(span{"lease", lease}); err != nil {
		return nil, err
	}
	return post[api.TaskAnswer](ctx, q, "/extend", id, "", api.TaskExtend{ID: id, Token: token, LeaseMs: optionalMillis(lease)})
}

// Complete completes a task that is claimed with this token. Without a request id there is a new one.
func (q *TaskQueue) Complete(ctx context.Context, id string, token uint64, requestID string) (*api.TaskAnswer, error) {
	return post[api.TaskAnswer](ctx, q, "/complete", id, requestID, api.TaskComplete{ID: id, Token: token})
}

// Fail ends an attempt at a task that is claimed with the token of the failure. Without a request id there is a new one.
func (q *TaskQueue) Fail(ctx context.Context, failure api.TaskFail, requestID string) (*api.TaskAnswer, error) {
	return post[api.TaskAnswer](ctx, q, "/fail", failure.ID, requestID, failure)
}

// String is what the log of a worker shows of a task.
func (t *Task) String() string {
	return t.queue.name + "/" + t.ID + " attempt " + strconv.Itoa(t.Attempt)
}
