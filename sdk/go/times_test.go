package quorate

// Tests of times that are given.

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestANegativeTimeIsRefusedBeforeAnythingIsSent, wherever one can be given.
func TestANegativeTimeIsRefusedBeforeAnythingIsSent(t *testing.T) {
	const wrong = -time.Second
	f := newFake(t, sessions(600_000, renewedAll))
	c, ctx := clientOf(t, Options{}, f), soon(t, 20*time.Second)
	s, err := c.NewSession(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	ttl, wait := &WriteOptions{TTL: wrong}, &WriteOptions{Wait: wrong}
	key := "k"
	nothing := func(context.Context, *Task) error { return nil }
	task := &Task{queue: c.Tasks("q")}
	for name, calls := range map[string][]func() error{
		"TTL": {
			func() error { _, err := c.Put(ctx, key, 1, ttl); return err },
			func() error { _, err := c.Insert(ctx, key, 1, ttl); return err },
			func() error { _, err := c.Replace(ctx, key, 1, ttl); return err },
			func() error { _, err := c.Patch(ctx, key, map[string]int{}, ttl); return err },
			func() error { _, err := c.Increment(ctx, key, "n", 1, ttl); return err },
			func() error { _, err := c.Bulk(ctx, []Op{OpPut(key, 1, ttl)}, nil); return err },
			func() error {
				_, err := c.Txn(ctx, Txn{Then: []Step{Txn{Else: []Step{OpInsert(key, 1, ttl)}}}}, nil)
				return err
			},
			func() (err error) {
				for done := range c.Stream(ctx, slices.Values([]Op{OpPut(key, 1, ttl)})) {
					err = done.Err
				}
				return err
			},
			func() error {
				_, err := Update(ctx, c, key, func(n *int) (*int, error) { return n, nil }, &UpdateOptions{TTL: wrong})
				return err
			},
			func() error {
				_, err := c.UpdateWhere(ctx, key, map[string]int{}, &WhereOptions{TTL: wrong})
				return err
			},
			func() error { _, err := c.DeleteWhere(ctx, key, &WhereOptions{TTL: wrong}); return err },
			func() error { _, err := c.NewSession(ctx, &SessionOptions{TTL: wrong}); return err },
		},
		"ttl": {
			func() error { _, err := c.Touch(ctx, key, wrong, nil); return err },
			func() error { _, err := c.GetAndTouch(ctx, key, wrong, nil); return err },
			func() error { _, err := c.Bulk(ctx, []Op{OpTouch(key, wrong, nil)}, nil); return err },
		},
		"hold": {
			func() error { _, err := c.LockEntry(ctx, key, wrong, nil); return err },
			func() error { _, err := c.GetAndLock(ctx, key, wrong, nil); return err },
			func() error { _, err := c.ExtendEntryLock(ctx, key, "1", wrong, nil); return err },
			func() error { _, err := c.Bulk(ctx, []Op{OpLockEntry(key, wrong, nil)}, nil); return err },
		},
		"Hold": {func() error { _, err := c.Claim(ctx, key, &ClaimOptions{Hold: wrong}); return err }},
		"wait": {
			func() error { _, err := c.WaitForChange(ctx, key, "", wrong); return err },
			func() error { _, err := c.WaitLatch(ctx, "l", wrong); return err },
		},
		"Wait": {
			func() error { _, err := c.LockEntry(ctx, key, 0, wait); return err },
			func() error { _, err := s.Lock(ctx, "l", &LockOptions{Wait: wrong}); return err },
			func() error { _, err := s.TryLock(ctx, "l", &LockOptions{Wait: wrong}); return err },
			func() error { _, err := s.Campaign(ctx, "e", &CampaignOptions{Wait: wrong}); return err },
			func() error { _, err := s.TryCampaign(ctx, "e", &CampaignOptions{Wait: wrong}); return err },
			func() error { _, err := s.EnterBarrier(ctx, "b", 2, &BarrierOptions{Wait: wrong}); return err },
			func() error { _, err := s.LeaveBarrier(ctx, "b", &BarrierOptions{Wait: wrong}); return err },
			func() error { _, err := c.Tasks("q").Claim(ctx, &ClaimTasksOptions{Wait: wrong}); return err },
		},
		"Delay": {
			func() error { _, err := s.Lock(ctx, "l", &LockOptions{Delay: wrong}); return err },
			func() error { _, err := s.Campaign(ctx, "e", &CampaignOptions{Delay: wrong}); return err },
			func() error { _, err := c.Tasks("q").Schedule(ctx, 1, &TaskOptions{Delay: wrong}); return err },
		},
		"Every": {func() error { _, err := c.Tasks("q").Schedule(ctx, 1, &TaskOptions{Every: wrong}); return err }},
		"Keep":  {func() error { _, err := (&TaskOptions{Keep: wrong}).Spec(1); return err }},
		"Lease": {
			func() error { _, err := c.Tasks("q").Claim(ctx, &ClaimTasksOptions{Lease: wrong}); return err },
			func() error { _, err := c.Tasks("q").Work(ctx, nothing, &WorkerOptions{Lease: wrong}); return err },
		},
		"lease":      {func() error { _, err := task.Extend(ctx, wrong); return err }},
		"StopWithin": {func() error { _, err := c.Tasks("q").Work(ctx, nothing, &WorkerOptions{StopWithin: wrong}); return err }},
		"ExpiresIn":  {func() error { _, err := c.CreateToken(ctx, "u", &TokenOptions{ExpiresIn: wrong}); return err }},
		"Heartbeat": {
			func() error { _, err := c.Watch(ctx, "", &WatchOptions{Heartbeat: wrong}); return err },
			func() error { _, err := c.Mirror(ctx, "", &MirrorOptions{Heartbeat: wrong}); return err },
		},
		"Patience":         {func() error { _, err := c.Watch(ctx, "", &WatchOptions{Patience: wrong}); return err }},
		"Timeout":          {func() error { _, err := New("a:1", &Options{Timeout: wrong}); return err }},
		"AttemptTimeout":   {func() error { _, err := New("a:1", &Options{AttemptTimeout: wrong}); return err }},
		"Retry.BackoffMin": {func() error { _, err := New("a:1", &Options{Retry: RetryPolicy{BackoffMin: wrong}}); return err }},
		"Retry.BackoffMax": {func() error { _, err := New("a:1", &Options{Retry: RetryPolicy{BackoffMax: wrong}}); return err }},
	} {
		for n, call := range calls {
			if err := call(); !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), name+" is -1s") {
				t.Errorf("%s, %d: %v", name, n, err)
			}
		}
	}
	if came := f.requests(); len(came) != 1 {
		t.Errorf("was sent: %v", came[1:])
	}
}

