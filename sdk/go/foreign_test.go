package quorate

// Tests of nodes of another cluster at an address that was given.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quorate.dev/go/api"
)

// of answers for a node of this cluster.
func of(cluster string, answer func(int, http.ResponseWriter, *http.Request)) func(int, http.ResponseWriter, *http.Request) {
	return func(n int, w http.ResponseWriter, r *http.Request) {
		if cluster != "" {
			w.Header().Set(clusterHeader, cluster)
		}
		answer(n, w, r)
	}
}

// entry answers reads with this value, and writes.
func entry(value int) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/watch":
			w.Header().Set("Content-Type", eventStreamType)
			_, _ = fmt.Fprintf(w, "event: put\nid: 5\ndata: {\"type\":\"put\",\"key\":\"k\",\"revision\":\"5\",\"entry\":{\"key\":\"k\",\"value\":%d,\"cas\":\"1\"}}\n\n", value)
		case r.Header.Get("Content-Type") == linesType:
			w.Header().Set("Content-Type", linesType)
			_, _ = fmt.Fprintf(w, `{"n":0,"status":200,"term":"1","leader":1,"answer":%s}`+"\n", writtenText)
		default:
			say(w, 200, fmt.Sprintf(`{"key":"k","value":%d,"revision":"7","index":3,"cas":"7","create_revision":"7","mod_revision":"7","version":1}`, value))
		}
	}
}

// calls are the requests without those by which it was asked who it is.
func (f *fake) calls() []seen {
	return slices.DeleteFunc(f.requests(), func(one seen) bool { return one.path == "/v1/cluster/status" })
}

// knows lets the client know its cluster, as most of its nodes told it a while ago.
func knows(c *Client, cluster string) *Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	for place := range c.endpoints.nodes {
		c.endpoints.belongs(place, cluster, time.Now())
	}
	return c
}

// firstAsks lets the client begin with the first of its nodes.
func firstAsks(c *Client) *Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints.next = 0
	return c
}

func TestANodeOfAnotherClusterIsNotBelieved(t *testing.T) {
	ours, also, stranger := newFake(t, of("ours", entry(1))), newFake(t, of("ours", entry(1))), newFake(t, of("theirs", entry(2)))
	var told bytes.Buffer
	c := firstAsks(clientOf(t, Options{Logger: slog.New(slog.NewTextHandler(&told, nil))}, ours, also, stranger))
	ctx := soon(t, 10*time.Second)
	for n := range 30 {
		if got, err := Get[int](ctx, c, "k", nil); err != nil || got.Value != 1 {
			t.Errorf("%d: %+v, %v", n, got, err)
		}
		if _, err := c.Put(ctx, "k", 1, nil); err != nil {
			t.Error(err)
		}
	}
	if came := stranger.calls(); len(came) != 1 {
		t.Errorf("it was asked %d times", len(came))
	}
	if text := told.String(); strings.Count(text, "another cluster") != 1 || !strings.Contains(text, "theirs") || !strings.Contains(text, stranger.address()) {
		t.Errorf("%s", text)
	}
}

func TestAWriteThatReachedAnotherClusterGoesOnUnderItsID(t *testing.T) {
	refused := func(_ int, w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "denied") || r.Method == http.MethodDelete {
			refuse(w, 403, api.ErrorCodePermissionDenied, api.RetryNever, "")
			return
		}
		entry(1)(0, w, r)
	}
	ours, stranger := newFake(t, of("ours", refused)), newFake(t, of("theirs", entry(2)))
	ctx := soon(t, 10*time.Second)
	// A client that knows its cluster, and asks the other one next.
	knowing := func() *Client {
		return knows(firstAsks(clientOf(t, Options{}, stranger, ours)), "ours")
	}
	if _, err := knowing().Put(ctx, "k", 1, nil); err != nil {
		t.Error(err)
	}
	if first, second := stranger.calls()[0], ours.calls()[0]; first.id != second.id || first.id == "" {
		t.Errorf("%+v, %+v", first, second)
	}
	for done := range knowing().Stream(ctx, slices.Values([]Op{OpPut("k", 1, nil)})) {
		if done.Err != nil {
			t.Error(done.Err)
		}
	}
	// What another cluster did leaves nothing open in ours.
	if _, err := knowing().DeleteLatch(ctx, "l"); !errors.Is(err, ErrPermissionDenied) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	watch, err := knowing().Watch(ctx, "k", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	if event, err := watch.Next(); err != nil || string(event.Entry.Value) != "1" {
		t.Errorf("%+v, %v", event, err)
	}
}

