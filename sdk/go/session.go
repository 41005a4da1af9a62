package quorate

// Sessions: a sign of life that entries, locks, leaderships and places in barriers hang on. Owns the handle, and that it tells of itself only
// what is certain (lease.go). Sessions are renewed in the background, all of a client together (renewals.go).

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"quorate.dev/go/api"
)

// startsMax: a session that is created late is over before it is known; then another one is asked for, so many times.
const startsMax = 3

// SessionOptions refine a session.
type SessionOptions struct {
	// TTL is how long it lives without a renewal, 100 ms to a day; default 10 s. Short: others go on soon after we have died. Long: we
	// survive what goes on for long, such as the cluster electing a leader (about a second).
	TTL time.Duration
	// Owner says whose it is, for people.
	Owner string
	// Labels say what else is to be known of it; at most 16.
	Labels map[string]string
}

// Session is a live session. It is renewed in the background until [Session.End] or [Client.Close].
type Session struct {
	c  *Client
	id string
	// done is closed when it is lost.
	done chan struct{}

	mu    sync.Mutex
	lease lease
	// changed is closed and made anew with each change.
	changed chan struct{}
	// timer is for the next change by the clock.
	timer *time.Timer
	// taken are places in queues that a handle has or waits for: the cluster knows one for each session, so two handles would share it.
	taken map[string]bool
	// inside are the barriers that it entered and has not left.
	inside map[string]bool
	// leaving are places that are being given up in the background, and how often.
	leaving map[string]int
}

// NewSession starts a session that is renewed in the background.
func (c *Client) NewSession(ctx context.Context, options *SessionOptions) (*Session, error) {
	for starts := 1; ; starts++ {
		sent := time.Now()
		answer, err := c.CreateSession(ctx, options, "")
		if errors.Is(err, ErrSessionExpired) && starts < startsMax {
			// A retry found that an earlier try, whose answer was lost, had created one, and that it is over.
			continue
		}
		if err != nil {
			return nil, err
		}
		own := newLease(millis(answer.TTLMs), millis(answer.RenewInMs), sent)
		if own.loss(time.Now()) == "" {
			return c.keep(answer.Session, own), nil
		}
		if starts == startsMax {
			return nil, sessionError(answer.Session, LossNotRenewed)
		}
	}
}

// CreateSession asks for a session without keeping it alive: for one that others renew. Without a request id it has a new one.
func (c *Client) CreateSession(ctx context.Context, options *SessionOptions, requestID string) (*api.SessionAnswer, error) {
	if options == nil {
		options = &SessionOptions{}
	}
	if err := notNegative(span{"TTL", options.TTL}); err != nil {
		return nil, err
	}
	body := api.SessionRequest{TTLMs: optionalMillis(options.TTL), Owner: options.Owner, Labels: options.Labels}
	return fetch[api.SessionAnswer](ctx, c, writeCall(http.MethodPost, "/v1/sessions", requestID, body))
}

func (c *Client) keep(id string, own lease) *Session {
	s := &Session{
		c: c, id: id, lease: own, done: make(chan struct{}), changed: make(chan struct{}),
		taken: map[string]bool{}, inside: map[string]bool{}, leaving: map[string]int{},
	}
	s.update(func(*lease, time.Time) {})
	c.renewals.add(c, s)
	return s
}

// ID is the same for all nodes and clients, and never used twice.
func (s *Session) ID() string { return s.id }

// Client is the one that it was started with.
func (s *Session) Client() *Client { return s.c }

// TTL is how long it lives without a renewal.
func (s *Session) TTL() time.Duration { return s.lease.ttl }

// State is what it is at this moment. Reckoned by this machine's monotonic clock from what was confirmed. Where the wall clock moved on by more than
// that, since the machine was suspended, it is suspect until the next renewal is confirmed. Nobody knows what will be once this has returned: what
// must not happen twice takes a guard.
func (s *Session) State() SessionState {
	state, _ := s.look()
	return state
}

// look is what it is, and why it is lost if it is. Where the machine was suspended meanwhile, it is renewed at once.
func (s *Session) look() (SessionState, Loss) {
	now := time.Now()
	s.mu.Lock()
	state, loss, wasSuspended := s.lease.state(now), s.lease.loss(now), s.lease.wasSuspended(now)
	s.mu.Unlock()
	if wasSuspended {
		s.c.renewals.wake()
	}
	return state, loss
}

// Loss says why it is lost; empty where it is not.
func (s *Session) Loss() Loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.loss(time.Now())
}

// Err is nil while it is known to live; else [ErrSessionSuspect] or [ErrSessionExpired].
func (s *Session) Err() error {
	state, loss := s.look()
	if state == SessionAlive {
		return nil
	}
	return sessionError(s.id, loss)
}

// errIfLost is nil unless it is lost: suspect is well enough to ask for more.
func (s *Session) errIfLost() error {
	if loss := s.Loss(); loss != "" {
		return sessionError(s.id, loss)
	}
	return nil
}

func sessionError(id string, loss Loss) *Error {
	if loss == "" {
		e := localError(CodeSessionSuspect, nil, "session %s is suspect: no renewal of it was confirmed lately", id)
		e.Retry = api.RetryAfterReading
		return e
	}
	return localError(api.ErrorCodeSessionExpired, nil, "session %s is lost: %s", id, loss)
}

