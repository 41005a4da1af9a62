package quorate

// Tests of places in queues: who takes one back, and when another handle may have it.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/go/api"
)

// fakeLocks are locks that somebody else has until they are freed.
type fakeLocks struct {
	mu     sync.Mutex
	tokens uint64
	free   map[string]bool
	// held are the tokens of our session.
	held map[string]uint64
	// answered are the answers by request id.
	answered map[string]string
}

func newFakeLocks() *fakeLocks {
	return &fakeLocks{free: map[string]bool{}, held: map[string]uint64{}, answered: map[string]string{}}
}

func (f *fakeLocks) release(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free[name] = true
}

func (f *fakeLocks) token(name string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[name]
}

// acquire answers at once; a wait is cut short.
func (f *fakeLocks) acquire(name, id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if told, ok := f.answered[id]; ok {
		return told
	}
	if f.held[name] == 0 && f.free[name] {
		f.tokens++
		f.held[name] = f.tokens
	}
	told := fmt.Sprintf(`{"lock":%q,"state":"waiting","place":"3","session":"1","mode":"exclusive","revision":"1","index":1}`, name)
	if token := f.held[name]; token > 0 {
		told = fmt.Sprintf(`{"lock":%q,"state":"held","token":"%d","session":"1","mode":"exclusive","revision":"1","index":1}`, name, token)
	}
	f.answered[id] = told
	return told
}

func (f *fakeLocks) handler() func(int, http.ResponseWriter, *http.Request) {
	base := sessions(600_000, renewedAll)
	return func(n int, w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/")
		switch parts[len(parts)-1] {
		case "acquire":
			say(w, 200, f.acquire(parts[3], r.Header.Get("Idempotency-Key")))
		case "release":
			f.mu.Lock()
			f.held[parts[3]] = 0
			f.mu.Unlock()
			say(w, 200, fmt.Sprintf(`{"lock":%q,"released":true,"revision":"1","index":1}`, parts[3]))
		default:
			base(n, w, r)
		}
	}
}

// TestAPlaceThatIsGivenUpIsNobodyElsesMeanwhile: one waits with a context that ends as the lock gets free, others ask for it on the same session
// all the time. Whoever gets it has it: what the first gives up is not theirs.
func TestAPlaceThatIsGivenUpIsNobodyElsesMeanwhile(t *testing.T) {
	locks := newFakeLocks()
	s, err := clientOf(t, Options{}, newFake(t, locks.handler())).NewSession(soon(t, time.Minute), nil)
	if err != nil {
		t.Fatal(err)
	}
	// Enough to find the race in each run while it was there.
	begun := time.Now()
	for round := range 60 {
		if time.Since(begun) > 10*time.Second {
			break
		}
		name := fmt.Sprintf("l%d", round)
		lock := raceForAPlace(t, s, locks, name)
		// Until what is given up in the background is.
		if err := s.left(soon(t, 10*time.Second), lock.held.place); err != nil {
			t.Fatal(err)
		}
		if token, err := lock.Token(); err != nil || token != locks.token(name) {
			t.Fatalf("round %d: holds it by %d, %v; the cluster says %d", round, token, err, locks.token(name))
		}
	}
}

// raceForAPlace gives the lock that one of those got who asked again and again.
func raceForAPlace(t *testing.T, s *Session, locks *fakeLocks, name string) *Lock {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var waits, all sync.WaitGroup
	waits.Add(1)
	all.Add(1)
	go func() {
		defer all.Done()
		go waits.Done()
		if lock, err := s.Lock(ctx, name, nil); err == nil {
			// It was granted before the end of the context was noticed.
			if err := lock.Unlock(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}()
	waits.Wait()
	got := make(chan *Lock, 4)
	isOver := make(chan struct{})
	for range cap(got) {
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				lock, err := s.Lock(context.Background(), name, nil)
				if err == nil {
					got <- lock
					return
				}
				if !errors.Is(err, ErrInvalidArgument) {
					t.Errorf("%v", err)
					return
				}
				select {
				case <-isOver:
					return
				default:
					runtime.Gosched()
				}
			}
		}()
	}
	cancel()
	locks.release(name)
	lock := <-got
	close(isOver)
	all.Wait()
	return lock
}

