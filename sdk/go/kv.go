package quorate

// Operations on single entries: the public shape of reads and writes. Sends each as one operation, which every node takes.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"quorate.dev/go/api"
)

const (
	// noEntry is what no entry ever has.
	noEntry Cas = "0"
	// changePause is the pause between two looks at an entry whose path leads elsewhere.
	changePause = 250 * time.Millisecond
)

// Entry is a key, its value, and what is known of it.
type Entry = api.EntryView

// Written is the answer to a write.
type Written = api.WriteAnswer

// Cas is the token of a version of an entry: opaque, never valid twice.
type Cas = api.Cas

// Criterion is a condition on an entry: on a field of its document, or on metadata such as `$version`. Made by [Where], [All], [Any] and [Not].
type Criterion = api.Criterion

// Guarded is what a write may be guarded by: a [Lock], a [Leadership], or an [api.Guard] from elsewhere. The write is applied only while
// it holds, which the cluster decides as it applies it; else it fails with [ErrGuardFailed].
type Guarded interface{ Guard() api.Guard }

// Where is the condition that a field, by dotted path or JSON pointer, is so: `eq neq lt lte gt gte in nin between exists nexists contains
// ncontains starts ends like`. Without a value for `exists` and `nexists`. Beside `$key` a string may be any bytes, as keys are.
func Where(field string, op api.Operator, value ...any) Criterion {
	c := Criterion{Field: field, Op: op}
	if len(value) == 1 {
		c.Value = value[0]
	} else if len(value) > 1 {
		c.Value = value
	}
	if c.Value == nil && len(value) > 0 {
		c.Value = jsonNull
	}
	if field == "$key" {
		c.Value = keyValue(c.Value)
	}
	return c
}

// keyValue is what a key is compared with: text, or the bytes of a key that is none.
func keyValue(value any) any {
	switch of := value.(type) {
	case string:
		if !utf8.ValidString(of) {
			return keyValue([]byte(of))
		}
	case []byte:
		return map[string][]byte{"base64": of}
	case []string:
		out := make([]any, len(of))
		for n, one := range of {
			out[n] = keyValue(one)
		}
		return out
	case []any:
		out := make([]any, len(of))
		for n, one := range of {
			out[n] = keyValue(one)
		}
		return out
	}
	return value
}

// All holds where all of these do.
func All(criteria ...Criterion) Criterion { return Criterion{All: criteria} }

// Any holds where one of these does.
func Any(criteria ...Criterion) Criterion { return Criterion{Any: criteria} }

// Not holds where this does not.
func Not(criterion Criterion) Criterion { return Criterion{Not: &criterion} }

// Freshness says how fresh a read is. The zero value is linearizable: it sees every write that was acknowledged before.
type Freshness struct {
	// Local takes whatever the asked node has: fast, maybe stale.
	Local bool
	// MinRevision waits until the asked node has this revision, and asks no other.
	MinRevision uint64
}

func (f Freshness) isLinearizable() bool { return !f.Local && f.MinRevision == 0 }

func (f Freshness) consistency() api.ReadConsistency {
	if f.Local {
		return api.ReadConsistencyLocal
	}
	return ""
}

// ReadOptions refine a read of one entry.
type ReadOptions struct {
	Freshness
	// Revision reads the entry as it was then.
	Revision uint64
}

// Get reads an entry. Fails with [ErrNotFound] where there is none: it never gives nil without an error.
func (c *Client) Get(ctx context.Context, key string, options *ReadOptions) (*Entry, error) {
	if options == nil || (*options == ReadOptions{}) {
		return fetch[Entry](ctx, c, c.queryCall("/v1/ops", api.Op{Op: api.OpKindGet, Key: key}).of("Key", key))
	}
	path, err := keyPath(key)
	if err != nil {
		return nil, err
	}
	if isOftenChanged(key) {
		return c.getListed(ctx, key, &ListOptions{Freshness: options.Freshness, Revision: options.Revision})
	}
	wanted := c.readCall(target(path, "revision", number(options.Revision), "consistency", string(options.consistency()),
		"min_revision", number(options.MinRevision)))
	if !options.isLinearizable() {
		wanted.preference = preferAny
	}
	return fetch[Entry](ctx, c, wanted)
}

// getListed reads an entry whose key is no part of a path: as all there are from it on to the next possible key.
func (c *Client) getListed(ctx context.Context, key string, options *ListOptions) (*Entry, error) {
	options.Start, options.End, options.Limit = key, key+"\x00", 1
	page, err := c.ListPage(ctx, "", "", options)
	if err != nil {
		return nil, err
	}
	if len(page.Entries) == 0 {
		e := localError(api.ErrorCodeNotFound, nil, "there is no entry `%s`", key)
		e.Status, e.Retry = http.StatusNotFound, api.RetryAfterReading
		return nil, e
	}
	entry := &page.Entries[0]
	entry.Revision, entry.Index = page.Revision, page.Index
	return entry, nil
}

