package quorate_test

// Tests of what only several nodes can show, and of nodes that speak TLS and ask who one is.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	quorate "quorate.dev/go"
	"quorate.dev/go/api"
	"quorate.dev/go/quoratetest"
)

type count struct{ N int }

func increment(ctx context.Context, c *quorate.Client, key string) error {
	_, err := quorate.Update(ctx, c, key, func(current *count) (*count, error) {
		if current == nil {
			return &count{1}, nil
		}
		return &count{current.N + 1}, nil
	}, nil)
	return err
}

// killLeader kills the leader and gives its place.
func killLeader(t *testing.T, cluster *quoratetest.Cluster, c *quorate.Client) int {
	t.Helper()
	status := must(c.Status(deadline(t)))(t)
	cluster.Kill(int(status.LeaderID) - 1)
	return int(status.LeaderID) - 1
}

func TestALeaderThatDiesCostsNothing(t *testing.T) {
	cluster := quoratetest.Start(t, &quoratetest.Settings{Nodes: 3})
	c, ctx := cluster.Client(t, nil), deadline(t)
	watch := must(c.Watch(ctx, "n/", nil))(t)
	mirror := must(c.Mirror(ctx, "n/", nil))(t)
	defer mirror.Close()
	session := must(c.NewSession(ctx, nil))(t)
	other := must(c.NewSession(ctx, nil))(t)
	held := must(session.Lock(ctx, "l", nil))(t)
	got := make(chan error, 1)
	go func() {
		lock, err := other.Lock(ctx, "l", nil)
		if err == nil && lock.Guard().Token <= held.Guard().Token {
			err = fmt.Errorf("the token %d is not greater", lock.Guard().Token)
		}
		got <- err
	}()

	const writers, each = 4, 15
	half := make(chan struct{})
	var all sync.WaitGroup
	for n := range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range each {
				if err := increment(ctx, c, "n/sum"); err != nil {
					t.Error(err)
				}
				if n == 0 && i == each/2 {
					close(half)
				}
			}
		}()
	}
	<-half
	killed := killLeader(t, cluster, c)
	all.Wait()
	must(c.Put(ctx, "n/guarded", 1, &quorate.WriteOptions{Guard: held}))(t)
	if err := held.Unlock(ctx); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Errorf("who waited: %v", err)
	}
	sum := must(quorate.Get[count](ctx, c, "n/sum", nil))(t)
	if sum.Value.N != writers*each || sum.Version != writers*each {
		t.Errorf("%+v: an increment was lost, or applied twice", sum)
	}
	for expected := uint64(1); expected <= writers*each; expected++ {
		if event := must(watch.Next())(t); event.Entry.Version != expected {
			t.Fatalf("version %d came, not %d", event.Entry.Version, expected)
		}
	}
	must(mirror.Sync(ctx))(t)
	if mirror.Len() != 2 || mirror.Get("n/sum").Version != writers*each {
		t.Errorf("the mirror has %+v", mirror.Get("n/sum"))
	}
	if err := cluster.Restart(killed); err != nil {
		t.Fatal(err)
	}
	must(c.Put(ctx, "n/after", 1, nil))(t)
}

func TestAClientOfOneNodeOutlivesIt(t *testing.T) {
	cluster := quoratetest.Start(t, &quoratetest.Settings{Nodes: 3})
	status := must(cluster.Client(t, nil).Status(deadline(t)))(t)
	follower := 0
	for follower == int(status.LeaderID)-1 {
		follower++
	}
	var address string
	for _, member := range status.Members {
		if int(member.ID) == follower+1 {
			address = member.ClientAddr
		}
	}
	c, ctx := must(quorate.New(address, nil))(t), deadline(t)
	defer func() { _ = c.Close() }()
	for len(c.KnownEndpoints()) < 3 {
		must(c.Put(ctx, "k", 1, nil))(t)
	}
	cluster.Kill(follower)
	must(c.Put(ctx, "k", 2, nil))(t)
}

