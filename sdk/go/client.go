package quorate

// The client: its settings, and the way of every call from first attempt to final answer. Owns the loops over attempts, for answers and
// for streams. What they decide with is in endpoints.go (which node) and retry.go (whether again). A write carries one request id over
// all its attempts, so whatever happens it is applied at most once.

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"quorate.dev/go/api"
)

// Version is that of this package.
const Version = "0.1.0"

// DefaultEndpoints are the nodes of a local cluster.
const DefaultEndpoints = "127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103"

const (
	// timeoutDefault is the deadline of a call whose context has none.
	timeoutDefault = 10 * time.Second
	// attemptTimeoutDefault is how long one node may take before another is asked: some elections, but a good part of the deadline is left.
	attemptTimeoutDefault = 3 * time.Second
	// writePatienceMax is the longest time in which a write is repeated under one request id. Nodes remember an id for at least 15
	// minutes, and would apply it a second time after that; what is still on its way, and clocks that differ, have the rest.
	writePatienceMax = 5 * time.Minute
	// introductionTimeout is how long a node may take to say who it is.
	introductionTimeout = time.Second
)

// Options are the settings of a [Client]. The zero value has the defaults.
type Options struct {
	// CAFile is a PEM file with the CAs whose certificates of nodes are believed; there are no others. A certificate has to be for the
	// host of the endpoint. When the file changes it is read again, within a second, and new connections go by what it says then; the
	// same holds for CertFile, KeyFile and TokenFile. What cannot be read changes nothing.
	CAFile string
	// CAPEM is the same as text.
	CAPEM []byte
	// CertFile and KeyFile are PEM files with the certificate that nodes are shown, and its private key: the client is then who the
	// certificate says.
	CertFile, KeyFile string
	// CertPEM and KeyPEM are the same as text.
	CertPEM, KeyPEM []byte
	// Token says who asks, where nodes want to know. Over a plain connection everybody on the way can read it.
	Token string
	// TokenFile is a file with that token, in one line. Read again when it changes.
	TokenFile string
	// Timeout is the deadline of each call whose context has none, retries included. Default 10 s. A write is tried for 5 minutes at
	// most, whatever this or the context says: nodes remember its request id for 15.
	Timeout time.Duration
	// AttemptTimeout is how long one node may take before another is asked, within the deadline. Default 3 s.
	AttemptTimeout time.Duration
	// Retry says when to try again.
	Retry RetryPolicy
	// ReadFromLeader sends reads to the leader as long as it is well, instead of to all nodes in turn: lowest latency for few clients.
	ReadFromLeader bool
	// NoDiscovery: members that no endpoint names are not found out. Else they are asked while an endpoint does not answer, so that a
	// client outlives the nodes that it was given. A member is used once it has answered at the address that it advertises and has said
	// that it is this member of this cluster. A token is never sent in clear to an address that was not given.
	NoDiscovery bool
	// Logger is told of what the client lives with. Default: nobody.
	Logger *slog.Logger
}

func (o *Options) log(what string, args ...any) {
	if o.Logger != nil {
		o.Logger.Warn(what, args...)
	}
}

func (o Options) withDefaults() *Options {
	if o.Timeout == 0 {
		o.Timeout = timeoutDefault
	}
	if o.AttemptTimeout == 0 {
		o.AttemptTimeout = attemptTimeoutDefault
	}
	o.Retry = o.Retry.withDefaults()
	return &o
}

// Client is a client of one cluster. Safe for use by several goroutines; one is enough for a program.
type Client struct {
	options   *Options
	transport *transport
	renewals  *renewals
	given     []string
	// roots ends what runs in the background.
	roots context.Context
	stop  context.CancelFunc

	clock clock

	mu        sync.Mutex
	endpoints *endpoints
}

