package quorate

import (
	"testing"
	"time"
)

const leaseTTL = 9 * time.Second

func startedLease() (*lease, time.Time) {
	sent := time.Now()
	started := newLease(leaseTTL, leaseTTL/3, sent)
	return &started, sent
}

func after(start time.Time, ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func TestWithoutRenewalsItBecomesSuspectAtHalfAndLostBeforeItsTimeIsOver(t *testing.T) {
	l, start := startedLease()
	for ms, state := range map[int]SessionState{
		0: SessionAlive, 4499: SessionAlive, 4500: SessionSuspect, 8099: SessionSuspect, 8100: SessionLost, 9000: SessionLost,
	} {
		if got := l.state(after(start, ms)); got != state {
			t.Errorf("after %d ms it is %s, not %s", ms, got, state)
		}
	}
	if l.loss(after(start, 8100)) != LossNotRenewed || !l.changesAt(after(start, 8100)).IsZero() {
		t.Error("it is lost for want of renewals, for good")
	}
	if !l.changesAt(start).Equal(after(start, 4500)) || !l.changesAt(after(start, 4500)).Equal(after(start, 8100)) {
		t.Error("it does not know when it changes")
	}
}

func TestARenewalCountsFromWhenItWasSentAndNotFromItsAnswer(t *testing.T) {
	l, start := startedLease()
	l.onSent()
	l.onConfirmed(after(start, 3000), after(start, 8000))
	if !l.deadline().Equal(after(start, 11100)) || l.state(after(start, 8000)) != SessionSuspect {
		t.Error("that answer is old news already")
	}
	if l.onConfirmed(after(start, 2000), after(start, 8001)); !l.deadline().Equal(after(start, 11100)) {
		t.Error("an older one took something back")
	}
}

func TestAnAnswerAfterTheDeadlineBringsNothingBack(t *testing.T) {
	l, start := startedLease()
	l.onSent()
	l.onConfirmed(after(start, 8000), after(start, 8100))
	if l.loss(after(start, 8100)) != LossNotRenewed || !l.renewalAt(start).IsZero() {
		t.Error("who looked meanwhile was told that it is lost")
	}
}

func TestWhatTheClusterEndsIsLostAtOnceAndForTheFirstReason(t *testing.T) {
	l, start := startedLease()
	l.onOver(LossExpired, after(start, 1))
	l.onOver(LossEnded, after(start, 2))
	if l.state(after(start, 1)) != SessionLost || l.loss(after(start, 9999)) != LossExpired {
		t.Errorf("it is %s, %s", l.state(after(start, 1)), l.loss(after(start, 9999)))
	}
}

func TestRenewalsAreDueAtAThirdOneAtATimeAndSoonAgainAfterAFailure(t *testing.T) {
	l, start := startedLease()
	if !l.renewalAt(start).Equal(after(start, 3000)) {
		t.Error("the first is due at a third")
	}
	if l.onSent(); !l.renewalAt(start).IsZero() {
		t.Error("one is on its way")
	}
	l.onFailed(after(start, 4500))
	if again := l.renewalAt(start); !again.After(after(start, 4500)) || !again.Before(after(start, 4800)) {
		t.Errorf("it is tried again after %v", again.Sub(start))
	}
	l.onSent()
	l.onConfirmed(after(start, 4600), after(start, 4700))
	if !l.renewalAt(start).Equal(after(start, 7600)) {
		t.Error("the next is a third after the last was sent")
	}
}

func TestThreeRoundsFitBetweenTheFirstRenewalAndTheDeadlineOfAnySession(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, time.Second, 10 * time.Second, 24 * time.Hour} {
		l := newLease(ttl, ttl, time.Now())
		if !l.renewalAt(l.confirmed).Add(2*l.round()).Before(l.deadline()) || !l.deadline().Before(l.confirmed.Add(ttl)) {
			t.Errorf("they do not in %v", ttl)
		}
	}
}

func TestSessionsJoinARenewalALittleEarlyButNeverRightAfterTheirOwn(t *testing.T) {
	l, start := startedLease()
	if l.mayJoin(after(start, 2000)) || !l.mayJoin(after(start, 2250)) || !l.mayJoin(after(start, 3000)) {
		t.Error("a quarter of the time early at most")
	}
}

func TestAfterTheMachineWasSuspendedNothingIsCertainUntilTheNextAnswer(t *testing.T) {
	l, start := startedLease()
	now := after(start, 1000)
	// The wall clock moved by so much more than the other.
	ahead := func(by time.Duration) { l.confirmedWall = l.confirmed.Round(0).Add(-by) }
	if ahead(l.margin()); l.state(now) != SessionAlive || !l.renewalAt(now).Equal(after(start, 3000)) {
		t.Error("clocks do not run alike")
	}
	if ahead(l.margin() + 1); l.state(now) != SessionSuspect || l.loss(now) != "" || l.renewalAt(now).After(now) {
		t.Errorf("it is %s, to be renewed %v from now", l.state(now), l.renewalAt(now).Sub(now))
	}
	l.onSent()
	if l.onFailed(now); !l.renewalAt(now).After(now) || l.state(now) != SessionSuspect {
		t.Error("after a failure there is a pause")
	}
	l.onSent()
	if l.onConfirmed(after(start, 1100), after(start, 1200)); l.state(after(start, 1200)) != SessionAlive {
		t.Errorf("it is confirmed, and %s", l.state(after(start, 1200)))
	}
	// Sent before, answered after.
	l.onSent()
	sent := after(start, 4000)
	l.onConfirmed(sent, sent)
	if ahead(time.Hour); l.state(after(start, 4001)) != SessionSuspect {
		t.Error("what was sent before says nothing of what came after")
	}
}

func TestTriesFollowAtOnceThenWithPausesAndThenAtOnceAgain(t *testing.T) {
	for _, tries := range []int{1, triesAtOnce, triesPatient + 1, triesMax} {
		if got := updatePause(tries, 0.9); got != 0 {
			t.Errorf("a pause of %v after %d tries", got, tries)
		}
	}
	if updatePause(triesAtOnce+1, 1) != 2*time.Millisecond || updatePause(triesAtOnce+2, 1) != 4*time.Millisecond ||
		updatePause(triesPatient, 1) != updatePauseMax {
		t.Error("pauses do not grow to their bound")
	}
}
