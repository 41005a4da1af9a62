package clientv3

import (
	"context"
	"testing"
	"time"

	v3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func session(t *testing.T, c *v3.Client, options ...concurrency.SessionOption) *concurrency.Session {
	t.Helper()
	s, err := concurrency.NewSession(c, options...)
	ok(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSessionKeepsItsLease(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	s := session(t, c, concurrency.WithTTL(2))
	_, err := c.Put(within(t), at+"a", "x", v3.WithLease(s.Lease()))
	ok(t, err)
	select {
	case <-s.Done():
		t.Fatal("the session ended though it is kept alive")
	case <-time.After(5 * time.Second): // Longer than it lives by itself.
	}
	same(t, value(t, c, at+"a"), "x", "an entry of a session that is kept alive")
	ok(t, s.Close())
	closes(t, s.Done(), "a closed session is done")
	same(t, value(t, c, at+"a"), "", "an entry of a closed session")
}

func TestSessionExpires(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	s := session(t, c, concurrency.WithTTL(2))
	_, err := c.Put(within(t), at+"a", "x", v3.WithLease(s.Lease()))
	ok(t, err)
	s.Orphan()
	closes(t, s.Done(), "an orphaned session is done")
	same(t, value(t, c, at+"a"), "x", "an entry of an orphan")
	eventually(t, "the lease of an orphan expires", func() bool { return value(t, c, at+"a") == "" })
}

func TestSessionLosesItsLease(t *testing.T) {
	c := client(t)
	s := session(t, c, concurrency.WithTTL(3))
	_, err := c.Revoke(within(t), s.Lease())
	ok(t, err)
	closes(t, s.Done(), "a session without a lease is done")
}

func TestSessionOfALease(t *testing.T) {
	c := client(t)
	lease, err := c.Grant(within(t), 60)
	ok(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	s := session(t, c, concurrency.WithLease(lease.ID), concurrency.WithContext(ctx))
	same(t, s.Lease(), lease.ID, "the lease")
	cancel()
	closes(t, s.Done(), "a session ends with its context")
	left, err := c.TimeToLive(within(t), lease.ID)
	ok(t, err)
	if left.TTL <= 0 {
		t.Fatal("the lease ended with the context")
	}
}

func TestLeases(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	lease, err := c.Grant(within(t), 60)
	ok(t, err)
	same(t, lease.TTL, 60, "what was granted")
	for _, key := range []string{"b", "a"} {
		_, err = c.Put(within(t), at+key, key, v3.WithLease(lease.ID))
		ok(t, err)
	}
	left, err := c.TimeToLive(within(t), lease.ID, v3.WithAttachedKeys())
	ok(t, err)
	same(t, left.GrantedTTL, 60, "granted")
	same(t, len(left.Keys), 2, "attached keys")
	once, err := c.KeepAliveOnce(within(t), lease.ID)
	ok(t, err)
	same(t, once.TTL, 60, "after a keep-alive")
	all, err := c.Leases(within(t))
	ok(t, err)
	found := false
	for _, each := range all.Leases {
		found = found || each.ID == lease.ID
	}
	same(t, found, true, "the lease is listed")
	_, err = c.Revoke(within(t), lease.ID)
	ok(t, err)
	same(t, count(t, c, at), 0, "entries of a revoked lease")
	left, err = c.TimeToLive(within(t), lease.ID)
	ok(t, err)
	same(t, left.TTL, -1, "time to live of a revoked lease")
}

func TestLeaseOfAGivenId(t *testing.T) {
	c := client(t)
	id := v3.LeaseID(0x1234567890)
	c.Revoke(within(t), id) // Of an earlier run.
	request := v3.RetryLeaseClient(c)
	answer, err := request.LeaseGrant(within(t), &grantRequest{TTL: 60, ID: int64(id)})
	ok(t, err)
	same(t, answer.ID, int64(id), "the id")
	if _, err = request.LeaseGrant(within(t), &grantRequest{TTL: 60, ID: int64(id)}); err == nil {
		t.Fatal("the same id was granted twice")
	}
	_, err = c.Revoke(within(t), id)
	ok(t, err)
}