// New is a client of these nodes: host:port, separated by commas; one is enough, all of them are better. https:// may stand before
// each, or http://; without either it is TLS where a CA is named, else plain. unix:/path is the Unix socket of a node on this machine, alone or
// beside others. Connects to nothing yet. Nil options have the defaults.
func New(nodes string, options *Options) (*Client, error) {
	if options == nil {
		options = &Options{}
	}
	if err := notNegative(span{"Timeout", options.Timeout}, span{"AttemptTimeout", options.AttemptTimeout},
		span{"Retry.BackoffMin", options.Retry.BackoffMin}, span{"Retry.BackoffMax", options.Retry.BackoffMax}); err != nil {
		return nil, err
	}
	settings := options.withDefaults()
	credentials, err := readCredentials(settings)
	if err != nil {
		return nil, err
	}
	parsed, err := parseEndpoints(nodes, credentials.kept.tls != nil)
	if err != nil {
		return nil, err
	}
	c := &Client{options: settings, transport: newTransport(parsed, credentials), renewals: newRenewals(), clock: machineClock}
	c.roots, c.stop = context.WithCancel(context.Background())
	c.endpoints = newEndpoints(len(parsed), rand.IntN(1<<16))
	isClear := !c.transport.othersTLS
	for _, n := range parsed {
		c.given = append(c.given, n.address)
		isClear = isClear || (!n.isTLS && n.socket == "")
	}
	if !settings.NoDiscovery && (!isClear || credentials.kept.authorization == "") {
		c.endpoints.discover(time.Now())
	}
	return c, nil
}

// FromEnv is a client of the nodes in QUORATE_ENDPOINTS, or of the local cluster where there is no such variable; one that is empty fails with
// [ErrInvalidArgument]. Over TLS where QUORATE_CA names a CA, with the certificate in QUORATE_CERT and its key in QUORATE_KEY where they are
// there, and the token of QUORATE_TOKEN_FILE or QUORATE_TOKEN.
func FromEnv() (*Client, error) {
	nodes, isSet := os.LookupEnv("QUORATE_ENDPOINTS")
	if !isSet {
		nodes = DefaultEndpoints
	}
	if strings.Trim(nodes, " ,") == "" {
		return nil, invalid("QUORATE_ENDPOINTS is set, and names no endpoint; expected host:port,host:port,…, or no such variable for the local cluster")
	}
	options := &Options{
		CAFile: os.Getenv("QUORATE_CA"), CertFile: os.Getenv("QUORATE_CERT"), KeyFile: os.Getenv("QUORATE_KEY"),
		TokenFile: os.Getenv("QUORATE_TOKEN_FILE"),
	}
	if options.TokenFile == "" {
		options.Token = os.Getenv("QUORATE_TOKEN")
	}
	return New(nodes, options)
}

// Close ends what the client does in the background: sessions that are still open are ended, as far as nodes can be reached within a second;
// their time ends them otherwise.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := c.endSessions(ctx)
	c.stop()
	c.transport.close()
	return err
}

// parseEndpoints splits the list. prefersTLS is for those that do not say.
func parseEndpoints(list string, prefersTLS bool) ([]node, error) {
	var nodes []node
	seen := map[string]bool{}
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		parsed, err := parseEndpoint(item, prefersTLS)
		if err != nil {
			return nil, err
		}
		if !seen[parsed.address] {
			seen[parsed.address] = true
			nodes = append(nodes, parsed)
		}
	}
	if len(nodes) == 0 {
		return nil, invalid("no endpoint is given; expected host:port,host:port,…")
	}
	return nodes, nil
}

// socketScheme stands before the path of a Unix socket. A host of this name has a port behind it.
const socketScheme = "unix:"

func parseEndpoint(item string, prefersTLS bool) (node, error) {
	if path, isSocket := strings.CutPrefix(item, socketScheme); isSocket && strings.HasPrefix(path, "/") {
		return parseSocket(item, path)
	}
	rest, isTLS := strings.CutPrefix(item, "https://")
	isPlain := false
	if !isTLS {
		rest, isPlain = strings.CutPrefix(item, "http://")
	}
	address := strings.TrimRight(rest, "/")
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || !isPort(port) || strings.ContainsAny(address, "@/ ?#") {
		return node{}, invalid("`%s` is not an endpoint: expected host:port or unix:/path", item)
	}
	if isTLS && !prefersTLS {
		return node{}, invalid("%s: no CA is named, and only certificates of CAs that are named are believed; say CAFile (QUORATE_CA)", item)
	}
	return node{address: address, isTLS: isTLS || (prefersTLS && !isPlain)}, nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// parseSocket takes unix:/path and unix:///path. Never by TLS: the mode of the file says who may speak there.
func parseSocket(item, path string) (node, error) {
	path = strings.TrimPrefix(path, "//")
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "\x00") {
		return node{}, invalid("`%s` is not an endpoint: expected unix:/path/to/socket", item)
	}
	return node{address: socketScheme + path, socket: path}, nil
}

