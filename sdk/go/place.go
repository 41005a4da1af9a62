package quorate

// A place in the queue of a lock or an election: asked for, waited in, held, given up. Owns the loop that waits. A place belongs to the
// session: whichever node a question reaches, it finds the same place. And owns the order in which a place is taken back: what is on its way
// is decided before, or it could take effect afterwards and leave a place that nobody knows of.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"quorate.dev/go/api"
)

const (
	// waitMax is the longest wait that nodes take.
	waitMax = 24 * time.Hour
	// pollMax: a node holds a question back for a third of the session's time to live, but never longer: if the node has died silently,
	// another is to be asked while what was granted meanwhile still lives.
	pollMax = 10 * time.Second
	// pollMin: each question is an entry in the log.
	pollMin = 500 * time.Millisecond
	// placeAttemptMin: a node that is silent for so long is left for another, unless a sixth of the session's time to live is longer.
	placeAttemptMin = 250 * time.Millisecond
	placeAttemptMax = 3 * time.Second
	// holderWithin is how long to ask who holds what was not got.
	holderWithin = 100 * time.Millisecond
	// Pauses before a place that could not be given up is given up again.
	leavePauseMin = 50 * time.Millisecond
	leavePauseMax = 5 * time.Second
	// pollBeyond: at the end of a wait the node is to say so, not to send us back once more.
	pollBeyond = time.Second
)

// queue is a lock or an election.
type queue struct {
	name       string
	isElection bool
}

// path of what is done to it; its own for nothing.
func (q queue) path(verb string) (string, error) {
	if q.isElection {
		return named("/v1/elections/", q.name, verb, "the name of an election")
	}
	return named("/v1/locks/", q.name, verb, "the name of a lock")
}

// release is the call that gives up what this token holds; or, without one, whatever this session has there, a place too.
func (q queue) release(token uint64, session string) (*call, error) {
	verb := "/release"
	var body any
	if q.isElection {
		verb, body = "/resign", api.ResignRequest{Term: token, Session: session}
	} else {
		body = api.ReleaseRequest{Token: token, Session: session}
	}
	path, err := q.path(verb)
	if err != nil {
		return nil, err
	}
	return writeCall(http.MethodPost, path, "", body), nil
}

// placeWanted is what is asked for, but for how long to wait.
type placeWanted struct {
	mode       api.LockMode
	slots      int
	maxWaiters int
	value      any
	delay      time.Duration
	// wait is at most so long; as long as the session lives where it is 0.
	wait time.Duration
	// noWait fails at once.
	noWait bool
}

// granted is what is read of the answers of both.
type granted struct {
	Lock     string `json:"lock"`
	Election string `json:"election"`
	Token    uint64 `json:"token,string"`
	Term     uint64 `json:"term,string"`
}

// givenUp is what is read of the answers of what gives a place up.
type givenUp struct {
	Lock     string `json:"lock"`
	Election string `json:"election"`
	Barrier  string `json:"barrier"`
}

// held is what was got.
type held struct {
	session *Session
	queue   queue
	place   string
	token   uint64

	// isLeft: giving it up was begun. Nothing is certain of it any more.
	isLeft atomic.Bool
	// isOpen: giving it up was asked for, and the answer did not say that it is.
	isOpen atomic.Bool
}

// takePlace waits for a place until it holds.
func (s *Session) takePlace(ctx context.Context, q queue, wanted placeWanted) (*held, error) {
	place, err := q.path("")
	if err != nil {
		return nil, err
	}
	if err := notNegative(span{"Delay", wanted.delay}, span{"Wait", wanted.wait}); err != nil {
		return nil, err
	}
	if err := s.errIfLost(); err != nil {
		return nil, err
	}
	if !s.take(place) {
		return nil, invalid("this session has `%s` or waits for it already: give that up first, or ask with another session", q.name)
	}
	leaving := &leaving{session: s, place: place}
	waiting := &waiting{session: s, queue: q, wanted: wanted, started: time.Now(), leaving: leaving}
	var token uint64
	err = s.left(ctx, place)
	if err == nil {
		err = s.orLost(ctx, func(ctx context.Context) (err error) {
			token, err = waiting.rounds(ctx)
			return err
		})
	}
	if err == nil {
		return &held{session: s, queue: q, place: place, token: token}, nil
	}
	// A place of another handle is kept. One got by mistake is given up under its own name, or the answer would be about another one again.
	if found, at := q.found(err, place); !leavesNothing(err) && (at == place || !s.has(at)) {
		leaving.place = at
		leaving.takeBack(func() (*call, error) { return found.release(0, s.id) })
	}
	// Only now: another handle would not wait for what is given up, and have its own place taken back.
	s.untake(place)
	if ctx.Err() != nil && isGivenUp(err) {
		err = q.givenUp(s, context.Cause(ctx), err)
	}
	return nil, err
}

