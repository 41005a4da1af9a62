package quorate

// Questions to the cluster about itself, its members, and changes of them. Every change may be asked for again: what is so already is done.
// Judges nothing: the leader does.

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"quorate.dev/go/api"
)

const (
	// statusTimeout is how long a node may take to tell its status; it needs no other node for that.
	statusTimeout = 2 * time.Second
	// readyPause is between two looks at nodes that start.
	readyPause = 50 * time.Millisecond
	// memberAttempt: longer than a change of members mostly takes, for the leader waits for others.
	memberAttempt = 5 * time.Second
)

func (c *Client) statusCall() *call {
	return &call{method: http.MethodGet, target: "/v1/cluster/status", intent: intentRead, preference: preferAny}
}

// Status is the cluster as one node sees it.
func (c *Client) Status(ctx context.Context) (*api.StatusAnswer, error) {
	return fetch[api.StatusAnswer](ctx, c, c.statusCall())
}

// NodeStatus is one endpoint and what the node behind it says of the cluster.
type NodeStatus struct {
	// Address is host:port, or unix:/path.
	Address string
	// Status is its view.
	Status *api.StatusAnswer
	// Err says why there is none.
	Err error
}

// StatusOfAll is the cluster as each endpoint sees it, in the order given.
func (c *Client) StatusOfAll(ctx context.Context) []NodeStatus {
	return ofAll(c, func(to node) NodeStatus { return c.statusOf(ctx, to) })
}

func (c *Client) statusOf(ctx context.Context, of node) NodeStatus {
	status, err := fetchFrom[api.StatusAnswer](ctx, c, of, c.statusCall(), statusTimeout)
	return NodeStatus{Address: of.address, Status: status, Err: err}
}

// ofAll asks all endpoints at once; what they say in the order given.
func ofAll[T any](c *Client, ask func(node) T) []T {
	all := make([]T, len(c.given))
	var asked sync.WaitGroup
	for place := range all {
		asked.Add(1)
		go func() {
			defer asked.Done()
			all[place] = ask(c.transport.node(place))
		}()
	}
	asked.Wait()
	return all
}

// WaitReady waits until the nodes would answer a linearizable read: all of the endpoints, or with isAny one of them. Gives the last look, when
// they would or the context ends.
func (c *Client) WaitReady(ctx context.Context, isAny bool) []NodeStatus {
	for {
		all, ready := c.StatusOfAll(ctx), 0
		for _, one := range all {
			if one.Status != nil && one.Status.Ready {
				ready++
			}
		}
		if ready == len(all) || (isAny && ready > 0) || sleep(ctx, readyPause) != nil {
			return all
		}
	}
}

// MemberStatus is a member and what it says of the cluster.
type MemberStatus struct {
	// ID of the member; 0 for an endpoint that did not answer and that no member names as its own.
	ID uint64
	NodeStatus
}

// Overview is every member as it sees the cluster, in order of ids. Members that no endpoint leads to are asked at the address that they
// advertise; one that does not answer is there with the reason, and so is an endpoint that nobody knows.
func (c *Client) Overview(ctx context.Context) []MemberStatus {
	asked := c.StatusOfAll(ctx)
	missing := missingMembers(asked)
	found := map[string]MemberStatus{}
	for _, one := range asked {
		member := MemberStatus{ID: missing[one.Address], NodeStatus: one}
		if one.Status != nil {
			member.ID = one.Status.NodeID
		}
		// Several endpoints may lead to one member.
		name := cmp.Or(number(member.ID), one.Address)
		if _, isKnown := found[name]; !isKnown {
			found[name] = member
		}
		delete(missing, one.Address)
	}
	for address, id := range missing {
		found[number(id)] = MemberStatus{ID: id, NodeStatus: c.statusAt(ctx, address)}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b MemberStatus) int {
		// Those without an id are last.
		return cmp.Or(cmp.Compare(a.ID-1, b.ID-1), cmp.Compare(a.Address, b.Address))
	})
}

