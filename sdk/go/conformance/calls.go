package main

// The calls of the suite, each by what the client has.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	quorate "quorate.dev/go"
	"quorate.dev/go/api"
	"quorate.dev/go/quoratetest"
)

// args are those of all calls; what a call does not know is refused by its field not being read here.
type args struct {
	Key         string              `json:"key"`
	Value       json.RawMessage     `json:"value"`
	Cas         quorate.Cas         `json:"cas"`
	If          json.RawMessage     `json:"if"`
	Where       []api.Criterion     `json:"where"`
	TTLMs       *uint64             `json:"ttl_ms"`
	Session     string              `json:"session"`
	Guard       *api.Guard          `json:"guard"`
	Prev        bool                `json:"prev"`
	DryRun      bool                `json:"dry_run"`
	RequestID   string              `json:"request_id"`
	Patch       json.RawMessage     `json:"patch"`
	Path        string              `json:"path"`
	By          json.Number         `json:"by"`
	Prefix      string              `json:"prefix"`
	Limit       int                 `json:"limit"`
	KeysOnly    bool                `json:"keys_only"`
	Sizes       bool                `json:"sizes"`
	Reverse     bool                `json:"reverse"`
	Revision    flexible            `json:"revision"`
	Consistency string              `json:"consistency"`
	OrderBy     []string            `json:"order_by"`
	Fields      []string            `json:"fields"`
	Cursor      string              `json:"cursor"`
	Ops         []api.Op            `json:"ops"`
	Then        []api.TxnStep       `json:"then"`
	Else        []api.TxnStep       `json:"else"`
	LockMs      uint64              `json:"lock_ms"`
	WaitMs      *uint64             `json:"wait_ms"`
	Name        string              `json:"name"`
	Count       uint64              `json:"count"`
	Owner       string              `json:"owner"`
	Labels      map[string]string   `json:"labels"`
	Mode        api.LockMode        `json:"mode"`
	Slots       int                 `json:"slots"`
	MaxWaiters  int                 `json:"max_waiters"`
	Election    string              `json:"election"`
	Barrier     string              `json:"barrier"`
	Parties     int                 `json:"parties"`
	Latch       string              `json:"latch"`
	Queue       string              `json:"queue"`
	ID          string              `json:"id"`
	Payload     json.RawMessage     `json:"payload"`
	DelayMs     uint64              `json:"delay_ms"`
	EveryMs     uint64              `json:"every_ms"`
	Cron        string              `json:"cron"`
	Zone        string              `json:"zone"`
	MaxAttempts int                 `json:"max_attempts"`
	Backoff     *api.TaskBackoff    `json:"backoff"`
	KeepMs      uint64              `json:"keep_ms"`
	Replace     bool                `json:"replace"`
	LeaseMs     uint64              `json:"lease_ms"`
	Worker      string              `json:"worker"`
	Token       flexible            `json:"token"`
	Error       string              `json:"error"`
	RetryInMs   uint64              `json:"retry_in_ms"`
	Dead        bool                `json:"dead"`
	Release     bool                `json:"release"`
	Counter     string              `json:"counter"`
	Fail        []string            `json:"fail"`
	Sync        bool                `json:"sync"`
	Rules       api.CollectionRules `json:"rules"`
	From        flexible            `json:"from"`
	Initial     bool                `json:"initial"`
	Events      string              `json:"events"`
	Times       int                 `json:"times"`
	Ms          uint64              `json:"ms"`
	Part        *int                `json:"part"`
	Of          int                 `json:"of"`
	Start       string              `json:"start"`
	End         string              `json:"end"`
	// Of names that are no text.
	KeyBase64    []byte `json:"key_base64"`
	PrefixBase64 []byte `json:"prefix_base64"`
}

// flexible is a whole number, as one or as text.
type flexible uint64

// UnmarshalJSON takes both.
func (f *flexible) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(bytes.Trim(text, `"`), (*uint64)(f))
}

func parseArgs(with any) (*args, error) {
	text, err := json.Marshal(toWire(with))
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	parsed := &args{}
	if err := decoder.Decode(parsed); err != nil {
		return nil, err
	}
	if parsed.KeyBase64 != nil {
		parsed.Key = string(parsed.KeyBase64)
	}
	if parsed.PrefixBase64 != nil {
		parsed.Prefix = string(parsed.PrefixBase64)
	}
	return parsed, nil
}

func millis(ms uint64) time.Duration { return time.Duration(ms) * time.Millisecond }

