package quorate_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	quorate "quorate.dev/go"
	"quorate.dev/go/quoratetest"
)

// shared is a node for the examples and for tests that need no more.
var shared *quoratetest.Cluster

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	cluster, err := quoratetest.Run(nil)
	switch {
	case errors.Is(err, quoratetest.ErrNoNode) && os.Getenv("QUORATE_NODE_REQUIRED") == "":
		fmt.Fprintln(os.Stderr, err, "- only tests without a node run")
		// An example cannot skip itself.
		if err := flag.Set("test.run", "^Test"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		shared = cluster
		defer cluster.Stop()
		if err := os.Setenv("QUORATE_ENDPOINTS", cluster.Endpoints()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// node is a client of the shared node; without one the test is skipped.
func node(t *testing.T) *quorate.Client {
	t.Helper()
	if shared == nil {
		t.Skip(quoratetest.ErrNoNode)
	}
	return shared.Client(t, nil)
}
