package quorate

import (
	"slices"
	"testing"
	"time"
)

func introduced(leaderID uint64) *endpoints {
	e := newEndpoints(3, 0)
	for place := range 3 {
		e.introduce(place, uint64(place)+1, leaderHint{term: 4, leaderID: leaderID})
	}
	return e
}

func picks(e *endpoints, wanted preference, failed, times int, now time.Time) []int {
	var all []int
	for range times {
		all = append(all, e.pick(wanted, failed, now))
	}
	return all
}

func TestReadsTakeTurnsAndWritesStayWithTheLeader(t *testing.T) {
	e, now := introduced(3), time.Now()
	if got := picks(e, preferAny, none, 4, now); !slices.Equal(got, []int{0, 1, 2, 0}) {
		t.Errorf("reads went to %v", got)
	}
	if got := picks(e, preferLeader, none, 2, now); !slices.Equal(got, []int{2, 2}) {
		t.Errorf("writes went to %v", got)
	}
}

func TestAFailedLeaderIsForgottenUntilANewerTermNamesOne(t *testing.T) {
	e, now := introduced(3), time.Now()
	e.onFailure(2, now)
	if got := e.pick(preferLeader, 2, now); got == 2 {
		t.Error("the node that failed was asked again")
	}
	e.onAnswer(0, leaderHint{term: 5, leaderID: 2})
	if got := e.pick(preferLeader, none, now); got != 1 {
		t.Errorf("asked %d, not the new leader", got)
	}
}

func TestAnOlderTermDoesNotMoveTheLeader(t *testing.T) {
	e, now := introduced(3), time.Now()
	e.onAnswer(0, leaderHint{term: 3, leaderID: 1})
	e.onAnswer(0, leaderHint{term: 4})
	if got := e.pick(preferLeader, none, now); got != 2 {
		t.Errorf("asked %d", got)
	}
}

func TestFailingNodesRestLongerEachTimeAndComeBackAfterAnAnswer(t *testing.T) {
	e, now := newEndpoints(2, 0), time.Now()
	e.onFailure(0, now)
	e.onFailure(0, now)
	if got := e.pick(preferAny, none, now.Add(avoidMin)); got != 1 {
		t.Errorf("asked %d too early", got)
	}
	if got := e.pick(preferAny, none, now.Add(2*avoidMin)); got != 0 {
		t.Errorf("asked %d, though 0 has rested", got)
	}
	e.onFailure(0, now)
	e.onAnswer(0, leaderHint{})
	if got := e.pick(preferAny, 1, now); got != 0 {
		t.Errorf("asked %d, though 0 answered", got)
	}
}

func TestWithAllNodesDownTheOneThatRestsLeastIsTried(t *testing.T) {
	e, now := newEndpoints(3, 0), time.Now()
	for _, place := range []int{0, 0, 1, 2, 2} {
		e.onFailure(place, now)
	}
	if got := e.pick(preferAny, none, now); got != 1 {
		t.Errorf("asked %d", got)
	}
	if got := e.pick(preferAny, 1, now); got == 1 {
		t.Error("asked the one that has just failed")
	}
	single := newEndpoints(1, 0)
	single.onFailure(0, now)
	if got := single.pick(preferLeader, 0, now); got != 0 {
		t.Errorf("asked %d of one", got)
	}
}

func TestNodesAreAskedForTheirIDsWhenTheLeaderIsAStranger(t *testing.T) {
	e, now := newEndpoints(3, 1), time.Now()
	if e.beginIntroduction(now) {
		t.Error("no leader is known")
	}
	e.onAnswer(1, leaderHint{term: 2, leaderID: 9})
	if !e.beginIntroduction(now) || e.beginIntroduction(now) || !e.beginIntroduction(now.Add(introductionPause)) {
		t.Error("once a second it is")
	}
	e.introduce(0, 9, leaderHint{term: 2, leaderID: 9})
	if e.beginIntroduction(now.Add(2 * introductionPause)) {
		t.Error("it is no stranger any more")
	}
}

func TestDiscoveredMembersAreAskedOnlyWhileAGivenNodeIsNotWell(t *testing.T) {
	e, now := introduced(4), time.Now()
	e.add(4)
	for _, place := range append(picks(e, preferAny, none, 3, now), e.pick(preferLeader, none, now)) {
		if place == 3 {
			t.Error("all given nodes are well")
		}
	}
	e.onFailure(0, now)
	if got := e.pick(preferLeader, none, now); got != 3 {
		t.Errorf("asked %d, not the leader", got)
	}
	if got := picks(e, preferAny, none, 3, now); !slices.Contains(got, 3) || slices.Contains(got, 0) {
		t.Errorf("asked %v", got)
	}
}

func TestWhenAllGivenNodesAreReplacedTheDiscoveredOnesAreLeft(t *testing.T) {
	e, now := newEndpoints(1, 0), time.Now()
	e.add(4)
	e.add(5)
	e.onFailure(0, now)
	if got := picks(e, preferAny, 0, 4, now); slices.Contains(got, 0) {
		t.Errorf("asked %v", got)
	}
	e.retain([]uint64{5, 6})
	if got := e.pick(preferAny, 0, now); got != 2 {
		t.Errorf("asked %d, though node 4 is a member no more", got)
	}
	if !e.isKnown(4) || e.isKnown(6) {
		t.Error("node 4 may come back, node 6 is none of ours")
	}
}

func TestMembersAreLookedForSoonAfterTheStartAndAfterAFailure(t *testing.T) {
	e, now := newEndpoints(2, 0), time.Now()
	if e.beginDiscovery(now.Add(discoveryPause)) {
		t.Error("nobody asked for it")
	}
	e.discover(now)
	first := now.Add(discoveryFirst)
	if e.beginDiscovery(now) || !e.beginDiscovery(first) || e.beginDiscovery(first) || !e.beginDiscovery(first.Add(discoveryPause)) {
		t.Error("first soon, then now and then")
	}
	later := first.Add(discoveryPause)
	e.onFailure(0, later)
	if !e.beginDiscovery(later.Add(discoveryFirst)) {
		t.Error("a failed node may have been replaced")
	}
}
