package quorate

// Nodes that are none: HTTP servers that answer as a test wants.

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quorate.dev/go/api"
)

// seen is a request that came.
type seen struct {
	method, path, id, host string
	header                 http.Header
	body                   string
}

// fake is a node that answers as its handler does.
type fake struct {
	*httptest.Server

	mu   sync.Mutex
	came []seen
}

// newFake answers by the handler, which gets the number of the request, from 1.
func newFake(t *testing.T, handler func(n int, w http.ResponseWriter, r *http.Request)) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewUnstartedServer(f.recording(handler))
	f.Start()
	t.Cleanup(f.end)
	return f
}

// newSocketFake is a fake at a Unix socket.
func newSocketFake(t *testing.T, path string, handler func(n int, w http.ResponseWriter, r *http.Request)) *fake {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{}
	f.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: f.recording(handler)}}
	f.Start()
	f.URL = "unix:" + path
	t.Cleanup(f.end)
	return f
}

func (f *fake) recording(handler func(int, http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.came = append(f.came, seen{r.Method, r.URL.RequestURI(), r.Header.Get("Idempotency-Key"), r.Host, r.Header, string(body)})
		n := len(f.came)
		f.mu.Unlock()
		handler(n, w, r)
	})
}

func (f *fake) end() {
	f.CloseClientConnections()
	f.Close()
}

func (f *fake) requests() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.came)
}

func (f *fake) address() string {
	return strings.TrimPrefix(strings.TrimPrefix(f.URL, "http://"), "https://")
}

// lose ends the connection without an answer.
func lose(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func refuse(w http.ResponseWriter, status int, code api.ErrorCode, retry api.Retry, more string) {
	say(w, status, fmt.Sprintf(`{"type":"/errors/x","title":"t","status":%d,"detail":"d","code":%q,"applied":"no","retry":%q,"request_id":"r"%s}`,
		status, code, retry, more))
}

const writtenText = `{"key":"k","revision":"7","index":3,"cas":"7","create_revision":"7","version":1}`

// clientOf is a client of these nodes that leaves time and members alone.
func clientOf(t *testing.T, options Options, nodes ...*fake) *Client {
	t.Helper()
	var addresses []string
	for _, one := range nodes {
		addresses = append(addresses, one.URL)
	}
	options.NoDiscovery = true
	c, err := New(strings.Join(addresses, ","), &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func soon(t *testing.T, within time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	return ctx
}

func TestAWriteWhoseAnswerIsLostIsSentAgainUnderTheSameID(t *testing.T) {
	f := newFake(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n < 3 {
			lose(w)
			return
		}
		say(w, 200, writtenText)
	})
	written, err := clientOf(t, Options{}, f).Put(soon(t, 5*time.Second), "k", 1, nil)
	if err != nil || written.Revision != 7 {
		t.Fatalf("%v, %v", written, err)
	}
	came := f.requests()
	if len(came) != 3 || came[0].id == "" || came[1].id != came[0].id || came[2].id != came[0].id {
		t.Errorf("%v", came)
	}
}

func TestAWriteThatNobodyAnsweredIsUnknown(t *testing.T) {
	f := newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) { lose(w) })
	_, err := clientOf(t, Options{Retry: RetryPolicy{AttemptsMax: 3}}, f).Put(context.Background(), "k", 1, &WriteOptions{RequestID: "mine"})
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrUnknownOutcome) || e.RequestID != "mine" || e.Attempts != 3 {
		t.Errorf("%+v", err)
	}
}

func TestAWriteThatReachedNobodyIsNotApplied(t *testing.T) {
	gone := newFake(t, func(int, http.ResponseWriter, *http.Request) {})
	gone.end()
	_, err := clientOf(t, Options{Retry: RetryPolicy{AttemptsMax: 2}}, gone).Put(context.Background(), "k", 1, nil)
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknownOutcome) || e.Applied != api.AppliedNo {
		t.Errorf("%+v", err)
	}
}

