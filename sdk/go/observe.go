package quorate

// Observing an election: who leads, each change in order, over whatever happens to nodes and connections. Owns where an observation is. Whatever
// breaks, it goes on at another node right behind the last change that was handed out.

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"time"

	"quorate.dev/go/api"
)

// observeHeartbeat is how often a silent node says that it is there.
const observeHeartbeat = 2 * time.Second

// Leads is what an observer sees.
type Leads struct {
	// Leader is who leads; nil where nobody does.
	Leader *api.LeaderEvent
	// Revision of the change.
	Revision uint64
}

// Observation goes on by itself, at another node where it has to, until its context ends. Not for several goroutines at once, but for Close.
type Observation struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelFunc
	target string
	// election is its name.
	election string

	// position: every change up to this revision was handed out. 0: nothing is known.
	position uint64
	place    int
	stream   *stream
}

// Observe observes an election: first who leads now, then each change.
func (c *Client) Observe(ctx context.Context, election string) (*Observation, error) {
	path, err := queue{election, true}.path("/observe")
	if err != nil {
		return nil, err
	}
	o := &Observation{c: c, election: election, target: target(path, "heartbeat_ms", strconv.FormatInt(observeHeartbeat.Milliseconds(), 10))}
	o.ctx, o.cancel = context.WithCancel(ctx)
	if err := o.connect(c.deadline(ctx, &call{})); err != nil {
		o.cancel()
		return nil, err
	}
	return o, nil
}

// Close ends the observation. Next then fails, also where it waits.
func (o *Observation) Close() { o.cancel() }

// Next says who leads: at first as it is, then after each change. Breaks are gone over. Fails with [ErrCompacted] where changes were missed that
// can no longer be read; called again it then begins anew, with who leads by then.
func (o *Observation) Next() (Leads, error) {
	for {
		if o.ctx.Err() != nil {
			o.leave()
			return Leads{}, context.Cause(o.ctx)
		}
		if o.stream == nil {
			if err := o.connect(limit{}); err != nil {
				return Leads{}, err
			}
		}
		got, err := o.stream.next(observeHeartbeat * silentHeartbeatsMax)
		if err != nil {
			o.leave()
			if o.ctx.Err() == nil {
				o.c.nodeFailed(o.place)
			}
			continue
		}
		leads, err := o.take(got)
		if err != nil {
			return Leads{}, err
		}
		if leads != nil {
			return *leads, nil
		}
	}
}

// Changes are those of Next until the first error, which is the last of them; the end of the context is none. The observation is closed when the
// loop ends.
func (o *Observation) Changes() iter.Seq2[Leads, error] {
	return func(yield func(Leads, error) bool) {
		defer o.Close()
		for {
			leads, err := o.Next()
			if o.ctx.Err() != nil {
				return
			}
			if !yield(leads, err) || err != nil {
				return
			}
		}
	}
}

func (o *Observation) leave() {
	if o.stream != nil {
		o.stream.close()
		o.stream = nil
	}
}

func (o *Observation) connect(until limit) error {
	wanted := &call{method: "GET", target: o.target, intent: intentRead, preference: preferAny}
	if o.position > 0 {
		wanted.set("Last-Event-ID", strconv.FormatUint(o.position, 10))
	}
	place, opened, err := o.c.openStream(o.ctx, wanted, eventStreamType, until)
	if errors.Is(err, ErrCompacted) {
		o.position = 0
	}
	if err == nil {
		o.place, o.stream = place, opened
	}
	return err
}

func (o *Observation) take(got message) (*Leads, error) {
	var leads *Leads
	switch got.name {
	case "leader":
		event := &api.LeaderEvent{}
		if err := o.read(got, event); err != nil {
			return nil, err
		}
		if wrong := (subject{"Election", o.election}).check(event); wrong != nil {
			o.leave()
			return nil, localError(CodeProtocol, wrong, "%v", wrong)
		}
		leads = &Leads{Leader: event, Revision: event.Revision}
	case "vacant", "progress":
		// Both have the revision.
		var vacant api.WatchProgress
		if err := o.read(got, &vacant); err != nil {
			return nil, err
		}
		if got.name == "vacant" {
			leads = &Leads{Revision: vacant.Revision}
		} else {
			o.position = max(o.position, vacant.Revision)
		}
	case "end":
		return nil, o.end(got)
	}
	// The state at the begin is that of a later revision than its change.
	if id, err := strconv.ParseUint(got.id, 10, 64); err == nil {
		o.position = max(o.position, id)
	}
	return leads, nil
}

func (o *Observation) end(got message) error {
	var end api.WatchEnd
	if err := o.read(got, &end); err != nil {
		return err
	}
	o.leave()
	o.c.nodeFailed(o.place)
	err := endError(end)
	if errors.Is(err, ErrCompacted) {
		o.position = 0
	}
	return err
}

// read is the JSON of a message. What cannot be read ends the stream; the caller is told.
func (o *Observation) read(got message, into any) error {
	if err := json.Unmarshal([]byte(got.data), into); err != nil {
		address := o.stream.address
		o.leave()
		return localError(CodeProtocol, err, "%s: the event `%s` of an election is not what it should be: %v", address, got.name, err)
	}
	return nil
}
