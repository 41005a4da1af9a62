package quorate

// Who the nodes are, and which members of the cluster no endpoint names.

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"quorate.dev/go/api"
)

// introduceAll asks every node who it is. While others than ours answer it goes on, so that their words come without gaps until the doubt is
// over.
func (c *Client) introduceAll() {
	for !c.introduceEach() && c.isInDoubt() {
		// Where another round has begun meanwhile, that goes on in place of this.
		if sleep(c.roots, introductionPause) != nil || !c.beginsIntroduction() {
			return
		}
	}
}

func (c *Client) isInDoubt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints.isInDoubt(time.Now())
}

// introduceEach asks every node who it is, and from what they say finds members that are not among them. One that does not answer stays
// unknown until the next round. Says whether any of ours answered.
func (c *Client) introduceEach() bool {
	statuses := make([]*api.StatusAnswer, c.transport.len())
	var all sync.WaitGroup
	for place := range statuses {
		all.Add(1)
		go func() {
			defer all.Done()
			statuses[place] = c.introduce(place)
		}()
	}
	all.Wait()
	var latest *api.StatusAnswer
	for place, status := range c.ours(statuses) {
		if status == nil {
			continue
		}
		c.mu.Lock()
		c.endpoints.introduce(place, status.NodeID, leaderHint{status.Term, status.LeaderID})
		c.mu.Unlock()
		if latest == nil || status.AppliedIndex > latest.AppliedIndex {
			latest = status
		}
	}
	c.mu.Lock()
	discovers := c.endpoints.discovers
	c.mu.Unlock()
	if latest != nil && discovers && latest.ClusterID != "" {
		c.discover(latest)
	}
	return latest != nil
}

func (c *Client) introduce(place int) *api.StatusAnswer {
	wanted := c.statusCall()
	got, last, _ := c.transport.send(c.roots, c.transport.node(place), wanted, introductionTimeout)
	if last != nil {
		return nil
	}
	// One that refuses us says of which cluster it is, too.
	c.foreign(place, got.cluster)
	status := new(api.StatusAnswer)
	if got.status != http.StatusOK || wanted.decode(got.status, got.body, status) != nil {
		return nil
	}
	return status
}

// ours are those of our cluster, each at its place: all have their say before any is judged.
func (c *Client) ours(statuses []*api.StatusAnswer) []*api.StatusAnswer {
	for place, status := range statuses {
		if status != nil {
			c.foreign(place, status.ClusterID)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for place, status := range statuses {
		if status != nil && c.endpoints.isForeign(place) {
			statuses[place] = nil
		}
	}
	return statuses
}

// discover asks the members that are not known for who they are, and adds those that answer as they should.
func (c *Client) discover(view *api.StatusAnswer) {
	var ids []uint64
	for _, member := range view.Members {
		ids = append(ids, member.ID)
	}
	var unknown []api.MemberView
	c.mu.Lock()
	c.endpoints.retain(ids)
	for _, member := range view.Members {
		if !c.endpoints.isKnown(member.ID) {
			unknown = append(unknown, member)
		}
	}
	c.mu.Unlock()
	for _, member := range unknown {
		if isReachable(member.ClientAddr, c.given) {
			c.makeAcquaintance(member, view.ClusterID)
		}
	}
}

// stranger is a member at the address that it advertises.
func (c *Client) stranger(address string) node {
	return node{address: address, isTLS: c.transport.othersTLS}
}

// makeAcquaintance adds the member, if it is there and is who the others say.
func (c *Client) makeAcquaintance(member api.MemberView, cluster string) {
	stranger := c.stranger(member.ClientAddr)
	status, err := fetchFrom[api.StatusAnswer](c.roots, c, stranger, c.statusCall(), introductionTimeout)
	if err != nil || status.NodeID != member.ID || status.ClusterID != cluster {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Another round may have been faster, and the client may have gone over since.
	if !c.endpoints.isKnown(member.ID) && cluster == c.endpoints.cluster {
		c.transport.add(stranger)
		c.endpoints.add(member.ID)
		c.endpoints.belongs(len(c.endpoints.nodes)-1, cluster, time.Now())
	}
}

// isReachable says whether an address that a member advertises can mean the same to us. One of the node's own machine does not, unless
// ours is that.
func isReachable(address string, given []string) bool {
	host := hostOf(address)
	ip := net.ParseIP(host)
	if host == "" || (ip != nil && ip.IsUnspecified()) {
		return false
	}
	if !isLocal(host) {
		return true
	}
	for _, own := range given {
		if strings.HasPrefix(own, socketScheme+"/") || isLocal(hostOf(own)) {
			return true
		}
	}
	return false
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return strings.Trim(host, "[]")
}

func isLocal(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