func optional(ms *uint64, otherwise time.Duration) time.Duration {
	if ms == nil {
		return otherwise
	}
	return millis(*ms)
}

func (a *args) part() quorate.Part {
	if a.Part == nil {
		return quorate.Part{}
	}
	return quorate.Part{Index: *a.Part, Of: a.Of}
}

// waitDefault of a lock and a campaign.
const waitDefault = 10 * time.Second

func (a *args) criteria() ([]api.Criterion, error) {
	var criteria []api.Criterion
	return criteria, a.conditions(&criteria)
}

// conditions reads what stands in `if`, with numbers as they are written.
func (a *args) conditions(into any) error {
	if a.If == nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(a.If))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func (a *args) write() (*quorate.WriteOptions, error) {
	criteria, err := a.criteria()
	options := &quorate.WriteOptions{
		Cas: a.Cas, If: criteria, TTL: optional(a.TTLMs, 0), Session: a.Session, Prev: a.Prev, DryRun: a.DryRun, RequestID: a.RequestID,
		Wait: optional(a.WaitMs, 0),
	}
	if a.Guard != nil {
		options.Guard = a.Guard
	}
	return options, err
}

func (r *runner) start(ctx context.Context, s step, with any) error {
	a, err := parseArgs(with)
	if err != nil {
		return err
	}
	switch s.Start {
	case "watch":
		watch, err := r.client.Watch(r.ctx, a.Prefix, &quorate.WatchOptions{
			Key: a.Key, From: uint64(a.From), Initial: a.Initial, Prev: a.Prev, KeysOnly: a.KeysOnly, Only: quorate.EventKind(a.Events),
			Where: a.Where, Start: a.Start, End: a.End, Part: a.part(),
		})
		if err != nil {
			return err
		}
		watching := &watching{watch: watch, events: make(chan outcome)}
		go watching.pump(r.ctx)
		r.things.add(s.As, watching)
	case "mirror":
		mirror, err := r.client.Mirror(r.ctx, a.Prefix, nil)
		if err != nil {
			return err
		}
		r.things.add(s.As, mirror)
	default:
		return fmt.Errorf("there is nothing to start that is called %s", s.Start)
	}
	return nil
}

// callable is a call of the suite.
type callable func(r *runner, ctx context.Context, s step, a *args) (any, error)

var callables map[string]callable

func init() {
	callables = map[string]callable{}
	for _, some := range []map[string]callable{entryCalls, manyCalls, sessionCalls, taskCalls, otherCalls} {
		for name, one := range some {
			callables[name] = one
		}
	}
}

func (r *runner) call(ctx context.Context, s step, with any) (any, error) {
	one := callables[s.Call]
	if one == nil {
		return nil, fmt.Errorf("there is no call %s", s.Call)
	}
	a, err := parseArgs(with)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Call, err)
	}
	return one(r, ctx, s, a)
}

var entryCalls = map[string]callable{
	"get": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		freshness := quorate.Freshness{Local: a.Consistency == "local"}
		return answered(r.client.Get(ctx, a.Key, &quorate.ReadOptions{Freshness: freshness, Revision: uint64(a.Revision)}))
	},
	"put": writing(func(r *runner, ctx context.Context, a *args, o *quorate.WriteOptions) (*quorate.Written, error) {
		return r.client.Put(ctx, a.Key, a.Value, o)
	}),
	"insert": writing(func(r *runner, ctx context.Context, a *args, o *quorate.WriteOptions) (*quorate.Written, error) {
		return r.client.Insert(ctx, a.Key, a.Value, o)
	}),
	"replace": writing(func(r *runner, ctx context.Context, a *args, o *quorate.WriteOptions) (*quorate.Written, error) {
		return r.client.Replace(ctx, a.Key, a.Value, o)
	}),
	"remove": writing(func(r *runner, ctx context.Context, a *args, o *quorate.WriteOptions) (*quorate.Written, error) {
		return r.client.Remove(ctx, a.Key, o)
	}),
	"patch": writing(func(r *runner, ctx context.Context, a *args, o *quorate.WriteOptions) (*quorate.Written, error) {
		return r.client.Patch(ctx, a.Key, a.Patch, o)
	}),
	"touch": writing(func(r *runner, ctx context.Context, a *args, o *quorate.WriteOptions) (*quorate.Written, error) {
		return r.client.Touch(ctx, a.Key, optional(a.TTLMs, 0), o)
	}),
	"unlock": writing(func(r *runner, ctx context.Context, a *args, _ *quorate.WriteOptions) (*quorate.Written, error) {
		return r.client.UnlockEntry(ctx, a.Key, a.Cas, nil)
	}),
	"increment": writing(func(r *runner, ctx context.Context, a *args, o *quorate.WriteOptions) (*quorate.Written, error) {
		by, err := a.By.Int64()
		if err != nil {
			return nil, err
		}
		return r.client.Increment(ctx, a.Key, a.Path, by, o)
	}),
	"get_and_lock": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		options, err := a.write()
		if err != nil {
			return nil, err
		}
		return answered(r.client.GetAndLock(ctx, a.Key, millis(a.LockMs), options))
	},
	"update": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		by, err := a.By.Int64()
		if err != nil {
			return nil, err
		}
		value, err := r.add(ctx, a.Key, by)
		return map[string]any{"value": value}, err
	},
	"history": func(r *runner, ctx context.Context, _ step, a *args) (any, error) { return r.history(ctx, a.Key) },
	"request": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.RequestOutcome(ctx, a.RequestID))
	},
}

