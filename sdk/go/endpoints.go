package quorate

// Which node to ask next. Owns what is known of the nodes: who leads, who failed lately. Time comes in as an argument, nothing is
// sent; the caller holds a lock.

import (
	"slices"
	"time"
)

const (
	// How long a node is left alone after its first failure; doubles with each further one.
	avoidMin = 100 * time.Millisecond
	// At most this long, so that a node that came back is soon used again.
	avoidMax = 3 * time.Second
	// Pause between two rounds of asking the nodes who they are.
	introductionPause = time.Second
	// Pause between two looks at who the members are.
	discoveryPause = 30 * time.Second
	// foreignPause is how long a node of another cluster is left alone.
	foreignPause = 30 * time.Second
	// forgetCluster is how long a client of one endpoint must have heard nothing of its cluster before it goes over to the one that it hears
	// there: several nodes may stand behind the one address, and an outage of a restore takes longer.
	forgetCluster = 10 * time.Second
	// The first look comes once a client has lived a little; what is over by then needs none.
	discoveryFirst = time.Second
)

// none stands for no node.
const none = -1

type preference int

const (
	// preferLeader saves forwarding.
	preferLeader preference = iota
	// preferAny takes the nodes in turn.
	preferAny
)

// leaderHint is what every answer says about the cluster, in its headers.
type leaderHint struct {
	term uint64
	// leaderID is 0 where the node knows none.
	leaderID uint64
}

type nodeHealth struct {
	id         uint64
	failures   uint
	avoidUntil time.Time
	// isGone: no member any more. Never of a node that was given.
	isGone bool
	// cluster is the id of its cluster, as it said last.
	cluster string
}

// endpoints are the nodes by their place: those that were given, then members that were discovered. Discovered ones are asked only
// while not every given one is well, so that a client of one node stays with it.
type endpoints struct {
	nodes        []nodeHealth
	given        int
	term         uint64
	leaderID     uint64
	leader       int
	next         int
	introducedAt time.Time
	discoverAt   time.Time
	discovers    bool
	// cluster is the id that most of the given nodes say, each by its last word, so that a client follows them through a restore. One that was
	// believed stays where as many speak for it as for another. Members that were discovered have no say.
	cluster string
	// clusterHeard is when a given node last spoke for it.
	clusterHeard time.Time
}

// newEndpoints knows nothing of count nodes. The turn begins at start, so that clients spread.
func newEndpoints(count, start int) *endpoints {
	return &endpoints{nodes: make([]nodeHealth, count), given: count, leader: none, next: start % count}
}

// discover looks for members from now on.
func (e *endpoints) discover(now time.Time) {
	e.discovers, e.discoverAt = true, now.Add(discoveryFirst)
}

// pick is the node to ask now. The node that has just failed this very request comes last.
func (e *endpoints) pick(wanted preference, failed int, now time.Time) int {
	reach := e.reach(now)
	if wanted == preferLeader && e.leader != none && e.leader < reach && e.leader != failed && e.isWell(e.leader, now) {
		return e.leader
	}
	rested := none
	for step := range reach {
		node := (e.next + step) % reach
		if node == failed || e.nodes[node].isGone || e.isForeign(node, now) {
			continue
		}
		if e.isWell(node, now) {
			rested = node
			break
		}
		if rested == none || e.nodes[node].avoidUntil.Before(e.nodes[rested].avoidUntil) {
			rested = node
		}
	}
	if rested == none {
		rested = e.lastResort(failed, reach, now)
	}
	e.next = (rested + 1) % reach
	return rested
}

// lastResort is the node that has just failed, where all others are of another cluster, or any of those that are not asked at all.
func (e *endpoints) lastResort(failed, reach int, now time.Time) int {
	if failed != none && !e.isForeign(failed, now) {
		return failed
	}
	return e.next % reach
}

// belongs says whether a node that says so is of our cluster. One of another is left alone for a while, unless it is the only one that was
// given; isNews says that this was not known of it.
func (e *endpoints) belongs(node int, cluster string, now time.Time) (isOurs, isNews bool) {
	if cluster == "" {
		return true, false
	}
	health, was := &e.nodes[node], e.saysOther(node)
	health.cluster = cluster
	if node < e.given {
		e.countVote(cluster, now)
	}
	if !e.saysOther(node) {
		return true, false
	}
	health.id = 0
	if e.given > 1 {
		health.avoidUntil = now.Add(foreignPause)
	}
	e.findLeader()
	return false, !was
}

