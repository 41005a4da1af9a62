package quorate

// What a failed call means for its caller. Owns Error, and the two answers that matter: was it applied, and may it be tried again.
// Never guesses: where the outcome of a write is not known, the error says so and carries the id to ask with.

import (
	"fmt"
	"strings"
	"time"

	"quorate.dev/go/api"
)

// Error is the error of every call.
//
// Where a node answered, it has what the problem document of the node says. Otherwise the client made it: Code is one of the
// constants of this package, and Unwrap gives what lies behind it.
type Error struct {
	// Code says what went wrong. One that this version does not know stays readable.
	Code api.ErrorCode
	// Status is that of HTTP; 0 where no node decided.
	Status int
	// Applied says whether the call took effect: yes, no or unknown.
	Applied api.Applied
	// Retry says what to do about it: nothing, to read first, or to send the same again under the same request id.
	Retry api.Retry
	// Detail is for people.
	Detail string
	// RequestID is the id of the write, with which Client.RequestOutcome tells what became of it.
	RequestID string
	// Current is the entry as it is, where a condition on it did not hold.
	Current *Entry
	// Failed are the conditions that did not hold.
	Failed []api.Failed
	// Faults point at what is wrong with the request.
	Faults []api.InputFault
	// OldestRevision is the oldest that can be read, where an older one was asked for.
	OldestRevision uint64
	// RetryAfter is how long a node asks to wait.
	RetryAfter time.Duration
	// Problem is the whole document, where a node sent one: of a call that was given up, the last one.
	Problem *api.Problem
	// Attempts is how often the call was sent, or tried to be sent, before it was given up; 0 for any other error.
	Attempts int

	cause error
	// ended is why a call was given up before its time, such as the end of its context.
	ended error
}

// Codes of errors that no node answered. Where a node would have a code for it, the error has that: `locked` where a lock was not got in
// time, `session_expired` where a session is lost, `timeout` where no node could serve the call in time, `invalid_argument` for what makes
// no sense.
const (
	// CodeProtocol: a server answered something that is not Quorate's API.
	CodeProtocol api.ErrorCode = "protocol"
	// CodeContended: an update lost the race for its entry every time.
	CodeContended api.ErrorCode = "contended"
	// CodeBehind: a mirror did not come to a revision in time.
	CodeBehind api.ErrorCode = "behind"
	// CodeSessionSuspect: no renewal of the session was confirmed lately; nothing was done.
	CodeSessionSuspect api.ErrorCode = "session_suspect"
	// CodeDecode: a value is not of the type asked for, or has no JSON form; nothing was done.
	CodeDecode api.ErrorCode = "decode"
)

// code is a sentinel: errors.Is finds it in an Error of that code.
type code api.ErrorCode

func (c code) Error() string { return strings.ReplaceAll(string(c), "_", " ") }

// Sentinels for errors.Is, one for each code.
var (
	ErrAlreadyExists        error = code(api.ErrorCodeAlreadyExists)
	ErrAlreadyQueued        error = code(api.ErrorCodeAlreadyQueued)
	ErrCasMismatch          error = code(api.ErrorCodeCasMismatch)
	ErrChangeRefused        error = code(api.ErrorCodeChangeRefused)
	ErrCompacted            error = code(api.ErrorCodeCompacted)
	ErrConditionNotMet      error = code(api.ErrorCodeConditionNotMet)
	ErrDifferentSettings    error = code(api.ErrorCodeDifferentSettings)
	ErrGuardFailed          error = code(api.ErrorCodeGuardFailed)
	ErrInUse                error = code(api.ErrorCodeInUse)
	ErrInternal             error = code(api.ErrorCodeInternal)
	ErrInvalidArgument      error = code(api.ErrorCodeInvalidArgument)
	ErrInvalidDocument      error = code(api.ErrorCodeInvalidDocument)
	ErrLocked               error = code(api.ErrorCodeLocked)
	ErrMethodNotAllowed     error = code(api.ErrorCodeMethodNotAllowed)
	ErrNoLeader             error = code(api.ErrorCodeNoLeader)
	ErrNotFound             error = code(api.ErrorCodeNotFound)
	ErrNotLockHolder        error = code(api.ErrorCodeNotLockHolder)
	ErrNotReady             error = code(api.ErrorCodeNotReady)
	ErrPermissionDenied     error = code(api.ErrorCodePermissionDenied)
	ErrPreconditionRequired error = code(api.ErrorCodePreconditionRequired)
	ErrQuarantined          error = code(api.ErrorCodeQuarantined)
	ErrQuotaExceeded        error = code(api.ErrorCodeQuotaExceeded)
	ErrRequestIDReused      error = code(api.ErrorCodeRequestIDReused)
	ErrSessionExpired       error = code(api.ErrorCodeSessionExpired)
	ErrTimeout              error = code(api.ErrorCodeTimeout)
	ErrTooDear              error = code(api.ErrorCodeTooDear)
	ErrTooLarge             error = code(api.ErrorCodeTooLarge)
	ErrTooManyRequests      error = code(api.ErrorCodeTooManyRequests)
	ErrUnauthenticated      error = code(api.ErrorCodeUnauthenticated)
	ErrUniqueViolation      error = code(api.ErrorCodeUniqueViolation)
	ErrUnknownField         error = code(api.ErrorCodeUnknownField)
	ErrUnsupportedMediaType error = code(api.ErrorCodeUnsupportedMediaType)

	ErrProtocol       error = code(CodeProtocol)
	ErrContended      error = code(CodeContended)
	ErrBehind         error = code(CodeBehind)
	ErrSessionSuspect error = code(CodeSessionSuspect)
	ErrDecode         error = code(CodeDecode)

	// ErrUnavailable is found in every call that was given up because no node could serve it in time, whatever the last one said.
	ErrUnavailable error = code("unavailable")
	// ErrUnknownOutcome is found in every error of a write that may have been applied.
	ErrUnknownOutcome error = code("unknown_outcome")
)

