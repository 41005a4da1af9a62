package quorate

// A worker: claims tasks, runs a handler for each, extends their claims meanwhile, and completes or fails them. Owns that no task is completed
// whose claim may be over, and that a stop gives back what it does not finish.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"quorate.dev/go/api"
)

const (
	// workerPoll is how long a claim waits for something to be due.
	workerPoll = 30 * time.Second
	// workerRest is how long after a failed claim the next one is made.
	workerRest = 500 * time.Millisecond
	// workerClaimMax is most tasks of one claim.
	workerClaimMax = 100
	// settleRest is how long after a failed extension or completion it is tried again.
	settleRest = 100 * time.Millisecond
	// claimMarginMax: before the end of a claim nothing is begun any more.
	claimMarginMax = 500 * time.Millisecond

	workerLeaseDefault = 30 * time.Second
	stopWithinDefault  = 30 * time.Second
)

// WorkerOptions refine a worker.
type WorkerOptions struct {
	// Concurrency is tasks at a time; default 1. No more are claimed than there are free places.
	Concurrency int
	// Lease is how long a claim holds before it is extended again, at least 1 s; default 30 s. About so long it takes until somebody else
	// gets the tasks of a worker that died.
	Lease time.Duration
	// Name says who works, for people who look at the queue.
	Name string
	// StopWithin is how long tasks may go on after the stop before they are given back; default 30 s.
	StopWithin time.Duration
	// OnTrouble is told of errors that the worker lives with: no node could be reached for a while, say.
	OnTrouble func(error)
}

// WorkerReport is what a worker did until it was stopped.
type WorkerReport struct {
	// Completed are tasks.
	Completed int
	// Failed are attempts.
	Failed int
	// Lost are tasks whose claim was over before they were done, or may have been.
	Lost int
	// Released are tasks given back.
	Released int
}

// TaskError is an error of a handler that says what becomes of the task. Any other error has it tried again after the pause that it has.
type TaskError struct {
	// Err is why; the task keeps its text.
	Err error
	// RetryIn is the pause before the next attempt; 0 for the one that the task has. A negative one counts as none, and the worker is told.
	RetryIn time.Duration
	// Dead: do not try again, it would fail again.
	Dead bool
	// Release gives the task back as if it had not been claimed.
	Release bool
}

// Error is that of Err.
func (e *TaskError) Error() string {
	if e.Err == nil {
		return "the task was not done"
	}
	return e.Err.Error()
}

// Unwrap is Err.
func (e *TaskError) Unwrap() error { return e.Err }

// ErrClaimLost is the cause with which the context of a handler ends when somebody else may do the task.
var ErrClaimLost = errors.New("quorate: the claim of the task may be over")

// Work claims tasks of the queue and runs the handler for each, until the context ends; then nothing more is claimed, and what runs may go on
// for a while. The context of a handler ends when the claim of its task may be over, and when the time after the stop is; Work
// returns once all handlers have. Fails only with an error that does not go away, such as a wrong setting.
func (q *TaskQueue) Work(ctx context.Context, handler func(context.Context, *Task) error, options *WorkerOptions) (WorkerReport, error) {
	w := &worker{queue: q, handler: handler}
	if options != nil {
		w.options = *options
	}
	if err := notNegative(span{"Lease", w.options.Lease}, span{"StopWithin", w.options.StopWithin}); err != nil {
		return w.report, err
	}
	w.options.Concurrency = max(w.options.Concurrency, 1)
	if w.options.Lease == 0 {
		w.options.Lease = workerLeaseDefault
	}
	if w.options.StopWithin == 0 {
		w.options.StopWithin = stopWithinDefault
	}
	w.places = make(chan struct{}, w.options.Concurrency)
	// Handlers outlive the stop.
	running, giveBack := context.WithCancel(context.WithoutCancel(ctx))
	defer giveBack()
	w.running = running
	err := w.serve(ctx)
	timer := time.AfterFunc(w.options.StopWithin, giveBack)
	w.tasks.Wait()
	timer.Stop()
	return w.report, err
}

type worker struct {
	queue   *TaskQueue
	handler func(context.Context, *Task) error
	options WorkerOptions
	running context.Context
	// places are taken by a value in the channel.
	places chan struct{}
	tasks  sync.WaitGroup

	mu     sync.Mutex
	report WorkerReport
}

