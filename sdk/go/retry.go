package quorate

// Whether, and how soon, to try again. Owns the policy and the bookkeeping of one call's attempts; knows neither the clock nor the
// network. Retries are safe by construction: what is tried again is a read, or a write under one request id, or was certainly not
// applied.

import (
	"time"

	"quorate.dev/go/api"
)

// adviceMax: a node that has too much to do says when to come again. Another one may have room sooner.
const adviceMax = time.Second

// waitPause is before a wait that no node could serve within a call's deadline goes on with another call.
const waitPause = 50 * time.Millisecond

// RetryPolicy says how eagerly a call is retried, within its deadline. A zero field stands for its default.
type RetryPolicy struct {
	// BackoffMin is the pause after all nodes failed once; the first failure is retried at another node at once. Default 10 ms.
	BackoffMin time.Duration
	// BackoffMax is the longest pause. Default 250 ms: a new leader is there within a second.
	BackoffMax time.Duration
	// AttemptsMax is most attempts of one call; 1 for no retries. Default 1,000.
	AttemptsMax int
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.BackoffMin == 0 {
		p.BackoffMin = 10 * time.Millisecond
	}
	if p.BackoffMax == 0 {
		p.BackoffMax = 250 * time.Millisecond
	}
	if p.AttemptsMax <= 0 {
		p.AttemptsMax = 1000
	}
	return p
}

// pause is that after so many failures of one call over so many nodes. The roll, in 0..1, is the jitter.
func (p RetryPolicy) pause(failures, nodes int, roll float64) time.Duration {
	if failures%nodes != 0 {
		return 0
	}
	rounds := failures / nodes
	full := min(p.BackoffMin<<min(max(rounds-1, 0), 16), p.BackoffMax)
	return time.Duration(float64(full) * (0.5 + 0.5*roll))
}

// isFinal says whether a problem document ends the call. If not, another attempt may find a better moment or a better node.
func isFinal(problem *api.Problem) bool {
	// A full disk does not clear up within a deadline: the caller should hear of it now.
	isFutile := problem.Retry != api.RetrySameRequestID || problem.Code == api.ErrorCodeQuotaExceeded
	return isFutile && problem.Applied != api.AppliedUnknown
}

// attempts are those of one call so far.
type attempts struct {
	failures int
	// isOpen: an attempt may have been applied. Stays set: a later attempt's `not applied` speaks for itself only.
	isOpen bool
}

// settledBy says whether a final problem document decides the whole call. What went through the log does, since request ids make
// all attempts one; a refusal before it was proposed says nothing about earlier attempts.
func (a *attempts) settledBy(problem *api.Problem) bool { return !a.isOpen || problem.Index != 0 }

// onFailure counts a failure. The pause before the next attempt, or false: there is none.
func (a *attempts) onFailure(last *failure, kind intent, policy RetryPolicy, nodes int, roll float64) (time.Duration, bool) {
	a.failures++
	a.isOpen = a.isOpen || (kind != intentRead && last.leavesOpen())
	if (a.isOpen && kind == intentOnce) || a.failures >= policy.AttemptsMax {
		return 0, false
	}
	switch {
	case last.kind == failedProblem && last.problem.Code == api.ErrorCodeTooManyRequests:
		var advice time.Duration
		if last.problem.RetryAfterMs != nil {
			advice = min(millis(*last.problem.RetryAfterMs), adviceMax)
		}
		return max(policy.pause(a.failures*nodes, nodes, roll), advice), true
	case last.kind == failedTLS && a.failures >= nodes:
		// Certificates do not get better within a deadline, but another node may have good ones.
		return 0, false
	}
	return policy.pause(a.failures, nodes, roll), true
}
