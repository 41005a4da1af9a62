package quorate

import (
	"errors"
	"testing"
	"time"

	"quorate.dev/go/api"
)

var policy = RetryPolicy{}.withDefaults()

func refusedConnection() *failure {
	return &failure{address: "n:1", kind: failedNotSent, cause: errors.New("connection refused")}
}

func brokenConnection() *failure {
	return &failure{address: "n:1", kind: failedBroken, cause: errors.New("reset")}
}

func problemFailure(code api.ErrorCode, applied api.Applied, retry api.Retry) *failure {
	return &failure{address: "n:1", kind: failedProblem, problem: &api.Problem{Code: code, Applied: applied, Retry: retry}}
}

func TestOtherNodesAreTriedAtOnceAndRoundsBackOffWithinBounds(t *testing.T) {
	for _, c := range []struct {
		failures, nodes int
		roll            float64
		pause           time.Duration
	}{
		{1, 3, 1, 0}, {2, 3, 1, 0}, {3, 3, 1, 10 * time.Millisecond}, {3, 3, 0, 5 * time.Millisecond}, {6, 3, 1, 20 * time.Millisecond},
		{3_000_000, 3, 1, policy.BackoffMax}, {1, 1, 1, 10 * time.Millisecond},
	} {
		if got := policy.pause(c.failures, c.nodes, c.roll); got != c.pause {
			t.Errorf("after %d failures over %d nodes: %v, not %v", c.failures, c.nodes, got, c.pause)
		}
	}
}

func TestAnAmbiguousAttemptKeepsTheOutcomeOpenWhateverComesAfter(t *testing.T) {
	var all attempts
	all.onFailure(refusedConnection(), intentWrite, policy, 3, 0.5)
	if all.isOpen {
		t.Error("nothing was sent")
	}
	all.onFailure(brokenConnection(), intentWrite, policy, 3, 0.5)
	all.onFailure(refusedConnection(), intentWrite, policy, 3, 0.5)
	if !all.isOpen {
		t.Error("the second attempt may have been applied")
	}
	decided := &api.Problem{Code: api.ErrorCodeCasMismatch, Applied: api.AppliedNo}
	if all.settledBy(decided) {
		t.Error("a refusal that did not go through the log settles nothing")
	}
	if decided.Index = 7; !all.settledBy(decided) {
		t.Error("one that did settles all attempts")
	}
}

func TestACallWithoutAnIDIsRepeatedOnlyWhileCertainlyNotApplied(t *testing.T) {
	var once, reads attempts
	if _, again := once.onFailure(refusedConnection(), intentOnce, policy, 3, 0.5); !again {
		t.Error("nothing was sent")
	}
	if _, again := once.onFailure(brokenConnection(), intentOnce, policy, 3, 0.5); again {
		t.Error("it may have been applied")
	}
	if _, again := reads.onFailure(brokenConnection(), intentRead, policy, 3, 0.5); !again || reads.isOpen {
		t.Error("a read changes nothing")
	}
}

func TestAnOverloadedNodeIsGivenAPauseEvenTheFirstTime(t *testing.T) {
	for _, c := range []struct{ advice, pause time.Duration }{
		{3 * time.Millisecond, 10 * time.Millisecond}, {400 * time.Millisecond, 400 * time.Millisecond}, {9 * time.Second, time.Second},
	} {
		told := problemFailure(api.ErrorCodeTooManyRequests, api.AppliedNo, api.RetrySameRequestID)
		told.problem.RetryAfterMs = someMillis(c.advice)
		var all attempts
		if pause, again := all.onFailure(told, intentRead, policy, 3, 1); !again || pause != c.pause {
			t.Errorf("told to wait %v, waits %v", c.advice, pause)
		}
	}
}

func TestFinalAreRefusalsButNeverAnUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		code    api.ErrorCode
		applied api.Applied
		retry   api.Retry
		isFinal bool
	}{
		{api.ErrorCodeCasMismatch, api.AppliedNo, api.RetryAfterReading, true},
		{api.ErrorCodeQuotaExceeded, api.AppliedNo, api.RetrySameRequestID, true},
		{api.ErrorCodeNoLeader, api.AppliedNo, api.RetrySameRequestID, false},
		{api.ErrorCodeTimeout, api.AppliedUnknown, api.RetrySameRequestID, false},
		{api.ErrorCodeInternal, api.AppliedUnknown, api.RetryNever, false},
		{"tea_time", api.AppliedNo, api.RetryNever, true},
	} {
		if got := isFinal(problemFailure(c.code, c.applied, c.retry).problem); got != c.isFinal {
			t.Errorf("%s, applied %s: final %v", c.code, c.applied, got)
		}
	}
}

func TestErrorsAreFoundByTheirCodes(t *testing.T) {
	refusal := rejected(&api.Problem{Code: "tea_time", Detail: "at five", Applied: api.AppliedNo, Retry: api.RetryNever})
	if refusal.Error() != "quorate: at five" || errors.Is(refusal, ErrCasMismatch) || errors.Is(refusal, ErrUnavailable) {
		t.Errorf("an unknown code is not readable: %v", refusal)
	}
	cause := errors.New("reset")
	last := brokenConnection()
	last.cause = cause
	var err error = gaveUp("id", 3, true, last, nil)
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, ErrTimeout) || !errors.Is(err, cause) {
		t.Errorf("%v is not what it is", err)
	}
	var e *Error
	if !errors.As(err, &e) || e.RequestID != "id" || !e.Retryable() {
		t.Errorf("%+v does not tell how to go on", e)
	}
	told := gaveUp("", 1, false, problemFailure(api.ErrorCodeNoLeader, api.AppliedNo, api.RetrySameRequestID), nil)
	if !errors.Is(told, ErrNoLeader) || !errors.Is(told, ErrUnavailable) || errors.Is(told, ErrUnknownOutcome) {
		t.Errorf("%v is not what the node said", told)
	}
}
