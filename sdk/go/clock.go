package quorate

// Until when something is repeated. Owns the judgement that a time is over: by the monotonic clock, which stands still while a machine is
// suspended, and by the wall clock, which does not but may be set. It is over when either says so: nodes forget the request ids of writes, and
// what is repeated under an id that they have forgotten is applied a second time.

import (
	"context"
	"time"

	"quorate.dev/go/internal/wall"
)

// endless stands for no bound.
const endless = 100 * 365 * 24 * time.Hour

// clock is what time it is. The two are apart only so that tests can move one of them.
type clock struct {
	monotonic func() time.Time
	wall      func() time.Time
}

var machineClock = clock{monotonic: time.Now, wall: wallNow}

func wallNow() time.Time { return wall.Of(time.Now()) }

// limit is when a time is over. The zero value is never.
type limit struct {
	clock           clock
	monotonic, wall time.Time
}

// after is the limit of so much time from now on.
func (c clock) after(d time.Duration) limit {
	return limit{clock: c, monotonic: c.monotonic().Add(d), wall: c.wall().Add(d)}
}

func (l limit) isNever() bool { return l.monotonic.IsZero() }

// left is how much is left of the time; nothing or less once it is over.
func (l limit) left() time.Duration {
	if l.isNever() {
		return endless
	}
	return min(l.monotonic.Sub(l.clock.monotonic()), l.wall.Sub(l.clock.wall()))
}

// sleep waits for the pause, or ends with the context's error. False where the limit comes before the end of the pause: a machine may be suspended
// meanwhile.
func (l limit) sleep(ctx context.Context, pause time.Duration) (isInTime bool, err error) {
	if pause >= l.left() {
		return false, context.Cause(ctx)
	}
	err = sleep(ctx, pause)
	return l.left() > 0, err
}

// repeatable is a request id under which the same is asked in one call after the other.
type repeatable struct {
	c     *Client
	id    string
	until limit
}

func (c *Client) newRepeatable() *repeatable {
	return &repeatable{c: c, id: NewRequestID(), until: c.clock.after(writePatienceMax)}
}

// isFresh says whether nodes certainly still know what they decided under the id.
func (r *repeatable) isFresh() bool { return r.until.left() > 0 }

// fresh is the id, or a new one once nodes may have forgotten it.
func (r *repeatable) fresh() string {
	if !r.isFresh() {
		*r = *r.c.newRepeatable()
	}
	return r.id
}