func TestARefusalBeforeTheLogDoesNotSettleAnEarlierAttempt(t *testing.T) {
	handler := func(more string) func(int, http.ResponseWriter, *http.Request) {
		return func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				lose(w)
				return
			}
			refuse(w, 412, api.ErrorCodeCasMismatch, api.RetryAfterReading, more)
		}
	}
	_, err := clientOf(t, Options{}, newFake(t, handler(""))).Put(soon(t, 5*time.Second), "k", 1, nil)
	if !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("an earlier attempt may have been applied: %v", err)
	}
	_, err = clientOf(t, Options{}, newFake(t, handler(`,"index":5`))).Put(soon(t, 5*time.Second), "k", 1, nil)
	if !errors.Is(err, ErrCasMismatch) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("what went through the log decides all attempts: %v", err)
	}
}

func TestTheNextNodeIsAskedAtOnce(t *testing.T) {
	busy := func(_ int, w http.ResponseWriter, _ *http.Request) {
		refuse(w, 503, api.ErrorCodeNoLeader, api.RetrySameRequestID, "")
	}
	one, other := newFake(t, busy), newFake(t, busy)
	good := newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, writtenText) })
	if _, err := clientOf(t, Options{}, one, other, good).Put(soon(t, 5*time.Second), "k", 1, nil); err != nil {
		t.Error(err)
	}
	if len(one.requests()) > 1 || len(other.requests()) > 1 || len(good.requests()) != 1 {
		t.Error("a node that failed was asked again before the others")
	}
}

func TestALeaderThatIsKnownIsAsked(t *testing.T) {
	status := func(id int) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Quorate-Term", "4")
			w.Header().Set("Quorate-Leader", "2")
			if strings.HasSuffix(r.URL.Path, "/status") {
				say(w, 200, fmt.Sprintf(`{"node_id":%d,"term":"4","leader_id":2,"oldest_revision":"1","revision":"1","members":[]}`, id))
				return
			}
			say(w, 200, writtenText)
		}
	}
	one, two := newFake(t, status(1)), newFake(t, status(2))
	c, ctx := clientOf(t, Options{}, one, two), soon(t, 5*time.Second)
	isKnown := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.endpoints.leader == 1
	}
	for !isKnown() {
		if _, err := c.Put(ctx, "k", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	asked := func() (times int) {
		for _, request := range one.requests() {
			if request.path == "/v1/ops" {
				times++
			}
		}
		return times
	}
	before := asked()
	for range 5 {
		if _, err := c.Put(ctx, "k", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if asked() != before {
		t.Error("a follower was asked, though the leader is known")
	}
}

func TestWhatIsNoNodeIsToldSo(t *testing.T) {
	for status, body := range map[int]string{200: "<html>", 404: "<html>", 302: ""} {
		f := newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, status, body) })
		_, err := clientOf(t, Options{}, f).Get(soon(t, 5*time.Second), "k", nil)
		if !errors.Is(err, ErrProtocol) || len(f.requests()) != 1 {
			t.Errorf("status %d: %v after %d requests", status, err, len(f.requests()))
		}
	}
	f := newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, "<html>") })
	if _, err := clientOf(t, Options{}, f).Put(soon(t, 5*time.Second), "k", 1, nil); !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("the status says that it worked: %v", err)
	}
}

func TestTheEndOfTheContextEndsACall(t *testing.T) {
	began := make(chan struct{}, 1)
	f := newFake(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		began <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-began
		cancel()
	}()
	_, err := clientOf(t, Options{}, f).Put(ctx, "k", 1, nil)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%+v", err)
	}
	_, err = clientOf(t, Options{}, f).Get(soon(t, 50*time.Millisecond), "k", nil)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%+v", err)
	}
}