// Endpoints are the nodes that were given, host:port or unix:/path, in that order.
func (c *Client) Endpoints() []string { return append([]string{}, c.given...) }

// KnownEndpoints are all nodes that calls may go to: those given, and members that were discovered.
func (c *Client) KnownEndpoints() []string {
	known := make([]string, c.transport.len())
	for place := range known {
		known[place] = c.transport.node(place).address
	}
	return known
}

func (c *Client) readPreference() preference {
	if c.options.ReadFromLeader {
		return preferLeader
	}
	return preferAny
}

// reply is a successful answer.
type reply struct {
	status int
	body   []byte
}

// fetch makes the call and decodes the answer.
func fetch[T any](ctx context.Context, c *Client, wanted *call) (*T, error) {
	got, err := c.send(ctx, wanted)
	if err != nil {
		return nil, err
	}
	into := new(T)
	if err := wanted.decode(got.status, got.body, into); err != nil {
		return nil, err
	}
	return into, nil
}

// trip is a call on its way from node to node.
type trip struct {
	c        *Client
	call     *call
	attempts attempts
	// failed is the node that failed last.
	failed int
	// isRefreshed: it was refused for old credentials once.
	isRefreshed bool
}

// pick is the node to ask now.
func (t *trip) pick() int {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.endpoints.pick(t.call.preference, t.failed, time.Now())
}

// showsNewer says whether to make the attempt that was refused again: what says who we are was exchanged, and we were late to see it.
func (t *trip) showsNewer(problem *api.Problem, generation int) bool {
	isLate := !t.isRefreshed && problem.Code == api.ErrorCodeUnauthenticated && t.c.transport.credentials.isNewerThan(generation)
	t.isRefreshed = t.isRefreshed || isLate
	return isLate
}

func (t *trip) onFailure(place int, last *failure) (time.Duration, bool) {
	t.failed = place
	if last.kind != failedForeign {
		t.c.nodeFailed(place)
	}
	t.c.lookAround()
	return t.attempts.onFailure(last, t.call.intent, t.c.options.Retry, t.c.transport.len(), rand.Float64())
}

// judge is that of the client, of an answer that is believed: nothing of another cluster is.
func (t *trip) judge(place int, got *answer) (*api.Problem, *failure) {
	if foreign := t.c.foreign(place, got.cluster); foreign != nil {
		return nil, foreign
	}
	return t.c.judge(place, t.call, got)
}

func (t *trip) gaveUp(last *failure, isOpen bool, cause error) error {
	return gaveUp(t.call.requestID, max(t.attempts.failures, 1), isOpen, t.c.unlessInDoubt(last), cause)
}

// deadline of a call: that of the context, else the client's own; of a write at most so long that nodes remember it.
func (c *Client) deadline(ctx context.Context, wanted *call) limit {
	left := c.options.Timeout + wanted.hold
	if wanted.timeout > 0 {
		left = wanted.timeout + wanted.hold
	}
	if at, ok := ctx.Deadline(); ok {
		if own := at.Sub(c.clock.monotonic()); wanted.timeout == 0 || own < left {
			left = own
		}
	}
	if wanted.intent == intentWrite {
		left = min(left, writePatienceMax+wanted.hold)
	}
	return c.clock.after(left)
}

// send makes the call: attempts it until it is decided or its time is up.
func (c *Client) send(ctx context.Context, wanted *call) (*reply, error) {
	if wanted.err != nil {
		return nil, wanted.err
	}
	until := c.deadline(ctx, wanted)
	way := &trip{c: c, call: wanted, failed: none}
	for {
		place := way.pick()
		budget := c.options.AttemptTimeout
		if wanted.attempt > 0 {
			budget = wanted.attempt
		}
		got, last, generation := c.transport.send(ctx, c.transport.node(place), wanted, min(max(until.left(), 0), budget+wanted.hold))
		if last == nil {
			var problem *api.Problem
			problem, last = way.judge(place, got)
			switch {
			case problem == nil && last == nil:
				return &reply{status: got.status, body: got.body}, nil
			case problem != nil && way.showsNewer(problem, generation):
				continue
			case problem != nil:
				return nil, way.refused(place, problem)
			case last.kind == failedNonsense:
				return nil, way.nonsense(last)
			}
		}
		if err := way.rest(ctx, place, last, until); err != nil {
			return nil, err
		}
	}
}

