// Package traefik holds the nodes to what Traefik wants of the store that it reads its configuration from.
package traefik

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kvtools/etcdv3"
	"github.com/kvtools/valkeyrie/store"
	"github.com/kvtools/valkeyrie/testsuite"
)

const patience = 30 * time.Second

func open(t *testing.T) store.Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	opened, err := etcdv3.New(ctx, strings.Split(os.Getenv("CONFORMANCE_ENDPOINTS"), ","), &etcdv3.Config{ConnectionTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

// The suite that the library has for all of its stores, part by part.
func TestStore(t *testing.T) {
	// Two of the parts close the second store that they are given.
	one, waiting, other := open(t), open(t), open(t)
	t.Cleanup(func() { testsuite.RunCleanup(t, one) })
	parts := []struct {
		name string
		run  func(t *testing.T)
	}{
		{"Common", func(t *testing.T) { testsuite.RunTestCommon(t, one) }},
		{"Atomic", func(t *testing.T) { testsuite.RunTestAtomic(t, one) }},
		{"Watch", func(t *testing.T) { testsuite.RunTestWatch(t, one) }},
		{"Lock", func(t *testing.T) { testsuite.RunTestLock(t, one) }},
		{"LockTTL", func(t *testing.T) { testsuite.RunTestLockTTL(t, one, waiting) }},
		{"ListLock", func(t *testing.T) { testsuite.RunTestListLock(t, one) }},
		{"TTL", func(t *testing.T) { testsuite.RunTestTTL(t, one, other) }},
	}
	for _, part := range parts {
		t.Run(part.name, part.run)
	}
}

// What Traefik does at its start and for as long as it runs: it reads the tree of its configuration, and reads it again whenever a
// watch tells of a change.
func TestConfiguration(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kv := open(t)
	const root = "traefik-configuration"
	t.Cleanup(func() { _ = kv.DeleteTree(context.Background(), root) })
	wanted := map[string]string{}
	write := func(key, value string) {
		t.Helper()
		wanted["/"+root+"/"+key] = value
		if err := kv.Put(ctx, root+"/"+key, []byte(value), nil); err != nil {
			t.Fatal(err)
		}
	}
	same := func(found []*store.KVPair) {
		t.Helper()
		if len(found) != len(wanted) {
			t.Fatalf("%d keys, wanted %d", len(found), len(wanted))
		}
		for _, pair := range found {
			if wanted["/"+strings.TrimPrefix(pair.Key, "/")] != string(pair.Value) {
				t.Fatalf("%s is %q", pair.Key, pair.Value)
			}
		}
	}
	write("http/routers/one/rule", "Host(`one.example`)")
	write("http/routers/one/service", "one")
	seen, err := kv.WatchTree(ctx, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := func() []*store.KVPair {
		t.Helper()
		select {
		case told, open := <-seen:
			if !open {
				t.Fatal("the watch ended")
			}
			return told
		case <-ctx.Done():
			t.Fatal("the watch tells nothing")
		}
		return nil
	}
	same(next())
	write("http/services/one/url", "http://127.0.0.1:8080")
	if told := next(); len(told) != 1 || string(told[0].Value) != "http://127.0.0.1:8080" {
		t.Fatalf("the watch tells %v", told)
	}
	found, err := kv.List(ctx, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	same(found)
}

// A key with a time to live goes, unless its writer keeps it alive.
func TestTimeToLive(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kv := open(t)
	put := func(key string, kept bool) {
		t.Helper()
		if err := kv.Put(ctx, key, []byte("here"), &store.WriteOptions{TTL: time.Second, KeepAlive: kept}); err != nil {
			t.Fatal(err)
		}
	}
	put("traefik-kept", true)
	t.Cleanup(func() { _ = kv.Delete(context.Background(), "traefik-kept") })
	put("traefik-left", false)
	gone := func() bool {
		_, err := kv.Get(ctx, "traefik-left", nil)
		if err != nil && !errors.Is(err, store.ErrKeyNotFound) {
			t.Fatal(err)
		}
		return err != nil
	}
	for !gone() {
		time.Sleep(50 * time.Millisecond)
	}
	if pair, err := kv.Get(ctx, "traefik-kept", nil); err != nil || string(pair.Value) != "here" {
		t.Fatalf("what is kept alive: %v, %v", pair, err)
	}
}
