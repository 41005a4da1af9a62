package quorate

// The renewals of all sessions of one client: a goroutine that lives as long as there is one. Owns when it wakes, and that sessions which are
// due about the same time go in one request. When a session is due, and what an answer means for it, is its lease's.

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"quorate.dev/go/api"
)

const (
	// renewedMax is how many sessions one request renews.
	renewedMax = 1024
	// wakeEvery is how often sessions are looked at, at least: timers stand still while the machine is suspended, and what is due by then is
	// seen a moment after it.
	wakeEvery = time.Second
)

type renewals struct {
	mu        sync.Mutex
	sessions  map[*Session]bool
	isRunning bool
	// news wakes the goroutine: a session came, is over, or was renewed.
	news chan struct{}
}

func newRenewals() *renewals {
	return &renewals{sessions: map[*Session]bool{}, news: make(chan struct{}, 1)}
}

// add renews this session from now on.
func (r *renewals) add(c *Client, s *Session) {
	r.mu.Lock()
	r.sessions[s] = true
	if !r.isRunning {
		r.isRunning = true
		go r.run(c)
	}
	r.mu.Unlock()
	r.wake()
}

func (r *renewals) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *renewals) run(c *Client) {
	for {
		due, wakeAt, isEmpty := r.plan(time.Now())
		if isEmpty {
			return
		}
		for len(due) > 0 {
			batch := due[:min(len(due), renewedMax)]
			due = due[len(batch):]
			go r.renew(c, batch)
		}
		if lookAt := time.Now().Add(wakeEvery); wakeAt.IsZero() || wakeAt.After(lookAt) {
			wakeAt = lookAt
		}
		if !r.rest(c.roots, wakeAt) {
			return
		}
	}
}

// rest waits for the time, or for news; false once the client is closed.
func (r *renewals) rest(ctx context.Context, until time.Time) bool {
	var timer <-chan time.Time
	if !until.IsZero() {
		clock := time.NewTimer(time.Until(until))
		defer clock.Stop()
		timer = clock.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-r.news:
	case <-timer:
	}
	return true
}

// plan says which sessions to renew now: if one is due, with it those that soon will be. And when to look again.
func (r *renewals) plan(now time.Time) (due []*Session, wakeAt time.Time, isEmpty bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isDue := false
	for s := range r.sessions {
		s.mu.Lock()
		at, isLost := s.lease.renewalAt(now), s.lease.loss(now) != ""
		s.mu.Unlock()
		if isLost {
			delete(r.sessions, s)
			continue
		}
		isDue = isDue || (!at.IsZero() && !at.After(now))
		if !at.IsZero() && (wakeAt.IsZero() || at.Before(wakeAt)) {
			wakeAt = at
		}
	}
	if len(r.sessions) == 0 {
		r.isRunning = false
		return nil, wakeAt, true
	}
	if !isDue {
		return nil, wakeAt, false
	}
	for s := range r.sessions {
		s.mu.Lock()
		if s.lease.mayJoin(now) {
			s.lease.onSent()
			due = append(due, s)
		}
		s.mu.Unlock()
	}
	// Those that are not due yet have a time of their own.
	return due, now, false
}

// renew is one request. Whatever comes of it, all its sessions hear.
func (r *renewals) renew(c *Client, batch []*Session) {
	sent := time.Now()
	answer, err := c.askRenewals(batch)
	// Whether it is expired, of those that the answer names.
	named := map[string]bool{}
	if err == nil {
		for _, renewal := range answer.Sessions {
			named[renewal.Session] = renewal.Expired
		}
	}
	for _, s := range batch {
		s.update(func(l *lease, now time.Time) {
			switch isExpired, isNamed := named[s.id]; {
			case !isNamed:
				l.onFailed(now)
			case isExpired:
				l.onOver(LossExpired, now)
			default:
				l.onConfirmed(sent, now)
			}
		})
	}
	r.wake()
}

// askRenewals renews these once, for as long as the most hurried of them can wait; half of the time for one node, so that another can be
// asked.
func (c *Client) askRenewals(batch []*Session) (*api.RenewAnswer, error) {
	body, round := api.RenewRequest{}, leaseRoundMax
	for _, s := range batch {
		body.Sessions = append(body.Sessions, s.id)
		round = min(round, s.lease.round())
	}
	// To renew twice is as good as once.
	wanted := (&call{method: http.MethodPost, target: "/v1/sessions/renew", intent: intentRead}).json(body)
	wanted.timeout, wanted.attempt = round, round/2
	return fetch[api.RenewAnswer](c.roots, c, wanted)
}

// endSessions ends those that are still open.
func (c *Client) endSessions(ctx context.Context) error {
	c.renewals.mu.Lock()
	var open []*Session
	for s := range c.renewals.sessions {
		open = append(open, s)
	}
	c.renewals.mu.Unlock()
	var faults []error
	for _, s := range open {
		if s.Loss() == "" {
			faults = append(faults, s.End(ctx))
		}
	}
	return errors.Join(faults...)
}