func TestWhereAllAreOfAnotherClusterTheErrorSaysSo(t *testing.T) {
	gone := newFake(t, entry(1))
	gone.end()
	for what, nodes := range map[string][]*fake{
		"all that are":  {gone, newFake(t, of("theirs", entry(2)))},
		"in this order": {newFake(t, of("theirs", entry(2))), gone},
	} {
		// The one that is gone may come back.
		c := knows(firstAsks(clientOf(t, Options{Timeout: 500 * time.Millisecond}, nodes...)), "ours")
		begun := time.Now()
		_, err := c.Put(context.Background(), "k", 1, nil)
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknownOutcome) || !strings.Contains(err.Error(), "`theirs`") || !strings.Contains(err.Error(), "`ours`") ||
			!strings.Contains(err.Error(), "try again") {
			t.Errorf("%s: %v", what, err)
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("%s: it took %v", what, took)
		}
		if _, err := c.Watch(soon(t, time.Second), "", nil); err == nil {
			t.Errorf("%s: a watch of another cluster", what)
		}
		for _, node := range nodes {
			if came := node.calls(); len(came) > 1 {
				t.Errorf("%s: it was asked %d times", what, len(came))
			}
		}
	}
}

func TestAClientGoesOverOnceMostOfItsNodesHave(t *testing.T) {
	moved, also, former := newFake(t, of("theirs", entry(2))), newFake(t, of("theirs", entry(2))), newFake(t, of("ours", entry(1)))
	c, ctx := knows(firstAsks(clientOf(t, Options{}, moved, also, former)), "ours"), soon(t, 10*time.Second)
	for range 6 {
		if _, err := c.Get(ctx, "k", nil); err != nil {
			t.Error(err)
		}
	}
	before := len(former.calls())
	for range 6 {
		if got, err := Get[int](ctx, c, "k", nil); err != nil || got.Value != 2 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if came := len(former.calls()); came != before {
		t.Errorf("it is the stranger now, and was asked %d times", came-before)
	}
}

func TestOneAddressMayBeThatOfSeveralNodes(t *testing.T) {
	var behind atomic.Pointer[string]
	first, other := "ours", "theirs"
	behind.Store(&first)
	c := clientOf(t, Options{Timeout: 500 * time.Millisecond}, newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		of(*behind.Load(), entry(1))(n, w, r)
	}))
	ctx := context.Background()
	if _, err := c.Get(ctx, "k", nil); err != nil {
		t.Fatal(err)
	}
	behind.Store(&other)
	if _, err := c.Get(ctx, "k", nil); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "`theirs`") || !strings.Contains(err.Error(), "`ours`") {
		t.Errorf("%v", err)
	}
	behind.Store(&first)
	if _, err := c.Get(ctx, "k", nil); err != nil {
		t.Error(err)
	}
}

func TestAConnectionOnWhichAStrangerSpokeIsNotUsedAgain(t *testing.T) {
	var cluster atomic.Pointer[string]
	first, other := "ours", "theirs"
	cluster.Store(&first)
	var mu sync.Mutex
	from := map[string]int{}
	f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/cluster/status" {
			mu.Lock()
			from[r.RemoteAddr]++
			mu.Unlock()
		}
		of(*cluster.Load(), entry(1))(n, w, r)
	})
	c := clientOf(t, Options{Retry: RetryPolicy{AttemptsMax: 3}}, f)
	ctx := soon(t, 10*time.Second)
	if _, err := c.Get(ctx, "k", nil); err != nil {
		t.Fatal(err)
	}
	cluster.Store(&other)
	if _, err := c.Get(ctx, "k", nil); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	// The first try in vain came by the connection of the good answer.
	if len(from) != 3 {
		t.Errorf("four tries came by %v", from)
	}
}

