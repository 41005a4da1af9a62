package quorate

// Watches: the changes of some keys as they happen, over whatever happens to nodes and connections. Owns where a watch is: which revisions
// were handed out whole. Whatever breaks, it goes on at another node right behind them, so nobody is shown an event twice, out of order, or
// a part of a transaction.

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"sync"
	"time"

	"quorate.dev/go/api"
)

const (
	eventStreamType = "text/event-stream"
	// heartbeatDefault is how often a silent node says that it is there.
	heartbeatDefault = 5 * time.Second
	// silentHeartbeatsMax: a stream that is silent for so many heartbeats is dead.
	silentHeartbeatsMax = 3
)

// EventKind says what a watch hands out.
type EventKind string

const (
	// EventPut: the entry was written, or was there when the watch began.
	EventPut EventKind = "put"
	// EventDelete: the entry is gone.
	EventDelete EventKind = "delete"
	// EventSynced: all initial entries were handed out, as of the revision; changes follow.
	EventSynced EventKind = "synced"
	// EventRestarted: the stream broke among the initial entries; those handed out so far count no more, all of them come anew.
	EventRestarted EventKind = "restarted"
)

// Event is what a watch hands out.
type Event struct {
	Kind     EventKind
	Revision uint64
	// Key is that of the entry.
	Key string
	// Entry is as it is after the change; nil where it is gone.
	Entry *Entry
	// Prev is as it was before, where WatchOptions.Prev asked for it.
	Prev *Entry
	// Initial: no change, but an entry that was there when the watch began.
	Initial bool
	// Cause says why an entry is gone.
	Cause api.DeleteCause
}

// WatchOptions refine a watch.
type WatchOptions struct {
	// Key watches one key instead of a prefix, which is then empty.
	Key string
	// Start and End watch the keys from Start, inclusive, to End, exclusive, instead of a prefix, which is then empty.
	Start, End string
	// Initial shows first all entries as they are, then what changes.
	Initial bool
	// From begins at this revision. Fails with [ErrCompacted] where that can no longer be read.
	From uint64
	// Part: only changes of keys of this part.
	Part Part
	// Where: only changes of entries of which all of these hold, after the change, or before it where they are gone.
	Where []Criterion
	// Only events of this kind, put or delete.
	Only EventKind
	// Prev brings the entry as it was before each change.
	Prev bool
	// KeysOnly leaves the values out.
	KeysOnly bool
	// Local begins with whatever the asked node has, maybe stale.
	Local bool
	// Heartbeat is how often a node says that it is there while nothing happens: 0.5 to 60 s, default 5 s. One that is silent for three
	// times as long is left for another.
	Heartbeat time.Duration
	// Patience is for how long to try to go on after a break; without it for as long as the context allows.
	Patience time.Duration
}

// Watch goes on by itself, at another node where it has to, until its context ends. Not for several goroutines at once, but for Close.
type Watch struct {
	c         *Client
	ctx       context.Context
	cancel    context.CancelFunc
	target    string
	isInitial bool
	options   WatchOptions

	// position: everything up to this revision was handed out, or is ready to be. 0: nothing is known.
	position uint64
	place    int
	stream   *stream
	// incomplete are events of a revision of which more may come.
	incomplete []Event
	ready      []Event
	isSynced   bool
	// hasInitial: initial entries were handed out that a new stream would bring again.
	hasInitial bool
	closing    sync.Once
}

