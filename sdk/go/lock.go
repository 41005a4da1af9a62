package quorate

// Locks and semaphores, and elections. Owns the handles of what is held, and their fencing tokens. Waiting for it is place.go's.

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"quorate.dev/go/api"
)

// LockOptions refine a lock.
type LockOptions struct {
	// Shared: beside any number of others that share; exclusive holders exclude all of them.
	Shared bool
	// Slots makes it a semaphore: so many may hold it at once. All have to say the same number.
	Slots int
	// MaxWaiters is how many may wait for it with us, at most: where so many wait already it fails with [ErrLocked], and does not wait behind
	// them. 1 to 1,000, which is the default.
	MaxWaiters int
	// Delay is how long nobody gets it after our session was not renewed in time, at most a minute: for work that is still under way and
	// takes no guard. A lock that is released, and a session that is ended, cost nobody this time.
	Delay time.Duration
	// Wait is how long to wait for it at most; then it fails with [ErrLocked]. Without it, which is 0, as long as the session lives and the
	// context allows; [Session.TryLock] does not wait at all.
	Wait time.Duration
}

// Lock is a lock that is held until it is unlocked, or its session is lost.
//
// Locally nobody can be sure of a lock: we may be stopped for a minute after we looked. What must not happen after it is lost has to say
// the token to whoever does it: to the cluster as the Guard of a write, to others with [Lock.Token], which is greater than that of every
// holder before.
type Lock struct{ held *held }

// Lock waits until the lock of this name is ours: exclusively, if nothing else is said. Locks are granted in the order in which they were
// asked for. A session has a lock once: what is to exclude one another takes a session each.
//
// When the context ends first, the place in the queue is given up, in the background where it has to be; the error is that of the context, says who
// holds the lock where that is known, and is no [ErrUnknownOutcome]. Fails with [ErrSessionExpired] when the session is lost meanwhile, and with
// [ErrInvalidArgument] at once where this session has the lock or waits for it already.
func (s *Session) Lock(ctx context.Context, name string, options *LockOptions) (*Lock, error) {
	return s.lock(ctx, name, options, false)
}

// TryLock takes the lock if it is to be had at once, whatever options.Wait is; else it fails with [ErrLocked], and leaves no place in the queue.
func (s *Session) TryLock(ctx context.Context, name string, options *LockOptions) (*Lock, error) {
	return s.lock(ctx, name, options, true)
}

func (s *Session) lock(ctx context.Context, name string, options *LockOptions, noWait bool) (*Lock, error) {
	if options == nil {
		options = &LockOptions{}
	}
	wanted := placeWanted{
		slots: options.Slots, maxWaiters: options.MaxWaiters, delay: options.Delay, wait: options.Wait, noWait: noWait,
	}
	if options.Shared {
		wanted.mode = api.LockModeShared
	}
	held, err := s.takePlace(ctx, queue{name: name}, wanted)
	if err != nil {
		return nil, err
	}
	return &Lock{held}, nil
}

// Name of the lock.
func (l *Lock) Name() string { return l.held.queue.name }

// Session that holds it.
func (l *Lock) Session() *Session { return l.held.session }

// Token is the fencing token. Fails unless the lock is certainly held at this moment: with [ErrSessionSuspect] or [ErrSessionExpired], and with
// [ErrNotLockHolder] once Unlock was called, whatever came of that.
func (l *Lock) Token() (uint64, error) { return l.held.certainToken() }

// Guard is for writes that are applied only while the lock is held, which the cluster decides when it applies them.
func (l *Lock) Guard() api.Guard { return api.Guard{Lock: l.held.queue.name, Token: l.held.token} }

// Done is closed once the lock is lost with its session.
func (l *Lock) Done() <-chan struct{} { return l.held.session.done }

// Unlock gives it up; the next in the queue has it at once. Fails with [ErrNotLockHolder] if it was lost before. After any other error it is given
// up in the background as long as the session lives; called again, Unlock tells whether that is done.
func (l *Lock) Unlock(ctx context.Context) error { return l.held.giveUp(ctx) }

// LockInfo says who holds a lock, and who waits for it.
func (c *Client) LockInfo(ctx context.Context, name string) (*api.LockAnswer, error) {
	return get[api.LockAnswer](ctx, c)(queue{name: name}.path(""))
}

// CheckLock says whether this token holds the lock. Fails with [ErrGuardFailed] if not.
func (c *Client) CheckLock(ctx context.Context, name string, token uint64) (*api.CheckAnswer, error) {
	path, err := queue{name: name}.path("/check")
	if err != nil {
		return nil, err
	}
	return fetch[api.CheckAnswer](ctx, c, c.readCall(target(path, "token", strconv.FormatUint(token, 10))))
}

// ReleaseLock takes a lock from the holder of this token. The holder is not asked and not told: its guarded writes are refused from now on.
// Fails with [ErrNotLockHolder].
func (c *Client) ReleaseLock(ctx context.Context, name string, token uint64) (*api.ReleaseAnswer, error) {
	wanted, err := queue{name: name}.release(token, "")
	if err != nil {
		return nil, err
	}
	return fetch[api.ReleaseAnswer](ctx, c, wanted)
}