// Exists says whether there is an entry, without its value being sent.
func (c *Client) Exists(ctx context.Context, key string) (bool, error) {
	path, err := keyPath(key)
	if err != nil {
		return false, err
	}
	if isOftenChanged(key) {
		_, err = c.getListed(ctx, key, &ListOptions{KeysOnly: true})
		return err == nil, ignoreMissing(err)
	}
	wanted := c.readCall(path)
	wanted.method = http.MethodHead
	got, err := c.send(ctx, wanted)
	if errors.Is(err, ErrProtocol) {
		// A refusal without a body, as HEAD has it, does not say why. A read does.
		_, err = c.Get(ctx, key, nil)
		return err == nil, ignoreMissing(err)
	}
	if err != nil {
		return false, err
	}
	return got.status != http.StatusNotFound, nil
}

func ignoreMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

// WaitForChange waits, up to a minute, for the entry to differ from what is known of it: its cas, or none for no such entry. Gives nil
// where it is as it was known. Fails with [ErrNotFound] where the entry is gone.
func (c *Client) WaitForChange(ctx context.Context, key string, known Cas, wait time.Duration) (*Entry, error) {
	path, err := keyPath(key)
	if err != nil {
		return nil, err
	}
	if err := notNegative(span{"wait", wait}); err != nil {
		return nil, err
	}
	if known == "" {
		known = noEntry
	}
	wanted := c.readCall(target(path, "wait_ms", strconv.FormatUint(milliseconds(wait), 10))).set("If-None-Match", quoted(known))
	wanted.hold = wait
	until := time.Now().Add(wait)
	got, err := c.send(ctx, wanted)
	if isUnnamed := isMissing(err) || (err == nil && got.status == http.StatusNotModified); isUnnamed && isOftenChanged(key) {
		// Neither answer names a key to compare: a proxy may have asked for another.
		return c.lookForChange(ctx, key, known, until)
	}
	if err != nil || got.status == http.StatusNotModified {
		return nil, err
	}
	entry := new(Entry)
	if err := wanted.decode(got.status, got.body, entry); err != nil {
		return nil, err
	}
	return entry, nil
}

// lookForChange tells what the entry is against what is known of it. Looks again while that is the same and there is time.
func (c *Client) lookForChange(ctx context.Context, key string, known Cas, until time.Time) (*Entry, error) {
	for {
		entry, err := c.Get(ctx, key, nil)
		isSame := (isMissing(err) && known == noEntry) || (err == nil && entry.Cas == known)
		if !isSame {
			return entry, err
		}
		left := time.Until(until)
		if left <= 0 {
			return nil, nil
		}
		if err := sleep(ctx, min(left, changePause)); err != nil {
			return nil, localError(api.ErrorCodeTimeout, err, "the wait for a change of `%s` was given up: %v", key, err)
		}
	}
}

// keyPath is the path of an entry. Its key may be any bytes.
func keyPath(key string) (string, error) {
	if key == "" {
		return "", invalid("a key has at least one byte")
	}
	return "/v1/kv/" + segment(key), nil
}

// WriteOptions refine a write of one entry.
type WriteOptions struct {
	// Cas: only while the entry has this token; else it fails with [ErrCasMismatch], which brings the entry as it is.
	Cas Cas
	// If: only while all of these hold of the entry; else it fails with [ErrConditionNotMet].
	If []Criterion
	// TTL is how long the entry lives from now on, in milliseconds rounded up. Without it, which is 0, a put makes an entry that stays, and a
	// patch leaves the time as it was; a negative one is refused. A time that is reckoned, such as time.Until of a deadline, is to be looked
	// at before: 0 says that it is over, and is taken for none.
	TTL time.Duration
	// Session is the id of a session that the entry goes with.
	Session string
	// Guard: only while this lock or leadership holds.
	Guard Guarded
	// Prev brings the entry as it was before.
	Prev bool
	// DryRun says what the write would do, and writes nothing.
	DryRun bool
	// Wait is how long to wait, up to a minute, while somebody else holds the lock of the entry; for LockEntry and GetAndLock.
	Wait time.Duration
	// RequestID repeats a write whose outcome stayed unknown; without it the write has a new one.
	RequestID string
}

// Put creates or overwrites an entry; with a Cas it replaces that version. A []byte is stored as its bytes, a [json.RawMessage] as it is,
// anything else as JSON.
func (c *Client) Put(ctx context.Context, key string, value any, options *WriteOptions) (*Written, error) {
	return c.write(ctx, OpPut(key, value, options), options)
}