// Done is closed once the session is lost.
func (s *Session) Done() <-chan struct{} { return s.done }

// Changed waits until it is something else than the known state, and tells what; or until the context ends.
func (s *Session) Changed(ctx context.Context, known SessionState) (SessionState, error) {
	for {
		s.mu.Lock()
		state, changed := s.lease.state(time.Now()), s.changed
		s.mu.Unlock()
		if state != known {
			return state, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, context.Cause(ctx)
		}
	}
}

// Context ends with the given one, and when the session is lost; [context.Cause] then tells so.
func (s *Session) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.done:
			cancel(s.Err())
		case <-inner.Done():
		}
	}()
	return inner, func() { cancel(context.Canceled) }
}

// End ends it, and with it all that hangs on it: entries, locks, leaderships, places. It is lost here in any case.
func (s *Session) End(ctx context.Context) error {
	s.over(LossEnded)
	_, err := s.c.EndSession(ctx, s.id)
	if errors.Is(err, ErrSessionExpired) {
		// It had ended by itself, or by an earlier call.
		return nil
	}
	return err
}

func (s *Session) over(loss Loss) {
	s.update(func(l *lease, now time.Time) { l.onOver(loss, now) })
	s.c.renewals.wake()
}

// update changes the lease and tells of it.
func (s *Session) update(change func(*lease, time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.lease, time.Now())
	s.announce()
}

// announce wakes who waits, and sets the timer for the next change by the clock. The caller holds the lock.
func (s *Session) announce() {
	if s.timer != nil {
		s.timer.Stop()
	}
	now := time.Now()
	if at := s.lease.changesAt(now); !at.IsZero() {
		s.timer = time.AfterFunc(at.Sub(now), func() { s.update(func(*lease, time.Time) {}) })
	} else {
		// Whoever looked was told so: nothing brings it back.
		s.lease.lost = s.lease.loss(now)
		select {
		case <-s.done:
		default:
			close(s.done)
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// orLost does the work, unless the session is lost before.
func (s *Session) orLost(ctx context.Context, work func(context.Context) error) error {
	inner, cancel := s.Context(ctx)
	defer cancel()
	err := work(inner)
	if errors.Is(err, ErrSessionExpired) {
		s.over(LossExpired)
	}
	if err != nil && ctx.Err() == nil {
		if lost := s.errIfLost(); lost != nil {
			return lost
		}
	}
	return err
}

// take takes a place in a queue for one handle; false while another one has it.
func (s *Session) take(place string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[place] {
		return false
	}
	s.taken[place] = true
	return true
}

// has says whether a handle of this session has this place, waits for it, or is in it.
func (s *Session) has(place string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[place] || s.inside[place]
}

// noteInside notes whether it is in this barrier.
func (s *Session) noteInside(place string, isIn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isIn {
		s.inside[place] = true
	} else {
		delete(s.inside, place)
	}
}

func (s *Session) untake(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, place)
}

// giveUp gives up a place in the background, for as long as the session lives.
func (s *Session) giveUp(place string, work func(context.Context)) {
	s.mu.Lock()
	s.leaving[place]++
	s.mu.Unlock()
	go func() {
		ctx, cancel := s.Context(s.c.roots)
		defer cancel()
		work(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.leaving[place]--; s.leaving[place] == 0 {
			delete(s.leaving, place)
		}
		s.announce()
	}()
}

// left waits until this place is not being given up any more: what is asked for before that would be given up too.
func (s *Session) left(ctx context.Context, place string) error {
	for {
		s.mu.Lock()
		isLeaving, changed := s.leaving[place] > 0, s.changed
		s.mu.Unlock()
		if !isLeaving {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return localError(api.ErrorCodeTimeout, context.Cause(ctx), "%s is still being given up: %v", place, context.Cause(ctx))
		}
	}
}

func sessionPath(id, verb string) (string, error) {
	return named("/v1/sessions/", id, verb, "the id of a session")
}

// SessionInfo is what a session is, whoever holds it, and what hangs on it. Fails with [ErrNotFound].
func (c *Client) SessionInfo(ctx context.Context, id string) (*api.SessionView, error) {
	return get[api.SessionView](ctx, c)(sessionPath(id, ""))
}

// RenewSession lets a session live for its time from now, once. Fails with [ErrSessionExpired].
func (c *Client) RenewSession(ctx context.Context, id string) (*api.RenewedAnswer, error) {
	path, err := sessionPath(id, "/renew")
	if err != nil {
		return nil, err
	}
	// To renew twice is as good as once.
	return fetch[api.RenewedAnswer](ctx, c, &call{method: http.MethodPost, target: path, intent: intentRead})
}

// EndSession ends a session, whoever holds it, with all that hangs on it. Fails with [ErrSessionExpired].
func (c *Client) EndSession(ctx context.Context, id string) (*api.SessionEnded, error) {
	path, err := sessionPath(id, "")
	if err != nil {
		return nil, err
	}
	return fetch[api.SessionEnded](ctx, c, writeCall(http.MethodDelete, path, "", nil))
}