// isGivenUp: it is an end for want of time, whatever was told last.
func isGivenUp(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrUnavailable)
}

// givenUp is the error of a wait whose context ended. Nothing is left open for the caller: what may have been got is given up.
func (q queue) givenUp(s *Session, cause, last error) *Error {
	what := "the lock `" + q.name + "` was not acquired"
	if q.isElection {
		what = "the election `" + q.name + "` was not won"
	}
	// Where nobody can be asked who is in the way, what went wrong last says why.
	why := fmt.Sprintf("; the last: %v", last)
	if holder, ok := q.holder(s); ok {
		why = "; held by " + holder
	}
	e := localError(api.ErrorCodeTimeout, cause, "%s: %v%s", what, cause, why)
	e.Retry = api.RetryAfterReading
	return e
}

// holder asks shortly who holds it; the caller does not wait any more.
func (q queue) holder(s *Session) (string, bool) {
	ctx, cancel := context.WithTimeout(s.c.roots, holderWithin)
	defer cancel()
	if q.isElection {
		leader, err := s.c.Leader(ctx, q.name)
		if err != nil || leader == nil || leader.Session == s.id {
			return "", false
		}
		return holderWords(leader.Owner, leader.Session, 1), true
	}
	info, err := s.c.LockInfo(ctx, q.name)
	if err != nil || len(info.Holders) == 0 || info.Holders[0].Session == s.id {
		return "", false
	}
	return holderWords(info.Holders[0].Owner, info.Holders[0].Session, info.HolderCount), true
}

// holderWords names the first of so many.
func holderWords(owner, session string, count uint64) string {
	words := "session " + session
	if owner != "" {
		words = owner + ", " + words
	}
	if count > 1 {
		words += fmt.Sprintf(" and %d others", count-1)
	}
	return words
}

// found is what an answer was about, and its place: another one, where a proxy changed the path. Calls for that one wait until it is taken back.
func (q queue) found(err error, place string) (queue, string) {
	var other *strayed
	if errors.As(err, &other) {
		found := queue{other.named, q.isElection}
		if at, err := found.path(""); err == nil {
			return found, at
		}
	}
	return q, place
}

// leavesNothing: an error says that there is no place of this question, or one that is another handle's. With any other the place of an
// earlier answer may still be there, or the last question on its way.
func leavesNothing(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Attempts > 0 {
		return false
	}
	switch e.Code {
	case api.ErrorCodeInvalidArgument, CodeDecode, api.ErrorCodeLocked, api.ErrorCodeAlreadyQueued, api.ErrorCodeDifferentSettings,
		api.ErrorCodeSessionExpired:
		return true
	}
	return false
}

// waiting is a question that is asked until its answer is final.
type waiting struct {
	session *Session
	queue   queue
	wanted  placeWanted
	started time.Time
	leaving *leaving
}

func (w *waiting) rounds(ctx context.Context) (uint64, error) {
	id, left := w.session.c.newRepeatable(), w.left()
	for {
		again, err := w.call(left, 0, id.fresh())
		if err != nil {
			return 0, err
		}
		w.leaving.asked, w.leaving.until = again, id.until
		wanted, err := w.call(left, w.poll(left), id.id)
		if err != nil {
			return 0, err
		}
		answer, err := fetch[granted](ctx, w.session.c, wanted)
		switch {
		case err == nil && answer.Token+answer.Term > 0:
			return answer.Token + answer.Term, nil
		case err == nil && left == 0:
			return 0, w.tooLate()
		case err == nil:
			w.leaving.asked = nil
			id, left = w.session.c.newRepeatable(), w.left()
		case errors.Is(err, ErrUnavailable) && ctx.Err() == nil && w.left() > 0:
			// No node could tell. The place is kept, so the same is asked again, wherever somebody answers: under another id it might
			// be decided twice, while nodes remember this one.
			if err := sleep(ctx, waitPause); err != nil {
				return 0, localError(api.ErrorCodeTimeout, err, "the wait for `%s` was given up: %v", w.queue.name, err)
			}
		default:
			return 0, err
		}
	}
}

func (w *waiting) left() time.Duration {
	switch {
	case w.wanted.noWait:
		return 0
	case w.wanted.wait == 0:
		return waitMax
	}
	return min(max(w.wanted.wait-time.Since(w.started), 0), waitMax)
}

// poll is how long the node is to hold its answer back.
func (w *waiting) poll(left time.Duration) time.Duration {
	poll := min(max(w.session.TTL()/3, pollMin), pollMax)
	switch {
	case left == 0:
		return 0
	case left <= poll:
		return left + pollBeyond
	}
	return poll
}