func TestANodeIsToldHowLongItHas(t *testing.T) {
	f := newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, writtenText) })
	if _, err := clientOf(t, Options{AttemptTimeout: time.Second}, f).Put(context.Background(), "k", 1, nil); err != nil {
		t.Fatal(err)
	}
	if got := f.requests()[0].header.Get("Request-Timeout"); got != "900" {
		t.Errorf("%s ms", got)
	}
}

func TestAWriteIsNotRepeatedForAsLongAsNodesRememberIt(t *testing.T) {
	f := newFake(t, func(int, http.ResponseWriter, *http.Request) {})
	c := clientOf(t, Options{Timeout: 2 * time.Hour}, f)
	for kind, longest := range map[intent]time.Duration{intentWrite: writePatienceMax, intentRead: 2 * time.Hour, intentOnce: 2 * time.Hour} {
		left := c.deadline(context.Background(), &call{intent: kind}).left()
		if left > longest || left < longest-time.Minute {
			t.Errorf("intent %d is tried for %v", kind, left)
		}
	}
	if left := c.deadline(soon(t, time.Second), &call{intent: intentWrite}).left(); left > time.Second {
		t.Errorf("the context allows a second, not %v", left)
	}
}

func TestATokenThatIsWrittenAnewIsShownAtOnceAfterARefusal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old\n")
	f := newFake(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer second" {
			refuse(w, 401, api.ErrorCodeUnauthenticated, api.RetryNever, "")
			return
		}
		say(w, 200, writtenText)
	})
	c, ctx := clientOf(t, Options{TokenFile: path}, f), soon(t, 5*time.Second)
	if _, err := c.Put(ctx, "k", 1, nil); !errors.Is(err, ErrUnauthenticated) || strings.Contains(err.Error(), "old") {
		t.Errorf("the old token: %v", err)
	}
	write("two tokens\n")
	if _, err := c.Put(ctx, "k", 1, nil); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a file that is half written changes nothing: %v", err)
	}
	write("second\n")
	if _, err := c.Put(ctx, "k", 1, nil); err != nil {
		t.Errorf("the new token: %v", err)
	}
	for _, bad := range []string{"", "s3 cret", "s3cret\nmore", "s3cré"} {
		write(bad)
		if _, err := New("a:1", &Options{TokenFile: path}); !errors.Is(err, ErrInvalidArgument) || strings.Contains(err.Error(), "s3") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMembersThatNoEndpointNamesAreFound(t *testing.T) {
	var other *fake
	status := func(id int) func(int, http.ResponseWriter, *http.Request) {
		return func(_ int, w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/status") {
				say(w, 200, writtenText)
				return
			}
			say(w, 200, fmt.Sprintf(`{"node_id":%d,"term":"1","cluster_id":"c","oldest_revision":"1","revision":"1",
				"members":[{"id":2,"client_addr":%q,"peer_addr":"","voter":true},{"id":9,"client_addr":"127.0.0.1:1","peer_addr":"","voter":true}]}`,
				id, other.address()))
		}
	}
	other = newFake(t, status(2))
	given := newFake(t, status(1))
	c := clientOf(t, Options{}, given)
	c.endpoints.discover(time.Now().Add(-discoveryFirst))
	ctx := soon(t, 10*time.Second)
	for len(c.KnownEndpoints()) == 1 {
		if _, err := c.Put(ctx, "k", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	given.end()
	if _, err := c.Put(ctx, "k", 1, nil); err != nil {
		t.Errorf("the member that was found is not asked: %v", err)
	}
	if got := c.KnownEndpoints(); len(got) != 2 || got[1] != other.address() || len(c.Endpoints()) != 1 {
		t.Errorf("%v", got)
	}
}

func TestATokenGoesToNoAddressThatWasNotGivenInClear(t *testing.T) {
	c, err := New("127.0.0.1:1", &Options{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if c.endpoints.discovers {
		t.Error("members are discovered, and would be shown the token")
	}
}

func TestAUnixSocketIsAskedAsLocalhostAndMayBeAway(t *testing.T) {
	ctx, dir := soon(t, 10*time.Second), shortDir(t)
	written := func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, writtenText) }
	one, two, away := newSocketFake(t, dir+"/1", written), newSocketFake(t, dir+"/2", written), &fake{Server: &httptest.Server{URL: "unix:" + dir + "/3"}}
	c := clientOf(t, Options{}, away, one, two)
	for range 6 {
		if _, err := c.Put(ctx, "k", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []*fake{one, two} {
		if came := f.requests(); len(came) == 0 || came[0].host != "localhost" {
			t.Errorf("%+v", came)
		}
	}
	_, err := clientOf(t, Options{Retry: RetryPolicy{AttemptsMax: 2}}, away).Put(ctx, "k", 1, nil)
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), away.URL) {
		t.Errorf("%v", err)
	}
}

// shortDir is for sockets, whose paths have at most some hundred bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "q")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestATokenIsShownToOthersByTLSOnlyWhateverTheSocketIs(t *testing.T) {
	for _, c := range []struct {
		nodes     string
		hasCA     bool
		discovers bool
	}{{"unix:/a", false, false}, {"unix:/a", true, true}, {"unix:/a,https://b:1", true, true}, {"unix:/a,http://b:1", true, false}} {
		options := &Options{Token: "t"}
		if c.hasCA {
			options.CAPEM = caPEM(t)
		}
		client, err := New(c.nodes, options)
		if err != nil {
			t.Fatal(err)
		}
		if client.endpoints.discovers != c.discovers {
			t.Errorf("%+v", c)
		}
	}
}

// caPEM is the certificate of a test server.
func caPEM(t *testing.T) []byte {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// sessions answers what sessions ask, and renewals as told.
func sessions(ttlMs int, renew func(n int, w http.ResponseWriter, r *http.Request)) func(int, http.ResponseWriter, *http.Request) {
	made := 0
	return func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/sessions":
			made++
			say(w, 200, fmt.Sprintf(`{"session":"%d","ttl_ms":%d,"expires_in_ms":%d,"renew_in_ms":%d,"owner":"","labels":{},"revision":"1","index":1}`,
				made, ttlMs, ttlMs, ttlMs/3))
		case strings.HasSuffix(r.URL.Path, "/renew"):
			renew(n, w, r)
		default:
			say(w, 200, `{"session":"1","ended":true,"count":0,"revision":"1","index":1}`)
		}
	}
}