// serve claims and starts tasks until the stop.
func (w *worker) serve(ctx context.Context) error {
	for {
		free := w.take(ctx)
		if free == 0 {
			return nil
		}
		options := &ClaimTasksOptions{Limit: free, Lease: w.options.Lease, Worker: w.options.Name, Wait: workerPoll}
		tasks, err := w.claim(ctx, options)
		for _, task := range tasks {
			w.tasks.Add(1)
			go w.run(task)
		}
		for range free - len(tasks) {
			<-w.places
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// take takes all places that are free, once there is one; 0 after the stop.
func (w *worker) take(ctx context.Context) int {
	select {
	case <-ctx.Done():
		return 0
	case w.places <- struct{}{}:
	}
	if ctx.Err() != nil {
		<-w.places
		return 0
	}
	for taken := 1; ; taken++ {
		if taken == workerClaimMax {
			return taken
		}
		select {
		case w.places <- struct{}{}:
		default:
			return taken
		}
	}
}

// claim asks until it is decided. What may have claimed something is asked again as it was: under another id those tasks would wait for the end
// of their leases, each with an attempt less. Once nodes may have forgotten the id, that is what they do.
func (w *worker) claim(ctx context.Context, options *ClaimTasksOptions) ([]*Task, error) {
	id := w.queue.c.newRepeatable()
	for {
		options.RequestID = id.fresh()
		tasks, err := w.queue.Claim(ctx, options)
		if ctx.Err() != nil && err != nil {
			return w.lastClaim(options, id)
		}
		if err == nil || !w.livesWith(err) {
			return tasks, err
		}
		if err := sleep(ctx, workerRest); err != nil {
			return w.lastClaim(options, id)
		}
	}
}

// lastClaim: at the stop, the same claim without a wait tells whether it claimed something, and gives it.
func (w *worker) lastClaim(options *ClaimTasksOptions, id *repeatable) ([]*Task, error) {
	if !id.isFresh() {
		return nil, nil
	}
	again := *options
	again.Wait = 0
	ctx, cancel := context.WithTimeout(w.running, w.queue.c.options.Timeout)
	defer cancel()
	tasks, err := w.queue.Claim(ctx, &again)
	if err != nil && w.livesWith(err) {
		return nil, nil
	}
	return tasks, err
}

// livesWith says whether an error may pass, and tells it then.
func (w *worker) livesWith(err error) bool {
	var e *Error
	passes := errors.As(err, &e) && e.Retryable()
	if passes {
		w.trouble(err)
	}
	return passes
}

func (w *worker) trouble(err error) {
	if w.options.OnTrouble != nil {
		w.options.OnTrouble(err)
	}
}

// run is one task from its claim to its end.
func (w *worker) run(task *Task) {
	defer func() {
		<-w.places
		w.tasks.Done()
	}()
	ended := w.do(task)
	w.mu.Lock()
	defer w.mu.Unlock()
	*ended(&w.report)++
}

// ended is how a task ended: the counter of it.
type ended func(*WorkerReport) *int

func completed(r *WorkerReport) *int { return &r.Completed }
func failed(r *WorkerReport) *int    { return &r.Failed }
func lost(r *WorkerReport) *int      { return &r.Lost }
func released(r *WorkerReport) *int  { return &r.Released }

func (w *worker) do(task *Task) ended {
	if task.LeaseMs == 0 {
		// Answered again when the claim was over already: there is not even a payload.
		return lost
	}
	held, lose := context.WithCancelCause(context.WithoutCancel(w.running))
	defer lose(nil)
	handled, stop := context.WithCancelCause(held)
	defer stop(nil)
	defer context.AfterFunc(w.running, func() { stop(context.Canceled) })()
	go func() {
		w.keep(held, task)
		lose(ErrClaimLost)
	}()
	err := w.call(handled, task)
	if held.Err() != nil {
		return lost
	}
	if err != nil && w.running.Err() != nil {
		// It was told to stop.
		err = &TaskError{Err: err, Release: true}
	}
	return w.settle(held, task, err)
}

// call runs the handler; a panic of it is an error of the task.
func (w *worker) call(ctx context.Context, task *Task) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("the handler panicked: %v", reason)
		}
	}()
	return w.handler(ctx, task)
}

// heldUntil is until when something is begun under a claim that holds until then.
func heldUntil(until time.Time, lease time.Duration) time.Time {
	return until.Add(-min(lease/10, claimMarginMax))
}

// keep extends the claim at a third of its time, again and again; returns when it may be over, or when the context ends.
func (w *worker) keep(ctx context.Context, task *Task) {
	lease := w.options.Lease
	held := heldUntil(task.heldUntil, lease)
	next := time.Now().Add(min(time.Until(held), lease) / 3)
	for {
		if at := min(time.Until(next), time.Until(held)); at > 0 && sleep(ctx, at) != nil {
			return
		}
		sent := time.Now()
		if !sent.Before(held) {
			return
		}
		bounded, cancel := context.WithDeadline(ctx, held)
		_, err := task.Extend(bounded, lease)
		cancel()
		switch {
		case err == nil:
			held = heldUntil(sent.Add(lease), lease)
			next = sent.Add(lease / 3)
		case errors.Is(err, ErrNotLockHolder) || ctx.Err() != nil:
			return
		default:
			w.trouble(err)
			next = time.Now().Add(settleRest)
		}
	}
}

// settle completes or fails the task, under one request id until that is decided or the claim may be over; under another once nodes may have
// forgotten it, where the token of the claim still keeps it from being done twice.
func (w *worker) settle(held context.Context, task *Task, outcome error) ended {
	id := w.queue.c.newRepeatable()
	for {
		var err error
		how := completed
		if outcome == nil {
			_, err = task.queue.Complete(held, task.ID, task.Token, id.fresh())
		} else {
			var failure api.TaskFail
			failure, how = w.failureOf(task, outcome)
			_, err = task.queue.Fail(held, failure, id.fresh())
		}
		if err == nil {
			return how
		}
		var e *Error
		if errors.Is(err, ErrNotLockHolder) || held.Err() != nil || !errors.As(err, &e) || !e.Retryable() {
			if !errors.Is(err, ErrNotLockHolder) {
				w.trouble(err)
			}
			return lost
		}
		w.trouble(err)
		if sleep(held, settleRest) != nil {
			return lost
		}
	}
}

func (w *worker) failureOf(task *Task, outcome error) (api.TaskFail, ended) {
	failure := api.TaskFail{ID: task.ID, Token: task.Token, Error: outcome.Error()}
	var told *TaskError
	if !errors.As(outcome, &told) {
		return failure, failed
	}
	if told.Release {
		failure.Error, failure.Release = "", true
		return failure, released
	}
	failure.Dead = told.Dead
	if err := notNegative(span{"RetryIn", told.RetryIn}); err != nil {
		// The attempt has failed in any case: it is tried again after the pause that the task has.
		w.trouble(fmt.Errorf("%v: %w", task, err))
		return failure, failed
	}
	failure.RetryInMs = optionalMillis(told.RetryIn)
	return failure, failed
}