// tellings are words of a node of one cluster, at seconds from the start; each says whether it is believed.
func tellings(e *endpoints, node int, cluster string, start time.Time, at ...int) []bool {
	var believed []bool
	for _, seconds := range at {
		isOurs, _ := e.belongs(node, cluster, start.Add(time.Duration(seconds)*time.Second))
		believed = append(believed, isOurs)
	}
	return believed
}

// known are endpoints whose given nodes said at the start that they are of ours.
func known(given int, start time.Time) *endpoints {
	e := newEndpoints(given, 0)
	for node := range given {
		e.belongs(node, "ours", start)
	}
	return e
}

func TestMembersThatWereDiscoveredKeepAClientOfOneNodeWithItsCluster(t *testing.T) {
	start := time.Now()
	e := known(1, start)
	for _, id := range []uint64{2, 3} {
		e.add(id)
		e.belongs(int(id)-1, "ours", start)
	}
	// The given node was founded anew. The others are asked in its place, and nothing else is said for an hour.
	for seconds := 3600; seconds < 3660; seconds++ {
		now := start.Add(time.Duration(seconds) * time.Second)
		if believed := tellings(e, 0, "theirs", start, seconds); believed[0] {
			t.Fatalf("believed after %d s", seconds)
		}
		member := e.pick(preferAny, none, now)
		if member == 0 {
			t.Fatal("there are others")
		}
		e.belongs(member, "ours", now)
	}
}

func TestOneAddressOfSeveralNodesDoesNotMoveAClientThatCallsNowAndThen(t *testing.T) {
	start := time.Now()
	e := known(1, start)
	for seconds := 30; seconds < 600; seconds += 30 {
		if tellings(e, 0, "theirs", start, seconds)[0] || !tellings(e, 0, "ours", start, seconds+1)[0] {
			t.Errorf("after %d s", seconds)
		}
	}
}

func TestNodesThatAreGoneLockNobodyOut(t *testing.T) {
	for _, given := range []int{3, 2} {
		start := time.Now()
		e, last := known(given, start), given-1
		for seconds := 100; seconds < 110; seconds++ {
			now := start.Add(time.Duration(seconds) * time.Second)
			if tellings(e, last, "theirs", start, seconds)[0] || e.stranger() != last {
				t.Errorf("of %d: believed after %d s", given, seconds)
			}
			e.onFailure(0, now)
			if got := e.pick(preferAny, 0, now); got == last {
				t.Error("it is only asked who it is")
			}
			if !e.beginIntroduction(now) || e.beginIntroduction(now) {
				t.Error("each second")
			}
		}
		if !tellings(e, last, "theirs", start, 110)[0] || e.stranger() != none {
			t.Errorf("of %d: still locked out", given)
		}
		if got := e.pick(preferAny, none, start.Add(110*time.Second)); got != last {
			t.Errorf("of %d: asked %d", given, got)
		}
	}
}

func TestAGapBeginsTheDoubtAnew(t *testing.T) {
	start := time.Now()
	e := known(1, start)
	if slices.Contains(tellings(e, 0, "theirs", start, 0, 5, 9, 15, 20, 24), true) {
		t.Error("there was a gap of six seconds")
	}
	if !tellings(e, 0, "ours", start, 24)[0] {
		t.Error("a word of ours ends it")
	}
	if got := tellings(e, 0, "theirs", start, 25, 30, 34, 35); !slices.Equal(got, []bool{false, false, false, true}) {
		t.Errorf("%v", got)
	}
	if tellings(e, 0, "ours", start, 36)[0] {
		t.Error("which is not believed any more")
	}
}

func TestDoubtsOfTwoClustersDoNotEndEachOther(t *testing.T) {
	start := time.Now()
	e := known(1, start)
	for seconds := range 10 {
		if tellings(e, 0, []string{"theirs", "another"}[seconds%2], start, seconds)[0] {
			t.Errorf("after %d s", seconds)
		}
	}
	if !tellings(e, 0, "theirs", start, 10)[0] {
		t.Error("locked out")
	}
	all := newEndpoints(2, 0)
	all.belongs(0, "ours", start)
	all.belongs(0, "theirs", start)
	all.belongs(1, "another", start)
	if got := all.pick(preferAny, 0, start); got < 0 || got > 1 {
		t.Errorf("asked %d", got)
	}
}

