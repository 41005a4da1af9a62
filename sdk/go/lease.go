package quorate

// What a session knows of itself: until when it certainly lives, and when to renew it. Owns the reckoning behind every token that is handed
// out. Time comes in as an argument, nothing is sent. A session lives at the nodes for its time to live from the moment at which a renewal
// applies, which is after it was sent; so it certainly lives until the last confirmed one was sent and that time has passed, less a margin
// for clocks that differ. That is reckoned by the monotonic clock, which stands still while the machine is suspended; where the wall clock shows
// that it may have been, nothing is certain until a renewal that was sent after that is confirmed.

import (
	"time"

	"quorate.dev/go/internal/wall"
)

const (
	// leaseMarginPart of the time to live is given away for clocks that do not run alike.
	leaseMarginPart = 10
	// leaseMarginMin is at least given away, for the scheduling of threads.
	leaseMarginMin = 20 * time.Millisecond
	// leaseRenewals in its time to live at least, whatever a node says.
	leaseRenewals = 3
	// leaseRoundPart of the time to live is what one renewal may take before it is sent anew.
	leaseRoundPart = 6
	leaseRoundMin  = 20 * time.Millisecond
	leaseRoundMax  = 3 * time.Second
)

// SessionState says whether a session lives, as far as it can be known here.
type SessionState string

const (
	// SessionAlive: it does, and renewals are confirmed.
	SessionAlive SessionState = "alive"
	// SessionSuspect: it does, but no renewal was confirmed for half of its time to live, or since the machine may have been suspended.
	SessionSuspect SessionState = "suspect"
	// SessionLost: it is over, or may be: what it held can be somebody else's. Final.
	SessionLost SessionState = "lost"
)

// Loss says why a session is lost.
type Loss string

const (
	// LossNotRenewed: no renewal was confirmed for so long that the cluster may have ended it.
	LossNotRenewed Loss = "no renewal was confirmed in time"
	// LossExpired: the cluster says that it is over.
	LossExpired Loss = "the cluster says that it is over"
	// LossEnded: it was ended here.
	LossEnded Loss = "it was ended"
)

// lease is the reckoning of one session.
type lease struct {
	ttl, renewIn time.Duration
	// confirmed is when the last request was sent that was confirmed: a renewal, or the creation.
	confirmed time.Time
	// confirmedWall is the same by the wall clock.
	confirmedWall time.Time
	// againAt: not before this, after a renewal that failed.
	againAt time.Time
	// isRenewing: a renewal is on its way.
	isRenewing bool
	lost       Loss
}

// newLease is that of a session that was asked for at sent, and that the node wants renewed after renewIn.
func newLease(ttl, renewIn time.Duration, sent time.Time) lease {
	return lease{ttl: ttl, renewIn: min(renewIn, ttl/leaseRenewals), confirmed: sent, confirmedWall: wall.Of(sent)}
}

func (l *lease) state(now time.Time) SessionState {
	switch {
	case l.loss(now) != "":
		return SessionLost
	case !now.Before(l.suspectAt()) || l.wasSuspended(now):
		return SessionSuspect
	}
	return SessionAlive
}

// wasSuspended says whether the wall clock moved on by more than the monotonic one since the last confirmation, and so much more that the session
// may be over: the machine was suspended, or its clock was set.
func (l *lease) wasSuspended(now time.Time) bool {
	return wall.Of(now).Sub(l.confirmedWall)-now.Sub(l.confirmed) > l.margin()
}

// margin is the part of the time to live that is given away.
func (l *lease) margin() time.Duration { return max(l.ttl/leaseMarginPart, leaseMarginMin) }

// loss says why it is lost, if it is.
func (l *lease) loss(now time.Time) Loss {
	if l.lost == "" && !now.Before(l.deadline()) {
		return LossNotRenewed
	}
	return l.lost
}

// deadline is when it is lost unless it is renewed before.
func (l *lease) deadline() time.Time {
	return l.confirmed.Add(max(l.ttl-l.margin(), 0))
}

func (l *lease) suspectAt() time.Time {
	if half := l.confirmed.Add(l.ttl / 2); half.Before(l.deadline()) {
		return half
	}
	return l.deadline()
}

// changesAt is when its state changes next, if nothing happens meanwhile; zero once it is lost.
func (l *lease) changesAt(now time.Time) time.Time {
	switch l.state(now) {
	case SessionAlive:
		return l.suspectAt()
	case SessionSuspect:
		return l.deadline()
	}
	return time.Time{}
}

// renewalAt is when to renew it; zero while a renewal is on its way, and once it is lost.
func (l *lease) renewalAt(now time.Time) time.Time {
	if l.isRenewing || l.lost != "" {
		return time.Time{}
	}
	due := l.confirmed.Add(l.renewIn)
	if l.wasSuspended(now) {
		due = l.confirmed
	}
	if l.againAt.After(due) {
		return l.againAt
	}
	return due
}

// mayJoin says whether it may as well be renewed now, since another one is: a quarter of the time early at most.
func (l *lease) mayJoin(now time.Time) bool {
	due := l.renewalAt(now)
	return !due.IsZero() && !now.Add(l.renewIn/4).Before(due)
}

// round is how long one renewal may take before it is sent anew, perhaps by another way.
func (l *lease) round() time.Duration {
	return min(max(l.ttl/leaseRoundPart, leaseRoundMin), leaseRoundMax)
}

func (l *lease) onSent() { l.isRenewing = true }

// onConfirmed: a renewal that went out at sent was confirmed. Too late is never: who looked meanwhile was told that it is lost.
func (l *lease) onConfirmed(sent, now time.Time) {
	l.isRenewing, l.againAt = false, time.Time{}
	l.lost = l.loss(now)
	if sent.After(l.confirmed) {
		l.confirmed, l.confirmedWall = sent, wall.Of(sent)
	}
}

// onFailed: a renewal brought no answer.
func (l *lease) onFailed(now time.Time) {
	l.isRenewing, l.againAt = false, now.Add(l.round()/8)
}

// onOver: it is over.
func (l *lease) onOver(loss Loss, now time.Time) {
	l.isRenewing = false
	if l.lost = l.loss(now); l.lost == "" {
		l.lost = loss
	}
}
