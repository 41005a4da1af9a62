package quorate

// Optimistic update: read, decide, write on the token that was read, again while someone else was faster. Owns the loop and its bound. A
// refused try brings the entry as it is along, so the next try costs one round trip.

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"quorate.dev/go/api"
)

const (
	// triesMax of one update: rivals that are nearer to the leader win more often.
	triesMax = 1024
	// triesAtOnce follow at once: mostly there are few rivals, and what a refusal showed is never as fresh again.
	triesAtOnce = 8
	// triesPatient: then there are pauses, so that the crowd spreads; but who lost so often tries at once again, until it wins.
	triesPatient = 48
	// updatePauseMax: pauses are random up to this.
	updatePauseMax = 16 * time.Millisecond
)

// UpdateOptions refine an update.
type UpdateOptions struct {
	// Tries is most tries; default 1,024.
	Tries int
	// TTL is the time to live from the write on, instead of what the entry has left.
	TTL time.Duration
	// Session is the id of the session that the entry goes with from now on, instead of the one that it has.
	Session string
	// Guard: only while this lock or leadership holds.
	Guard Guarded
	// DropUnknown drops fields of the document that T has no place for. Without it, an update that would lose one fails.
	DropUnknown bool
}

// Updated says what an update did.
type Updated[T any] struct {
	// Value is what was written; the one that was read where nothing was; nil where there is no entry.
	Value *T
	// Written is the answer to the write; nil where the function left things as they are.
	Written *Written
	// Tries is how many it took.
	Tries int
}

// Update replaces the value of an entry by what change makes of it. It gets nil where there is no entry, which is then created; it returns
// nil to leave things as they are, and an error to end the update with it. It may be called many times, and should depend on its argument
// only. The entry keeps its session and the time it has left to live.
//
// What is written is what T holds. So an update is refused with [ErrDecode], which names the fields, where the document has some that T has no place
// for: [Client.Patch] changes single fields and leaves the others alone, and a map[string]any keeps all of them, its numbers as [json.Number] with
// all their digits. A number that T has as a float is written as that float.
//
// Fails with [ErrLocked] while somebody else has the entry locked, and with [ErrContended] once all tries are lost.
func Update[T any](ctx context.Context, c *Client, key string, change func(current *T) (*T, error), options *UpdateOptions) (*Updated[T], error) {
	if options == nil {
		options = &UpdateOptions{}
	}
	if err := notNegative(span{"TTL", options.TTL}); err != nil {
		return nil, err
	}
	current, err := c.getOrNil(ctx, key)
	for tries := 1; err == nil; tries++ {
		var value, made *T
		if value, made, err = changed(current, change); err != nil {
			return nil, err
		}
		if made == nil {
			return &Updated[T]{Value: value, Tries: tries}, nil
		}
		if err := loss[T](current, options); err != nil {
			return nil, err
		}
		var written *Written
		if written, err = c.write(ctx, updateOp(key, current, made, options), nil); err == nil {
			return &Updated[T]{Value: made, Written: written, Tries: tries}, nil
		}
		current, err = c.afterLostRace(ctx, key, tries, options, err)
	}
	return nil, err
}

// changed decodes the entry and calls the function.
func changed[T any](current *Entry, change func(*T) (*T, error)) (value, made *T, err error) {
	if current != nil {
		doc, err := Decode[T](current)
		if err != nil {
			return nil, nil, err
		}
		value = &doc.Value
	}
	made, err = change(value)
	return value, made, err
}

// loss is the error of fields that would be lost.
func loss[T any](current *Entry, options *UpdateOptions) error {
	if current == nil || options.DropUnknown {
		return nil
	}
	of := reflect.TypeFor[T]()
	lost := lostFields(current.Value, of)
	if len(lost) == 0 {
		return nil
	}
	return localError(CodeDecode, nil, "`%s` has fields that %v has no place for, and would lose them: `%s`; change it by Patch or as a map[string]any, "+
		"give the type these fields, or say DropUnknown", current.Key, of, strings.Join(lost, "`, `"))
}

// updateOp is the write of this value in place of what was read.
func updateOp(key string, current *Entry, value any, options *UpdateOptions) Op {
	write := &WriteOptions{Session: options.Session, Guard: options.Guard, TTL: options.TTL}
	if current == nil {
		return OpInsert(key, value, write)
	}
	if write.Session == "" {
		write.Session = current.Session
	}
	write.Cas = current.Cas
	op := OpPut(key, value, write)
	if current.Cas == "" {
		op.err = lockedError(key, current)
	}
	if options.TTL == 0 {
		// The time that was left when it was read would be given anew by each update, and the entry would never expire.
		op.op.TTL = api.TtlRuleKeep
	}
	return op
}

func lockedError(key string, current *Entry) *Error {
	e := localError(api.ErrorCodeLocked, nil, "`%s` is locked by somebody else", key)
	e.Retry, e.Current = api.RetryAfterReading, current
	if left, ok := current.LockTime(); ok {
		e.RetryAfter = left
	}
	return e
}

// afterLostRace gives the entry as it is now for the next try, or the error that ends the update.
func (c *Client) afterLostRace(ctx context.Context, key string, tries int, options *UpdateOptions, err error) (*Entry, error) {
	var refusal *Error
	if !errors.As(err, &refusal) || !isLostRace(refusal) {
		return nil, err
	}
	limit := triesMax
	if options.Tries > 0 {
		limit = options.Tries
	}
	if tries >= limit {
		e := localError(CodeContended, err, "`%s` changed under each of %d tries to update it", key, tries)
		e.Retry, e.Current = api.RetryAfterReading, refusal.Current
		return nil, e
	}
	if pause := updatePause(tries, rand.Float64()); pause > 0 {
		// What the refusal showed has aged by then: a try on it would lose to everyone who has just read.
		if err := sleep(ctx, pause); err != nil {
			return nil, localError(api.ErrorCodeTimeout, err, "the update of `%s` was given up: %v", key, err)
		}
	} else if refusal.Current != nil && refusal.Current.Value != nil {
		return refusal.Current, nil
	}
	return c.getOrNil(ctx, key)
}

func (c *Client) getOrNil(ctx context.Context, key string) (*Entry, error) {
	entry, err := c.Get(ctx, key, nil)
	if isMissing(err) {
		return nil, nil
	}
	return entry, err
}

// isMissing: there is no such entry, as opposed to no such path.
func isMissing(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == api.ErrorCodeNotFound && len(e.Faults) == 0 && e.Attempts == 0
}

// isLostRace says whether the entry changed between read and write.
func isLostRace(e *Error) bool {
	switch e.Code {
	case api.ErrorCodeCasMismatch, api.ErrorCodeAlreadyExists, api.ErrorCodeNotFound:
		return len(e.Faults) == 0 && e.Attempts == 0
	}
	return false
}

// updatePause is how long to wait after so many tries; 0 for not at all.
func updatePause(tries int, roll float64) time.Duration {
	if tries <= triesAtOnce || tries > triesPatient {
		return 0
	}
	full := min(2*time.Millisecond<<min(tries-triesAtOnce-1, 10), updatePauseMax)
	return time.Duration(float64(full) * roll)
}