// TestASessionEntersABarrierOnce: what the first gives up would be the place of the second.
func TestASessionEntersABarrierOnce(t *testing.T) {
	waits, left := make(chan struct{}, 1), make(chan struct{}, 100)
	base := sessions(600_000, renewedAll)
	f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		answer := `{"barrier":"b","entered":1,"parties":2,"state":%q,"revision":"1","index":1}`
		switch {
		case strings.HasSuffix(r.URL.Path, "/enter"):
			select {
			case waits <- struct{}{}:
				<-r.Context().Done()
			default:
				say(w, 202, fmt.Sprintf(answer, "waiting"))
			}
		case strings.HasSuffix(r.URL.Path, "/leave"):
			say(w, 200, fmt.Sprintf(answer, "empty"))
			left <- struct{}{}
		default:
			base(n, w, r)
		}
	})
	s, err := clientOf(t, Options{AttemptTimeout: time.Minute}, f).NewSession(soon(t, 5*time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := s.EnterBarrier(ctx, "b", 2, nil)
		ended <- err
	}()
	<-waits
	waits <- struct{}{}
	if _, err := s.EnterBarrier(soon(t, 5*time.Second), "b", 2, nil); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-left
	if still, err := s.EnterBarrier(soon(t, 5*time.Second), "b", 2, &BarrierOptions{Wait: time.Millisecond}); err != nil || still.Entered != 1 {
		t.Errorf("it may enter again: %+v, %v", still, err)
	}
}

// heldBy gives a lock, and a leadership, of a fake that answers what is given up as told.
func heldBy(t *testing.T, giveUp func(n int, w http.ResponseWriter, r *http.Request)) (*Lock, *Leadership, *fake) {
	t.Helper()
	base := sessions(600_000, renewedAll)
	var asked atomic.Int64
	f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch parts := strings.Split(r.URL.Path, "/"); parts[len(parts)-1] {
		case "acquire":
			say(w, 200, `{"lock":"l","state":"held","token":"7","session":"1","mode":"exclusive","revision":"1","index":1}`)
		case "campaign":
			say(w, 200, `{"election":"e","state":"leader","term":"7","session":"1","revision":"1","index":1}`)
		case "release", "resign":
			giveUp(int(asked.Add(1)), w, r)
		default:
			base(n, w, r)
		}
	})
	ctx := soon(t, 10*time.Second)
	s, err := clientOf(t, Options{Timeout: 300 * time.Millisecond, Retry: RetryPolicy{AttemptsMax: 1}}, f).NewSession(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.Lock(ctx, "l", nil)
	if err != nil {
		t.Fatal(err)
	}
	leads, err := s.Campaign(ctx, "e", nil)
	if err != nil {
		t.Fatal(err)
	}
	return lock, leads, f
}

const releasedText = `{"lock":"l","election":"e","released":true,"resigned":true,"revision":"1","index":1}`

func notHolder(w http.ResponseWriter) {
	refuse(w, 409, api.ErrorCodeNotLockHolder, api.RetryNever, `,"index":4`)
}