// Error is the detail, for people.
func (e *Error) Error() string {
	if e.Attempts == 0 {
		return "quorate: " + e.Detail
	}
	tries := "tries"
	if e.Attempts == 1 {
		tries = "try"
	}
	why := ""
	if e.ended != nil {
		why = fmt.Sprintf(": %v", e.ended)
	}
	return fmt.Sprintf("quorate: gave up after %d %s%s; the last: %s", e.Attempts, tries, why, e.Detail)
}

// Is finds the sentinels.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrUnavailable:
		return e.Attempts > 0
	case ErrUnknownOutcome:
		return e.Applied == api.AppliedUnknown
	}
	sentinel, ok := target.(code)
	return ok && api.ErrorCode(sentinel) == e.Code
}

// Unwrap is what lies behind the error, such as that of the context.
func (e *Error) Unwrap() error { return e.cause }

// Retryable says whether the same call, under the same request id, may succeed later.
func (e *Error) Retryable() bool {
	switch e.Code {
	case CodeContended, CodeBehind, CodeSessionSuspect:
		return true
	}
	return e.Retry == api.RetrySameRequestID || e.Attempts > 0
}

// rejected is the error of a problem document.
func rejected(problem *api.Problem) *Error {
	e := &Error{
		Code: problem.Code, Status: problem.Status, Applied: problem.Applied, Retry: problem.Retry, Detail: problem.Detail,
		RequestID: problem.RequestID, Current: problem.Current, Failed: problem.Failed, Faults: problem.Errors,
		OldestRevision: problem.OldestRevision, Problem: problem,
	}
	if problem.RetryAfterMs != nil {
		e.RetryAfter = millis(*problem.RetryAfterMs)
	}
	return e
}

// localError is one that the client makes by itself: nothing was sent, or nothing done.
func localError(code api.ErrorCode, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Applied: api.AppliedNo, Retry: api.RetryNever, Detail: fmt.Sprintf(format, args...), cause: cause}
}

func invalid(format string, args ...any) *Error {
	return localError(api.ErrorCodeInvalidArgument, nil, format, args...)
}

// failureKind is a way in which an attempt can fail.
type failureKind int

const (
	// failedNotSent: no connection came about, or it was lost before the request went out.
	failedNotSent failureKind = iota
	// failedTLS: one side does not believe the other's certificate, or does not speak TLS.
	failedTLS
	// failedBroken: the connection was lost after the request went out.
	failedBroken
	// failedTimedOut: the request went out, and no answer came in time.
	failedTimedOut
	// failedProblem: the node answered that it cannot serve this now.
	failedProblem
	// failedStrange: a 5xx that is no problem document, as proxies send it.
	failedStrange
	// failedForeign: the node is of another cluster, so that nothing was done in ours.
	failedForeign
	// failedNonsense: the answer is not that of a node. Ends the call.
	failedNonsense
)

// failure is an attempt that brought no final answer.
type failure struct {
	address string
	kind    failureKind
	problem *api.Problem
	cause   error
	detail  string
}

func (f *failure) words() string {
	switch f.kind {
	case failedNotSent:
		return fmt.Sprintf("%s: could not send: %v", f.address, f.cause)
	case failedTLS:
		return fmt.Sprintf("%s: no secure connection: %v", f.address, f.cause)
	case failedBroken:
		return fmt.Sprintf("%s: the connection broke: %v", f.address, f.cause)
	case failedProblem:
		return fmt.Sprintf("%s: %s: %s", f.address, f.problem.Title, f.problem.Detail)
	default:
		return fmt.Sprintf("%s: %s", f.address, f.detail)
	}
}

// leavesOpen says whether a write could have been applied, or could still be, by this attempt.
func (f *failure) leavesOpen() bool {
	switch f.kind {
	case failedNotSent, failedTLS, failedForeign:
		return false
	case failedProblem:
		return f.problem.Applied != api.AppliedNo
	default:
		return true
	}
}

// gaveUp is the error of a call that was tried until its time or its tries ran out.
func gaveUp(requestID string, attempts int, isOpen bool, last *failure, cause error) *Error {
	e := &Error{Code: api.ErrorCodeTimeout}
	if last.problem != nil {
		e = rejected(last.problem)
	}
	e.Applied, e.Retry, e.Detail, e.Attempts = api.AppliedNo, api.RetrySameRequestID, last.words(), attempts
	if isOpen {
		e.Applied = api.AppliedUnknown
	}
	if requestID != "" {
		e.RequestID = requestID
	}
	e.cause, e.ended = cause, cause
	if cause == nil {
		e.cause = last.cause
	}
	return e
}
