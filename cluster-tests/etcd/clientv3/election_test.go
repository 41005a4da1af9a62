package clientv3

import (
	"context"
	"errors"
	"testing"

	v3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Reads what an observer sees until it is `wanted`.
func observed(t *testing.T, leaders <-chan v3.GetResponse, wanted string) {
	t.Helper()
	for {
		seen := next(t, leaders, "an observer that waits for "+wanted)
		if string(seen.Kvs[0].Value) == wanted {
			return
		}
	}
}

func TestElection(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	first := concurrency.NewElection(session(t, c), at+"election")
	second := concurrency.NewElection(session(t, client(t)), at+"election")
	if _, err := first.Leader(within(t)); !errors.Is(err, concurrency.ErrElectionNoLeader) {
		t.Fatalf("the leader before the first campaign: %v", err)
	}
	if err := first.Proclaim(within(t), "too early"); !errors.Is(err, concurrency.ErrElectionNotLeader) {
		t.Fatalf("a proclamation of who does not lead: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	leaders := concurrency.NewElection(session(t, client(t)), at+"election").Observe(ctx)

	ok(t, first.Campaign(within(t), "alice"))
	observed(t, leaders, "alice")
	ok(t, first.Proclaim(within(t), "alice again"))
	observed(t, leaders, "alice again")
	leader, err := second.Leader(within(t))
	ok(t, err)
	same(t, string(leader.Kvs[0].Value), "alice again", "the leader")
	same(t, string(leader.Kvs[0].Key), first.Key(), "the leader's key")

	elected := make(chan error, 1)
	go func() { elected <- second.Campaign(within(t), "bob") }()
	eventually(t, "bob stands, too", func() bool { return count(t, c, at) == 2 })
	ok(t, first.Resign(within(t)))
	ok(t, next(t, elected, "bob's election"))
	observed(t, leaders, "bob")
	if err := first.Proclaim(within(t), "too late"); !errors.Is(err, concurrency.ErrElectionNotLeader) {
		t.Fatalf("a proclamation of who resigned: %v", err)
	}
	ok(t, second.Resign(within(t)))
	same(t, count(t, c, at), 0, "what is left of the election")
	cancel()
	closes(t, leaders, "the observer ends with its context")
}

func TestElectionAfterALostSession(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	lost := session(t, c)
	first := concurrency.NewElection(lost, at+"election")
	second := concurrency.NewElection(session(t, client(t)), at+"election")
	ok(t, first.Campaign(within(t), "alice"))
	elected := make(chan error, 1)
	go func() { elected <- second.Campaign(within(t), "bob") }()
	eventually(t, "bob stands, too", func() bool { return count(t, c, at) == 2 })
	_, err := c.Revoke(within(t), lost.Lease())
	ok(t, err)
	ok(t, next(t, elected, "bob's election"))
	if err := first.Proclaim(within(t), "too late"); !errors.Is(err, concurrency.ErrElectionNotLeader) {
		t.Fatalf("a proclamation of who lost its session: %v", err)
	}
}

func TestElectionGoesOn(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	s := session(t, c)
	first := concurrency.NewElection(s, at+"election")
	ok(t, first.Campaign(within(t), "alice"))
	same(t, first.Header().Revision, first.Rev(), "the revision of the campaign")
	resumed := concurrency.ResumeElection(s, at+"election", first.Key(), first.Rev())
	ok(t, resumed.Proclaim(within(t), "alice, resumed"))
	same(t, value(t, c, first.Key()), "alice, resumed", "what was proclaimed")
	ok(t, resumed.Resign(within(t)))
}
