// Package testserver stands in for the package of the same name in k8s.io/apiserver, whose tests start an etcd by it: it gives them
// the servers that the suite runs against instead, emptied for each test, or new ones where a test counts revisions from the first.
package testserver

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// NewTestConfig is what a test changes before it starts an etcd. Nothing of it reaches the servers.
func NewTestConfig(t testing.TB) *embed.Config {
	return embed.NewConfig()
}

// Tests that have to be the first who write, and those that go on at the same time.
var first = regexp.MustCompile(
	`/WatchSemantics(WithConcurrentDecode)?$|^TestTooLargeResourceVersionErrorForWatchList$|^TestLists/|^TestDryRun(Delete|Update)ReturnsObject$`)

// RunEtcd gives a client of servers in which there is nothing.
func RunEtcd(t testing.TB, _ *embed.Config) *kubernetes.Client {
	t.Helper()
	endpoints := os.Getenv("CONFORMANCE_ENDPOINTS")
	if first.MatchString(t.Name()) {
		endpoints = fresh(t)
	}
	client, err := kubernetes.New(clientv3.Config{
		Endpoints:   strings.Split(endpoints, ","),
		DialTimeout: 10 * time.Second,
		Logger:      zaptest.NewLogger(t, zaptest.Level(zapcore.ErrorLevel)).Named("etcd-client"),
	})
	if err != nil {
		t.Fatal(err)
	}
	empty(t, client.KV)
	recorder := storagetesting.NewKubernetesRecorder(client.Kubernetes)
	client.KV = storagetesting.NewKVRecorder(client.KV, recorder)
	client.Kubernetes = recorder
	return client
}

// Starts servers of the kind that the suite has.
func fresh(t testing.TB) string {
	t.Helper()
	kind, program, keeper := os.Getenv("CONFORMANCE_KIND"), os.Getenv("CONFORMANCE_PROGRAM"), os.Getenv("CONFORMANCE_KEEPER")
	if program == "" {
		t.Skip("needs servers of its own")
	}
	directory := t.TempDir()
	said, err := exec.Command(keeper, "up", kind, program, directory).Output()
	if err != nil {
		t.Fatalf("no servers of its own: %v: %s", err, said)
	}
	t.Cleanup(func() {
		if said, err := exec.Command(keeper, "down", directory).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, said)
		}
	})
	return strings.TrimSpace(string(said))
}

// Deletes all entries, a thousand at a time: all at once may be more than one request may change.
func empty(t testing.TB, kv clientv3.KV) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		page, err := kv.Get(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithKeysOnly(), clientv3.WithLimit(1000))
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Kvs) == 0 {
			return
		}
		last := string(page.Kvs[len(page.Kvs)-1].Key)
		if _, err = kv.Delete(ctx, "\x00", clientv3.WithRange(last+"\x00")); err != nil {
			t.Fatal(err)
		}
	}
}
