package quorate

// Tests of answers that are about something else.

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/go/api"
)

// cleaning answers as a node behind a proxy that cleans paths: about what the name has become.
func cleaning(_ int, w http.ResponseWriter, r *http.Request) {
	parts := strings.SplitN(strings.TrimPrefix(path.Clean(r.URL.Path), "/v1/access"), "/", 4)
	name := strings.Join(parts[2:], "/")
	if parts[1] == "v1" {
		name = strings.Join(parts[3:], "/")
	}
	for _, verb := range []string{"acquire", "release", "campaign", "resign", "proclaim", "check", "count_down", "enter", "leave", "renew", "stats"} {
		name = strings.TrimSuffix(name, "/"+verb)
	}
	if _, id, isTask := strings.Cut(name, "/task/"); isTask {
		name = id
	}
	answer := fmt.Sprintf(`{"key":%[1]q,"lock":%[1]q,"election":%[1]q,"session":%[1]q,"queue":%[1]q,"latch":%[1]q,"barrier":%[1]q,"name":%[1]q,
		"user":%[1]q,"role":%[1]q,"id":%[1]q,"request_id":%[1]q,"revision":"1","cas":"1","create_revision":"1","mod_revision":"1","set_revision":"1",
		"token":"9","term":"9","place":"0","opened_revision":"0","decided_revision":"1","created":"2026-01-01T00:00:00Z"}`, name)
	if parts[2] == "locks" {
		// There it is who waits.
		answer = strings.Replace(answer, `"queue"`, `"-"`, 1)
	}
	say(w, 200, answer)
}

func TestAnAnswerAboutSomethingElseIsAnError(t *testing.T) {
	ctx, c := soon(t, 20*time.Second), clientOf(t, Options{}, newFake(t, cleaning))
	const name = "a/../b"
	reads := map[string]func() error{
		"wait":       func() error { _, err := c.WaitForChange(ctx, name, "", time.Second); return err },
		"lock":       func() error { _, err := c.LockInfo(ctx, name); return err },
		"check":      func() error { _, err := c.CheckLock(ctx, name, 9); return err },
		"election":   func() error { _, err := c.Election(ctx, name); return err },
		"session":    func() error { _, err := c.SessionInfo(ctx, name); return err },
		"renew":      func() error { _, err := c.RenewSession(ctx, name); return err },
		"stats":      func() error { _, err := c.Tasks(name).Stats(ctx); return err },
		"latch":      func() error { _, err := c.Latch(ctx, name); return err },
		"barrier":    func() error { _, err := c.Barrier(ctx, name); return err },
		"collection": func() error { _, err := c.Collection(ctx, name); return err },
		"sequence":   func() error { _, err := c.Sequence(ctx, name); return err },
		"user":       func() error { _, err := c.User(ctx, name); return err },
		"role":       func() error { _, err := c.Role(ctx, name); return err },
		"request":    func() error { _, err := c.RequestOutcome(ctx, name); return err },
		"task":       func() error { _, err := c.Tasks("b").Get(ctx, name); return err },
	}
	writes := map[string]func() error{
		"release":    func() error { _, err := c.ReleaseLock(ctx, name, 9); return err },
		"resign":     func() error { _, err := c.ResignLeader(ctx, name, 9); return err },
		"end":        func() error { _, err := c.EndSession(ctx, name); return err },
		"count down": func() error { _, err := c.CountDown(ctx, name, 1); return err },
		"numbers":    func() error { _, err := c.NextNumbers(ctx, name, 1, ""); return err },
		"drop":       func() error { _, err := c.DeleteCollection(ctx, name, nil); return err },
		"token":      func() error { _, err := c.RemoveToken(ctx, name); return err },
	}
	for what, ask := range reads {
		if err := ask(); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "about `b`, not `a/../b`") || errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, ask := range writes {
		if err := ask(); !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), "about `b`, not `a/../b`") || !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAnAnswerAboutAnotherKeyIsAnErrorToo(t *testing.T) {
	f := newFake(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == linesType {
			w.Header().Set("Content-Type", linesType)
			_, _ = fmt.Fprintf(w, `{"n":0,"status":200,"answer":%s,"leader":1,"term":"1"}`+"\n", writtenText)
			return
		}
		say(w, 200, writtenText)
	})
	ctx, c := soon(t, 5*time.Second), clientOf(t, Options{}, f)
	if entry, err := c.Get(ctx, "other", nil); !errors.Is(err, ErrProtocol) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%+v, %v", entry, err)
	}
	if _, err := c.Put(ctx, "other", 1, nil); !errors.Is(err, ErrProtocol) || !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	for done := range c.Stream(ctx, slices.Values([]Op{OpPut("other", 1, nil)})) {
		if !errors.Is(done.Err, ErrProtocol) || !errors.Is(done.Err, ErrUnknownOutcome) || !strings.Contains(done.Err.Error(), "not `other`") {
			t.Errorf("%v", done.Err)
		}
	}
}