// Insert creates an entry. Fails with [ErrAlreadyExists], which brings the entry that is there.
func (c *Client) Insert(ctx context.Context, key string, value any, options *WriteOptions) (*Written, error) {
	return c.write(ctx, OpInsert(key, value, options), options)
}

// Replace overwrites an entry. Fails with [ErrNotFound] where there is none.
func (c *Client) Replace(ctx context.Context, key string, value any, options *WriteOptions) (*Written, error) {
	return c.write(ctx, OpReplace(key, value, options), options)
}

// Patch changes parts of a document. The patch is a merge patch (RFC 7396, an object), a JSON Patch (RFC 6902), or a list of operators as
// [Inc] and the others make them. Fails with [ErrNotFound].
func (c *Client) Patch(ctx context.Context, key string, patch any, options *WriteOptions) (*Written, error) {
	return c.write(ctx, OpPatch(key, patch, options), options)
}

// Remove deletes an entry. Fails with [ErrNotFound].
func (c *Client) Remove(ctx context.Context, key string, options *WriteOptions) (*Written, error) {
	return c.write(ctx, OpRemove(key, options), options)
}

// Touch sets the time to live from now, 0 for ever, and changes nothing else. Fails with [ErrNotFound].
func (c *Client) Touch(ctx context.Context, key string, ttl time.Duration, options *WriteOptions) (*Written, error) {
	return c.write(ctx, OpTouch(key, ttl, options), options)
}

// GetAndTouch reads an entry and sets its time to live in one step. Fails with [ErrNotFound].
func (c *Client) GetAndTouch(ctx context.Context, key string, ttl time.Duration, options *WriteOptions) (*Entry, error) {
	op := newOp(api.OpKindGetAndTouch, key, options).timed(span{"ttl", ttl})
	op.op.TTLMs = someMillis(ttl)
	return fetch[Entry](ctx, c, op.call(options))
}

// LockEntry locks an entry, which is a part of it and nothing else than [Session.Lock]: for this time, at most 30 s (15 s for 0 or more),
// only writes with the Cas of the answer are applied, and the first of them ends the lock. Fails with [ErrLocked] while somebody else
// holds it, at once or after options.Wait, and with [ErrNotFound].
func (c *Client) LockEntry(ctx context.Context, key string, hold time.Duration, options *WriteOptions) (*Written, error) {
	return c.write(ctx, OpLockEntry(key, hold, options), options)
}

// GetAndLock reads an entry and locks it in one step, as [Client.LockEntry] does: the Cas of the entry is the key to the lock.
func (c *Client) GetAndLock(ctx context.Context, key string, hold time.Duration, options *WriteOptions) (*Entry, error) {
	op := newOp(api.OpKindGetAndLock, key, options).timed(span{"hold", hold})
	op.op.LockMs = someMillis(hold)
	return fetch[Entry](ctx, c, op.call(options))
}

// ExtendEntryLock lets the lock of an entry hold for this time from now; the cas is what locking answered. Fails with [ErrLocked] if that is
// not the key, and with [ErrNotLockHolder] if the lock has ended.
func (c *Client) ExtendEntryLock(ctx context.Context, key string, cas Cas, hold time.Duration, options *WriteOptions) (*Written, error) {
	op := newOp(api.OpKindExtend, key, options).timed(span{"hold", hold})
	op.op.Cas, op.op.LockMs = cas, someMillis(hold)
	return c.write(ctx, op, options)
}

// UnlockEntry ends such a lock without writing. Fails as [Client.ExtendEntryLock] does.
func (c *Client) UnlockEntry(ctx context.Context, key string, cas Cas, options *WriteOptions) (*Written, error) {
	op := newOp(api.OpKindUnlock, key, options)
	op.op.Cas = cas
	return c.write(ctx, op, options)
}

func (c *Client) write(ctx context.Context, op Op, options *WriteOptions) (*Written, error) {
	return fetch[Written](ctx, c, op.call(options))
}

// Doc is an entry whose value was decoded.
type Doc[T any] struct {
	// Value is that of the entry.
	Value T
	// Entry has the rest: cas, revisions, time to live.
	*Entry
}

// MarshalJSON writes the entry as nodes do, with the value as it is now, and not as it was when it was read.
func (d Doc[T]) MarshalJSON() ([]byte, error) {
	var entry Entry
	if d.Entry != nil {
		entry = *d.Entry
	}
	var err error
	if entry.Value, err = json.Marshal(d.Value); err != nil {
		return nil, err
	}
	return json.Marshal(entry)
}

// UnmarshalJSON reads what MarshalJSON writes, and what a node answers.
func (d *Doc[T]) UnmarshalJSON(text []byte) error {
	entry := new(Entry)
	if err := json.Unmarshal(text, entry); err != nil {
		return err
	}
	read, err := Decode[T](entry)
	if err != nil {
		return err
	}
	*d = *read
	return nil
}