// Watch watches the keys that begin with the prefix; all keys for an empty one. Without more it shows what changes from now on: from when
// this returns, nothing is missed. It ends with the context, or with [Watch.Close].
func (c *Client) Watch(ctx context.Context, prefix string, options *WatchOptions) (*Watch, error) {
	if options == nil {
		options = &WatchOptions{}
	}
	if err := notNegative(span{"Heartbeat", options.Heartbeat}, span{"Patience", options.Patience}); err != nil {
		return nil, err
	}
	w := &Watch{c: c, options: *options, isInitial: options.Initial, isSynced: !options.Initial}
	if w.options.Heartbeat == 0 {
		w.options.Heartbeat = heartbeatDefault
	}
	var err error
	if w.target, err = w.options.target(prefix); err != nil {
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	if err := w.connect(c.deadline(ctx, &call{})); err != nil {
		w.cancel()
		return nil, err
	}
	return w, nil
}

// target is the URL of the stream, the same for each try.
func (o *WatchOptions) target(prefix string) (string, error) {
	where := ""
	if len(o.Where) > 0 {
		text, err := requestText(o.Where)
		if err != nil {
			return "", err
		}
		where = string(text)
	}
	if prefix != "" && (o.Key != "" || o.Start != "" || o.End != "") {
		return "", invalid("a watch is of a prefix, a key, or a range")
	}
	query := []string{"prefix", prefix, "key", o.Key, "start", o.Start, "end", o.End, "where", where, "events", string(o.Only),
		"prev", flag(o.Prev), "keys_only", flag(o.KeysOnly), "consistency", string(Freshness{Local: o.Local}.consistency()),
		"initial", flag(o.Initial), "from", number(o.From), "heartbeat_ms", strconv.FormatUint(milliseconds(o.Heartbeat), 10)}
	full := target("/v1/watch", append(query, o.Part.query()...)...)
	if prefix == "" && o.Key == "" && o.Start == "" && o.End == "" {
		full += "&prefix="
	}
	return full, nil
}

// Close ends the watch. Next then fails, also where it waits.
func (w *Watch) Close() { w.closing.Do(w.cancel) }

// Revision is that up to which everything was handed out by Next, or will be next. A new watch From the one after it goes on where this one
// is, with the same keys and filters; 0 before all initial entries came.
func (w *Watch) Revision() uint64 { return w.position }

// HasMore says whether Next has something at hand: the rest of a revision is, once its first event was handed out.
func (w *Watch) HasMore() bool { return len(w.ready) > 0 }

// Next is the next event. Breaks are gone over, so this fails only where it makes no sense to go on: with [ErrCompacted] where what follows is
// lost to this watch, and a new one with Initial is the way out; once Patience is at its end; or when the context ends.
func (w *Watch) Next() (Event, error) {
	for {
		event, isEvent, err := w.step()
		if err != nil || isEvent {
			return event, err
		}
	}
}

// Events are those of Next until the first error, which is the last of them; the end of the context is none. The watch is closed when the
// loop ends.
func (w *Watch) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer w.Close()
		for {
			event, err := w.Next()
			if w.ctx.Err() != nil {
				return
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// step is Next, where something else may happen too, after which Revision may be another.
func (w *Watch) step() (Event, bool, error) {
	if event, ok := w.pop(); ok {
		return event, true, nil
	}
	if err := w.ctx.Err(); err != nil {
		w.leave()
		return Event{}, false, context.Cause(w.ctx)
	}
	if w.stream == nil {
		var until limit
		if w.options.Patience > 0 {
			until = w.c.clock.after(w.options.Patience)
		}
		return Event{}, false, w.connect(until)
	}
	got, err := w.stream.next(w.options.Heartbeat * silentHeartbeatsMax)
	switch {
	case err == nil:
		err = w.take(got)
	case w.ctx.Err() != nil:
		w.leave()
		return Event{}, false, context.Cause(w.ctx)
	default:
		w.leave()
		w.c.nodeFailed(w.place)
		err = nil
	}
	event, ok := w.pop()
	if err != nil {
		return Event{}, false, err
	}
	return event, ok, nil
}

func (w *Watch) pop() (Event, bool) {
	if len(w.ready) == 0 {
		return Event{}, false
	}
	event := w.ready[0]
	w.ready = w.ready[1:]
	return event, true
}

// leave leaves a stream that is of no more use. What did not come whole comes again.
func (w *Watch) leave() {
	if w.stream != nil {
		w.stream.close()
	}
	w.stream, w.incomplete = nil, nil
}

// connect opens a stream that goes on from where the watch is. The first stream begins as its URL says.
func (w *Watch) connect(until limit) error {
	wanted := &call{method: "GET", target: w.target, intent: intentRead, preference: preferAny}
	if w.isSynced && w.position > 0 {
		wanted.set("Last-Event-ID", strconv.FormatUint(w.position, 10))
	}
	place, opened, err := w.c.openStream(w.ctx, wanted, eventStreamType, until)
	if err != nil {
		return err
	}
	if !w.isSynced && w.hasInitial {
		w.hasInitial = false
		w.ready = append(w.ready, Event{Kind: EventRestarted})
	}
	if w.isSynced && w.position == 0 {
		if w.options.From > 0 {
			w.position = w.options.From - 1
		} else if revision, err := strconv.ParseUint(opened.header.Get("Quorate-Revision"), 10, 64); err == nil {
			w.position = revision
		}
	}
	w.place, w.stream = place, opened
	return nil
}

func (w *Watch) take(got message) error {
	switch got.name {
	case "put", "delete":
		return w.takeChange(got)
	case "synced":
		var synced api.WatchProgress
		if err := w.read(got, &synced); err != nil {
			return err
		}
		w.position, w.isSynced = synced.Revision, true
		w.ready = append(w.ready, Event{Kind: EventSynced, Revision: synced.Revision})
	case "progress":
		var progress api.WatchProgress
		if err := w.read(got, &progress); err != nil {
			return err
		}
		w.position = max(w.position, progress.Revision)
		// A stream may go on for days without any call.
		w.c.learn(w.place, leaderHint{})
	case "end":
		var end api.WatchEnd
		if err := w.read(got, &end); err != nil {
			return err
		}
		w.leave()
		w.c.nodeFailed(w.place)
		return endError(end)
	}
	// Anything else is of a later version.
	return nil
}

func (w *Watch) takeChange(got message) error {
	var change api.WatchEvent
	if err := w.read(got, &change); err != nil {
		return err
	}
	event := Event{
		Kind: EventKind(change.Type), Revision: change.Revision, Key: change.Key, Entry: change.Entry, Prev: change.Prev,
		Initial: change.Initial, Cause: change.Cause,
	}
	if change.Initial {
		w.hasInitial = true
		w.ready = append(w.ready, event)
		return nil
	}
	w.incomplete = append(w.incomplete, event)
	if got.id != "" {
		w.ready = append(w.ready, w.incomplete...)
		w.incomplete, w.position = nil, change.Revision
	}
	return nil
}

// read is the JSON of a message. What cannot be read ends the stream, not the watch; the caller is told.
func (w *Watch) read(got message, into any) error {
	if err := json.Unmarshal([]byte(got.data), into); err != nil {
		address := w.stream.address
		w.leave()
		return localError(CodeProtocol, err, "%s: the event `%s` of a watch is not what it should be: %v", address, got.name, err)
	}
	return nil
}

// endError says why it makes no sense to go on; nil where another node may serve it.
func endError(end api.WatchEnd) error {
	switch end.Code {
	case api.WatchEndCodeCompacted, api.WatchEndCodePermissionDenied, api.WatchEndCodeUnauthenticated, api.WatchEndCodeTooDear:
		e := localError(api.ErrorCode(end.Code), nil, "%s", end.Detail)
		e.OldestRevision, e.Retry = end.OldestRevision, api.RetryAfterReading
		return e
	}
	return nil
}