// answered keeps a nil pointer from becoming an answer.
func answered[T any](answer *T, err error) (any, error) {
	if answer == nil {
		return nil, err
	}
	return answer, err
}

func writing(write func(*runner, context.Context, *args, *quorate.WriteOptions) (*quorate.Written, error)) callable {
	return func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		options, err := a.write()
		if err != nil {
			return nil, err
		}
		return answered(write(r, ctx, a, options))
	}
}

// counted is what update works on.
type counted struct {
	N int64 `json:"n"`
}

func (r *runner) add(ctx context.Context, key string, by int64) (*counted, error) {
	updated, err := quorate.Update(ctx, r.client, key, func(current *counted) (*counted, error) {
		if current == nil {
			return &counted{by}, nil
		}
		return &counted{current.N + by}, nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return updated.Value, nil
}

func (r *runner) history(ctx context.Context, key string) (any, error) {
	versions := []any{}
	for version, err := range r.client.History(ctx, key) {
		if err != nil {
			return nil, err
		}
		view := map[string]any{"type": "delete", "revision": fmt.Sprint(version.Change.Revision)}
		if version.Entry != nil {
			view["type"], view["value"] = "put", version.Entry.Value
		}
		versions = append(versions, view)
	}
	return map[string]any{"versions": versions}, nil
}

var manyCalls = map[string]callable{
	"list": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.ListPage(ctx, a.Prefix, a.Cursor, &quorate.ListOptions{
			Limit: a.Limit, KeysOnly: a.KeysOnly, Sizes: a.Sizes, Reverse: a.Reverse, Revision: uint64(a.Revision), Part: a.part(),
		}))
	},
	"list_all": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		keys := []any{}
		for entry, err := range r.client.List(ctx, a.Prefix, &quorate.ListOptions{Limit: a.Limit, Part: a.part()}) {
			if err != nil {
				return nil, err
			}
			keys = append(keys, keyOf(entry.Key))
		}
		return map[string]any{"keys": keys}, nil
	},
	"find": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.FindPage(ctx, a.Prefix, a.Cursor, &quorate.FindOptions{
			Where: a.Where, OrderBy: a.OrderBy, Limit: a.Limit, Fields: a.Fields, KeysOnly: a.KeysOnly, Revision: uint64(a.Revision),
		}))
	},
	"count": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		count, err := r.client.CountWhere(ctx, a.Prefix, a.Where...)
		return map[string]any{"count": count}, err
	},
	"claim": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		options := &quorate.ClaimOptions{Where: a.Where, OrderBy: a.OrderBy, Limit: a.Limit, Hold: millis(a.LockMs), DryRun: a.DryRun, RequestID: a.RequestID}
		if a.Patch != nil {
			options.Patch = a.Patch
		}
		return answered(r.client.Claim(ctx, a.Prefix, options))
	},
	"update_where": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		options, err := a.whereOptions()
		if err != nil {
			return nil, err
		}
		return answered(r.client.UpdateWhere(ctx, a.Prefix, a.Patch, options))
	},
	"delete_where": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		options, err := a.whereOptions()
		if err != nil {
			return nil, err
		}
		return answered(r.client.DeleteWhere(ctx, a.Prefix, options))
	},
	"bulk": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		var parts []quorate.Op
		for _, op := range a.Ops {
			parts = append(parts, opOf(op))
		}
		return answered(r.client.Bulk(ctx, parts, &quorate.BatchOptions{DryRun: a.DryRun, RequestID: a.RequestID}))
	},
	"stream": func(r *runner, ctx context.Context, _ step, a *args) (any, error) { return r.stream(ctx, a), nil },
	"txn": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		var checks []api.TxnCheck
		if err := a.conditions(&checks); err != nil {
			return nil, err
		}
		txn := txnOf(api.TxnBlock{If: checks, Then: a.Then, Else: a.Else})
		return answered(r.client.Txn(ctx, txn, &quorate.BatchOptions{DryRun: a.DryRun, RequestID: a.RequestID}))
	},
}