// missingMembers are the ids of those that did not answer, by address, as the latest view has them.
func missingMembers(asked []NodeStatus) map[string]uint64 {
	var latest *api.StatusAnswer
	answered := map[uint64]bool{}
	for _, one := range asked {
		if one.Status == nil {
			continue
		}
		answered[one.Status.NodeID] = true
		if latest == nil || one.Status.AppliedIndex > latest.AppliedIndex {
			latest = one.Status
		}
	}
	missing := map[string]uint64{}
	if latest == nil {
		return missing
	}
	for _, member := range latest.Members {
		if !answered[member.ID] {
			missing[member.ClientAddr] = member.ID
		}
	}
	return missing
}

// statusAt is the view of the member that advertises this address.
func (c *Client) statusAt(ctx context.Context, address string) NodeStatus {
	to := c.stranger(address)
	if !to.isTLS && c.transport.credentials.shown().authorization != "" {
		return NodeStatus{Address: address, Err: invalid("%s: a token is never sent in clear to an address that was not given", address)}
	}
	return c.statusOf(ctx, to)
}

// NodeMetrics is one endpoint and the numbers of the node behind it.
type NodeMetrics struct {
	// Address is host:port, or unix:/path.
	Address string
	// Text is in the form of OpenMetrics.
	Text string
	// Err says why there is none.
	Err error
}

// MetricsOfAll are the numbers of each endpoint, in the order given.
func (c *Client) MetricsOfAll(ctx context.Context) []NodeMetrics {
	return ofAll(c, func(to node) NodeMetrics {
		got, err := c.answerFrom(ctx, to, c.readCall("/metrics"), statusTimeout)
		if err != nil {
			return NodeMetrics{Address: to.address, Err: err}
		}
		return NodeMetrics{Address: to.address, Text: string(got.body)}
	})
}

// Limits are the bounds of what nodes take.
func (c *Client) Limits(ctx context.Context) (*api.LimitsAnswer, error) {
	return fetch[api.LimitsAnswer](ctx, c, c.readCall("/v1/limits"))
}

// ServerVersion is that of the node that was asked.
func (c *Client) ServerVersion(ctx context.Context) (*api.VersionAnswer, error) {
	return fetch[api.VersionAnswer](ctx, c, c.readCall("/version"))
}

// Digest is that of the state of the node that was asked.
func (c *Client) Digest(ctx context.Context) (*api.DigestAnswer, error) {
	return fetch[api.DigestAnswer](ctx, c, c.readCall("/v1/cluster/digest"))
}

// TransferLeader hands leadership to a node, or to the best follower for 0. Is not repeated once it may have happened.
func (c *Client) TransferLeader(ctx context.Context, to uint64) (*api.LeaderAnswer, error) {
	wanted := (&call{method: http.MethodPost, target: "/v1/cluster/leader", intent: intentOnce}).json(api.LeaderRequest{To: to})
	return fetch[api.LeaderAnswer](ctx, c, wanted)
}

// Faults are commands that faulted, and work that was parked for it.
func (c *Client) Faults(ctx context.Context) (*api.FaultsAnswer, error) {
	return fetch[api.FaultsAnswer](ctx, c, c.readCall("/v1/cluster/faults"))
}

// HandleFaults tries parked work again, drops it, or forgets the faults.
func (c *Client) HandleFaults(ctx context.Context, request api.FaultsRequest) (*api.FaultsReply, error) {
	return fetch[api.FaultsReply](ctx, c, writeCall(http.MethodPost, "/v1/cluster/faults", request.RequestID, request))
}

// Members are all of the cluster, as the leader knows them.
func (c *Client) Members(ctx context.Context) (*api.MembersAnswer, error) {
	wanted := c.readCall("/v1/cluster/members")
	wanted.preference = preferLeader
	return fetch[api.MembersAnswer](ctx, c, wanted)
}

