package quorate

// A prefix kept in memory: listed once, then followed by a watch. Owns the goroutine that follows, and what is said of how far it is. What is
// kept, and how it is found, is mirrored.go's.

import (
	"context"
	"errors"
	"sync"
	"time"

	"quorate.dev/go/api"
)

const (
	// mirrorHeartbeat is how often a silent node says how far it is, where nothing else is asked for: so long Sync may take while nothing
	// changes below the prefix. The shortest that nodes take.
	mirrorHeartbeat = 500 * time.Millisecond
	// changesKept: changes that a slow reader may be behind.
	changesKept = 1024
	// Pauses before a watch that failed is begun anew.
	mirrorAgainMin = 50 * time.Millisecond
	mirrorAgainMax = 5 * time.Second
)

// MirrorOptions refine a mirror.
type MirrorOptions struct {
	// IndexBy are fields, as dotted paths or JSON pointers into the documents, by which [Mirror.FindBy] finds entries.
	IndexBy []string
	// Heartbeat is how often a node says how far it is while nothing happens below the prefix: 0.5 to 60 s, default 0.5 s.
	Heartbeat time.Duration
	// Part: only the entries whose keys are in this part.
	Part Part
}

// MirrorChange is what happened to a mirror.
type MirrorChange struct {
	// Resynced: anything may have changed, and the other fields but Revision say nothing: the mirror was filled anew, or who listens was
	// too slow.
	Resynced bool
	// Key of the entry that changed.
	Key string
	// Entry as it is now; nil where it is gone.
	Entry *Entry
	// Before is as the mirror knew it before.
	Before *Entry
	// Revision of the change.
	Revision uint64
}

// Mirror is all entries below a prefix, in memory, kept as they are in the cluster until it is closed, or its context ends.
//
// Reads are answered at once, from what this process knows: they may be a moment old ([Mirror.Staleness]), but each shows whole transactions
// only, and never goes back in time. Who needs to see every write that was acknowledged before asks [Mirror.Sync] first. Entries are shared: do
// not change them.
type Mirror struct {
	c       *Client
	ctx     context.Context
	cancel  context.CancelFunc
	prefix  string
	options MirrorOptions
	ended   chan struct{}

	mu       sync.RWMutex
	entries  *mirrored
	revision uint64
	heard    time.Time
	trouble  error
	// advanced is closed and made anew when the revision changes.
	advanced  chan struct{}
	listeners map[chan MirrorChange]*listener
}

type listener struct{ isBehind bool }

// Mirror fills a mirror of the entries whose keys begin with the prefix, all there are for an empty one, and follows from then on.
func (c *Client) Mirror(ctx context.Context, prefix string, options *MirrorOptions) (*Mirror, error) {
	m := &Mirror{c: c, prefix: prefix, advanced: make(chan struct{}), ended: make(chan struct{}), listeners: map[chan MirrorChange]*listener{}}
	if options != nil {
		m.options = *options
	}
	if m.options.Heartbeat == 0 {
		m.options.Heartbeat = mirrorHeartbeat
	}
	m.ctx, m.cancel = context.WithCancel(ctx)
	watch, err := m.fill()
	if err != nil {
		m.cancel()
		return nil, err
	}
	go m.follow(watch)
	return m, nil
}

// fill begins a new watch and exchanges everything for what it brings.
func (m *Mirror) fill() (*Watch, error) {
	watch, err := m.c.Watch(m.ctx, m.prefix, &WatchOptions{Initial: true, Heartbeat: m.options.Heartbeat, Part: m.options.Part})
	if err != nil {
		return nil, err
	}
	filled := newMirrored(m.options.IndexBy)
	for {
		event, err := watch.Next()
		if err != nil {
			watch.Close()
			return nil, err
		}
		switch event.Kind {
		case EventSynced:
			m.exchange(filled, event.Revision)
			return watch, nil
		case EventRestarted:
			filled = newMirrored(m.options.IndexBy)
		case EventPut:
			filled.set(event.Key, event.Entry)
		}
	}
}

func (m *Mirror) exchange(filled *mirrored, revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries = filled
	m.reached(revision)
	m.tell(MirrorChange{Resynced: true, Revision: revision})
}

// follow goes on until the mirror is closed.
func (m *Mirror) follow(watch *Watch) {
	defer close(m.ended)
	pause := mirrorAgainMin
	for m.ctx.Err() == nil {
		var err error
		if watch == nil {
			watch, err = m.fill()
		}
		if err == nil {
			pause = mirrorAgainMin
			err = m.apply(watch)
			watch = nil
		}
		m.mu.Lock()
		m.trouble = err
		m.mu.Unlock()
		// An end of the context ends the loop.
		_ = sleep(m.ctx, pause)
		pause = min(2*pause, mirrorAgainMax)
	}
}