// stream does the operations, and gives answers and codes in their order.
func (r *runner) stream(ctx context.Context, a *args) any {
	var parts []quorate.Op
	for range max(a.Times, 1) {
		for _, op := range a.Ops {
			parts = append(parts, opOf(op))
		}
	}
	answers, codes, failed := make([]any, len(parts)), make([]any, len(parts)), 0
	for done := range r.client.Stream(ctx, slices.Values(parts)) {
		var refusal *quorate.Error
		switch {
		case errors.As(done.Err, &refusal):
			codes[done.N] = refusal.Code
			failed++
		case done.Entry != nil:
			answers[done.N] = done.Entry
		default:
			answers[done.N] = done.Written
		}
	}
	return map[string]any{"answers": answers, "codes": codes, "failed": failed}
}

func (a *args) whereOptions() (*quorate.WhereOptions, error) {
	criteria, err := a.criteria()
	options := &quorate.WhereOptions{
		Where: a.Where, If: criteria, Limit: a.Limit, TTL: optional(a.TTLMs, 0), Cursor: a.Cursor, DryRun: a.DryRun, RequestID: a.RequestID,
	}
	if a.Guard != nil {
		options.Guard = a.Guard
	}
	return options, err
}

// opOf is an operation as the client makes it.
func opOf(op api.Op) quorate.Op {
	options := &quorate.WriteOptions{
		Cas: op.Cas, If: op.If, TTL: optional(op.TTLMs, 0), Session: op.Session, Prev: op.Prev, RequestID: op.RequestID,
	}
	if op.Guard != nil {
		options.Guard = op.Guard
	}
	switch op.Op {
	case api.OpKindGet:
		return quorate.OpGet(op.Key)
	case api.OpKindInsert:
		return quorate.OpInsert(op.Key, op.Value, options)
	case api.OpKindReplace:
		return quorate.OpReplace(op.Key, op.Value, options)
	case api.OpKindUpdate:
		return quorate.OpPatch(op.Key, op.Patch, options)
	case api.OpKindRemove:
		return quorate.OpRemove(op.Key, options)
	case api.OpKindTouch:
		return quorate.OpTouch(op.Key, optional(op.TTLMs, 0), options)
	case api.OpKindLock:
		return quorate.OpLockEntry(op.Key, optional(op.LockMs, 0), options)
	default:
		return quorate.OpPut(op.Key, op.Value, options)
	}
}

func txnOf(block api.TxnBlock) quorate.Txn {
	var txn quorate.Txn
	for _, check := range block.If {
		txn.If = append(txn.If, quorate.Check{
			Key: check.Key, Cas: check.Cas, Where: check.If,
			Exists: check.Exists != nil && *check.Exists, Absent: check.Exists != nil && !*check.Exists,
		})
	}
	txn.Then, txn.Else = stepsOf(block.Then), stepsOf(block.Else)
	return txn
}

func stepsOf(all []api.TxnStep) []quorate.Step {
	var steps []quorate.Step
	for _, one := range all {
		if one.Txn != nil {
			steps = append(steps, txnOf(*one.Txn))
		} else {
			steps = append(steps, opOf(*one.Op))
		}
	}
	return steps
}

