package quorate

// Barriers and latches. A barrier opens once so many sessions have entered, and closes once all have left; a latch is counted down to 0, where
// it opens for good, and hangs on no session.

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"quorate.dev/go/api"
)

const (
	// holdMax: a node holds a question back for at most this long; if it has died silently, another is asked soon.
	holdMax = 5 * time.Second
	// holdAttempt: a node that is silent for so long after that is left for another.
	holdAttempt = time.Second
)

// BarrierOptions refine a wait at a barrier.
type BarrierOptions struct {
	// Wait is how long to wait for the others at most; without it, as long as the session lives and the context allows.
	Wait time.Duration
}

func (o *BarrierOptions) wait() (time.Duration, error) {
	if o == nil || o.Wait == 0 {
		return endless, nil
	}
	return o.Wait, notNegative(span{"Wait", o.Wait})
}

// EnterBarrier enters, and waits until so many sessions are in it: all of them say the same number. When the time is over before, it is left
// again, and the answer says `waiting`; so it is when the context ends. Fails with [ErrLocked] while those who opened it have not all left, and
// with [ErrInvalidArgument] at once where this session waits at it already.
func (s *Session) EnterBarrier(ctx context.Context, name string, parties int, options *BarrierOptions) (*api.BarrierAnswer, error) {
	wait, err := options.wait()
	if err != nil {
		return nil, err
	}
	b := &barrier{session: s, name: name, parties: parties, until: time.Now().Add(wait)}
	path, err := barrierPath(name, "")
	if err != nil {
		return nil, err
	}
	if !s.take(path) {
		return nil, invalid("this session waits at the barrier `%s` already: wait with another session", name)
	}
	// Once what is to be left is being left: who enters before that would be taken along.
	defer s.untake(path)
	if err := s.left(ctx, path); err != nil {
		return nil, b.ended(ctx, err)
	}
	b.leaving = &leaving{session: s, place: path}
	answer, err := b.wait(ctx, false)
	switch {
	case err == nil && answer.State == api.BarrierStateOpen:
		s.noteInside(path, true)
		return answer, nil
	case err != nil && leavesNothing(err):
		return nil, err
	case err != nil || !b.hasLeft(ctx):
		b.takeBack(err)
	}
	return answer, b.ended(ctx, err)
}

// takeBack leaves in the background after this error. It leaves what was entered by mistake under its own name, or the answer would be about
// another one again. It leaves nothing there if this session is there or waits for it by that name.
func (b *barrier) takeBack(err error) {
	found := *b
	var other *strayed
	if errors.As(err, &other) {
		found.name = other.named
		at, err := barrierPath(found.name, "")
		if err != nil || b.session.has(at) {
			return
		}
		b.leaving.place = at
	}
	b.leaving.takeBack(func() (*call, error) { return found.call(true, 0, NewRequestID()) })
}

// ended is the error of a wait whose context ended, else the given one. It is left in the background: nothing stays open for the caller.
func (b *barrier) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil || !isGivenUp(err) {
		return err
	}
	e := localError(api.ErrorCodeTimeout, context.Cause(ctx), "the wait at the barrier `%s` was given up: %v", b.name, context.Cause(ctx))
	e.Retry = api.RetryAfterReading
	return e
}

// hasLeft leaves before the caller is told that the others did not come: who enters after that does not meet us.
func (b *barrier) hasLeft(ctx context.Context) bool {
	b.leaving.asked = nil
	wanted, err := b.call(true, 0, NewRequestID())
	if err == nil {
		_, err = fetch[givenUp](ctx, b.session.c, wanted)
	}
	return err == nil
}

// LeaveBarrier leaves, and waits until the others have left too: then it can be entered anew. When the time is over before, the answer says
// what it is doing.
func (s *Session) LeaveBarrier(ctx context.Context, name string, options *BarrierOptions) (*api.BarrierAnswer, error) {
	wait, err := options.wait()
	if err != nil {
		return nil, err
	}
	b := &barrier{session: s, name: name, until: time.Now().Add(wait)}
	answer, err := b.wait(ctx, true)
	if path, wrong := barrierPath(name, ""); err == nil && wrong == nil {
		s.noteInside(path, false)
	}
	return answer, err
}

// Barrier says what a barrier is doing. One that nobody is in is empty.
func (c *Client) Barrier(ctx context.Context, name string) (*api.BarrierAnswer, error) {
	return get[api.BarrierAnswer](ctx, c)(barrierPath(name, ""))
}

func barrierPath(name, verb string) (string, error) {
	return named("/v1/barriers/", name, verb, "the name of a barrier")
}

// barrier is a wait at one.
type barrier struct {
	session *Session
	name    string
	parties int
	until   time.Time
	leaving *leaving
}

func (b *barrier) wait(ctx context.Context, leaves bool) (answer *api.BarrierAnswer, err error) {
	err = b.session.orLost(ctx, func(ctx context.Context) (err error) {
		answer, err = b.rounds(ctx, leaves)
		return err
	})
	return answer, err
}

