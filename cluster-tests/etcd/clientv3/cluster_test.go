// Package clientv3 holds the nodes to what etcd's Go client and the packages beside it make of them.
//
// This file owns the servers that the tests talk to, clients for them, and how a test waits.
package clientv3

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	v3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const patience = 30 * time.Second

// Set by `run`: where the servers are, and, where they belong to the suite, the program and the directory that own them.
var (
	endpoints = strings.Split(os.Getenv("CONFORMANCE_ENDPOINTS"), ",")
	keeper    = os.Getenv("CONFORMANCE_KEEPER")
	servers   = os.Getenv("CONFORMANCE_SERVERS")
)

func client(t *testing.T) *v3.Client {
	t.Helper()
	return clientAt(t, endpoints...)
}

func clientAt(t *testing.T, addresses ...string) *v3.Client {
	t.Helper()
	c, err := v3.New(v3.Config{
		Endpoints:            addresses,
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    2 * time.Second,
		DialKeepAliveTimeout: 2 * time.Second,
		Logger:               zap.NewNop(),
	})
	ok(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// Deletes what an earlier run left, and gives the prefix of the test.
func prefix(t *testing.T, c *v3.Client) string {
	t.Helper()
	at := "/clientv3/" + t.Name() + "/"
	_, err := c.Delete(within(t), at, v3.WithPrefix())
	ok(t, err)
	return at
}

// A context that ends with the test, and long before somebody gives up on it.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T comparable](t *testing.T, found, wanted T, what string) {
	t.Helper()
	if found != wanted {
		t.Fatalf("%s: %v instead of %v", what, found, wanted)
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// What comes next, or a failure.
func next[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case value, open := <-from:
		if !open {
			t.Fatalf("%s: the channel is closed", what)
		}
		return value
	case <-time.After(patience):
		t.Fatalf("%s: nothing comes", what)
	}
	panic("unreachable")
}

func closes[T any](t *testing.T, channel <-chan T, what string) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case _, open := <-channel:
			if !open {
				return
			}
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

func value(t *testing.T, c *v3.Client, key string) string {
	t.Helper()
	answer, err := c.Get(within(t), key)
	ok(t, err)
	if len(answer.Kvs) == 0 {
		return ""
	}
	return string(answer.Kvs[0].Value)
}

func count(t *testing.T, c *v3.Client, at string) int64 {
	t.Helper()
	answer, err := c.Get(within(t), at, v3.WithPrefix(), v3.WithCountOnly())
	ok(t, err)
	return answer.Count
}

func number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// --- killing nodes ---------------------------------------------------------------------------------------------------

func needsServers(t *testing.T) {
	t.Helper()
	if servers == "" {
		t.Skip("kills nodes, and these servers are not the suite's")
	}
}

func keep(t *testing.T, arguments ...string) string {
	t.Helper()
	said, err := exec.Command(keeper, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", arguments, err, said)
	}
	return strings.TrimSpace(string(said))
}

// Kills the leader, calls `meanwhile` once others have one, and starts the killed node again.
func killLeader(t *testing.T, meanwhile func()) {
	t.Helper()
	leader := keep(t, "leader", servers)
	began := time.Now()
	keep(t, "kill", servers, leader)
	successor := keep(t, "leader", servers)
	t.Logf("node %s was killed, and node %s leads after %d ms", leader, successor, time.Since(began).Milliseconds())
	meanwhile()
	keep(t, "start", servers, leader)
}

func TestMain(m *testing.M) {
	if endpoints[0] == "" {
		fmt.Println("scripts/conformance clientv3 runs this")
		os.Exit(2)
	}
	os.Exit(m.Run())
}