// TestALockOfAnotherNameIsGivenUpUnlessItIsOurs: what was got by mistake is not kept, and nothing else is lost by that.
func TestALockOfAnotherNameIsGivenUpUnlessItIsOurs(t *testing.T) {
	for _, isOurs := range []bool{false, true} {
		released := make(chan struct{}, 10)
		base := sessions(600_000, renewedAll)
		f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
			switch cleaned := path.Clean(r.URL.Path); {
			case strings.HasSuffix(cleaned, "/b/release"):
				released <- struct{}{}
				say(w, 200, `{"lock":"b","released":true,"revision":"1","index":1}`)
			case strings.HasSuffix(cleaned, "/b/acquire"):
				say(w, 200, `{"lock":"b","state":"held","token":"7","session":"1","mode":"exclusive","revision":"1","index":1}`)
			default:
				base(n, w, r)
			}
		})
		ctx := soon(t, 5*time.Second)
		s, err := clientOf(t, Options{}, f).NewSession(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if isOurs {
			if _, err := s.Lock(ctx, "b", nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Lock(ctx, "a/../b", nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v", err)
		}
		if !isOurs {
			if _, err := s.Lock(ctx, "b", nil); err != nil || len(released) != 1 {
				t.Errorf("it is given up while it is held: %d, %v", len(released), err)
			}
		}
		select {
		case <-released:
			if isOurs {
				t.Error("a lock that is held was given up")
			}
		case <-time.After(200 * time.Millisecond):
			if !isOurs {
				t.Error("what was got by mistake is kept")
			}
		}
	}
}

// TestABarrierOfAnotherNameIsLeftOnceUnlessWeAreInIt: what was entered by mistake is left, and what the session is in is not.
func TestABarrierOfAnotherNameIsLeftOnceUnlessWeAreInIt(t *testing.T) {
	for _, isOurs := range []bool{false, true} {
		left := make(chan struct{}, 10)
		base := sessions(600_000, renewedAll)
		f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
			switch cleaned := path.Clean(r.URL.Path); {
			case strings.HasSuffix(cleaned, "/b/enter"):
				say(w, 200, `{"barrier":"b","entered":1,"parties":1,"state":"open","opened_revision":"1","revision":"1","index":1}`)
			case strings.HasSuffix(cleaned, "/b/leave"):
				left <- struct{}{}
				say(w, 200, `{"barrier":"b","entered":0,"state":"empty","revision":"2","index":2}`)
			default:
				base(n, w, r)
			}
		})
		ctx := soon(t, 5*time.Second)
		s, err := clientOf(t, Options{}, f).NewSession(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if isOurs {
			if _, err := s.EnterBarrier(ctx, "b", 1, nil); err != nil {
				t.Fatal(err)
			}
		}
		// The second time it would wait for what never ends.
		for range 2 {
			if _, err := s.EnterBarrier(ctx, "a/../b", 1, nil); !errors.Is(err, ErrProtocol) {
				t.Errorf("%v", err)
			}
		}
		if !isOurs {
			// Waits until it was left.
			if _, err := s.EnterBarrier(ctx, "b", 1, nil); err != nil || len(left) != 2 {
				t.Errorf("%d, %v", len(left), err)
			}
			continue
		}
		select {
		case <-left:
			t.Error("a barrier was left that the session is in")
		case <-time.After(200 * time.Millisecond):
		}
		if _, err := s.LeaveBarrier(ctx, "b", nil); err != nil || len(left) != 1 {
			t.Errorf("%d, %v", len(left), err)
		}
	}
}

