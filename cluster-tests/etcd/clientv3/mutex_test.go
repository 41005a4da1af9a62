package clientv3

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	v3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func TestMutexHasOneOwner(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	first := concurrency.NewMutex(session(t, c), at+"lock")
	second := concurrency.NewMutex(session(t, client(t)), at+"lock")
	ok(t, first.Lock(within(t)))
	if err := second.TryLock(within(t)); !errors.Is(err, concurrency.ErrLocked) {
		t.Fatalf("TryLock of a taken lock: %v", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- second.Lock(within(t)) }()
	eventually(t, "the second waits", func() bool { return count(t, c, at+"lock/") == 2 })
	select {
	case err := <-locked:
		t.Fatalf("both have the lock: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	ok(t, first.Unlock(within(t)))
	ok(t, next(t, locked, "the second owner"))
	same(t, owns(t, c, first), false, "the first owns it")
	same(t, owns(t, c, second), true, "the second owns it")
	ok(t, second.Unlock(within(t)))
	ok(t, first.TryLock(within(t)))
	ok(t, first.Unlock(within(t)))
	same(t, count(t, c, at+"lock/"), 0, "what is left of the lock")
}

func owns(t *testing.T, c *v3.Client, mutex *concurrency.Mutex) bool {
	t.Helper()
	answer, err := c.Txn(within(t)).If(mutex.IsOwner()).Commit()
	ok(t, err)
	return answer.Succeeded
}

func TestMutexWaitsNoLongerThanItsContext(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	first := concurrency.NewMutex(session(t, c), at+"lock")
	ok(t, first.Lock(within(t)))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := concurrency.NewMutex(session(t, c), at+"lock").Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Lock beyond its time: %v", err)
	}
	same(t, count(t, c, at+"lock/"), 1, "who gave up leaves nothing")
}

func TestMutexGoesWithItsSession(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	lost, other := session(t, c, concurrency.WithTTL(5)), session(t, client(t))
	first, second := concurrency.NewMutex(lost, at+"lock"), concurrency.NewMutex(other, at+"lock")
	ok(t, first.Lock(within(t)))
	locked := make(chan error, 1)
	go func() { locked <- second.Lock(within(t)) }()
	eventually(t, "the second waits", func() bool { return count(t, c, at+"lock/") == 2 })
	_, err := c.Revoke(within(t), lost.Lease())
	ok(t, err)
	ok(t, next(t, locked, "the second owner"))
	same(t, owns(t, c, first), false, "the first owns it")
	closes(t, lost.Done(), "the first knows")
}

func TestMutexOfAWaiterThatIsLost(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	first := concurrency.NewMutex(session(t, c), at+"lock")
	ok(t, first.Lock(within(t)))
	lost := session(t, client(t))
	locked := make(chan error, 1)
	go func() { locked <- concurrency.NewMutex(lost, at+"lock").Lock(within(t)) }()
	eventually(t, "the second waits", func() bool { return count(t, c, at+"lock/") == 2 })
	_, err := c.Revoke(within(t), lost.Lease())
	ok(t, err)
	ok(t, first.Unlock(within(t)))
	if err := next(t, locked, "the end of the second"); !errors.Is(err, concurrency.ErrSessionExpired) {
		t.Fatalf("Lock of a session that ended: %v", err)
	}
}

func TestMutexSerializes(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	const workers, rounds = 6, 5
	var group sync.WaitGroup
	for range workers {
		locker := concurrency.NewLocker(session(t, client(t)), at+"lock")
		group.Go(func() {
			for range rounds {
				locker.Lock()
				n := number(value(t, c, at+"counter"))
				if _, err := c.Put(within(t), at+"counter", text(n+1)); err != nil {
					t.Error(err)
				}
				locker.Unlock()
			}
		})
	}
	group.Wait()
	same(t, value(t, c, at+"counter"), text(workers*rounds), "the counter")
}
