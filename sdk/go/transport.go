package quorate

// How a call gets to one node and its answer back. Owns the connections. Makes one attempt, and says of a failed one whether the
// request went out.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"quorate.dev/go/api"
)

const (
	// connectTimeout is the longest time for a connection to come about; a node that is further away is not worth waiting for.
	connectTimeout = 2 * time.Second
	// graceMax: the node is told to answer at most this much earlier than we stop waiting, so that its own word on a timeout arrives.
	graceMax = 250 * time.Millisecond
	// answerBytesMax is the largest answer taken: many times the largest page. Protects the memory of the caller.
	answerBytesMax = 64 << 20
	// clusterHeader has the id of the cluster that a node is of.
	clusterHeader = "Quorate-Cluster"
)

// node is the way to one node.
type node struct {
	// address is host:port, or unix:/path.
	address string
	isTLS   bool
	// socket is the path of the Unix socket by which the node of this machine is reached; empty for others.
	socket string
}

func (n node) url(target string) string {
	if n.socket != "" {
		return "http://localhost" + target
	}
	if n.isTLS {
		return "https://" + n.address + target
	}
	return "http://" + n.address + target
}

// answer is a complete one.
type answer struct {
	status int
	hint   leaderHint
	// cluster is the id of the one that the node is of; empty where it does not say.
	cluster string
	body    []byte
}

// transport is the way to all nodes. A node keeps its place: others only come behind it.
type transport struct {
	credentials *credentials

	// sockets has a client for each Unix socket: to HTTP they are all the same host.
	sockets map[string]*http.Client
	// othersTLS says whether members that were not given are reached by TLS.
	othersTLS bool

	mu    sync.RWMutex
	nodes []node
	// client is made anew where files of TLS have changed.
	client     *http.Client
	generation int
}

func newTransport(nodes []node, credentials *credentials) *transport {
	t := &transport{credentials: credentials, nodes: nodes, sockets: map[string]*http.Client{}}
	t.client = newHTTPClient(credentials.kept.tls, dialer.DialContext)
	hasOthers := false
	for _, n := range nodes {
		if n.socket != "" {
			t.sockets[n.socket] = newHTTPClient(nil, dialSocket(n.socket))
			continue
		}
		hasOthers, t.othersTLS = true, t.othersTLS || n.isTLS
	}
	if !hasOthers {
		t.othersTLS = credentials.kept.tls != nil
	}
	return t
}

var dialer = &net.Dialer{Timeout: connectTimeout, KeepAlive: 15 * time.Second}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// dialSocket connects to the Unix socket, wherever the request goes.
func dialSocket(path string) dial {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
}

func newHTTPClient(config *tls.Config, connect dial) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         connect,
			TLSClientConfig:     config,
			TLSHandshakeTimeout: connectTimeout,
			MaxIdleConnsPerHost: 256,
			// Servers close idle ones; one that is too old is not trusted with another request.
			IdleConnTimeout:    30 * time.Second,
			DisableCompression: true,
		},
		// A node never sends one elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (t *transport) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.nodes)
}

func (t *transport) node(place int) node {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.nodes[place]
}

func (t *transport) add(n node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.nodes = append(t.nodes, n)
}

// dressed is the HTTP client to a node, for what is shown now.
func (t *transport) dressed(to node, now *shown) *http.Client {
	if to.socket != "" {
		return t.sockets[to.socket]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.generation > t.generation {
		t.client.CloseIdleConnections()
		t.client, t.generation = newHTTPClient(now.tls, dialer.DialContext), now.generation
	}
	return t.client
}

// leave closes connections that nobody uses, those to this node among them.
func (t *transport) leave(from node) {
	t.dressed(from, t.credentials.shown()).CloseIdleConnections()
}

func (t *transport) close() {
	t.mu.RLock()
	defer t.mu.RUnlock()
	t.client.CloseIdleConnections()
	for _, client := range t.sockets {
		client.CloseIdleConnections()
	}
}

// sent is a request on its way; isOut says whether any of it may have reached the node.
type sent struct {
	isOut atomic.Bool
}

func (s *sent) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.isOut.Store(true) }})
}

