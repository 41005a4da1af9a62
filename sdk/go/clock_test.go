package quorate

// Tests of what is over by one clock or the other.

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/go/api"
)

// shifted is a clock of which one hand is ahead.
type shifted struct{ monotonic, wall atomic.Int64 }

func (s *shifted) clock() clock {
	return clock{
		monotonic: func() time.Time { return time.Now().Add(time.Duration(s.monotonic.Load())) },
		wall:      func() time.Time { return wallNow().Add(time.Duration(s.wall.Load())) },
	}
}

// hands are what moves when a machine was busy or suspended for 20 minutes.
func hands(s *shifted) map[string]*atomic.Int64 {
	return map[string]*atomic.Int64{"monotonic": &s.monotonic, "wall": &s.wall}
}

func TestATimeIsOverOnceOneOfBothClocksSaysSo(t *testing.T) {
	var hand shifted
	for name, moved := range hands(&hand) {
		end := hand.clock().after(time.Minute)
		if left := end.left(); left <= 50*time.Second || left > time.Minute {
			t.Errorf("%v", left)
		}
		moved.Add(int64(20 * time.Minute))
		if left := end.left(); left > 0 {
			t.Errorf("by the %s clock it is over, and %v are left", name, left)
		}
		if isInTime, err := end.sleep(context.Background(), 0); isInTime || err != nil {
			t.Errorf("%v, %v", isInTime, err)
		}
	}
	if left := (limit{}).left(); left != endless {
		t.Errorf("%v", left)
	}
}

// TestAWriteIsNotRepeatedOnceNodesMayHaveForgottenIt, by a call nor in a stream: the machine was suspended after it was sent.
func TestAWriteIsNotRepeatedOnceNodesMayHaveForgottenIt(t *testing.T) {
	calls := map[string]func(context.Context, *Client) error{
		"put": func(ctx context.Context, c *Client) error {
			_, err := c.Increment(ctx, "k", "n", 1, nil)
			return err
		},
		"remove": func(ctx context.Context, c *Client) error {
			_, err := c.CountDown(ctx, "l", 1)
			return err
		},
		"stream": func(ctx context.Context, c *Client) (err error) {
			for done := range c.Stream(ctx, slices.Values([]Op{OpPatch("k", []PatchOperator{Inc("n", 1)}, nil)})) {
				err = done.Err
			}
			return err
		},
	}
	for what, call := range calls {
		var hand shifted
		for name, moved := range hands(&hand) {
			f := newFake(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == 1 {
					moved.Add(int64(20 * time.Minute))
				}
				lose(w)
			})
			c := clientOf(t, Options{Timeout: time.Second}, f)
			c.clock = hand.clock()
			if err := call(context.Background(), c); !errors.Is(err, ErrUnknownOutcome) || len(f.requests()) != 1 {
				t.Errorf("%s, %s clock: %v after %d requests", what, name, err, len(f.requests()))
			}
		}
	}
}

// TestNetHTTPRepeatsNothingByItself: it would not know whether an earlier try may have been applied, nor how late it is.
func TestNetHTTPRepeatsNothingByItself(t *testing.T) {
	f := newFake(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		switch n {
		case 1:
			say(w, 200, writtenText)
		case 2:
			// On the connection of the first.
			lose(w)
		default:
			refuse(w, 403, api.ErrorCodePermissionDenied, api.RetryNever, "")
		}
	})
	c, ctx := clientOf(t, Options{}, f), soon(t, 5*time.Second)
	if _, err := c.Put(ctx, "k", 1, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, "k", 2, nil); !errors.Is(err, ErrUnknownOutcome) || len(f.requests()) != 3 {
		t.Errorf("%v after %d requests", err, len(f.requests()))
	}
}

// TestWhatIsAskedForLongIsAskedUnderAnotherIDByThen: the waits that go on over many calls.
func TestWhatIsAskedForLongIsAskedUnderAnotherIDByThen(t *testing.T) {
	const refusals = 3
	waits := map[string]func(context.Context, *Session) error{
		"/acquire": func(ctx context.Context, s *Session) error {
			_, err := s.Lock(ctx, "l", nil)
			return err
		},
		"/enter": func(ctx context.Context, s *Session) error {
			_, err := s.EnterBarrier(ctx, "b", 2, nil)
			return err
		},
		"/claim": func(ctx context.Context, s *Session) error {
			_, err := s.Client().Tasks("q").Work(ctx, func(context.Context, *Task) error { return nil }, nil)
			return err
		},
	}
	for verb, wait := range waits {
		var hand shifted
		base := sessions(86_400_000, renewedAll)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		asked := 0
		f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, verb) {
				base(n, w, r)
				return
			}
			if asked++; asked == 2 {
				hand.wall.Add(int64(20 * time.Minute))
			}
			if asked == refusals {
				cancel()
			}
			refuse(w, 503, api.ErrorCodeNoLeader, api.RetrySameRequestID, "")
		})
		c := clientOf(t, Options{Timeout: time.Second, Retry: RetryPolicy{AttemptsMax: 1}}, f)
		c.clock = hand.clock()
		s, err := c.NewSession(soon(t, 5*time.Second), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = wait(ctx, s)
		var ids []string
		for _, request := range f.requests() {
			if strings.HasSuffix(request.path, verb) {
				ids = append(ids, request.id)
			}
		}
		if len(ids) < refusals || ids[0] != ids[1] || ids[1] == ids[2] {
			t.Errorf("%s: %q", verb, ids)
		}
	}
}
