package quorate

// Many entries written at once: bulks, transactions, changes of all that match, and claims.

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	"quorate.dev/go/api"
)

// BatchOptions refine a bulk or a transaction.
type BatchOptions struct {
	// DryRun says what would happen, and writes nothing.
	DryRun bool
	// FailuresOnly answers with the items of a bulk that failed only, and the counts.
	FailuresOnly bool
	// RequestID repeats one whose outcome stayed unknown; without it there is a new one.
	RequestID string
}

// Bulk applies or refuses each operation on its own, in order; at most 10,000. An insert that finds its key, and an operation whose If does
// not hold, are skipped; so a bulk of inserts can be repeated.
func (c *Client) Bulk(ctx context.Context, parts []Op, options *BatchOptions) (*api.BulkAnswer, error) {
	if options == nil {
		options = &BatchOptions{}
	}
	all, err := ops(parts)
	if err != nil {
		return nil, err
	}
	wanted := writeCall(http.MethodPost, "/v1/bulk", options.RequestID, api.BulkRequest{Ops: all, DryRun: options.DryRun})
	if options.FailuresOnly {
		wanted.set("Prefer", "return=minimal")
	}
	return fetch[api.BulkAnswer](ctx, c, wanted)
}

// Txn is a transaction: if all checks hold, the steps of Then take effect together, at one revision, otherwise those of Else. Each step sees
// what those before it did; a key may be written once. A check that does not hold is an answer, a step that is refused is an error.
type Txn struct {
	// If are the checks, on any keys.
	If []Check
	// Then are operations and transactions.
	Then []Step
	// Else likewise.
	Else []Step
}

// Check is of one entry, and holds if all that it says does.
type Check struct {
	// Key of the entry.
	Key string
	// Cas: it has this token.
	Cas Cas
	// Exists: it is there.
	Exists bool
	// Absent: it is not.
	Absent bool
	// Where: all of these hold of it.
	Where []Criterion
}

// Step of a transaction: an [Op] or a [Txn].
type Step interface {
	step() (api.TxnStep, error)
}

func (o Op) step() (api.TxnStep, error) { return api.TxnStep{Op: &o.op}, o.err }

func (t Txn) step() (api.TxnStep, error) {
	request, err := t.request()
	return api.TxnStep{Txn: &api.TxnBlock{Op: api.TxnTagTxn, If: request.If, Then: request.Then, Else: request.Else}}, err
}

func (t Txn) request() (*api.TxnRequest, error) {
	request := &api.TxnRequest{}
	for _, check := range t.If {
		view := api.TxnCheck{Key: check.Key, Cas: check.Cas, If: check.Where}
		if check.Exists && check.Absent {
			return nil, invalid("a check of `%s` asks for it to be there and not to be there", check.Key)
		}
		if check.Exists || check.Absent {
			exists := check.Exists
			view.Exists = &exists
		}
		request.If = append(request.If, view)
	}
	var err error
	if request.Then, err = steps(t.Then); err != nil {
		return nil, err
	}
	request.Else, err = steps(t.Else)
	return request, err
}

func steps(all []Step) ([]api.TxnStep, error) {
	var made []api.TxnStep
	for n, one := range all {
		step, err := one.step()
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", n, err)
		}
		made = append(made, step)
	}
	return made, nil
}

// Txn makes a transaction.
func (c *Client) Txn(ctx context.Context, txn Txn, options *BatchOptions) (*api.TxnAnswer, error) {
	if options == nil {
		options = &BatchOptions{}
	}
	request, err := txn.request()
	if err != nil {
		return nil, err
	}
	request.DryRun = options.DryRun
	return fetch[api.TxnAnswer](ctx, c, writeCall(http.MethodPost, "/v1/txn", options.RequestID, request))
}

// WhereOptions refine a change of all that match.
type WhereOptions struct {
	// Where says which entries are meant.
	Where []Criterion
	// If says what must hold of each of them; those of which it does not are skipped and shown.
	If []Criterion
	// Limit is most entries of one request, up to 1,000.
	Limit int
	// TTL is how long the entries live from now on, for a patch.
	TTL time.Duration
	// Guard: only while this lock or leadership holds.
	Guard Guarded
	// Cursor goes on after a part that ended with it.
	Cursor string
	// DryRun says what would happen, and writes nothing.
	DryRun bool
	// RequestID repeats a change whose outcome stayed unknown; without it there is a new one.
	RequestID string
}

