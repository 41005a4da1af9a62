package quorate

// Operations by the stream: many in one request, each a line, each decided by itself. Owns which operations are not decided yet, and what a
// line of an answer means for its operation. Each write keeps one request id over all streams that it goes in, so it is applied at most once.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"

	"quorate.dev/go/api"
)

const (
	linesType = "application/x-ndjson"
	// linesMax: operations of one request, about as many as a node has under way of one.
	linesMax = 1000
	// linesBytesMax are bytes of its lines; one that is longer goes alone.
	linesBytesMax = 1 << 20
)

// Streamed is what became of one operation of a stream.
type Streamed struct {
	// N says which one, from 0.
	N int
	// Op is the operation.
	Op Op
	// Written is the answer to one that writes.
	Written *Written
	// Entry is that of one that reads.
	Entry *Entry
	// Err says why it failed.
	Err error
}

// Stream does any number of operations, reads too, each by itself, and gives what became of each as soon as it is known, in any order:
//
//	for done := range client.Stream(ctx, slices.Values(ops)) {
//		if done.Err != nil { … }
//	}
//
// Many go in one request, which saves what a request costs; they run beside each other, so two of the same key have no order. Writes are
// repeated under their request ids until they are decided, within the deadline of a call. Operations are asked for as they are sent. Once the
// context ends those that were sent are given with its error, and no others.
func (c *Client) Stream(ctx context.Context, ops iter.Seq[Op]) iter.Seq[*Streamed] {
	return func(yield func(*Streamed) bool) {
		next, stop := iter.Pull(ops)
		defer stop()
		lines := &lines{c: c, next: next}
		for batch, isMore := lines.batch(); isMore && ctx.Err() == nil; batch, isMore = lines.batch() {
			until := c.deadline(ctx, &call{intent: intentWrite})
			for len(batch) > 0 {
				var goesOn bool
				if batch, goesOn = c.round(ctx, batch, until, yield); !goesOn {
					return
				}
			}
		}
	}
}

// line is an operation that is not decided yet.
type line struct {
	n         int
	op        Op
	text      []byte
	requestID string
	attempts  attempts
	// last is how the last attempt failed, after which to rest for so long; isOver: there is no further one.
	last   *failure
	rest   time.Duration
	isOver bool
}

// lines takes operations as many at a time as go in one request.
type lines struct {
	c    *Client
	next func() (Op, bool)
	n    int
	held *line
}

// batch is the next one; false at the end.
func (l *lines) batch() ([]*line, bool) {
	var batch []*line
	size := 0
	for {
		one := l.take()
		if one == nil {
			return batch, len(batch) > 0
		}
		if size += len(one.text); len(batch) == linesMax || (len(batch) > 0 && size > linesBytesMax) {
			l.held = one
			return batch, true
		}
		batch = append(batch, one)
	}
}

func (l *lines) take() *line {
	if one := l.held; one != nil {
		l.held = nil
		return one
	}
	op, ok := l.next()
	if !ok {
		return nil
	}
	made := newLine(l.n, op)
	l.n++
	return made
}

func newLine(n int, op Op) *line {
	made := &line{n: n, op: op}
	body := op.op
	if body.Op != api.OpKindGet {
		if body.RequestID == "" {
			body.RequestID = NewRequestID()
		}
		made.requestID = body.RequestID
	}
	text, err := requestText(body)
	if err == nil && body.WaitMs != nil {
		err = invalid("an operation in a stream does not wait for a lock")
	}
	if made.text = text; err != nil && op.err == nil {
		made.op.err = err
	}
	return made
}

func (l *line) intent() intent {
	if l.requestID == "" {
		return intentRead
	}
	return intentWrite
}

func (l *line) done(err error) *Streamed { return &Streamed{N: l.n, Op: l.op, Err: err} }

// refused is its end where nothing is said of attempts before.
func (l *line) refused(err error) *Streamed {
	var e *Error
	if !errors.As(err, &e) {
		return l.done(err)
	}
	own := *e
	if own.RequestID = l.requestID; l.attempts.isOpen || (l.requestID != "" && e.Applied == api.AppliedUnknown) {
		own.Applied, own.Retry = api.AppliedUnknown, api.RetrySameRequestID
	} else if l.requestID == "" {
		own.Applied = api.AppliedNo
	}
	return l.done(&own)
}

// gaveUp is its end after its last failure.
func (l *line) gaveUp(cause error) *Streamed {
	return l.done(gaveUp(l.requestID, l.attempts.failures, l.attempts.isOpen, l.last, cause))
}

// answered is its end by a good answer.
func (l *line) answered(text json.RawMessage) (*Streamed, error) {
	done := l.done(nil)
	switch l.op.op.Op {
	case api.OpKindGet, api.OpKindGetAndLock, api.OpKindGetAndTouch:
		done.Entry = new(Entry)
		return done, l.decode(text, done.Entry)
	}
	done.Written = new(Written)
	return done, l.decode(text, done.Written)
}

func (l *line) decode(text json.RawMessage, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	if wrong := (subject{"Key", l.op.op.Key}).check(into); wrong != nil {
		return wrong
	}
	return nil
}

// exchange is one request with the lines of a batch.
type exchange struct {
	c       *Client
	address string
	yield   func(*Streamed) bool
	waiting map[int]*line
	again   []*line
	// isLeft: nobody wants to hear of the rest.
	isLeft bool
}

func (x *exchange) tell(done *Streamed) { x.isLeft = x.isLeft || !x.yield(done) }