// unixProxy listens at a Unix socket and passes what comes to the node at the address; gives the endpoint.
func unixProxy(t *testing.T, address string) string {
	t.Helper()
	dir := must(os.MkdirTemp("", "q"))(t)
	listener := must(net.Listen("unix", filepath.Join(dir, "node.sock")))(t)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		_ = os.RemoveAll(dir)
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go passOn(ctx, client, address)
		}
	}()
	return "unix:" + listener.Addr().String()
}

// passOn passes bytes both ways until one side is at its end.
func passOn(ctx context.Context, client net.Conn, address string) {
	defer func() { _ = client.Close() }()
	node, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = node.Close() }()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, node}, {node, client}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func TestANodeIsReachedByItsUnixSocket(t *testing.T) {
	cluster := quoratetest.Start(t, &quoratetest.Settings{Nodes: 3})
	endpoint := unixProxy(t, strings.Split(cluster.Endpoints(), ",")[0])
	c, ctx := must(quorate.New(endpoint, nil))(t), deadline(t)
	defer func() { _ = c.Close() }()
	watch := must(c.Watch(ctx, "by/", nil))(t)
	long := strings.Repeat("x", 200_000)
	must(c.Put(ctx, "by/socket", long, nil))(t)
	if doc := must(quorate.Get[string](ctx, c, "by/socket", nil))(t); doc.Value != long || must(watch.Next())(t).Key != "by/socket" {
		t.Errorf("%d bytes", len(doc.Value))
	}
	// The socket says that we are on the same machine, where the addresses of the others are ours, too.
	for len(c.KnownEndpoints()) < 3 {
		must(c.Put(ctx, "k", 1, nil))(t)
	}
	cluster.Kill(0)
	must(c.Put(ctx, "by/others", 2, nil))(t)
	if event := must(watch.Next())(t); event.Key != "by/others" {
		t.Errorf("%+v", event)
	}
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if all := c.WaitReady(short, true); all[0].Err == nil {
		t.Errorf("%+v", all)
	}
	if err := cluster.Restart(0); err != nil {
		t.Fatal(err)
	}
	if all := c.WaitReady(ctx, false); len(all) != 1 || all[0].Err != nil || all[0].Address != endpoint || c.KnownEndpoints()[0] != endpoint {
		t.Errorf("%+v", all)
	}
}

func TestTheSocketOfANode(t *testing.T) {
	dir := must(os.MkdirTemp("", "q"))(t)
	defer func() { _ = os.RemoveAll(dir) }()
	quoratetest.Start(t, &quoratetest.Settings{Args: []string{"--client-socket", dir + "/clients"}})
	c, ctx := must(quorate.New("unix://"+dir+"/clients", nil))(t), deadline(t)
	defer func() { _ = c.Close() }()
	watch := must(c.Watch(ctx, "by/", nil))(t)
	for done := range c.Stream(ctx, slices.Values([]quorate.Op{quorate.OpPut("by/socket", 1, nil)})) {
		if done.Err != nil {
			t.Error(done.Err)
		}
	}
	if event := must(watch.Next())(t); event.Key != "by/socket" {
		t.Errorf("%+v", event)
	}
}

func TestTheOverviewHasEveryMemberAndWhatDoesNotAnswer(t *testing.T) {
	cluster := quoratetest.Start(t, &quoratetest.Settings{Nodes: 3})
	addresses := strings.Split(cluster.Endpoints(), ",")
	c := must(quorate.New(addresses[0]+","+addresses[1]+",127.0.0.1:9", &quorate.Options{NoDiscovery: true}))(t)
	defer func() { _ = c.Close() }()
	cluster.Kill(1)
	var got []string
	for _, member := range c.Overview(deadline(t)) {
		got = append(got, fmt.Sprint(member.ID, member.Address, member.Status != nil, member.Err != nil))
	}
	expected := []string{
		fmt.Sprint(1, addresses[0], true, false), fmt.Sprint(2, addresses[1], false, true), fmt.Sprint(3, addresses[2], true, false),
		fmt.Sprint(0, "127.0.0.1:9", false, true),
	}
	if !slices.Equal(got, expected) {
		t.Errorf("%q, not %q", got, expected)
	}
}