// ReleaseLockOf takes whatever the session has of a lock, also a place in the queue. It is not asked and not told.
func (c *Client) ReleaseLockOf(ctx context.Context, name, session string) (*api.ReleaseAnswer, error) {
	wanted, err := queue{name: name}.release(0, session)
	if err != nil {
		return nil, err
	}
	return fetch[api.ReleaseAnswer](ctx, c, wanted)
}

// CampaignOptions refine a campaign.
type CampaignOptions struct {
	// Value is what we say of ourselves once we lead, such as an address: anything with a JSON form.
	Value any
	// Delay is how long nobody leads after our session was not renewed in time, at most a minute.
	Delay time.Duration
	// Wait is how long to stand at most; then it fails with [ErrLocked]. Without it, which is 0, as long as the session lives and the context
	// allows; [Session.TryCampaign] does not wait at all.
	Wait time.Duration
}

// Leadership is held until it is resigned, or its session is lost. As with a lock, what must not be done by two leaders takes a guard.
type Leadership struct{ held *held }

// Campaign stands in an election until we lead. Who has stood longest leads next. When the context ends first, we do not stand any more.
// Fails as [Session.Lock] does.
func (s *Session) Campaign(ctx context.Context, election string, options *CampaignOptions) (*Leadership, error) {
	return s.campaign(ctx, election, options, false)
}

// TryCampaign takes the lead if nobody leads, whatever options.Wait is; else it fails with [ErrLocked], and does not stand in the election.
func (s *Session) TryCampaign(ctx context.Context, election string, options *CampaignOptions) (*Leadership, error) {
	return s.campaign(ctx, election, options, true)
}

func (s *Session) campaign(ctx context.Context, election string, options *CampaignOptions, noWait bool) (*Leadership, error) {
	if options == nil {
		options = &CampaignOptions{}
	}
	wanted := placeWanted{value: options.Value, delay: options.Delay, wait: options.Wait, noWait: noWait}
	held, err := s.takePlace(ctx, queue{election, true}, wanted)
	if err != nil {
		return nil, err
	}
	return &Leadership{held}, nil
}

// Name of the election.
func (l *Leadership) Name() string { return l.held.queue.name }

// Session that leads.
func (l *Leadership) Session() *Session { return l.held.session }

// Term is a fencing token, greater than that of every leader before. Fails unless we certainly lead at this moment: with [ErrSessionSuspect] or
// [ErrSessionExpired], and with [ErrNotLockHolder] once Resign was called, whatever came of that.
func (l *Leadership) Term() (uint64, error) { return l.held.certainToken() }

// Guard is for writes that are applied only while we lead, which the cluster decides when it applies them.
func (l *Leadership) Guard() api.Guard {
	return api.Guard{Election: l.held.queue.name, Token: l.held.token}
}

// Done is closed once the leadership is lost with its session.
func (l *Leadership) Done() <-chan struct{} { return l.held.session.done }

// Proclaim says something else of ourselves. Fails with [ErrNotLockHolder] if we do not lead any more, or began to resign.
func (l *Leadership) Proclaim(ctx context.Context, value any) (*api.ProclaimAnswer, error) {
	if err := l.held.errIfLeft(); err != nil {
		return nil, err
	}
	text, bytes, err := valueOf(value)
	if err != nil {
		return nil, err
	}
	if bytes != nil {
		return nil, invalid("the value of a leader is JSON")
	}
	path, err := l.held.queue.path("/proclaim")
	if err != nil {
		return nil, err
	}
	body := api.ProclaimRequest{Term: l.held.token, Value: text}
	return fetch[api.ProclaimAnswer](ctx, l.held.session.c, writeCall(http.MethodPost, path, "", body))
}

// Resign gives it up; the next candidate leads at once. Fails as [Lock.Unlock] does.
func (l *Leadership) Resign(ctx context.Context) error { return l.held.giveUp(ctx) }

// Election says who leads, and who stands.
func (c *Client) Election(ctx context.Context, name string) (*api.ElectionAnswer, error) {
	return get[api.ElectionAnswer](ctx, c)(queue{name, true}.path(""))
}

// Leader says who leads; nil where nobody does.
func (c *Client) Leader(ctx context.Context, election string) (*api.LeaderView, error) {
	answer, err := c.Election(ctx, election)
	if err != nil {
		return nil, err
	}
	return answer.Leader, nil
}

// ResignLeader takes leadership from the leader of this term, who is not asked and not told. Fails with [ErrNotLockHolder].
func (c *Client) ResignLeader(ctx context.Context, election string, term uint64) (*api.ResignAnswer, error) {
	wanted, err := queue{election, true}.release(term, "")
	if err != nil {
		return nil, err
	}
	return fetch[api.ResignAnswer](ctx, c, wanted)
}

// ResignOf takes leadership from the session, and its place in the election. It is not asked and not told.
func (c *Client) ResignOf(ctx context.Context, election, session string) (*api.ResignAnswer, error) {
	wanted, err := queue{election, true}.release(0, session)
	if err != nil {
		return nil, err
	}
	return fetch[api.ResignAnswer](ctx, c, wanted)
}
