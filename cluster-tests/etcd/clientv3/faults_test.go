package clientv3

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	v3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const kills = 3

// Calls `work` again and again, with a second for each, until it is told to stop.
func repeat(group *sync.WaitGroup, stop <-chan struct{}, work func(ctx context.Context, n int)) {
	group.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			work(ctx, n)
			cancel()
		}
	})
}

func TestWatchOverLeaderKills(t *testing.T) {
	needsServers(t)
	c := client(t)
	at := prefix(t, c)
	begin, err := c.Put(within(t), at+"begin", "x")
	ok(t, err)
	var (
		group        sync.WaitGroup
		acknowledged sync.Map
		stop         = make(chan struct{})
	)
	for worker := range 3 {
		writer := client(t)
		repeat(&group, stop, func(ctx context.Context, n int) {
			key := fmt.Sprintf("%s%d-%06d", at, worker, n)
			if answer, err := writer.Put(ctx, key, text(n)); err == nil {
				acknowledged.Store(key, answer.Header.Revision)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen, last, unordered := map[string]int64{}, begin.Header.Revision, 0
	watch := client(t).Watch(ctx, at, v3.WithPrefix(), v3.WithRev(begin.Header.Revision+1))
	ended := make(chan error, 1)
	go func() {
		for answer := range watch {
			if err := answer.Err(); err != nil {
				ended <- err
				return
			}
			for _, event := range answer.Events {
				if event.Kv.ModRevision <= last {
					unordered++
				}
				last = event.Kv.ModRevision
				if string(event.Kv.Key) == at+"end" {
					ended <- nil
					return
				}
				seen[string(event.Kv.Key)] = event.Kv.ModRevision
			}
		}
		ended <- errors.New("the watch ended")
	}()
	for range kills {
		killLeader(t, func() { time.Sleep(300 * time.Millisecond) })
	}
	close(stop)
	group.Wait()
	_, err = c.Put(within(t), at+"end", "x")
	ok(t, err)
	ok(t, next(t, ended, "the last event"))
	same(t, unordered, 0, "events that were not in order")
	all, err := c.Get(within(t), at, v3.WithPrefix())
	ok(t, err)
	there := map[string]int64{}
	for _, kv := range all.Kvs {
		there[string(kv.Key)] = kv.ModRevision
	}
	delete(there, at+"begin")
	delete(there, at+"end")
	for key, revision := range there {
		same(t, seen[key], revision, "the event of "+key)
	}
	same(t, len(seen), len(there), "events")
	acks := 0
	acknowledged.Range(func(key, revision any) bool {
		acks++
		same(t, there[key.(string)], revision.(int64), "the entry of "+key.(string))
		return true
	})
	t.Logf("%d entries, %d acknowledged", len(there), acks)
	if acks < 100 {
		t.Fatal("too few were written to say anything")
	}
}

func TestKeepAliveOverLeaderKills(t *testing.T) {
	needsServers(t)
	c := client(t)
	at := prefix(t, c)
	var lost atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const leases = 20
	for n := range leases {
		lease, err := c.Grant(within(t), 5)
		ok(t, err)
		_, err = c.Put(within(t), at+text(n), "x", v3.WithLease(lease.ID))
		ok(t, err)
		answers, err := c.KeepAlive(ctx, lease.ID)
		ok(t, err)
		go func() {
			for range answers {
			}
			if ctx.Err() == nil {
				lost.Add(1)
			}
		}()
	}
	for range kills {
		killLeader(t, func() { time.Sleep(2 * time.Second) })
	}
	same(t, lost.Load(), 0, "leases that the client holds lost")
	same(t, count(t, c, at), leases, "entries of the leases")
	cancel()
	eventually(t, "the leases end when they are not kept", func() bool { return count(t, c, at) == 0 })
}

func TestTransactionsOverLeaderKills(t *testing.T) {
	needsServers(t)
	c := client(t)
	at := prefix(t, c)
	var (
		group                 sync.WaitGroup
		acknowledged, unknown atomic.Int64
		stop                  = make(chan struct{})
		mutex                 sync.Mutex
		revisions             = map[int64]bool{}
	)
	for worker := range 4 {
		own := client(t)
		repeat(&group, stop, func(ctx context.Context, n int) {
			read, err := own.Get(ctx, at+"counter")
			if err != nil {
				return
			}
			was, revision := 0, int64(0)
			if len(read.Kvs) == 1 {
				was, revision = number(string(read.Kvs[0].Value)), read.Kvs[0].ModRevision
			}
			answer, err := own.Txn(ctx).If(v3.Compare(v3.ModRevision(at+"counter"), "=", revision)).
				Then(v3.OpPut(at+"counter", text(was+1)), v3.OpPut(fmt.Sprintf("%slog/%06d", at, was+1), text(worker))).Commit()
			switch {
			case err != nil:
				unknown.Add(1)
			case answer.Succeeded:
				acknowledged.Add(1)
				mutex.Lock()
				if revisions[answer.Header.Revision] {
					t.Errorf("revision %d was given twice", answer.Header.Revision)
				}
				revisions[answer.Header.Revision] = true
				mutex.Unlock()
			}
		})
	}
	for range kills {
		killLeader(t, func() { time.Sleep(500 * time.Millisecond) })
	}
	close(stop)
	group.Wait()
	counter := int64(number(value(t, c, at+"counter")))
	t.Logf("counter %d, %d acknowledged, %d unknown", counter, acknowledged.Load(), unknown.Load())
	if counter < acknowledged.Load() || counter > acknowledged.Load()+unknown.Load() {
		t.Fatal("the counter does not fit what was acknowledged")
	}
	same(t, count(t, c, at+"log/"), counter, "what was written beside the counter")
	if acknowledged.Load() < 50 {
		t.Fatal("too few were written to say anything")
	}
}

func TestMutexOverLeaderKills(t *testing.T) {
	needsServers(t)
	c := client(t)
	at := prefix(t, c)
	var (
		group                 sync.WaitGroup
		acknowledged, unknown atomic.Int64
		stop                  = make(chan struct{})
	)
	for range 3 {
		own := client(t)
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				increment(own, at, &acknowledged, &unknown)
			}
		})
	}
	for range kills {
		killLeader(t, func() { time.Sleep(time.Second) })
	}
	close(stop)
	group.Wait()
	counter := int64(number(value(t, c, at+"counter")))
	t.Logf("counter %d, %d acknowledged, %d unknown", counter, acknowledged.Load(), unknown.Load())
	if counter < acknowledged.Load() || counter > acknowledged.Load()+unknown.Load() {
		t.Fatal("the counter does not fit what was acknowledged")
	}
	if acknowledged.Load() < 3 {
		t.Fatal("too few were written to say anything")
	}
}

// Adds one below a lock, fenced by the lock: read and write, which nobody else may do in between.
func increment(c *v3.Client, at string, acknowledged, unknown *atomic.Int64) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := concurrency.NewSession(c, concurrency.WithTTL(5), concurrency.WithContext(ctx))
	if err != nil {
		return
	}
	defer s.Close()
	mutex := concurrency.NewMutex(s, at+"lock")
	if mutex.Lock(ctx) != nil {
		return
	}
	read, err := c.Get(ctx, at+"counter")
	if err != nil {
		return
	}
	was := 0
	if len(read.Kvs) == 1 {
		was = number(string(read.Kvs[0].Value))
	}
	answer, err := c.Txn(ctx).If(mutex.IsOwner()).Then(v3.OpPut(at+"counter", text(was+1))).Commit()
	switch {
	case err != nil:
		unknown.Add(1)
	case answer.Succeeded:
		acknowledged.Add(1)
	}
}

func TestElectionOverLeaderKills(t *testing.T) {
	needsServers(t)
	c := client(t)
	at := prefix(t, c)
	s := session(t, c, concurrency.WithTTL(10))
	election := concurrency.NewElection(s, at+"election")
	ok(t, election.Campaign(within(t), "0"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaders := concurrency.NewElection(session(t, client(t), concurrency.WithTTL(10)), at+"election").Observe(ctx)
	for n := 1; n <= kills; n++ {
		killLeader(t, func() {
			eventually(t, "a proclamation", func() bool {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				err := election.Proclaim(ctx, text(n))
				if errors.Is(err, concurrency.ErrElectionNotLeader) || errors.Is(err, rpctypes.ErrLeaseNotFound) {
					t.Fatalf("the leadership was lost: %v", err)
				}
				return err == nil
			})
			observed(t, leaders, text(n))
		})
	}
}