func TestNothingIsCertainOfALockOnceGivingItUpWasBegun(t *testing.T) {
	for what, answer := range map[string]func(int, http.ResponseWriter, *http.Request){
		"released": func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, releasedText) },
		"not ours": func(_ int, w http.ResponseWriter, _ *http.Request) { notHolder(w) },
		"forbidden": func(_ int, w http.ResponseWriter, _ *http.Request) {
			refuse(w, 403, api.ErrorCodePermissionDenied, api.RetryNever, "")
		},
		"unknown": func(_ int, w http.ResponseWriter, _ *http.Request) { lose(w) },
	} {
		t.Run(what, func(t *testing.T) {
			lock, leads, _ := heldBy(t, answer)
			for _, certain := range []func() (uint64, error){lock.Token, leads.Term} {
				if token, err := certain(); err != nil || token != 7 {
					t.Errorf("it is held: %d, %v", token, err)
				}
			}
			ctx := soon(t, 5*time.Second)
			_, _ = lock.Unlock(ctx), leads.Resign(ctx)
			for _, certain := range []func() (uint64, error){lock.Token, leads.Term} {
				if token, err := certain(); !errors.Is(err, ErrNotLockHolder) {
					t.Errorf("a token is handed out: %d, %v", token, err)
				}
			}
			if _, err := leads.Proclaim(ctx, 1); !errors.Is(err, ErrNotLockHolder) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNoTokenIsGivenWhileTheReleaseIsOnItsWay(t *testing.T) {
	isAsked, goOn := make(chan struct{}), make(chan struct{})
	lock, _, _ := heldBy(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		close(isAsked)
		<-goOn
		say(w, 200, releasedText)
	})
	ended := make(chan error, 1)
	go func() { ended <- lock.Unlock(soon(t, 5*time.Second)) }()
	<-isAsked
	if token, err := lock.Token(); !errors.Is(err, ErrNotLockHolder) {
		t.Errorf("%d, %v", token, err)
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAReleaseOfUnknownFateCanBeAskedForAgain(t *testing.T) {
	lock, _, _ := heldBy(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			// It took effect, and nobody heard.
			say(w, 504, `{"type":"/errors/x","title":"t","status":504,"detail":"d","code":"timeout","applied":"unknown","retry":"same_request_id"}`)
			return
		}
		notHolder(w)
	})
	ctx := soon(t, 5*time.Second)
	if err := lock.Unlock(ctx); !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Errorf("it is given up: %v", err)
	}
	lost, _, _ := heldBy(t, func(_ int, w http.ResponseWriter, _ *http.Request) { notHolder(w) })
	for range 2 {
		if err := lost.Unlock(ctx); !errors.Is(err, ErrNotLockHolder) {
			t.Errorf("it was lost before: %v", err)
		}
	}
}

// TestWhatCannotBeGivenUpIsGivenUpInTheBackground: as long as the session lives, whatever the first answer was.
func TestWhatCannotBeGivenUpIsGivenUpInTheBackground(t *testing.T) {
	for what, first := range map[string]func(http.ResponseWriter){
		"forbidden":  func(w http.ResponseWriter) { refuse(w, 403, api.ErrorCodePermissionDenied, api.RetryNever, "") },
		"no node":    func(w http.ResponseWriter) { say(w, 404, "<html>") },
		"overloaded": func(w http.ResponseWriter) { refuse(w, 429, api.ErrorCodeTooManyRequests, api.RetrySameRequestID, "") },
		"lost":       lose,
	} {
		t.Run(what, func(t *testing.T) {
			released := make(chan struct{}, 100)
			lock, _, _ := heldBy(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				// Also beyond the time of one call.
				if n == 1 || (what != "forbidden" && n < 4) {
					first(w)
					return
				}
				say(w, 200, releasedText)
				released <- struct{}{}
			})
			if err := lock.Unlock(soon(t, 5*time.Second)); err == nil {
				t.Error("it was not given up")
			}
			select {
			case <-released:
			case <-time.After(5 * time.Second):
				t.Fatal("it stays held as long as the session lives")
			}
			again, err := lock.Session().Lock(soon(t, 5*time.Second), "l", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := again.Token(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAWaitThatIsGivenUpSaysWhyAndWhatWasNotGot(t *testing.T) {
	base := sessions(600_000, renewedAll)
	f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/acquire"), strings.HasSuffix(r.URL.Path, "/campaign"), strings.HasSuffix(r.URL.Path, "/enter"):
			<-r.Context().Done()
		case r.URL.Path == "/v1/locks/busy":
			say(w, 200, `{"lock":"busy","holder_count":3,"holders":[{"session":"7","owner":"bob","token":"1","mode":"exclusive","age_ms":1}],"queue":[],
				"revision":"1","index":1}`)
		case r.URL.Path == "/v1/elections/busy":
			say(w, 200, `{"election":"busy","leader":{"session":"7","owner":"bob","term":"1","age_ms":1,"since":"2026-01-01T00:00:00Z"},"revision":"1","index":1}`)
		default:
			base(n, w, r)
		}
	})
	s, err := clientOf(t, Options{AttemptTimeout: time.Minute}, f).NewSession(soon(t, 5*time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		wait  func(context.Context) error
		words string
	}{
		{func(ctx context.Context) error { _, err := s.Lock(ctx, "busy", nil); return err }, "quorate: the lock `busy` was not acquired: %v; held by bob, session 7 and 2 others"},
		{func(ctx context.Context) error { _, err := s.Campaign(ctx, "busy", nil); return err }, "quorate: the election `busy` was not won: %v; held by bob, session 7"},
		{func(ctx context.Context) error { _, err := s.EnterBarrier(ctx, "busy", 2, nil); return err }, "quorate: the wait at the barrier `busy` was given up: %v"},
	} {
		short, cancelShort := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancelShort()
		ended, cancel := context.WithCancel(context.Background())
		time.AfterFunc(50*time.Millisecond, cancel)
		for ctx, why := range map[context.Context]error{short: context.DeadlineExceeded, ended: context.Canceled} {
			err := c.wait(ctx)
			var e *Error
			if !errors.Is(err, why) || errors.Is(err, ErrUnknownOutcome) || !errors.As(err, &e) || e.Applied != api.AppliedNo || err.Error() != fmt.Sprintf(c.words, why) {
				// A wait that began while the former was still being given up says so.
				t.Errorf("%v", err)
			}
		}
	}
}

func TestACallThatIsEndedSaysWhyAndHowLongItTook(t *testing.T) {
	f := newFake(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := clientOf(t, Options{Timeout: time.Minute, AttemptTimeout: time.Minute}, f)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := c.Put(ctx, "k", 1, nil)
	if !errors.Is(err, ErrUnknownOutcome) || !strings.Contains(err.Error(), "after 1 try: context canceled; the last: ") || !strings.Contains(err.Error(), " ms, when the call was ended") {
		t.Errorf("%v", err)
	}
	if found := regexp.MustCompile(`after (\d+) ms`).FindStringSubmatch(err.Error()); len(found) != 2 || len(found[1]) > 4 {
		t.Errorf("that time did not pass: %v", err)
	}
}