func TestATransferOfLeadership(t *testing.T) {
	cluster := quoratetest.Start(t, &quoratetest.Settings{Nodes: 3})
	c, ctx := cluster.Client(t, nil), deadline(t)
	before := must(c.Members(ctx))(t)
	moved := must(c.TransferLeader(ctx, 0))(t)
	if moved.LeaderID == before.LeaderID {
		t.Errorf("%+v", moved)
	}
	if _, err := c.DemoteMember(ctx, before.LeaderID, &quorate.MemberOptions{DryRun: true}); !errors.Is(err, quorate.ErrChangeRefused) {
		t.Errorf("it is unwise: %v", err)
	}
	changed := must(c.DemoteMember(ctx, before.LeaderID, &quorate.MemberOptions{DryRun: true, Force: true}))(t)
	if !changed.DryRun || len(changed.Learners) != 1 {
		t.Errorf("%+v", changed)
	}
}

// pki makes a CA, a certificate of node 1 and one of the client `app`.
func pki(t *testing.T) string {
	t.Helper()
	program, err := quoratetest.Program()
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(t.TempDir(), "pki")
	for _, args := range [][]string{
		{"pki", "init", dir}, {"pki", "node", dir, "--id", "1", "--host", "localhost,127.0.0.1"}, {"pki", "client", dir, "--name", "app"},
	} {
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return dir
}

func TestTLSTokensAndCertificates(t *testing.T) {
	dir := pki(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	const root = "0123456789abcdef0123456789abcdef0123456789abcdef"
	if err := os.WriteFile(in("root.token"), []byte(root+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := quoratetest.Start(t, &quoratetest.Settings{
		Args: []string{
			"--tls-cert", in("node-1.crt"), "--tls-key", in("node-1.key"), "--tls-client-ca", in("ca.crt"), "--auth", "required",
			"--root-token-file", in("root.token"),
		},
		Client: quorate.Options{CAFile: in("ca.crt"), TokenFile: in("root.token")},
	})
	admin, ctx := cluster.Client(t, nil), deadline(t)
	must(admin.SetRole(ctx, "app", api.Grant{Permission: api.PermissionRead, Prefix: "app/"}, api.Grant{Permission: api.PermissionWrite, Prefix: "app/"}))(t)
	must(admin.SetUser(ctx, "app", "app"))(t)

	byCertificate := cluster.Client(t, &quorate.Options{CAFile: in("ca.crt"), CertFile: in("client-app.crt"), KeyFile: in("client-app.key")})
	if self := must(byCertificate.WhoAmI(ctx))(t); self.User != "app" {
		t.Errorf("%+v", self)
	}
	must(byCertificate.Put(ctx, "app/a", 1, nil))(t)
	if _, err := byCertificate.Put(ctx, "other", 1, nil); !errors.Is(err, quorate.ErrPermissionDenied) {
		t.Errorf("%v", err)
	}
	watch := must(byCertificate.Watch(ctx, "app/", &quorate.WatchOptions{Initial: true}))(t)
	if event := must(watch.Next())(t); event.Key != "app/a" {
		t.Errorf("%+v", event)
	}

	made := must(admin.CreateToken(ctx, "app", nil))(t)
	byToken := cluster.Client(t, &quorate.Options{CAFile: in("ca.crt"), Token: made.Token})
	must(quorate.Get[int](ctx, byToken, "app/a", nil))(t)
	must(admin.RemoveToken(ctx, made.ID))(t)
	if _, err := byToken.Get(ctx, "app/a", nil); !errors.Is(err, quorate.ErrUnauthenticated) {
		t.Errorf("%v", err)
	}
	nobody := cluster.Client(t, &quorate.Options{CAFile: in("ca.crt")})
	if _, err := nobody.Get(ctx, "app/a", nil); !errors.Is(err, quorate.ErrUnauthenticated) {
		t.Errorf("%v", err)
	}

	// A CA that did not make the certificate of the node.
	stranger := cluster.Client(t, &quorate.Options{CAFile: filepath.Join(pki(t), "ca.crt"), Token: root})
	begun := time.Now()
	_, err := stranger.Put(ctx, "app/a", 1, nil)
	var refusal *quorate.Error
	if !errors.As(err, &refusal) || !errors.Is(err, quorate.ErrUnavailable) || refusal.Applied != api.AppliedNo || time.Since(begun) > 5*time.Second {
		t.Errorf("%+v", err)
	}
}

func TestFilesOfTLSAreChecked(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.pem")
	if err := os.WriteFile(bad, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, options := range []quorate.Options{
		{CAFile: filepath.Join(dir, "missing")}, {CAFile: bad}, {CertFile: bad, KeyFile: bad}, {CAFile: bad, CertFile: bad},
		{TokenFile: filepath.Join(dir, "missing")}, {CAPEM: []byte("x")},
	} {
		if _, err := quorate.New("127.0.0.1:1", &options); !errors.Is(err, quorate.ErrInvalidArgument) {
			t.Errorf("%+v: %v", options, err)
		}
	}
}

// cleaningProxy passes what comes on to the node, with a path in which empty segments and those that go up are gone; gives its address.
func cleaningProxy(t *testing.T, address string) string {
	t.Helper()
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Director: func(r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.URL.Path, r.URL.RawPath = "http", address, path.Clean(r.URL.Path), ""
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func TestBehindAProxyThatCleansPathsNothingIsTakenForSomethingElse(t *testing.T) {
	cluster := quoratetest.Start(t, nil)
	direct, ctx := cluster.Client(t, nil), deadline(t)
	c := must(quorate.New(cleaningProxy(t, cluster.Endpoints()), &quorate.Options{NoDiscovery: true}))(t)
	defer func() { _ = c.Close() }()
	must(direct.Put(ctx, "a/b", "OTHER", nil))(t)
	local := &quorate.ReadOptions{Freshness: quorate.Freshness{Local: true}}
	for _, key := range []string{"a//b", "a/./b", "a/x/../b", "/a/b", "a/b/", "..", "a/..", "//"} {
		if must(c.Exists(ctx, key))(t) {
			t.Errorf("%q is not there yet", key)
		}
		if _, err := c.Get(ctx, key, local); !errors.Is(err, quorate.ErrNotFound) {
			t.Errorf("%q: %v", key, err)
		}
		written := must(c.Put(ctx, key, "MINE", nil))(t)
		for _, options := range []*quorate.ReadOptions{nil, local, {Revision: written.Revision}} {
			if got := must(quorate.Get[string](ctx, c, key, options))(t); got.Value != "MINE" || got.Key != key {
				t.Errorf("%q: %+v", key, got)
			}
		}
		if !must(c.Exists(ctx, key))(t) {
			t.Errorf("%q is there", key)
		}
		if got, err := c.WaitForChange(ctx, key, "", time.Second); err == nil {
			t.Errorf("%q: %+v, %v", key, got, err)
		}
	}
	session := must(c.NewSession(ctx, nil))(t)
	if lock, err := session.Lock(ctx, "a/../b", nil); !errors.Is(err, quorate.ErrProtocol) {
		t.Errorf("%+v, %v", lock, err)
	}
	if _, err := session.Campaign(ctx, "a/../b", nil); !errors.Is(err, quorate.ErrProtocol) {
		t.Errorf("%v", err)
	}
	// What was got by mistake is given up.
	other := must(direct.NewSession(ctx, nil))(t)
	must(other.Lock(ctx, "b", nil))(t)
	must(other.Campaign(ctx, "b", nil))(t)
}