func TestAMajorityOfTheGivenNodesTakesTheClientOverAtOnce(t *testing.T) {
	start := time.Now()
	e := known(3, start)
	e.introduce(0, 1, leaderHint{term: 80, leaderID: 1})
	if tellings(e, 2, "theirs", start, 1)[0] || !tellings(e, 1, "theirs", start, 1)[0] {
		t.Error("two of three")
	}
	if e.term != 0 || e.nodes[0].id != 0 || !e.isForeign(0) {
		t.Error("terms and ids of another cluster are none of ours")
	}
	e = known(4, start)
	if tellings(e, 0, "theirs", start, 1)[0] || tellings(e, 1, "theirs", start, 1)[0] || !tellings(e, 2, "theirs", start, 1)[0] {
		t.Error("half is not most")
	}
	e = known(2, start)
	e.add(3)
	if tellings(e, 2, "theirs", start, 1)[0] || tellings(e, 0, "theirs", start, 1)[0] {
		t.Error("members that were discovered have no say")
	}
}

func TestAClientOfOneNodeAsksWhoItIsWhileInDoubt(t *testing.T) {
	start := time.Now()
	e := known(1, start)
	if e.beginIntroduction(start) {
		t.Error("nobody is a stranger")
	}
	e.belongs(0, "theirs", start)
	if !e.beginIntroduction(start) || e.beginIntroduction(start) || !e.beginIntroduction(start.Add(introductionPause)) {
		t.Error("each second")
	}
	if !e.isInDoubt(start.Add(doubtGap)) || e.isInDoubt(start.Add(doubtGap+1)) {
		t.Error("for as long as another word would be one without a gap")
	}
}

func TestWhereNobodySaysWhichClusterItIsNothingIsKnown(t *testing.T) {
	one, other := newFake(t, entry(1)), newFake(t, of("ours", entry(1)))
	c, ctx := clientOf(t, Options{}, one, other), soon(t, 5*time.Second)
	for range 6 {
		if _, err := c.Get(ctx, "k", nil); err != nil {
			t.Error(err)
		}
	}
	if len(one.requests()) < 2 || len(other.requests()) < 2 {
		t.Error("one of them is left alone")
	}
}

func TestANodeOfAnotherClusterIsOnlyAskedWhoItIs(t *testing.T) {
	e, now := introduced(3), time.Now()
	for node := range 2 {
		if isOurs, isNews := e.belongs(node, "ours", now); !isOurs || isNews {
			t.Error("the first says which is ours")
		}
	}
	if isOurs, isNews := e.belongs(2, "theirs", now); isOurs || !isNews {
		t.Error("it is of another")
	}
	if _, isNews := e.belongs(2, "theirs", now); isNews {
		t.Error("that is told once")
	}
	if got := picks(e, preferLeader, none, 6, now.Add(time.Hour)); slices.Contains(got, 2) {
		t.Errorf("asked %v, of which 2 is the leader of another cluster", got)
	}
	e.onFailure(1, now)
	e.onFailure(0, now)
	if got := e.pick(preferAny, 0, now); got != 1 {
		t.Errorf("asked %d, though there is another that rests", got)
	}
	e.belongs(0, "ours", now)
	if !e.beginIntroduction(now) || e.beginIntroduction(now.Add(foreignPause-1)) || !e.beginIntroduction(now.Add(foreignPause)) {
		t.Error("now and then, since it may have been put right")
	}
	if isOurs, _ := e.belongs(2, "ours", now); !isOurs || e.isForeign(2) {
		t.Error("it is of ours again")
	}
}

func TestMostNodesTellWhichClusterIsOurs(t *testing.T) {
	status := func(id int, cluster string) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, _ *http.Request) {
			say(w, 200, fmt.Sprintf(`{"node_id":%d,"term":"1","cluster_id":%q,"oldest_revision":"1","revision":"1","members":[]}`, id, cluster))
		}
	}
	c := clientOf(t, Options{}, newFake(t, status(1, "theirs")), newFake(t, status(2, "ours")), newFake(t, status(3, "ours")))
	for range 2 {
		c.introduceAll()
		if e := c.endpoints; e.cluster != "ours" || e.nodes[0].id != 0 || e.nodes[1].id != 2 || e.nodes[2].id != 3 {
			t.Errorf("%+v", e)
		}
	}
}