// TestAKeyThatProxiesChangeIsNotTakenForGone: the missing key may be another one.
func TestAKeyThatProxiesChangeIsNotTakenForGone(t *testing.T) {
	const key = "a//b"
	isThere := true
	f := newFake(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/ops" && isThere {
			say(w, 200, fmt.Sprintf(`{"key":%q,"value":1,"cas":"7","create_revision":"1","mod_revision":"7","version":1,"revision":"7","index":3}`, key))
			return
		}
		refuse(w, 404, api.ErrorCodeNotFound, api.RetryNever, "")
	})
	c, ctx := clientOf(t, Options{}, f), soon(t, 5*time.Second)
	if entry, err := c.WaitForChange(ctx, key, "1", time.Second); err != nil || entry == nil || entry.Key != key {
		t.Errorf("%+v, %v", entry, err)
	}
	isThere = false
	if entry, err := c.WaitForChange(ctx, key, "1", time.Second); !errors.Is(err, ErrNotFound) {
		t.Errorf("%+v, %v", entry, err)
	}
}

// TestAWaitForAKeyThatProxiesChangeEndsWithItsChange: what is answered for the path is about another entry, which is missing or as it was known.
func TestAWaitForAKeyThatProxiesChangeEndsWithItsChange(t *testing.T) {
	const key = "a//b"
	for _, isOtherMissing := range []bool{false, true} {
		looks := make(chan string, 2)
		f := newFake(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/ops" {
				if isOtherMissing {
					refuse(w, 404, api.ErrorCodeNotFound, api.RetryNever, "")
				} else {
					w.WriteHeader(304)
				}
				return
			}
			cas := <-looks
			if cas == "" {
				refuse(w, 404, api.ErrorCodeNotFound, api.RetryNever, "")
				return
			}
			say(w, 200, fmt.Sprintf(`{"key":%q,"value":1,"cas":%q,"create_revision":"1","mod_revision":"7","version":1,"revision":"7","index":3}`, key, cas))
		})
		c, ctx := clientOf(t, Options{}, f), soon(t, 5*time.Second)
		looks <- "5"
		looks <- "9"
		if entry, err := c.WaitForChange(ctx, key, "5", 4*time.Second); err != nil || entry == nil || entry.Cas != "9" {
			t.Errorf("%+v, %v", entry, err)
		}
		looks <- "5"
		if entry, err := c.WaitForChange(ctx, key, "5", 0); err != nil || entry != nil {
			t.Errorf("%+v, %v", entry, err)
		}
		looks <- ""
		if entry, err := c.WaitForChange(ctx, key, "5", 0); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v, %v", entry, err)
		}
		looks <- ""
		if entry, err := c.WaitForChange(ctx, key, "", 0); err != nil || entry != nil {
			t.Errorf("%+v, %v", entry, err)
		}
	}
}

func TestKeysThatProxiesChangeAreNoPartOfAPath(t *testing.T) {
	f := newFake(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/kv" {
			key := r.URL.Query().Get("start")
			if r.URL.Query().Get("end") != key+"\x00" {
				t.Errorf("%v", r.URL)
			}
			say(w, 200, fmt.Sprintf(`{"count":1,"entries":[{"key":%q,"value":1,"cas":"1","create_revision":"1","mod_revision":"1","version":1}],"revision":"7","index":3}`, key))
			return
		}
		t.Errorf("%v", r.URL)
	})
	c, ctx := clientOf(t, Options{}, f), soon(t, 5*time.Second)
	for _, key := range []string{"a//b", "a/./b", "a/../b", "..", ".", "/a", "a/", "/"} {
		entry, err := c.Get(ctx, key, &ReadOptions{Freshness: Freshness{Local: true}})
		if err != nil || entry.Key != key || entry.Revision != 7 || entry.Index != 3 {
			t.Errorf("%q: %+v, %v", key, entry, err)
		}
		if is, err := c.Exists(ctx, key); err != nil || !is {
			t.Errorf("%q: %v, %v", key, is, err)
		}
	}
	if isOftenChanged("a/b") || isOftenChanged("a..b/.c") {
		t.Error("these are left alone")
	}
}
