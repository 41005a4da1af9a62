package main

// The cluster that can be hurt: cluster.py of the suite, and its control port.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

type cluster struct {
	Endpoints []string `json:"endpoints"`
	Control   string   `json:"control"`

	command *exec.Cmd
	stdin   io.WriteCloser
}

func startCluster(script string) (*cluster, error) {
	command := exec.Command("python3", script)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("python3: %w", err)
	}
	started := &cluster{command: command, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), started)
	}
	if err != nil {
		started.stop()
		return nil, fmt.Errorf("%s did not start a cluster: %w", script, err)
	}
	return started, nil
}

// stop ends the cluster, which ends with its standard input.
func (c *cluster) stop() {
	if err := c.stdin.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if err := c.command.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "conformance: the cluster ended with", err)
	}
}

// endpoints are the first so many, or all for 0.
func (c *cluster) endpoints(count int) string {
	if count == 0 || count > len(c.Endpoints) {
		count = len(c.Endpoints)
	}
	return strings.Join(c.Endpoints[:count], ",")
}

// fault hurts the cluster; gives the answer.
func (c *cluster) fault(name string, with any) (any, error) {
	text, err := json.Marshal(with)
	if err != nil {
		return nil, err
	}
	response, err := http.Post(c.Control+"/"+name, "application/json", bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", name, body)
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return jsonOf(answer)
}