// MemberOptions refine a change of the members.
type MemberOptions struct {
	// DryRun only asks what it would come to.
	DryRun bool
	// Force makes it also where it is unwise. Where it would cost quorum it is refused all the same.
	Force bool
}

// AddMember takes in a node that was started and waits, as a learner. With promote it votes once it caught up, which is waited for.
func (c *Client) AddMember(ctx context.Context, member api.AddMemberRequest, options *MemberOptions) (*api.MembersChanged, error) {
	return c.changeMembers(ctx, http.MethodPost, "", member, options)
}

// PromoteMember gives a learner that has caught up a vote.
func (c *Client) PromoteMember(ctx context.Context, id uint64, options *MemberOptions) (*api.MembersChanged, error) {
	return c.changeMembers(ctx, http.MethodPost, memberPath(id, "/promote"), struct{}{}, options)
}

// DemoteMember takes the vote of a member, which stays a learner.
func (c *Client) DemoteMember(ctx context.Context, id uint64, options *MemberOptions) (*api.MembersChanged, error) {
	return c.changeMembers(ctx, http.MethodPost, memberPath(id, "/demote"), struct{}{}, options)
}

// RemoveMember lets a member go.
func (c *Client) RemoveMember(ctx context.Context, id uint64, options *MemberOptions) (*api.MembersChanged, error) {
	return c.changeMembers(ctx, http.MethodDelete, memberPath(id, ""), nil, options)
}

// ReplaceMember lets a learner vote in place of the old member, which goes, in one step.
func (c *Client) ReplaceMember(ctx context.Context, id, with uint64, options *MemberOptions) (*api.MembersChanged, error) {
	return c.changeMembers(ctx, http.MethodPost, memberPath(id, "/replace"), api.ReplaceMemberRequest{With: with}, options)
}

// RepairMember rebuilds the state of a member in quarantine from the leader's.
func (c *Client) RepairMember(ctx context.Context, id uint64) (*api.RepairAnswer, error) {
	// To repair twice is as good as once.
	wanted := &call{method: http.MethodPost, target: "/v1/cluster/members" + memberPath(id, "/repair"), intent: intentRead}
	return fetch[api.RepairAnswer](ctx, c, wanted)
}

func memberPath(id uint64, verb string) string { return "/" + strconv.FormatUint(id, 10) + verb }

func (c *Client) changeMembers(ctx context.Context, method, path string, body any, options *MemberOptions) (*api.MembersChanged, error) {
	if options == nil {
		options = &MemberOptions{}
	}
	path = target("/v1/cluster/members"+path, "dry_run", flag(options.DryRun), "force", flag(options.Force))
	wanted := writeCall(method, path, "", body)
	wanted.attempt = memberAttempt
	return fetch[api.MembersChanged](ctx, c, wanted)
}

// Sessions gives all sessions, the oldest first. The last is the first error.
func (c *Client) Sessions(ctx context.Context) iter.Seq2[*api.SessionView, error] {
	return listed(ctx, c, "/v1/sessions", func(a *api.SessionList) string { return a.Cursor },
		func(a *api.SessionList) []*api.SessionView { return pointers(a.Sessions) })
}

// Locks gives all locks that somebody holds or waits for, by name. The last is the first error.
func (c *Client) Locks(ctx context.Context) iter.Seq2[*api.LockSummary, error] {
	return listed(ctx, c, "/v1/locks", func(a *api.LockList) string { return a.Cursor },
		func(a *api.LockList) []*api.LockSummary { return pointers(a.Locks) })
}

// Elections gives all in which somebody leads or stands, by name. The last is the first error.
func (c *Client) Elections(ctx context.Context) iter.Seq2[*api.ElectionSummary, error] {
	return listed(ctx, c, "/v1/elections", func(a *api.ElectionList) string { return a.Cursor },
		func(a *api.ElectionList) []*api.ElectionSummary { return pointers(a.Elections) })
}
