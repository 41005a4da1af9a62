package quorate

// Which node to ask next. Owns what is known of the nodes: who leads, who failed lately, which of them are of another cluster. Time comes
// in as an argument, nothing is sent; the caller holds a lock.
//
// Ours is the cluster that the first answer names, until the client goes over to another one: at once when more than half of the given
// nodes, where there are several, said last that they are of it; else after a doubt of ten seconds. Doubt begins with a foreign word of a
// given node, goes on while given nodes repeat it, within five seconds each, and ends with any word of ours, whoever says it, also a member
// that was discovered. Silence is no word: an idle client never goes over, and nobody is locked out by nodes that are gone.

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
	// Pause between two looks at a node of another cluster, which may have been put right.
	foreignPause = 30 * time.Second
	// Doubt of so long takes a client over to another cluster: the own one leads again sooner after most faults, and a restore takes longer.
	doubtMin = 10 * time.Second
	// Foreign words further apart begin a doubt anew: nobody can tell what was there between them.
	doubtGap = 5 * time.Second
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

// doubt is a foreign word that given nodes say again and again, since nobody of our cluster said anything.
type doubt struct {
	theirs      string
	since, last time.Time
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
	// cluster is the id of ours.
	cluster string
	// doubts are of the clusters that given nodes named since ours was last heard; none while there is no doubt.
	doubts []doubt
}

// newEndpoints knows nothing of count nodes. The turn begins at start, so that clients spread.
func newEndpoints(count, start int) *endpoints {
	return &endpoints{nodes: make([]nodeHealth, count), given: count, leader: none, next: start % count}
}

// discover looks for members from now on.
func (e *endpoints) discover(now time.Time) {
	e.discovers, e.discoverAt = true, now.Add(discoveryFirst)
}

// pick is the node to ask now. The node that has just failed this very request comes last. One of another cluster is not asked, unless it is
// the only one that was given, and no other is well.
func (e *endpoints) pick(wanted preference, failed int, now time.Time) int {
	reach := e.reach(now)
	if wanted == preferLeader && e.leader != none && e.leader < reach && e.leader != failed && e.isWell(e.leader, now) {
		return e.leader
	}
	rested := none
	for step := range reach {
		node := (e.next + step) % reach
		if node == failed || !e.isAsked(node) {
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
		rested = e.lastResort(failed)
	}
	e.next = (rested + 1) % reach
	return rested
}

// isAsked: the only node that was given may be an address of several.
func (e *endpoints) isAsked(node int) bool {
	isOnly := e.given == 1 && node == 0
	return !e.nodes[node].isGone && (isOnly || !e.isForeign(node))
}

// lastResort is the node that has just failed. Where all that were given are of other clusters, one of them says so once more.
func (e *endpoints) lastResort(failed int) int {
	if failed != none && e.isAsked(failed) {
		return failed
	}
	return e.next % e.given
}

// belongs hears of which cluster a node says that it is; isNews: that it is of another one than ours was not known of it.
func (e *endpoints) belongs(node int, told string, now time.Time) (isOurs, isNews bool) {
	if told == "" {
		return true, false
	}
	was := e.isForeign(node)
	e.nodes[node].cluster = told
	if told == e.cluster {
		e.doubts = nil
		return true, false
	}
	if e.cluster == "" || node < e.given && (e.doubted(told, now) >= doubtMin || e.hasMajority(told)) {
		e.goOver(told)
		return true, false
	}
	e.nodes[node].id = 0
	e.findLeader()
	return false, !was
}

// doubted: a given node named another cluster than ours. For how long that goes on.
func (e *endpoints) doubted(theirs string, now time.Time) time.Duration {
	e.doubts = slices.DeleteFunc(e.doubts, func(one doubt) bool { return now.Sub(one.last) > doubtGap })
	place := slices.IndexFunc(e.doubts, func(one doubt) bool { return one.theirs == theirs })
	if place < 0 {
		place, e.doubts = len(e.doubts), append(e.doubts, doubt{theirs: theirs, since: now})
	}
	e.doubts[place].last = now
	return now.Sub(e.doubts[place].since)
}

// hasMajority says whether more than half of the given nodes said this one last. A single node is no majority.
func (e *endpoints) hasMajority(told string) bool {
	votes := 0
	for _, node := range e.nodes[:e.given] {
		if node.cluster == told {
			votes++
		}
	}
	return e.given > 1 && votes*2 > e.given
}

// goOver: another cluster is ours from now on. Terms, leaders and ids of the former say nothing any more.
func (e *endpoints) goOver(theirs string) {
	e.cluster, e.doubts, e.term, e.leaderID = theirs, nil, 0, 0
	for node := range e.nodes {
		if e.isForeign(node) {
			e.nodes[node].id = 0
		}
	}
	e.findLeader()
}

// isForeign says whether its last word was another cluster than ours.
func (e *endpoints) isForeign(node int) bool {
	said := e.nodes[node].cluster
	return said != "" && e.cluster != "" && said != e.cluster
}

// stranger is, while in doubt, a given node that says it is of another cluster; else none.
func (e *endpoints) stranger() int {
	if len(e.doubts) == 0 {
		return none
	}
	theirs := e.doubts[len(e.doubts)-1].theirs
	return slices.IndexFunc(e.nodes[:e.given], func(node nodeHealth) bool { return node.cluster == theirs })
}

// isInDoubt says whether the doubt goes on: another word now would be one without a gap.
func (e *endpoints) isInDoubt(now time.Time) bool {
	return slices.ContainsFunc(e.doubts, func(one doubt) bool { return now.Sub(one.last) <= doubtGap })
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

// beginIntroduction says whether the nodes should be asked who they are now: a leader is known by an id that belongs to none of them, or a
// node was of another cluster. Says yes at most once a second, since the leader may well not be among the endpoints, and for a node of another
// cluster now and then while ours is heard.
func (e *endpoints) beginIntroduction(now time.Time) bool {
	isStranger := e.leaderID != 0 && e.leader == none && len(e.nodes) > 1
	pause := foreignPause
	if isStranger || len(e.doubts) > 0 {
		pause = introductionPause
	}
	begins := (isStranger || e.hasForeign()) && now.Sub(e.introducedAt) >= pause
	if begins {
		e.introducedAt = now
	}
	return begins
}

func (e *endpoints) hasForeign() bool {
	for node := range e.nodes {
		if e.isForeign(node) && !e.nodes[node].isGone {
			return true
		}
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

func (e *endpoints) isWell(node int, now time.Time) bool {
	return !e.nodes[node].avoidUntil.After(now) && !e.isForeign(node)
}

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
