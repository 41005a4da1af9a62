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
	taken, err := takePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.release()
	seen := map[string]bool{}
	for _, address := range taken.addresses {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		if number, err := strconv.Atoi(port); err != nil || number >= max(given, portsFrom+1_000) || seen[address] {
			t.Errorf("%v, and the system gives away %d", taken.addresses, given)
		}
		seen[address] = true
	}
}

// TestPortsThatAreHeldAreNobodyElses: though nobody listens there.
func TestPortsThatAreHeldAreNobodyElses(t *testing.T) {
	held, err := takePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	defer held.release()
	listener, err := net.Listen("tcp", held.addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	others := &ports{}
	defer others.release()
	others.claim(port - (port-portsFrom)%portBlock)
	if len(others.addresses) > 0 {
		t.Errorf("%v of %s", others.addresses, held.addresses[0])
	}
}