var sessionCalls = map[string]callable{
	"session_open": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		options := &quorate.SessionOptions{TTL: optional(a.TTLMs, 0), Owner: a.Owner, Labels: a.Labels}
		return answered(r.client.CreateSession(ctx, options, ""))
	},
	"session_keep": func(r *runner, ctx context.Context, s step, a *args) (any, error) {
		session, err := r.client.NewSession(ctx, &quorate.SessionOptions{TTL: optional(a.TTLMs, 0), Owner: a.Owner, Labels: a.Labels})
		if err != nil {
			return nil, err
		}
		r.things.add(s.As, session)
		return map[string]any{"session": session.ID()}, nil
	},
	"wall_ahead": func(r *runner, _ context.Context, _ step, a *args) (any, error) {
		quoratetest.SetWallAhead(millis(a.Ms))
		r.atEnd = append(r.atEnd, func() { quoratetest.SetWallAhead(0) })
		return map[string]any{}, nil
	},
	"session_state": func(r *runner, _ context.Context, s step, _ *args) (any, error) {
		session, err := of[*quorate.Session](r.things, s.Of)
		if err != nil {
			return nil, err
		}
		return map[string]any{"state": session.State()}, nil
	},
	"session_end": func(r *runner, ctx context.Context, s step, a *args) (any, error) {
		if s.Of == "" {
			return answered(r.client.EndSession(ctx, a.Session))
		}
		session, err := of[*quorate.Session](r.things, s.Of)
		if err != nil {
			return nil, err
		}
		return map[string]any{"session": session.ID(), "ended": true}, session.End(ctx)
	},
	"lock":     func(r *runner, ctx context.Context, s step, a *args) (any, error) { return r.lock(ctx, s, a, false) },
	"lock_try": func(r *runner, ctx context.Context, s step, a *args) (any, error) { return r.lock(ctx, s, a, true) },
	"unlock_named": func(r *runner, ctx context.Context, s step, _ *args) (any, error) {
		lock, err := of[*quorate.Lock](r.things, s.Of)
		if err != nil {
			return nil, err
		}
		return map[string]any{"released": true}, lock.Unlock(ctx)
	},
	"guarded_put": func(r *runner, ctx context.Context, s step, a *args) (any, error) {
		guarded, err := of[quorate.Guarded](r.things, s.Of)
		if err != nil {
			return nil, err
		}
		return answered(r.client.Put(ctx, a.Key, a.Value, &quorate.WriteOptions{Guard: guarded}))
	},
	"campaign": func(r *runner, ctx context.Context, s step, a *args) (any, error) {
		session, err := of[*quorate.Session](r.things, s.Of)
		if err != nil {
			return nil, err
		}
		options := &quorate.CampaignOptions{Wait: optional(a.WaitMs, waitDefault)}
		if a.Value != nil {
			options.Value = a.Value
		}
		leadership, err := session.Campaign(ctx, a.Election, options)
		if err != nil {
			return nil, err
		}
		r.things.add(s.As, leadership)
		return map[string]any{"term": fmt.Sprint(leadership.Guard().Token)}, nil
	},
	"resign": func(r *runner, ctx context.Context, s step, _ *args) (any, error) {
		leadership, err := of[*quorate.Leadership](r.things, s.Of)
		if err != nil {
			return nil, err
		}
		return map[string]any{"resigned": true}, leadership.Resign(ctx)
	},
	"leader": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		leader, err := r.client.Leader(ctx, a.Election)
		return map[string]any{"leader": leader}, err
	},
	"barrier_enter": func(r *runner, ctx context.Context, s step, a *args) (any, error) {
		session, err := of[*quorate.Session](r.things, s.Of)
		if err != nil {
			return nil, err
		}
		return answered(session.EnterBarrier(ctx, a.Barrier, a.Parties, &quorate.BarrierOptions{Wait: optional(a.WaitMs, 0)}))
	},
	"latch_create": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.CreateLatch(ctx, a.Latch, a.Count))
	},
	"latch_count_down": func(r *runner, ctx context.Context, _ step, a *args) (any, error) { return r.countDown(ctx, a) },
	"latch_wait": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.WaitLatch(ctx, a.Latch, optional(a.WaitMs, waitDefault)))
	},
}

func (r *runner) countDown(ctx context.Context, a *args) (any, error) {
	by := uint64(1)
	if a.By != "" {
		n, err := a.By.Int64()
		if err != nil {
			return nil, err
		}
		by = uint64(n)
	}
	return answered(r.client.CountDown(ctx, a.Latch, by))
}

func (r *runner) lock(ctx context.Context, s step, a *args, noWait bool) (any, error) {
	session, err := of[*quorate.Session](r.things, s.Of)
	if err != nil {
		return nil, err
	}
	options := &quorate.LockOptions{
		Shared: a.Mode == api.LockModeShared, Slots: a.Slots, MaxWaiters: a.MaxWaiters, Wait: optional(a.WaitMs, waitDefault),
	}
	take := session.Lock
	if noWait || options.Wait == 0 {
		take = session.TryLock
	}
	lock, err := take(ctx, a.Name, options)
	if err != nil {
		return nil, err
	}
	r.things.add(s.As, lock)
	return map[string]any{"token": fmt.Sprint(lock.Guard().Token)}, nil
}