// request is the call as it goes out.
func (t *transport) request(ctx context.Context, to node, c *call, told time.Duration, authorization string) (*http.Request, error) {
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	request, err := http.NewRequestWithContext(ctx, c.method, to.url(c.target), body)
	if err != nil {
		return nil, err
	}
	for name, values := range c.header {
		request.Header[name] = values
	}
	if c.requestID != "" {
		// Under the name with a great letter it would be repeated by net/http too, whatever time it is, and whatever an earlier try may have done.
		request.Header["idempotency-key"] = []string{c.requestID}
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	if told > 0 {
		request.Header.Set("Request-Timeout", strconv.FormatInt(max(told.Milliseconds(), 1), 10))
	}
	request.Header.Set("User-Agent", "quorate-go/"+Version)
	return request, nil
}

// send makes one attempt at one node, over within the budget. Also gives the generation of what was shown.
func (t *transport) send(whole context.Context, to node, c *call, budget time.Duration) (*answer, *failure, int) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(whole, budget)
	defer cancel()
	shown := t.credentials.shown()
	var way sent
	request, err := t.request(way.traced(ctx), to, c, budget-min(graceMax, budget/10), shown.authorization)
	if err != nil {
		return nil, &failure{address: to.address, kind: failedNotSent, cause: err}, shown.generation
	}
	response, err := t.dressed(to, shown).Do(request)
	if err == nil {
		defer func() { _ = response.Body.Close() }()
		var received *answer
		if received, err = receive(response); err == nil {
			return received, nil, shown.generation
		}
	}
	return nil, failureOf(to, err, &way, attemptEnd{whole, ctx, began}), shown.generation
}

// open makes one attempt at one node, for an answer of this content type that is taken as it comes, until cancel is called. It has the
// budget to begin.
func (t *transport) open(whole context.Context, to node, c *call, kind string, budget time.Duration) (*stream, *answer, *failure, int) {
	began := time.Now()
	ctx, cancel := context.WithCancel(whole)
	timer := time.AfterFunc(budget, cancel)
	shown := t.credentials.shown()
	var way sent
	request, err := t.request(way.traced(ctx), to, c, 0, shown.authorization)
	if err == nil {
		var response *http.Response
		if response, err = t.dressed(to, shown).Do(request); err == nil {
			isStream := response.StatusCode == http.StatusOK && strings.HasPrefix(response.Header.Get("Content-Type"), kind)
			if isStream && timer.Stop() {
				return newStream(to.address, response, cancel), nil, nil, shown.generation
			}
			defer cancel()
			defer func() { _ = response.Body.Close() }()
			var received *answer
			if received, err = receive(response); err == nil {
				return nil, received, nil, shown.generation
			}
		}
	}
	cancel()
	return nil, nil, failureOf(to, err, &way, attemptEnd{whole, ctx, began}), shown.generation
}

// receive reads an answer to its end.
func receive(response *http.Response) (*answer, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("in the middle of the answer: %w", err)
	}
	if len(body) > answerBytesMax {
		return nil, fmt.Errorf("an answer of more than %d bytes", answerBytesMax)
	}
	return &answer{status: response.StatusCode, hint: hintOf(response.Header), cluster: response.Header.Get(clusterHeader), body: body}, nil
}

// hintOf is what the headers say of the cluster. Headers that make no sense say nothing.
func hintOf(header http.Header) leaderHint {
	parsed := func(name string) uint64 {
		n, err := strconv.ParseUint(header.Get(name), 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	return leaderHint{term: parsed("Quorate-Term"), leaderID: parsed("Quorate-Leader")}
}

// attemptEnd is what may have ended an attempt: the context of the whole call, or its own, which has the time of the attempt too.
type attemptEnd struct {
	whole, own context.Context
	began      time.Time
}

func (e attemptEnd) words() string {
	passed := time.Since(e.began).Milliseconds()
	if e.whole.Err() != nil {
		return fmt.Sprintf("it had not answered after %d ms, when the call was ended", passed)
	}
	return fmt.Sprintf("no answer in %d ms", passed)
}

// failureOf says what became of an attempt that ended with this error.
func failureOf(to node, err error, way *sent, end attemptEnd) *failure {
	f := &failure{address: to.address, kind: failedBroken, cause: err}
	switch {
	case isTLSFault(err):
		f.kind = failedTLS
	case !way.isOut.Load():
		f.kind = failedNotSent
	case end.own.Err() != nil:
		f.kind, f.detail = failedTimedOut, end.words()
	}
	return f
}

// isTLSFault: one side does not believe the other's certificate, so that the request did not reach the node's code.
func isTLSFault(err error) bool {
	var (
		alert   tls.AlertError
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		op      *net.OpError
	)
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &alert) || errors.As(err, &record) || errors.As(err, &verify) || errors.As(err, &unknown) ||
		(errors.As(err, &op) && op.Op == "remote error")
}

// problemOf is the problem document of an answer; nil where it has none.
func problemOf(body []byte) *api.Problem {
	var problem api.Problem
	if json.Unmarshal(body, &problem) != nil || problem.Code == "" {
		return nil
	}
	return &problem
}