// refused is the end of a call that a node refused.
func (t *trip) refused(place int, problem *api.Problem) error {
	if t.attempts.settledBy(problem) {
		return rejected(problem)
	}
	t.attempts.failures++
	return t.gaveUp(&failure{address: t.c.transport.node(place).address, kind: failedProblem, problem: problem}, true, nil)
}

// nonsense is the end of a call that something answered which is no node.
func (t *trip) nonsense(last *failure) error {
	e := localError(CodeProtocol, nil, "unexpected answer from %s: %s", last.address, last.detail)
	if e.RequestID = t.call.requestID; t.attempts.isOpen {
		e.Applied = api.AppliedUnknown
	}
	return e
}

// rest counts the failure and waits before the next attempt; an error ends the call.
func (t *trip) rest(ctx context.Context, place int, last *failure, until limit) error {
	pause, again := t.onFailure(place, last)
	if err := ctx.Err(); err != nil {
		return t.gaveUp(last, t.attempts.isOpen, context.Cause(ctx))
	}
	if !again {
		return t.gaveUp(last, t.attempts.isOpen, nil)
	}
	if isInTime, err := until.sleep(ctx, pause); err != nil || !isInTime {
		return t.gaveUp(last, t.attempts.isOpen, err)
	}
	return nil
}

// judge says what an answer means for the call: all is well, or it is refused for good, or the attempt failed. Learns from the headers on
// the way.
func (c *Client) judge(place int, wanted *call, got *answer) (*api.Problem, *failure) {
	isGood := got.status >= 200 && got.status < 300 || got.status == http.StatusNotModified
	// What HEAD is answered has no problem document, so only a node may say that there is no entry.
	if isGood || (wanted.method == http.MethodHead && got.status == http.StatusNotFound && got.hint.term > 0) {
		c.learn(place, got.hint)
		return nil, nil
	}
	address := c.transport.node(place).address
	problem := problemOf(got.body)
	if problem == nil {
		kind := failedNonsense
		if got.status >= 500 || got.status == http.StatusTooManyRequests {
			kind = failedStrange
		}
		detail := fmt.Sprintf("status %d without a problem document; is this a Quorate node?", got.status)
		return nil, &failure{address: address, kind: kind, detail: detail}
	}
	if isFinal(problem) {
		c.learn(place, got.hint)
		return problem, nil
	}
	return nil, &failure{address: address, kind: failedProblem, problem: problem}
}

// openStream opens an answer of this content type that is taken as it comes: tries one node after the other until one has it, refuses for
// good, or the time is up; a zero time is never.
func (c *Client) openStream(ctx context.Context, wanted *call, kind string, until limit) (int, *stream, error) {
	way := &trip{c: c, call: wanted, failed: none}
	for {
		place := way.pick()
		budget := min(max(until.left(), 0), c.options.AttemptTimeout)
		opened, got, last, generation := c.transport.open(ctx, c.transport.node(place), wanted, kind, budget)
		if opened != nil {
			if last = c.foreign(place, opened.header.Get(clusterHeader)); last == nil {
				c.learn(place, hintOf(opened.header))
				return place, opened, nil
			}
			opened.close()
		}
		if last == nil {
			var problem *api.Problem
			problem, last = way.judge(place, got)
			switch {
			case problem == nil && last == nil:
				detail := fmt.Sprintf("status %d without %s; is this a Quorate node?", got.status, kind)
				return 0, nil, way.nonsense(&failure{address: c.transport.node(place).address, detail: detail})
			case problem != nil && way.showsNewer(problem, generation):
				continue
			case problem != nil:
				return 0, nil, way.refused(place, problem)
			case last.kind == failedNonsense:
				return 0, nil, way.nonsense(last)
			}
		}
		if err := way.restStream(ctx, place, last, until); err != nil {
			return 0, nil, err
		}
	}
}

