// Package quoratetest starts real nodes for the tests of programs that use Quorate.
//
// The program is the one that QUORATE_NODE names, else target/debug/quorate-node in a directory above the test, else quorate-node on the
// PATH. Without any of them the test is skipped, unless QUORATE_NODE_REQUIRED is set: then it fails.
//
// Owns processes, ports and directories. Talks to the nodes as any client does.
package quoratetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	quorate "quorate.dev/go"
)

const (
	// readyWithin is how long nodes may take until they are ready.
	readyWithin = 60 * time.Second
	// lookEvery is the pause between two looks at nodes that start.
	lookEvery = 25 * time.Millisecond
	// portTries: how often new ports are tried when another program was faster.
	portTries = 5
	// logLines of a log that an error shows.
	logLines = 20
)

// ErrNoNode says that there is no program of a node.
var ErrNoNode = errors.New("no quorate-node: name it in QUORATE_NODE, or put it on the PATH")

// TB is what is used of testing.TB.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Settings of a cluster. The zero value is one node, which keeps nothing beyond its process.
type Settings struct {
	// Nodes is how many; of three one can be lost. Default 1.
	Nodes int
	// Args go to each node, beside what it needs.
	Args []string
	// Client is how nodes are reached, where they speak TLS or ask who one is.
	Client quorate.Options
}

// Cluster is a cluster of real nodes.
type Cluster struct {
	home    string
	options quorate.Options
	nodes   []*process
	// ports are the cluster's own until it is stopped.
	ports *ports
}

type process struct {
	address string
	log     string
	program string
	args    []string
	command *exec.Cmd
	// ended is closed once the process is gone.
	ended chan struct{}
}

// Start starts nodes, waits until all are ready, and ends them with the test. Nil settings are one node.
func Start(tb TB, settings *Settings) *Cluster {
	tb.Helper()
	cluster, err := Run(settings)
	if errors.Is(err, ErrNoNode) && os.Getenv("QUORATE_NODE_REQUIRED") == "" {
		tb.Skipf("%v", err)
	}
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(cluster.Stop)
	return cluster
}

// Run is Start for programs that are no tests: Stop ends it.
func Run(settings *Settings) (*Cluster, error) {
	if settings == nil {
		settings = &Settings{}
	}
	program, err := Program()
	if err != nil {
		return nil, err
	}
	for tries := 1; ; tries++ {
		cluster, err := prepare(program, settings)
		if err != nil {
			return nil, err
		}
		if err = cluster.start(); err == nil {
			return cluster, nil
		}
		cluster.Stop()
		// Another program may have taken a port between our look and the node's.
		if tries == portTries || !strings.Contains(strings.ToLower(err.Error()), "in use") {
			return nil, err
		}
	}
}