// countVote goes over to the cluster that a given node told, where it is ours now: terms and leaders of the former say nothing any more.
func (e *endpoints) countVote(told string, now time.Time) {
	switch {
	case told == e.cluster:
	case e.cluster == "", e.given == 1 && now.Sub(e.clusterHeard) >= forgetCluster, e.given > 1 && e.votes(told) > e.votes(e.cluster):
		e.cluster, e.term, e.leaderID = told, 0, 0
		e.findLeader()
	default:
		return
	}
	e.clusterHeard = now
}

// votes is how many of the given nodes said this one last.
func (e *endpoints) votes(cluster string) int {
	count := 0
	for _, node := range e.nodes[:e.given] {
		if node.cluster == cluster {
			count++
		}
	}
	return count
}

// saysOther says whether its last word was another cluster than ours.
func (e *endpoints) saysOther(node int) bool {
	said := e.nodes[node].cluster
	return said != "" && e.cluster != "" && said != e.cluster
}

// isForeign says whether it told lately that it is of another cluster.
func (e *endpoints) isForeign(node int, now time.Time) bool {
	return e.saysOther(node) && !e.isWell(node, now)
}

// onlyForeign gives a node of another cluster, where all that could be asked lately said so; else none. Who was given one asks it again.
func (e *endpoints) onlyForeign(now time.Time) int {
	found := none
	if e.given == 1 {
		return none
	}
	for node := range e.nodes {
		switch {
		case e.nodes[node].isGone:
		case !e.isForeign(node, now):
			return none
		default:
			found = node
		}
	}
	return found
}

// reach is how many nodes, from the first, may be asked.
func (e *endpoints) reach(now time.Time) int {
	for node := range e.given {
		if !e.isWell(node, now) {
			return len(e.nodes)
		}
	}
	return e.given
}

// onAnswer: a node answered.
func (e *endpoints) onAnswer(node int, hint leaderHint) {
	e.nodes[node].failures, e.nodes[node].avoidUntil = 0, time.Time{}
	e.hear(hint)
}

// onFailure: a node could not be reached, broke off, or cannot serve.
func (e *endpoints) onFailure(node int, now time.Time) {
	health := &e.nodes[node]
	health.avoidUntil = now.Add(min(avoidMin<<min(health.failures, 8), avoidMax))
	health.failures++
	// It may have been replaced.
	if soon := now.Add(discoveryFirst); e.discovers && soon.Before(e.discoverAt) {
		e.discoverAt = soon
	}
	if e.leader == node {
		e.leader, e.leaderID = none, 0
	}
}

// introduce: a node said who it is.
func (e *endpoints) introduce(node int, id uint64, hint leaderHint) {
	e.nodes[node].id = id
	e.onAnswer(node, hint)
	e.findLeader()
}

// beginIntroduction says whether the nodes should be asked for their ids now: a leader is known by an id that belongs to none of
// them. Says yes at most once a second, since the leader may well not be among the endpoints.
func (e *endpoints) beginIntroduction(now time.Time) bool {
	isStranger := e.leaderID != 0 && e.leader == none
	if isStranger && len(e.nodes) > 1 && now.Sub(e.introducedAt) >= introductionPause {
		e.introducedAt = now
		return true
	}
	return false
}

// beginDiscovery says whether to look now who the members are.
func (e *endpoints) beginDiscovery(now time.Time) bool {
	if !e.discovers || e.discoverAt.After(now) {
		return false
	}
	e.discoverAt = now.Add(discoveryPause)
	return true
}

// isKnown says whether one of the nodes is known to be this member. If it was gone, it is back.
func (e *endpoints) isKnown(id uint64) bool {
	for node := range e.nodes {
		if e.nodes[node].id == id {
			e.nodes[node].isGone = false
			return true
		}
	}
	return false
}

// add: a member was discovered, and has the next place.
func (e *endpoints) add(id uint64) {
	e.nodes = append(e.nodes, nodeHealth{id: id})
	e.findLeader()
}

// retain: these are all members; discovered ones that are none any more are gone.
func (e *endpoints) retain(members []uint64) {
	for node := e.given; node < len(e.nodes); node++ {
		e.nodes[node].isGone = !slices.Contains(members, e.nodes[node].id)
	}
	e.findLeader()
}

func (e *endpoints) isWell(node int, now time.Time) bool { return !e.nodes[node].avoidUntil.After(now) }

func (e *endpoints) hear(hint leaderHint) {
	isNews := hint.leaderID != 0 && hint.leaderID != e.leaderID
	if hint.term < e.term || (hint.term == e.term && !isNews) {
		return
	}
	e.term, e.leaderID = hint.term, hint.leaderID
	e.findLeader()
}

func (e *endpoints) findLeader() {
	e.leader = none
	for node := range e.nodes {
		if e.leaderID != 0 && e.nodes[node].id == e.leaderID && !e.nodes[node].isGone {
			e.leader = node
			return
		}
	}
}