func (o *WhereOptions) request(prefix string) (*api.WhereRequest, error) {
	request := &api.WhereRequest{
		Prefix: prefix, Where: o.Where, If: o.If, Limit: o.Limit, TTLMs: optionalMillis(o.TTL), Guard: guardOf(o.Guard), Cursor: o.Cursor,
		DryRun: o.DryRun,
	}
	if request.Where == nil {
		request.Where = []Criterion{}
	}
	return request, notNegative(span{"TTL", o.TTL})
}

// UpdateWhere patches the documents with the prefix that criteria find. One request is one step in the cluster: it looks at 10,000 entries and
// changes 1,000 at most; its answer has a cursor where there is more, which [Parts] goes through.
func (c *Client) UpdateWhere(ctx context.Context, prefix string, patch any, options *WhereOptions) (*api.WhereAnswer, error) {
	if options == nil {
		options = &WhereOptions{}
	}
	request, err := options.request(prefix)
	if err != nil {
		return nil, err
	}
	op := OpPatch("-", patch, nil)
	if op.err != nil {
		return nil, op.err
	}
	request.Patch = op.op.Patch
	return fetch[api.WhereAnswer](ctx, c, writeCall(http.MethodPost, "/v1/update_where", options.RequestID, request))
}

// DeleteWhere removes the entries with the prefix that criteria find, as [Client.UpdateWhere] patches them.
func (c *Client) DeleteWhere(ctx context.Context, prefix string, options *WhereOptions) (*api.WhereAnswer, error) {
	if options == nil {
		options = &WhereOptions{}
	}
	request, err := options.request(prefix)
	if err != nil {
		return nil, err
	}
	return fetch[api.WhereAnswer](ctx, c, writeCall(http.MethodPost, "/v1/delete_where", options.RequestID, request))
}

// Parts makes a change of all that match part by part, each a write of its own, until there is no more. The function is [Client.UpdateWhere]
// or [Client.DeleteWhere] with all but the options. The first part has the request id of the options, the others that and their number, so the
// whole can be repeated. The last is the first error.
func Parts(options *WhereOptions, change func(*WhereOptions) (*api.WhereAnswer, error)) iter.Seq2[*api.WhereAnswer, error] {
	own := WhereOptions{}
	if options != nil {
		own = *options
	}
	first := own.RequestID
	if first == "" {
		first = NewRequestID()
	}
	number := 0
	page := func(cursor string) (*api.WhereAnswer, error) {
		if own.RequestID = first; number > 0 {
			own.RequestID, own.Cursor = fmt.Sprintf("%s-%d", first, number), cursor
		}
		number++
		return change(&own)
	}
	return pages(page, func(a *api.WhereAnswer) string { return a.Cursor }, func(a *api.WhereAnswer) []*api.WhereAnswer {
		return []*api.WhereAnswer{a}
	})
}

// ClaimOptions refine a claim.
type ClaimOptions struct {
	// Where: only documents of which all of these hold.
	Where []Criterion
	// OrderBy are fields, `-` before one for the greatest first; by key without any.
	OrderBy []string
	// Limit is most entries to claim, up to 100; default 1.
	Limit int
	// Hold is how long the locks hold, at most 30 s; 15 s for 0 or more.
	Hold time.Duration
	// Patch changes each entry in the same step.
	Patch any
	// Guard: only while this lock or leadership holds.
	Guard Guarded
	// DryRun says what would be claimed, locks and changes nothing.
	DryRun bool
	// RequestID repeats a claim whose outcome stayed unknown; without it there is a new one.
	RequestID string
}

// Claim finds documents with the prefix that nobody has locked, locks them, and can change them, all in one step: however many claim at once,
// no two get the same one. The Cas of each entry is the key to its lock: remove or write it with that, or give it back with
// [Client.UnlockEntry].
func (c *Client) Claim(ctx context.Context, prefix string, options *ClaimOptions) (*api.ClaimAnswer, error) {
	if options == nil {
		options = &ClaimOptions{}
	}
	if err := notNegative(span{"Hold", options.Hold}); err != nil {
		return nil, err
	}
	request := api.ClaimRequest{
		Prefix: prefix, Where: options.Where, OrderBy: options.OrderBy, Limit: options.Limit, LockMs: optionalMillis(options.Hold),
		Guard: guardOf(options.Guard), DryRun: options.DryRun,
	}
	if options.Patch != nil {
		op := OpPatch("-", options.Patch, nil)
		if op.err != nil {
			return nil, op.err
		}
		request.Patch = op.op.Patch
	}
	return fetch[api.ClaimAnswer](ctx, c, writeCall(http.MethodPost, "/v1/claim", options.RequestID, request))
}
