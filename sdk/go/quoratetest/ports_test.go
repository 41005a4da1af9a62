package quoratetest

import (
	"net"
	"strconv"
	"testing"
)

// TestPortsAreNoneThatOutgoingConnectionsGet: one of these could take the port of a node that is down.
func TestPortsAreNoneThatOutgoingConnectionsGet(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	given := server.Addr().(*net.TCPAddr).Port
	free, err := freePorts(8)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, address := range free {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if number, err := strconv.Atoi(port); err != nil || number >= max(given, portsFrom+1_000) || seen[address] {
			t.Errorf("%v, and the system gives away %d", free, given)
		}
		seen[address] = true
	}
}