// Program is the path of the program of a node.
func Program() (string, error) {
	if named := os.Getenv("QUORATE_NODE"); named != "" {
		return named, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := here; ; at = filepath.Dir(at) {
		built := filepath.Join(at, "target", "debug", "quorate-node")
		if info, err := os.Stat(built); err == nil && !info.IsDir() {
			return built, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	found, err := exec.LookPath("quorate-node")
	if err != nil {
		return "", ErrNoNode
	}
	return found, nil
}

// Endpoints are the addresses of all nodes, as quorate.New takes them.
func (c *Cluster) Endpoints() string {
	addresses := make([]string, len(c.nodes))
	for n, node := range c.nodes {
		addresses[n] = node.address
	}
	return strings.Join(addresses, ",")
}

// Client is one of all nodes, closed with the test. Nil options are those of the settings.
func (c *Cluster) Client(tb TB, options *quorate.Options) *quorate.Client {
	tb.Helper()
	if options == nil {
		options = &c.options
	}
	client, err := quorate.New(c.Endpoints(), options)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		// What it could not end, the end of the nodes does.
		_ = client.Close()
	})
	return client
}

// Nodes is how many there are, those that were killed too.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Kill ends a node at once, as a crash does; nodes are counted from 0.
func (c *Cluster) Kill(node int) { c.nodes[node].stop() }

// Restart starts a node again that was killed, with the data that it has; waits until all that run are ready.
func (c *Cluster) Restart(node int) error {
	c.nodes[node].stop()
	if err := c.nodes[node].start(c.home); err != nil {
		return err
	}
	return c.ready()
}

// Stop ends all nodes and removes what they wrote.
func (c *Cluster) Stop() {
	for _, node := range c.nodes {
		node.stop()
	}
	c.ports.release()
	// What is left of it is in the system's directory for what may be left.
	_ = os.RemoveAll(c.home)
}

// prepare makes ports, directories and command lines; nothing runs yet.
func prepare(program string, settings *Settings) (*Cluster, error) {
	count := max(settings.Nodes, 1)
	ports, err := takePorts(2 * count)
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "quorate-test-")
	if err != nil {
		ports.release()
		return nil, err
	}
	clients, peers := ports.addresses[:count], ports.addresses[count:]
	var join []string
	for n, peer := range peers {
		join = append(join, fmt.Sprintf("%d=%s", n+1, peer))
	}
	cluster := &Cluster{home: home, options: settings.Client, ports: ports}
	for n := range count {
		line := append([]string{"--client-listen", clients[n], "--peer-listen", peers[n]}, settings.Args...)
		if count == 1 {
			line = append(line, "--dev")
		} else {
			line = append(line, "--node-id", strconv.Itoa(n+1), "--join", strings.Join(join, ","), "--data-dir",
				filepath.Join(home, fmt.Sprintf("node-%d", n+1)), "--ballast-bytes", "0", "--min-free-bytes", "0")
		}
		log := filepath.Join(home, fmt.Sprintf("node-%d.log", n+1))
		cluster.nodes = append(cluster.nodes, &process{address: clients[n], log: log, program: program, args: line})
	}
	return cluster, nil
}

func (c *Cluster) start() error {
	for _, node := range c.nodes {
		if err := node.start(c.home); err != nil {
			return err
		}
	}
	return c.ready()
}

// ready waits until every node that runs would serve a linearizable read.
func (c *Cluster) ready() error {
	until := time.Now().Add(readyWithin)
	for _, node := range c.nodes {
		if node.command == nil {
			continue
		}
		for !node.isReady(c.options) {
			if node.hasEnded() {
				return fmt.Errorf("a node ended at its start:\n%s", node.logEnd())
			}
			if time.Now().After(until) {
				return fmt.Errorf("a node is not ready after %s:\n%s", readyWithin, node.logEnd())
			}
			time.Sleep(lookEvery)
		}
	}
	return nil
}

func (p *process) isReady(options quorate.Options) bool {
	options.NoDiscovery = true
	client, err := quorate.New(p.address, &options)
	if err != nil {
		return false
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	status, err := client.Status(ctx)
	return err == nil && status.Ready
}

func (p *process) start(home string) error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.command = exec.Command(p.program, p.args...)
	p.command.Env = environment(home)
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("cannot start `%s`: %w", p.program, err)
	}
	p.ended = make(chan struct{})
	go func(command *exec.Cmd, ended chan struct{}) {
		// How it ended is in its log.
		_ = command.Wait()
		close(ended)
	}(p.command, p.ended)
	return nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) stop() {
	if p.command == nil {
		return
	}
	// It may have ended by itself.
	_ = p.command.Process.Kill()
	<-p.ended
	p.command = nil
}

func (p *process) logEnd() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(len(lines)-logLines, 0):], "\n")
}

// environment is that of the test without settings that it might have for a node. A node that keeps nothing has its files below home.
func environment(home string) []string {
	var kept []string
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "QUORATE_") {
			kept = append(kept, setting)
		}
	}
	return append(kept, "TMPDIR="+home)
}