var taskCalls = map[string]callable{
	"schedule": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.Tasks(a.Queue).Schedule(ctx, a.Payload, &quorate.TaskOptions{
			ID: a.ID, Delay: millis(a.DelayMs), Every: millis(a.EveryMs), Cron: a.Cron, Zone: a.Zone, MaxAttempts: a.MaxAttempts,
			Backoff: a.Backoff, Keep: millis(a.KeepMs), Replace: a.Replace, DryRun: a.DryRun, RequestID: a.RequestID,
		}))
	},
	"task_claim": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		tasks, err := r.client.Tasks(a.Queue).Claim(ctx, &quorate.ClaimTasksOptions{
			Limit: a.Limit, Lease: millis(a.LeaseMs), Wait: optional(a.WaitMs, 0), Worker: a.Worker, Session: a.Session, RequestID: a.RequestID,
		})
		if err != nil {
			return nil, err
		}
		views := []api.TaskClaimed{}
		for _, task := range tasks {
			views = append(views, task.TaskClaimed)
		}
		return map[string]any{"tasks": views, "count": len(views)}, nil
	},
	"task_complete": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.Tasks(a.Queue).Complete(ctx, a.ID, uint64(a.Token), a.RequestID))
	},
	"task_fail": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		failure := api.TaskFail{ID: a.ID, Token: uint64(a.Token), Error: a.Error, Dead: a.Dead, Release: a.Release}
		if a.RetryInMs > 0 {
			failure.RetryInMs = &a.RetryInMs
		}
		return answered(r.client.Tasks(a.Queue).Fail(ctx, failure, a.RequestID))
	},
	"task": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.Tasks(a.Queue).Get(ctx, a.ID))
	},
	"worker": func(r *runner, ctx context.Context, _ step, a *args) (any, error) { return r.work(ctx, a) },
}

// work runs a worker until so many tasks are completed.
func (r *runner) work(ctx context.Context, a *args) (any, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	failed, done := map[string]bool{}, uint64(0)
	handler := func(ctx context.Context, task *quorate.Task) error {
		if a.Counter != "" {
			if _, err := r.add(ctx, a.Counter+"/"+task.ID, 1); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(a.Fail, task.ID) && !failed[task.ID] {
			failed[task.ID] = true
			return errors.New("it fails the first time")
		}
		if done++; done >= a.Count {
			// The last one is completed after the stop.
			stop()
		}
		return nil
	}
	lease := millis(a.LeaseMs)
	report, err := r.client.Tasks(a.Queue).Work(ctx, handler, &quorate.WorkerOptions{Lease: lease})
	return map[string]any{"completed": report.Completed, "failed": report.Failed}, err
}

var otherCalls = map[string]callable{
	"sequence_next": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.NextNumbers(ctx, a.Name, max(a.Count, 1), a.RequestID))
	},
	"mirror_get": func(r *runner, ctx context.Context, s step, a *args) (any, error) {
		mirror, err := r.mirror(ctx, s, a)
		if err != nil {
			return nil, err
		}
		entry := mirror.Get(a.Key)
		if entry == nil {
			return nil, &quorate.Error{Code: api.ErrorCodeNotFound, Applied: api.AppliedNo, Detail: "the mirror has no such entry"}
		}
		return entry, nil
	},
	"mirror_keys": func(r *runner, ctx context.Context, s step, a *args) (any, error) {
		mirror, err := r.mirror(ctx, s, a)
		if err != nil {
			return nil, err
		}
		keys := []any{}
		for _, entry := range mirror.List("") {
			keys = append(keys, keyOf(entry.Key))
		}
		return map[string]any{"keys": keys}, nil
	},
	"members": func(r *runner, ctx context.Context, _ step, _ *args) (any, error) {
		return answered(r.client.Members(ctx))
	},
	"collection_put": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.PutCollection(ctx, a.Name, a.Rules, &quorate.CollectionOptions{Cas: a.Cas}))
	},
	"collection_get": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.Collection(ctx, a.Name))
	},
	"collection_delete": func(r *runner, ctx context.Context, _ step, a *args) (any, error) {
		return answered(r.client.DeleteCollection(ctx, a.Name, nil))
	},
}

func (r *runner) mirror(ctx context.Context, s step, a *args) (*quorate.Mirror, error) {
	mirror, err := of[*quorate.Mirror](r.things, s.Of)
	if err == nil && a.Sync {
		_, err = mirror.Sync(ctx)
	}
	return mirror, err
}