// restStream is rest for a stream: tries are bounded for calls, a watch goes on as long as its time does.
func (t *trip) restStream(ctx context.Context, place int, last *failure, until limit) error {
	if !until.isNever() {
		return t.rest(ctx, place, last, until)
	}
	pause, again := t.onFailure(place, last)
	if !again {
		pause = t.c.options.Retry.BackoffMax
	}
	if err := sleep(ctx, pause); err != nil {
		return t.gaveUp(last, false, err)
	}
	return nil
}

// sleep waits, or ends with the context's error.
func sleep(ctx context.Context, pause time.Duration) error {
	if pause <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fetchFrom makes one attempt at one node, whatever is known of it.
func fetchFrom[T any](ctx context.Context, c *Client, to node, wanted *call, budget time.Duration) (*T, error) {
	got, err := c.answerFrom(ctx, to, wanted, budget)
	if err != nil {
		return nil, err
	}
	into := new(T)
	if err := wanted.decode(got.status, got.body, into); err != nil {
		return nil, err
	}
	return into, nil
}

// answerFrom is the good answer of one node to one attempt.
func (c *Client) answerFrom(ctx context.Context, to node, wanted *call, budget time.Duration) (*answer, error) {
	got, last, _ := c.transport.send(ctx, to, wanted, budget)
	if last != nil {
		return nil, gaveUp(wanted.requestID, 1, wanted.intent != intentRead && last.leavesOpen(), last, nil)
	}
	if got.status < 200 || got.status >= 300 {
		if problem := problemOf(got.body); problem != nil {
			return nil, rejected(problem)
		}
		return nil, localError(CodeProtocol, nil, "%s: status %d without a problem document; is this a Quorate node?", to.address, got.status)
	}
	return got, nil
}

// foreign is the failure of an answer of a node of this cluster, if that is not ours.
func (c *Client) foreign(place int, cluster string) *failure {
	c.mu.Lock()
	isOurs, isNews := c.endpoints.belongs(place, cluster, time.Now())
	if isOurs {
		c.mu.Unlock()
		return nil
	}
	failed := c.foreignFailure(place)
	c.mu.Unlock()
	// A new connection may lead to another node behind the same address.
	c.transport.leave(c.transport.node(place))
	if isNews {
		c.options.log("a node of another cluster is not believed", "address", failed.address, "reason", failed.detail)
	}
	return failed
}

// foreignFailure is that of a node that is known to be of another cluster. The caller holds the lock.
func (c *Client) foreignFailure(place int) *failure {
	detail := fmt.Sprintf("it is of the cluster `%s`, and not of ours, `%s`", c.endpoints.nodes[place].cluster, c.endpoints.cluster)
	return &failure{address: c.transport.node(place).address, kind: failedForeign, detail: detail}
}

// howToGoOn follows in the error of a call that failed in doubt.
const howToGoOn = "; if the other one has replaced ours, as a restore does, try again: the client goes over once it has heard nothing else for " +
	"10 s; if not, put that node right, or take it off the endpoints"

// unlessInDoubt is what to tell of a call that failed: while in doubt, unless a node said why, that a given node is of another cluster.
func (c *Client) unlessInDoubt(last *failure) *failure {
	told := *last
	c.mu.Lock()
	defer c.mu.Unlock()
	if stranger := c.endpoints.stranger(); stranger != none && last.problem == nil && last.kind != failedForeign {
		told = *c.foreignFailure(stranger)
		told.cause = last.cause
	}
	if told.kind == failedForeign {
		told.detail += howToGoOn
	}
	return &told
}

// nodeFailed: a node that was well is not any more.
func (c *Client) nodeFailed(place int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoints.onFailure(place, time.Now())
}

// learn hears what a node says of the cluster, and looks at the nodes where that is due.
func (c *Client) learn(place int, hint leaderHint) {
	c.mu.Lock()
	now := time.Now()
	c.endpoints.onAnswer(place, hint)
	isStranger := c.endpoints.beginIntroduction(now)
	isDue := c.endpoints.beginDiscovery(now) || isStranger
	c.mu.Unlock()
	if isDue {
		go c.introduceAll()
	}
}

// lookAround follows an attempt that failed: where a node of another cluster is known, all say who they are now and then.
func (c *Client) lookAround() {
	if c.beginsIntroduction() {
		go c.introduceAll()
	}
}

func (c *Client) beginsIntroduction() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endpoints.beginIntroduction(time.Now())
}