// Get reads an entry and decodes its value, numbers of an any as [json.Number]. Fails with [ErrNotFound] where there is none, and with [ErrDecode] where the value is something
// else than a T.
func Get[T any](ctx context.Context, c *Client, key string, options *ReadOptions) (*Doc[T], error) {
	entry, err := c.Get(ctx, key, options)
	if err != nil {
		return nil, err
	}
	return Decode[T](entry)
}

// Decode is the entry with its value decoded.
func Decode[T any](entry *Entry) (*Doc[T], error) {
	doc := &Doc[T]{Entry: entry}
	if err := entry.Decode(&doc.Value); err != nil {
		return nil, localError(CodeDecode, err, "%v", err)
	}
	return doc, nil
}

// Op is an operation as a part of a bulk or a transaction.
type Op struct {
	op  api.Op
	err error
}

func newOp(kind api.OpKind, key string, options *WriteOptions) Op {
	op := Op{op: api.Op{Op: kind, Key: key}}
	if key == "" {
		op.err = invalid("a key has at least one character")
	}
	if options == nil {
		return op
	}
	op = op.timed(span{"TTL", options.TTL}, span{"Wait", options.Wait})
	op.op.Cas, op.op.If, op.op.Session = options.Cas, options.If, options.Session
	op.op.Prev, op.op.DryRun = options.Prev, options.DryRun
	op.op.TTLMs, op.op.WaitMs = optionalMillis(options.TTL), optionalMillis(options.Wait)
	op.op.Guard = guardOf(options.Guard)
	return op
}

// timed refuses times that are none, where nothing else is wrong yet.
func (o Op) timed(spans ...span) Op {
	if err := notNegative(spans...); o.err == nil {
		o.err = err
	}
	return o
}

func guardOf(guarded Guarded) *api.Guard {
	if guarded == nil {
		return nil
	}
	guard := guarded.Guard()
	return &guard
}

func (o Op) valued(value any) Op {
	text, bytes, err := valueOf(value)
	if o.err == nil {
		o.err = err
	}
	if o.op.Value = text; bytes != nil {
		o.op.ValueBase64 = &bytes
	}
	return o
}

// OpGet reads an entry; for transactions only.
func OpGet(key string) Op { return newOp(api.OpKindGet, key, nil) }

// OpPut is [Client.Put] as a part.
func OpPut(key string, value any, options *WriteOptions) Op {
	op := newOp(api.OpKindUpsert, key, options).valued(value)
	if op.op.Cas != "" {
		op.op.Op = api.OpKindReplace
	}
	return op
}

// OpInsert is [Client.Insert] as a part; a bulk skips it where there is an entry.
func OpInsert(key string, value any, options *WriteOptions) Op {
	return newOp(api.OpKindInsert, key, options).valued(value)
}

// OpReplace is [Client.Replace] as a part.
func OpReplace(key string, value any, options *WriteOptions) Op {
	return newOp(api.OpKindReplace, key, options).valued(value)
}

// OpPatch is [Client.Patch] as a part.
func OpPatch(key string, patch any, options *WriteOptions) Op {
	op := newOp(api.OpKindUpdate, key, options)
	text, bytes, err := valueOf(patch)
	if bytes != nil {
		err = localError(CodeDecode, nil, "a patch is JSON")
	}
	if op.op.Patch = text; op.err == nil {
		op.err = err
	}
	return op
}

// OpRemove is [Client.Remove] as a part.
func OpRemove(key string, options *WriteOptions) Op { return newOp(api.OpKindRemove, key, options) }

// OpTouch is [Client.Touch] as a part.
func OpTouch(key string, ttl time.Duration, options *WriteOptions) Op {
	op := newOp(api.OpKindTouch, key, options).timed(span{"ttl", ttl})
	op.op.TTLMs = someMillis(ttl)
	return op
}

// OpLockEntry is [Client.LockEntry] as a part.
func OpLockEntry(key string, hold time.Duration, options *WriteOptions) Op {
	op := newOp(api.OpKindLock, key, options).timed(span{"hold", hold})
	op.op.LockMs = someMillis(hold)
	return op
}

// call of the operation alone.
func (o Op) call(options *WriteOptions) *call {
	id := ""
	if options != nil {
		id = options.RequestID
	}
	wanted := writeCall(http.MethodPost, "/v1/ops", id, o.op)
	if o.err != nil {
		wanted.err = o.err
	}
	wanted.of("Key", o.op.Key)
	if o.op.WaitMs != nil {
		wanted.hold = millis(*o.op.WaitMs)
	}
	return wanted
}

func ops(parts []Op) ([]api.Op, error) {
	all := make([]api.Op, len(parts))
	for n, part := range parts {
		if part.err != nil {
			return nil, fmt.Errorf("operation %d: %w", n, part.err)
		}
		all[n] = part.op
	}
	return all, nil
}