// apply follows a watch until it fails.
func (m *Mirror) apply(watch *Watch) error {
	defer watch.Close()
	var events []Event
	for {
		event, isEvent, err := watch.step()
		if err != nil {
			return err
		}
		if isEvent {
			events = append(events, event)
		}
		// The rest of a revision is at hand: all of it takes effect at once.
		if !watch.HasMore() {
			m.take(events, watch.Revision())
			events = nil
		}
	}
}

func (m *Mirror) take(events []Event, revision uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, event := range events {
		before := m.entries.set(event.Key, event.Entry)
		m.tell(MirrorChange{Key: event.Key, Entry: event.Entry, Before: before, Revision: event.Revision})
	}
	m.reached(revision)
}

// reached: everything up to this revision is here. The caller holds the lock.
func (m *Mirror) reached(revision uint64) {
	m.heard, m.trouble = time.Now(), nil
	if revision != m.revision {
		m.revision = revision
		close(m.advanced)
		m.advanced = make(chan struct{})
	}
}

// tell tells those who listen. The caller holds the lock.
func (m *Mirror) tell(change MirrorChange) {
	for changes, state := range m.listeners {
		told := change
		if state.isBehind {
			told = MirrorChange{Resynced: true, Revision: change.Revision}
		}
		select {
		case changes <- told:
			state.isBehind = false
		default:
			state.isBehind = true
		}
	}
}

// Close ends the mirror. It still answers from what it has.
func (m *Mirror) Close() {
	m.cancel()
	<-m.ended
}

// Prefix of the keys.
func (m *Mirror) Prefix() string { return m.prefix }

// Get gives an entry; nil where there is none.
func (m *Mirror) Get(key string) *Entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.entries.of[key]
}

// List gives the entries whose keys begin with the prefix, by key, all of one moment.
func (m *Mirror) List(prefix string) []*Entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.entries.list(prefix)
}

// FindBy gives the entries whose field has this value, by key: numbers are compared by value, and an array has each of its elements. Fails with
// [ErrInvalidArgument] where MirrorOptions.IndexBy did not name the field.
func (m *Mirror) FindBy(field string, value any) ([]*Entry, error) {
	text, err := jsonOf(value)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	found, ok := m.entries.find(field, text)
	if !ok {
		return nil, invalid("the mirror of `%s` has no index by `%s`", m.prefix, field)
	}
	return found, nil
}

// Len is how many entries there are.
func (m *Mirror) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.entries.of)
}

// Revision is that up to which it shows every change.
func (m *Mirror) Revision() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.revision
}

// Staleness is how long ago the cluster last said that this is how things are: mostly less than the heartbeat.
func (m *Mirror) Staleness() time.Duration {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return time.Since(m.heard)
}

// Err says why it does not follow at the moment; nil while it does. It keeps trying in any case, and answers from what it has.
func (m *Mirror) Err() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	return m.trouble
}

// Sync asks the cluster which revision it is at, and waits until the mirror is there: what is read after this is as fresh as a linearizable
// read. Gives the revision. Fails with [ErrBehind] where that takes too long.
func (m *Mirror) Sync(ctx context.Context) (uint64, error) {
	asked, err := m.c.ListPage(ctx, m.prefix, "", &ListOptions{Limit: 1, KeysOnly: true})
	if err != nil {
		return 0, err
	}
	return m.WaitFor(ctx, asked.Revision)
}

// WaitFor waits until the mirror shows this revision, such as that of a write of one's own; gives the one that it shows. Fails as
// [Mirror.Sync] does.
func (m *Mirror) WaitFor(ctx context.Context, revision uint64) (uint64, error) {
	ctx, cancel := context.WithDeadline(ctx, m.c.deadline(ctx, &call{}).monotonic)
	defer cancel()
	for {
		m.mu.RLock()
		reached, advanced, trouble := m.revision, m.advanced, m.trouble
		m.mu.RUnlock()
		if reached >= revision {
			return reached, nil
		}
		select {
		case <-advanced:
		case <-m.ctx.Done():
			return 0, m.behind(revision, reached, context.Cause(m.ctx))
		case <-ctx.Done():
			return 0, m.behind(revision, reached, errors.Join(trouble, context.Cause(ctx)))
		}
	}
}

func (m *Mirror) behind(revision, reached uint64, cause error) error {
	e := localError(CodeBehind, cause, "the mirror of `%s` is at revision %d, not yet at %d", m.prefix, reached, revision)
	e.Retry = api.RetryAfterReading
	return e
}

// Changes tells what happens to the mirror from now on, until the context ends, which closes the channel. The mirror shows a change by the time
// it is told. Who is more than some hundred changes behind is told that it was resynced instead of them.
func (m *Mirror) Changes(ctx context.Context) <-chan MirrorChange {
	changes := make(chan MirrorChange, changesKept)
	m.mu.Lock()
	m.listeners[changes] = &listener{}
	m.mu.Unlock()
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.listeners, changes)
		close(changes)
	})
	return changes
}