// round sends a batch once. Gives what is to be tried again, after a rest; false where nobody listens any more.
func (c *Client) round(ctx context.Context, batch []*line, until limit, yield func(*Streamed) bool) ([]*line, bool) {
	x := &exchange{c: c, yield: yield, waiting: map[int]*line{}}
	body := x.body(batch, max(min(until.left(), c.options.AttemptTimeout), time.Millisecond))
	if len(x.waiting) == 0 || x.isLeft {
		return nil, !x.isLeft
	}
	wanted := &call{method: http.MethodPost, target: "/v1/ops", intent: intentWrite, preference: preferLeader, body: body}
	place, opened, err := c.openStream(ctx, wanted.set("Content-Type", linesType), linesType, until)
	if err != nil {
		for _, one := range x.waiting {
			x.tell(one.refused(err))
		}
		return nil, !x.isLeft
	}
	defer opened.close()
	x.address = opened.address
	if err := x.listen(opened); err != nil {
		x.broke(err)
	}
	if len(x.again) > 0 {
		c.nodeFailed(place)
	}
	return x.rest(ctx, until)
}

// body are the lines, each with the time that a node has for it.
func (x *exchange) body(batch []*line, told time.Duration) []byte {
	var body bytes.Buffer
	for _, one := range batch {
		if one.op.err != nil {
			x.tell(one.done(one.op.err))
			continue
		}
		x.waiting[one.n] = one
		fmt.Fprintf(&body, `{"n":%d,"timeout_ms":%d,"op":%s}`+"\n", one.n, milliseconds(told), one.text)
	}
	return body.Bytes()
}

// listen takes answers until all are there, the stream ends, or nobody wants to hear more.
func (x *exchange) listen(opened *stream) error {
	for len(x.waiting) > 0 && !x.isLeft {
		text, err := opened.line(x.c.options.AttemptTimeout)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		var answer api.AnswerLine
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			return fmt.Errorf("a line of a stream is not what it should be: %w", err)
		}
		if err := x.take(&answer); err != nil {
			return err
		}
	}
	return nil
}

func (x *exchange) take(answer *api.AnswerLine) error {
	if answer.N == nil {
		return x.refusedRest(answer)
	}
	one := x.waiting[int(*answer.N)]
	if one == nil {
		return fmt.Errorf("an answer to operation %d, which was not asked for", *answer.N)
	}
	delete(x.waiting, one.n)
	if answer.Status >= 200 && answer.Status < 300 {
		done, err := one.answered(answer.Answer)
		if err != nil {
			done = x.strange(one, fmt.Sprintf("the answer of status %d is not what an operation answers: %v", answer.Status, err))
		}
		x.tell(done)
		return nil
	}
	problem := problemOf(answer.Answer)
	switch {
	case problem == nil:
		x.tell(x.strange(one, fmt.Sprintf("status %d without a problem document", answer.Status)))
	case !isFinal(problem):
		x.fail(one, &failure{address: x.address, kind: failedProblem, problem: problem})
	case one.attempts.settledBy(problem):
		x.tell(one.done(rejected(problem)))
	default:
		x.tell(one.refused(rejected(problem)))
	}
	return nil
}

// refusedRest: the node takes none of the lines that it has not begun with, and does not say which those are.
func (x *exchange) refusedRest(answer *api.AnswerLine) error {
	problem := problemOf(answer.Answer)
	if problem == nil {
		return fmt.Errorf("status %d without a problem document", answer.Status)
	}
	isAlone := len(x.waiting) == 1
	for n, one := range x.waiting {
		delete(x.waiting, n)
		switch {
		case !isFinal(problem):
			x.fail(one, &failure{address: x.address, kind: failedProblem, problem: problem})
		case isAlone:
			x.tell(one.refused(rejected(problem)))
		default:
			x.tell(x.strange(one, "the rest of a stream is refused: "+problem.Detail))
		}
	}
	return nil
}

func (x *exchange) strange(one *line, detail string) *Streamed {
	e := localError(CodeProtocol, nil, "unexpected answer from %s: %s", x.address, detail)
	if e.RequestID = one.requestID; one.requestID != "" {
		e.Applied = api.AppliedUnknown
	}
	return one.done(e)
}

// fail: an attempt brought no decision.
func (x *exchange) fail(one *line, last *failure) {
	rest, isAgain := one.attempts.onFailure(last, one.intent(), x.c.options.Retry, x.c.transport.len(), rand.Float64())
	one.last, one.rest, one.isOver = last, rest, !isAgain
	x.again = append(x.again, one)
}

// broke: whether what was not answered was done is open.
func (x *exchange) broke(cause error) {
	for n, one := range x.waiting {
		delete(x.waiting, n)
		x.fail(one, &failure{address: x.address, kind: failedBroken, cause: cause})
	}
}

// rest gives up what has no further try, all of it where the time is up, and waits for the others.
func (x *exchange) rest(ctx context.Context, until limit) ([]*line, bool) {
	var pause time.Duration
	for _, one := range x.again {
		pause = max(pause, one.rest)
	}
	cause, isInTime := context.Cause(ctx), true
	if len(x.again) > 0 && cause == nil {
		isInTime, cause = until.sleep(ctx, pause)
	}
	var left []*line
	for _, one := range x.again {
		if one.isOver || !isInTime || cause != nil {
			x.tell(one.gaveUp(cause))
		} else {
			left = append(left, one)
		}
	}
	return left, !x.isLeft
}