func TestASessionThatIsNotRenewedIsSuspectAndThenLost(t *testing.T) {
	f := newFake(t, sessions(400, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	ctx := soon(t, 5*time.Second)
	s, err := clientOf(t, Options{}, f).NewSession(ctx, &SessionOptions{TTL: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if s.State() != SessionAlive || s.Err() != nil {
		t.Errorf("it is %s, %v", s.State(), s.Err())
	}
	if state, err := s.Changed(ctx, SessionAlive); err != nil || state != SessionSuspect || !errors.Is(s.Err(), ErrSessionSuspect) {
		t.Errorf("it became %s, %v", state, err)
	}
	bound, cancel := s.Context(ctx)
	defer cancel()
	<-s.Done()
	if s.State() != SessionLost || s.Loss() != LossNotRenewed || !errors.Is(s.Err(), ErrSessionExpired) {
		t.Errorf("it is %s, %v", s.State(), s.Err())
	}
	if <-bound.Done(); !errors.Is(context.Cause(bound), ErrSessionExpired) {
		t.Errorf("what depends on it ended with %v", context.Cause(bound))
	}
	if _, err := s.Lock(ctx, "l", nil); !errors.Is(err, ErrSessionExpired) {
		t.Errorf("a lock of a lost session: %v", err)
	}
}

func TestASessionThatTheClusterEndedIsLost(t *testing.T) {
	f := newFake(t, sessions(600, func(_ int, w http.ResponseWriter, _ *http.Request) {
		say(w, 200, `{"sessions":[{"session":"1","expired":true}],"revision":"1","index":1}`)
	}))
	s, err := clientOf(t, Options{}, f).NewSession(soon(t, 5*time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	if <-s.Done(); s.Loss() != LossExpired {
		t.Errorf("it is lost since %s", s.Loss())
	}
}

// renewedAll renews whatever it is asked to.
func renewedAll(_ int, w http.ResponseWriter, _ *http.Request) {
	say(w, 200, `{"sessions":[{"session":"1"},{"session":"2"}],"revision":"1","index":1}`)
}

func TestASessionThatTheAnswerDoesNotNameIsNotRenewed(t *testing.T) {
	asked := make(chan struct{}, 1000)
	f := newFake(t, sessions(400, func(_ int, w http.ResponseWriter, _ *http.Request) {
		say(w, 200, `{"sessions":[{"session":"2","ttl_ms":400}],"revision":"1","index":1}`)
		asked <- struct{}{}
	}))
	s, err := clientOf(t, Options{}, f).NewSession(soon(t, 5*time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("it counts as renewed")
	}
	if s.Loss() != LossNotRenewed || len(asked) < 2 {
		t.Errorf("it is lost since %s, after %d renewals", s.Loss(), len(asked))
	}
}

func TestAfterTheMachineWasSuspendedATokenIsGivenOnlyOnceTheSessionIsRenewed(t *testing.T) {
	goOn := make(chan struct{})
	base := sessions(600_000, func(n int, w http.ResponseWriter, r *http.Request) {
		<-goOn
		renewedAll(n, w, r)
	})
	f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/acquire") {
			say(w, 200, `{"lock":"l","state":"held","token":"7","session":"1","mode":"exclusive","revision":"1","index":1}`)
			return
		}
		base(n, w, r)
	})
	ctx := soon(t, 5*time.Second)
	s, err := clientOf(t, Options{}, f).NewSession(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := s.Lock(ctx, "l", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Token(); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	s.lease.confirmedWall = s.lease.confirmedWall.Add(-time.Hour)
	s.mu.Unlock()
	if token, err := lock.Token(); !errors.Is(err, ErrSessionSuspect) {
		t.Errorf("%d, %v", token, err)
	}
	close(goOn)
	if state, err := s.Changed(ctx, SessionSuspect); err != nil || state != SessionAlive {
		t.Errorf("%s, %v", state, err)
	}
	if _, err := lock.Token(); err != nil {
		t.Error(err)
	}
}

func TestSessionsOfAClientAreRenewedTogether(t *testing.T) {
	together := make(chan struct{}, 100)
	f := newFake(t, sessions(600, func(n int, w http.ResponseWriter, r *http.Request) {
		renewedAll(n, w, r)
		together <- struct{}{}
	}))
	c, ctx := clientOf(t, Options{}, f), soon(t, 5*time.Second)
	for range 2 {
		if _, err := c.NewSession(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	<-together
	for _, request := range f.requests() {
		var body api.RenewRequest
		if strings.HasSuffix(request.path, "/renew") && json.Unmarshal([]byte(request.body), &body) == nil && len(body.Sessions) == 2 {
			return
		}
	}
	t.Errorf("%v", f.requests())
}

func TestAPlaceThatNobodyWaitsForIsTakenBack(t *testing.T) {
	waits := make(chan struct{}, 1)
	released := make(chan struct{}, 1)
	base := sessions(10_000, renewedAll)
	f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/acquire"):
			select {
			case waits <- struct{}{}:
				// The first is on its way when it is given up.
				<-r.Context().Done()
			default:
				say(w, 202, `{"lock":"l","state":"waiting","place":"3","ahead":0,"session":"1","mode":"exclusive","revision":"1","index":1}`)
			}
		case strings.HasSuffix(r.URL.Path, "/release"):
			say(w, 200, `{"lock":"l","released":true,"revision":"1","index":1}`)
			released <- struct{}{}
		default:
			base(n, w, r)
		}
	})
	s, err := clientOf(t, Options{AttemptTimeout: time.Minute}, f).NewSession(soon(t, 5*time.Second), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-waits
		waits <- struct{}{}
		cancel()
	}()
	if _, err := s.Lock(ctx, "l", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-released
	var asked []seen
	for _, request := range f.requests() {
		if strings.HasSuffix(request.path, "/acquire") {
			asked = append(asked, request)
		}
	}
	// What was on its way is asked for again, under its id and without a wait, before the place is given up.
	if len(asked) != 2 || asked[0].id != asked[1].id || !strings.Contains(asked[1].body, `"poll_ms":0`) {
		t.Errorf("%v", asked)
	}
}

func TestAnUpdateThatAlwaysLosesSaysSo(t *testing.T) {
	f := newFake(t, func(n int, w http.ResponseWriter, r *http.Request) {
		entry := fmt.Sprintf(`{"key":"k","value":%d,"content_type":"json","cas":"%d","create_revision":"1","mod_revision":"1","version":1}`, n, n)
		if n == 1 {
			say(w, 200, entry)
			return
		}
		refuse(w, 412, api.ErrorCodeCasMismatch, api.RetryAfterReading, `,"index":4,"current":`+entry)
	})
	var read []int
	_, err := Update(soon(t, 5*time.Second), clientOf(t, Options{}, f), "k", func(current *int) (*int, error) {
		read = append(read, *current)
		return current, nil
	}, &UpdateOptions{Tries: 3})
	if !errors.Is(err, ErrContended) || !errors.Is(err, ErrCasMismatch) || !slices.Equal(read, []int{1, 2, 3}) {
		t.Errorf("%v after %v", err, read)
	}
	boom := errors.New("boom")
	if _, err := Update(soon(t, 5*time.Second), clientOf(t, Options{}, newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		refuse(w, 404, api.ErrorCodeNotFound, api.RetryAfterReading, "")
	})), "k", func(*int) (*int, error) { return nil, boom }, nil); !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
}

func TestAnUpdateKeepsTheSessionAndTheTimeToLiveOfTheEntry(t *testing.T) {
	const entry = `{"key":"k","value":1,"content_type":"json","cas":"1","create_revision":"1","mod_revision":"1","version":1%s}`
	for _, one := range []struct{ kept, session string }{
		{`,"ttl_ms":4000,"session":"17"`, "17"},
		// It gets none from its collection.
		{"", ""},
	} {
		f := newFake(t, func(n int, w http.ResponseWriter, _ *http.Request) {
			if n == 1 {
				say(w, 200, fmt.Sprintf(entry, one.kept))
				return
			}
			say(w, 200, writtenText)
		})
		keep := func(current *int) (*int, error) { return current, nil }
		if _, err := Update(soon(t, 5*time.Second), clientOf(t, Options{}, f), "k", keep, nil); err != nil {
			t.Fatal(err)
		}
		var op map[string]any
		if err := json.Unmarshal([]byte(f.requests()[1].body), &op); err != nil {
			t.Fatal(err)
		}
		// No time is given back.
		if session, _ := op["session"].(string); op["ttl"] != "keep" || op["ttl_ms"] != nil || session != one.session {
			t.Errorf("%v", op)
		}
	}
}

// stalled is a listener that takes connections and never answers.
func stalled(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestASilentNodeIsLeftForAnother(t *testing.T) {
	good := newFake(t, func(_ int, w http.ResponseWriter, _ *http.Request) { say(w, 200, writtenText) })
	c, err := New(stalled(t)+","+good.address(), &Options{NoDiscovery: true, AttemptTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := c.Put(soon(t, 5*time.Second), "k", 1, nil); err != nil {
			t.Fatal(err)
		}
	}
}
