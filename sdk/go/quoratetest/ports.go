package quoratetest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
)

// Ports lie in blocks. A listener at the first of a block holds the others: they are nobody else's then, though nobody listens there.
// The system ends that with the process, however it ends. The helpers in other languages choose alike. None is a port of outgoing
// connections: one of these could have it before a node listens there, or while a node is down, and a node that dials a peer at such a
// port could even reach itself.
const (
	// portsFrom: blocks lie from here up to the ports of outgoing connections.
	portsFrom = 10_000
	// portBlock is how many ports a block has, with the first.
	portBlock = 8
	// blocksLookedAt to find some that are free.
	blocksLookedAt = 1_000
)

// ports are addresses that nobody listens at, and that no other test is given until they are released.
type ports struct {
	addresses []string
	// holders hold a block each; nobody connects to them.
	holders []net.Listener
}

// takePorts takes this many, all different.
func takePorts(count int) (*ports, error) {
	highest := max(outgoingFrom(), portsFrom+1_000)
	taken := &ports{}
	for range blocksLookedAt {
		if len(taken.addresses) >= count {
			taken.addresses = taken.addresses[:count]
			return taken, nil
		}
		taken.claim(portsFrom + rand.IntN((highest-portsFrom)/portBlock)*portBlock)
	}
	taken.release()
	return nil, fmt.Errorf("there are not %d free ports from %d to %d", count, portsFrom, highest)
}

// claim takes the block with this first port, unless it is another's, without the ports that other programs listen at.
func (p *ports) claim(first int) {
	holder, err := net.Listen("tcp", localAddress(first))
	if err != nil {
		return
	}
	p.holders = append(p.holders, holder)
	for port := first + 1; port < first+portBlock; port++ {
		listener, err := net.Listen("tcp", localAddress(port))
		if err != nil {
			continue
		}
		_ = listener.Close()
		p.addresses = append(p.addresses, localAddress(port))
	}
}

// release gives them back.
func (p *ports) release() {
	for _, holder := range p.holders {
		_ = holder.Close()
	}
}

func localAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// outgoingFrom is the first port that the system gives to outgoing connections.
func outgoingFrom() int {
	from := 32_768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 0 {
			if port, err := strconv.Atoi(fields[0]); err == nil {
				from = port
			}
		}
	}
	return from
}