func TestTimesAreRoundedUpToMilliseconds(t *testing.T) {
	for given, ms := range map[time.Duration]uint64{
		0: 0, 1: 1, time.Microsecond: 1, time.Millisecond: 1, time.Millisecond + 1: 2, 1500 * time.Microsecond: 2,
		math.MaxInt64: math.MaxInt64/1_000_000 + 1,
	} {
		if got := milliseconds(given); got != ms {
			t.Errorf("%v: %d ms", given, got)
		}
	}
	if op := OpPut("k", 1, &WriteOptions{TTL: 1}); op.err != nil || *op.op.TTLMs != 1 {
		t.Errorf("%+v", op)
	}
	// None is none.
	if op := OpPut("k", 1, &WriteOptions{}); op.err != nil || op.op.TTLMs != nil {
		t.Errorf("%+v", op)
	}
	if op := OpTouch("k", 0, nil); op.err != nil || *op.op.TTLMs != 0 {
		t.Errorf("%+v", op)
	}
}

// TestAPauseOfAHandlerThatIsNegativeIsTold: the attempt has failed, and is not tried again at once for that.
func TestAPauseOfAHandlerThatIsNegativeIsTold(t *testing.T) {
	failed := make(chan string, 1)
	isClaimed := false
	f := newFake(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/fail"):
			failed <- r.URL.Path
			say(w, 200, `{"id":"1","attempts":1,"max_attempts":3,"state":"scheduled","revision":"1","index":1}`)
		case isClaimed:
			<-r.Context().Done()
		default:
			isClaimed = true
			say(w, 200, `{"count":1,"tasks":[{"id":"1","token":"1","attempt":1,"max_attempts":3,"lease_ms":30000,"payload":1,"execute_at":"","planned_at":""}],
				"waited_ms":0,"revision":"1","index":1}`)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-failed
		stop()
	}()
	var troubles []error
	report, err := clientOf(t, Options{Timeout: time.Second}, f).Tasks("q").Work(ctx, func(context.Context, *Task) error {
		return &TaskError{Err: errors.New("not yet"), RetryIn: -time.Second}
	}, &WorkerOptions{OnTrouble: func(err error) { troubles = append(troubles, err) }})
	if err != nil || report.Failed != 1 || len(troubles) == 0 || !errors.Is(troubles[0], ErrInvalidArgument) {
		t.Errorf("%+v, %v, %v", report, err, troubles)
	}
	for _, request := range f.requests() {
		if strings.HasSuffix(request.path, "/fail") && (strings.Contains(request.body, "retry_in_ms") || !strings.Contains(request.body, "not yet")) {
			t.Errorf("%s", request.body)
		}
	}
}

func TestAnEmptyListOfEndpointsIsNotTheLocalCluster(t *testing.T) {
	for _, nodes := range []string{"", " ", ",", " , "} {
		t.Setenv("QUORATE_ENDPOINTS", nodes)
		if c, err := FromEnv(); !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "QUORATE_ENDPOINTS") {
			t.Errorf("%q: %v, %v", nodes, c, err)
		}
	}
	t.Setenv("QUORATE_ENDPOINTS", "a:1")
	if c, err := FromEnv(); err != nil || !slices.Equal(c.Endpoints(), []string{"a:1"}) {
		t.Errorf("%v, %v", c, err)
	}
}
