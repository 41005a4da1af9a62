package clientv3

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	v3 "go.etcd.io/etcd/client/v3"
)

type grantRequest = etcdserverpb.LeaseGrantRequest

func TestWatchOptions(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	ctx := v3.WithRequireLeader(within(t))
	created := c.Watch(ctx, at, v3.WithPrefix(), v3.WithCreatedNotify(), v3.WithPrevKV())
	same(t, next(t, created, "that it was created").Created, true, "the first answer")
	puts := c.Watch(ctx, at, v3.WithPrefix(), v3.WithFilterDelete(), v3.WithCreatedNotify())
	deletions := c.Watch(ctx, at, v3.WithPrefix(), v3.WithFilterPut(), v3.WithCreatedNotify())
	next(t, puts, "that it was created")
	next(t, deletions, "that it was created")
	first, err := c.Put(within(t), at+"a", "1")
	ok(t, err)
	_, err = c.Delete(within(t), at+"a")
	ok(t, err)
	second, err := c.Put(within(t), at+"a", "2")
	ok(t, err)
	same(t, next(t, puts, "a put").Events[0].IsCreate(), true, "a creation")
	same(t, next(t, puts, "a put").Events[0].Kv.ModRevision, second.Header.Revision, "the second put")
	same(t, next(t, deletions, "a deletion").Events[0].Type, v3.EventTypeDelete, "a deletion")
	same(t, next(t, created, "the put").Events[0].PrevKv == nil, true, "there was nothing before")
	same(t, string(next(t, created, "the deletion").Events[0].PrevKv.Value), "1", "what was before")
	past := c.Watch(ctx, at+"a", v3.WithRev(first.Header.Revision))
	same(t, next(t, past, "the past").Events[0].Kv.ModRevision, first.Header.Revision, "the first event of the past")
}

func TestWatchProgress(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	watch := c.Watch(within(t), at, v3.WithPrefix(), v3.WithCreatedNotify())
	next(t, watch, "that it was created")
	put, err := c.Put(within(t), at+"a", "1")
	ok(t, err)
	same(t, next(t, watch, "an event").Events[0].Kv.ModRevision, put.Header.Revision, "the event")
	ok(t, c.RequestProgress(within(t)))
	progress := next(t, watch, "progress")
	same(t, progress.IsProgressNotify(), true, "progress")
	if progress.Header.Revision < put.Header.Revision {
		t.Fatalf("progress is at %d, and there was %d before", progress.Header.Revision, put.Header.Revision)
	}
}

func TestWatchOfManyOnOneStream(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	const watches = 300
	var all []v3.WatchChan
	for n := range watches {
		all = append(all, c.Watch(within(t), at+text(n)))
	}
	var puts []v3.Op
	for n := range 100 {
		puts = append(puts, v3.OpPut(at+text(n), "x"), v3.OpPut(at+text(n+100), "x"), v3.OpPut(at+text(n+200), "x"))
		if len(puts) == 99 || n == 99 {
			_, err := c.Txn(within(t)).Then(puts...).Commit()
			ok(t, err)
			puts = nil
		}
	}
	for n, watch := range all {
		select {
		case seen := <-watch:
			same(t, string(seen.Events[0].Kv.Key), at+text(n), "the key")
		default:
			// A watch begins with the store as it is when it is made, so the put may have been before it.
			put, err := c.Put(within(t), at+text(n), "y")
			ok(t, err)
			for {
				seen := next(t, watch, "a watch of many")
				if seen.Events[len(seen.Events)-1].Kv.ModRevision == put.Header.Revision {
					break
				}
			}
		}
	}
}

func TestWatchFragments(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	big := strings.Repeat("x", 900<<10)
	const entries = 6 // More than an etcd puts into one message.
	first := int64(0)
	for n := range entries {
		answer, err := c.Put(within(t), at+text(n), big)
		ok(t, err)
		if n == 0 {
			first = answer.Header.Revision
		}
	}
	watch := c.Watch(within(t), at, v3.WithPrefix(), v3.WithFragment(), v3.WithRev(first))
	for found := 0; found < entries; {
		for _, event := range next(t, watch, "events").Events {
			same(t, string(event.Kv.Key), at+text(found), "the key")
			same(t, len(event.Kv.Value), len(big), "the length of the value")
			found++
		}
	}
}

func TestWatchOfWhatIsCompacted(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	first, err := c.Put(within(t), at+"a", "1")
	ok(t, err)
	second, err := c.Put(within(t), at+"a", "2")
	ok(t, err)
	_, err = c.Compact(within(t), second.Header.Revision)
	ok(t, err)
	seen := next(t, c.Watch(within(t), at+"a", v3.WithRev(first.Header.Revision)), "what comes instead")
	same(t, errors.Is(seen.Err(), rpctypes.ErrCompacted), true, "the error")
	same(t, seen.CompactRevision, second.Header.Revision, "the revision of the compaction")
}

func TestWatchEndsWithItsContext(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	ctx, cancel := context.WithCancel(context.Background())
	watch, other := c.Watch(ctx, at+"a", v3.WithCreatedNotify()), c.Watch(within(t), at+"a", v3.WithCreatedNotify())
	next(t, watch, "that it was created")
	next(t, other, "that it was created")
	cancel()
	closes(t, watch, "a watch ends with its context")
	_, err := c.Put(within(t), at+"a", "1")
	ok(t, err)
	same(t, string(next(t, other, "an event").Events[0].Kv.Value), "1", "the other watch of the stream")
}