func (w *waiting) call(left, poll time.Duration, id string) (*call, error) {
	verb, body := "/acquire", any(api.AcquireRequest{
		Session: w.session.id, Mode: w.wanted.mode, Slots: w.wanted.slots, MaxWaiters: w.wanted.maxWaiters,
		DelayMs: optionalMillis(w.wanted.delay), WaitMs: someMillis(left), PollMs: someMillis(poll),
	})
	if w.queue.isElection {
		text, bytes, err := valueOf(w.wanted.value)
		if err != nil {
			return nil, err
		}
		if bytes != nil {
			return nil, invalid("the value of a candidate is JSON")
		}
		if w.wanted.value == nil {
			text = nil
		}
		verb, body = "/campaign", api.CampaignRequest{
			Session: w.session.id, Value: text, DelayMs: optionalMillis(w.wanted.delay), WaitMs: someMillis(left), PollMs: someMillis(poll),
		}
	}
	path, err := w.queue.path(verb)
	if err != nil {
		return nil, err
	}
	wanted := writeCall(http.MethodPost, path, id, body)
	wanted.hold, wanted.timeout = poll, w.session.c.options.Timeout
	wanted.attempt = min(max(w.session.TTL()/6, placeAttemptMin), placeAttemptMax)
	return wanted, nil
}

// tooLate: the node says to wait on, but the time is over.
func (w *waiting) tooLate() error {
	e := localError(api.ErrorCodeLocked, nil, "`%s` was not got in time", w.queue.name)
	e.Retry = api.RetryAfterReading
	return e
}

// leaving is what is taken back when the one who asked for it does not wait any more.
type leaving struct {
	session *Session
	place   string
	// asked is the question that is on its way, under its own request id but without a wait: to repeat it is to learn its outcome.
	asked *call
	// until: then its request id is not to be used any more.
	until limit
}

// takeBack works in the background, until that is decided, or the session is over, which takes it back too.
func (l *leaving) takeBack(release func() (*call, error)) {
	if l.session.Loss() != "" {
		return
	}
	asked, until := l.asked, l.until
	l.session.giveUp(l.place, func(ctx context.Context) {
		for pause := leavePauseMin; ; pause = min(2*pause, leavePauseMax) {
			var err error
			if asked != nil && until.left() <= 0 {
				// Nodes may have forgotten it. By now it cannot be on its way any more.
				asked = nil
			}
			if asked != nil {
				if _, err = l.session.c.send(ctx, asked); !isUndecided(err) {
					asked = nil
				}
			}
			if asked == nil {
				err = l.giveUp(ctx, release)
			}
			if err == nil {
				return
			}
			if !isUndecided(err) || sleep(ctx, pause) != nil {
				l.session.c.options.log("a place in a queue is left to the end of its session", "place", l.place, "error", err)
				return
			}
		}
	})
}

func (l *leaving) giveUp(ctx context.Context, release func() (*call, error)) error {
	wanted, err := release()
	if err == nil {
		_, err = fetch[givenUp](ctx, l.session.c, wanted)
	}
	if isGone(err) {
		return nil
	}
	return err
}

// isUndecided: no node has said what became of it, though one may.
func isUndecided(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrProtocol)
}

// isGone: there is nothing to be given up.
func isGone(err error) bool {
	return errors.Is(err, ErrNotLockHolder) || errors.Is(err, ErrSessionExpired)
}

// certainToken is the token, while it certainly holds.
func (h *held) certainToken() (uint64, error) {
	if err := h.errIfLeft(); err != nil {
		return 0, err
	}
	if err := h.session.Err(); err != nil {
		return 0, err
	}
	return h.token, nil
}

// errIfLeft is nil unless giving it up was begun.
func (h *held) errIfLeft() error {
	if h.isLeft.Load() {
		return localError(api.ErrorCodeNotLockHolder, nil, "`%s` is not certainly held any more: giving it up was begun", h.queue.name)
	}
	return nil
}

// giveUp gives it up. Where the answer does not say that it is, that goes on in the background, and it may be asked for again: what is not held
// by then was given up.
func (h *held) giveUp(ctx context.Context) error {
	isFirst := h.isLeft.CompareAndSwap(false, true)
	release := func() (*call, error) { return h.queue.release(h.token, "") }
	wanted, err := release()
	if err == nil {
		_, err = fetch[givenUp](ctx, h.session.c, wanted)
	}
	if isGone(err) && h.isOpen.Load() {
		err = nil
	}
	isOpen := err != nil && !isGone(err)
	h.isOpen.Store(isOpen)
	if isFirst {
		if isOpen {
			(&leaving{session: h.session, place: h.place}).takeBack(release)
		}
		// Only now: who asks next waits for that.
		h.session.untake(h.place)
	}
	return err
}