// rounds asks until all are there, or gone, or the time is over.
func (b *barrier) rounds(ctx context.Context, leaves bool) (*api.BarrierAnswer, error) {
	id, opened := b.session.c.newRepeatable(), uint64(0)
	for {
		wait := min(max(time.Until(b.until), 0), holdMax)
		wanted, err := b.call(leaves, wait, id.fresh())
		if err != nil {
			return nil, err
		}
		if b.leaving != nil {
			if b.leaving.asked, err = b.call(leaves, 0, id.id); err != nil {
				return nil, err
			}
			b.leaving.until = id.until
		}
		answer, err := fetch[api.BarrierAnswer](ctx, b.session.c, wanted)
		switch {
		case err == nil && (isBarrierDone(leaves, answer, opened) || wait == 0):
			return answer, nil
		case err == nil:
			// Others are awaited.
			id, opened = b.session.c.newRepeatable(), answer.OpenedRevision
			if b.leaving != nil {
				b.leaving.asked = nil
			}
		case !errors.Is(err, ErrUnavailable) || ctx.Err() != nil || wait == 0:
			return nil, err
		default:
			// What nobody could tell the outcome of is asked again as it was.
			if err := sleep(ctx, waitPause); err != nil {
				return nil, localError(api.ErrorCodeTimeout, err, "the wait at `%s` was given up: %v", b.name, err)
			}
		}
	}
}

// isBarrierDone says whether it is as it was wanted; opened is when it opened, by the answer before.
func isBarrierDone(leaves bool, answer *api.BarrierAnswer, opened uint64) bool {
	if !leaves {
		return answer.State == api.BarrierStateOpen
	}
	// One that is not open, or open anew, has been empty in between.
	return answer.State != api.BarrierStateOpen || (opened != 0 && answer.OpenedRevision != opened)
}

func (b *barrier) call(leaves bool, wait time.Duration, id string) (*call, error) {
	verb, body := "/enter", any(api.EnterRequest{Session: b.session.id, Parties: b.parties, WaitMs: someMillis(wait)})
	if leaves {
		verb, body = "/leave", api.LeaveRequest{Session: b.session.id, WaitMs: someMillis(wait)}
	}
	path, err := barrierPath(b.name, verb)
	if err != nil {
		return nil, err
	}
	wanted := writeCall(http.MethodPost, path, id, body)
	wanted.hold, wanted.attempt, wanted.timeout = wait, holdAttempt, b.session.c.options.Timeout
	return wanted, nil
}

func latchPath(name, verb string) (string, error) {
	return named("/v1/latches/", name, verb, "the name of a latch")
}

// CreateLatch makes a latch that opens after so many counts. The same again changes nothing; another count fails with [ErrDifferentSettings].
func (c *Client) CreateLatch(ctx context.Context, name string, count uint64) (*api.LatchAnswer, error) {
	path, err := latchPath(name, "")
	if err != nil {
		return nil, err
	}
	return fetch[api.LatchAnswer](ctx, c, writeCall(http.MethodPut, path, "", api.LatchRequest{Count: count}))
}

// CountDown counts a latch down; more than is left is as good as what is left. Fails with [ErrNotFound].
func (c *Client) CountDown(ctx context.Context, latch string, by uint64) (*api.LatchAnswer, error) {
	path, err := latchPath(latch, "/count_down")
	if err != nil {
		return nil, err
	}
	return fetch[api.LatchAnswer](ctx, c, writeCall(http.MethodPost, path, "", api.CountDownRequest{By: by}))
}

// Latch says what a latch is now. Fails with [ErrNotFound].
func (c *Client) Latch(ctx context.Context, name string) (*api.LatchAnswer, error) {
	return c.lookAtLatch(ctx, name, 0)
}

// WaitLatch waits until a latch is open, at most for this time; tells what it is then. Fails with [ErrNotFound].
func (c *Client) WaitLatch(ctx context.Context, name string, wait time.Duration) (*api.LatchAnswer, error) {
	if err := notNegative(span{"wait", wait}); err != nil {
		return nil, err
	}
	until := time.Now().Add(wait)
	for {
		left := max(time.Until(until), 0)
		answer, err := c.lookAtLatch(ctx, name, min(left, holdMax))
		switch {
		case err == nil && (answer.Open || left == 0):
			return answer, nil
		case err == nil:
		case !errors.Is(err, ErrUnavailable) || ctx.Err() != nil || left == 0:
			return nil, err
		default:
			if err := sleep(ctx, waitPause); err != nil {
				return nil, localError(api.ErrorCodeTimeout, err, "the wait for `%s` was given up: %v", name, err)
			}
		}
	}
}

func (c *Client) lookAtLatch(ctx context.Context, name string, wait time.Duration) (*api.LatchAnswer, error) {
	path, err := latchPath(name, "")
	if err != nil {
		return nil, err
	}
	waitMs := ""
	if wait > 0 {
		waitMs = strconv.FormatUint(milliseconds(wait), 10)
	}
	wanted := c.readCall(target(path, "wait_ms", waitMs))
	wanted.hold, wanted.attempt, wanted.timeout = wait, holdAttempt, c.options.Timeout
	return fetch[api.LatchAnswer](ctx, c, wanted)
}

// DeleteLatch removes a latch. Fails with [ErrNotFound].
func (c *Client) DeleteLatch(ctx context.Context, name string) (*api.LatchRemoved, error) {
	path, err := latchPath(name, "")
	if err != nil {
		return nil, err
	}
	return fetch[api.LatchRemoved](ctx, c, writeCall(http.MethodDelete, path, "", nil))
}
