package quorate

// Many entries read at once: listings, finds, counts, and what an entry was.

import (
	"context"
	"iter"
	"strconv"

	"quorate.dev/go/api"
)

// ListOptions refine a listing.
type ListOptions struct {
	Freshness
	// Start and End list the keys from Start, inclusive, to End, exclusive, instead of a prefix, which is then empty.
	Start, End string
	// Limit is most entries of a page, up to 1,000. Default 100 of a page, 1,000 where pages are fetched one after the other.
	Limit int
	// Revision lists the entries as they were then.
	Revision uint64
	// KeysOnly leaves the values out.
	KeysOnly bool
	// Sizes says how many bytes each value has ([api.EntryView.ValueBytes]), also where KeysOnly leaves the values out.
	Sizes bool
	// Reverse goes from the end backwards.
	Reverse bool
	// Part: only the keys of this part. A page looks at as many entries as without, and shows those of the part.
	Part Part
}

// Part is one of several parts of all keys: what workers that share a prefix list and watch, each its own. Nodes choose by a hash of the key:
// which part a key is in never changes, and is the same for listings, watches and mirrors. The zero value stands for all keys.
type Part struct {
	// Index of the part, from 0.
	Index int
	// Of so many parts, up to 1,024.
	Of int
}

// query of a part; a node says what is wrong with it.
func (p Part) query() []string {
	if p == (Part{}) {
		return nil
	}
	return []string{"part", strconv.Itoa(p.Index), "of", strconv.Itoa(p.Of)}
}

// List gives the entries whose keys begin with the prefix, all of them for an empty one, in the order of keys. Pages are fetched one by one as
// the loop goes on, and show the same revision. The last is the first error.
func (c *Client) List(ctx context.Context, prefix string, options *ListOptions) iter.Seq2[*Entry, error] {
	own := ListOptions{}
	if options != nil {
		own = *options
	}
	if own.Limit == 0 {
		own.Limit = 1000
	}
	page := func(cursor string) (*api.ListAnswer, error) { return c.ListPage(ctx, prefix, cursor, &own) }
	return pages(page, func(a *api.ListAnswer) string { return a.Cursor }, entriesOf)
}

func entriesOf(a *api.ListAnswer) []*Entry { return pointers(a.Entries) }

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for n := range items {
		all[n] = &items[n]
	}
	return all
}

// ListPage is one page of [Client.List]: the first, or the one after that which ended with the cursor.
func (c *Client) ListPage(ctx context.Context, prefix, cursor string, options *ListOptions) (*api.ListAnswer, error) {
	return c.list(ctx, prefix, cursor, options, false)
}

// Count says how many entries have the prefix, without fetching any.
func (c *Client) Count(ctx context.Context, prefix string, options *ListOptions) (uint64, error) {
	answer, err := c.list(ctx, prefix, "", options, true)
	if err != nil {
		return 0, err
	}
	return answer.Count, nil
}

func (c *Client) list(ctx context.Context, prefix, cursor string, options *ListOptions, countOnly bool) (*api.ListAnswer, error) {
	if options == nil {
		options = &ListOptions{}
	}
	query := []string{
		"limit", number(options.Limit), "keys_only", flag(options.KeysOnly), "sizes", flag(options.Sizes), "count_only", flag(countOnly),
	}
	if cursor != "" {
		// It stands for the rest.
		query = append(query, "cursor", cursor, "consistency", string(options.consistency()))
	} else {
		query = append(query, "prefix", prefix, "start", options.Start, "end", options.End, "reverse", flag(options.Reverse),
			"revision", number(options.Revision), "consistency", string(options.consistency()), "min_revision", number(options.MinRevision))
		query = append(query, options.Part.query()...)
	}
	wanted := c.readCall(target("/v1/kv", query...))
	if !options.isLinearizable() {
		wanted.preference = preferAny
	}
	return fetch[api.ListAnswer](ctx, c, wanted)
}

// FindOptions refine a find.
type FindOptions struct {
	Freshness
	// Where: only entries of which all of these hold.
	Where []Criterion
	// OrderBy are fields, `-` before one for the greatest first; by key without any.
	OrderBy []string
	// Limit is most entries of a page.
	Limit int
	// Fields gives only these of each document.
	Fields []string
	// KeysOnly leaves the values out.
	KeysOnly bool
	// Revision looks at the entries as they were then.
	Revision uint64
}

// Find gives the entries with the prefix of which something holds. Pages are fetched one by one as the loop goes on, and show the same
// revision. The last is the first error.
func (c *Client) Find(ctx context.Context, prefix string, options *FindOptions) iter.Seq2[*Entry, error] {
	page := func(cursor string) (*api.FindAnswer, error) { return c.FindPage(ctx, prefix, cursor, options) }
	return pages(page, func(a *api.FindAnswer) string { return a.Cursor }, func(a *api.FindAnswer) []*Entry { return pointers(a.Entries) })
}

// FindPage is one page of [Client.Find]: the first, or the one after that which ended with the cursor.
func (c *Client) FindPage(ctx context.Context, prefix, cursor string, options *FindOptions) (*api.FindAnswer, error) {
	if options == nil {
		options = &FindOptions{}
	}
	wanted := c.queryCall("/v1/find", api.FindRequest{
		Prefix: prefix, Cursor: cursor, Where: options.Where, OrderBy: options.OrderBy, Limit: options.Limit, Fields: options.Fields,
		KeysOnly: options.KeysOnly, Revision: options.Revision, Consistency: options.consistency(), MinRevision: options.MinRevision,
	})
	if !options.isLinearizable() {
		wanted.preference = preferAny
	}
	return fetch[api.FindAnswer](ctx, c, wanted)
}

// CountWhere says of how many entries with the prefix all of these hold.
func (c *Client) CountWhere(ctx context.Context, prefix string, where ...Criterion) (uint64, error) {
	total := uint64(0)
	for cursor := ""; ; {
		body := api.CountRequest{Prefix: prefix, Where: where, Cursor: cursor}
		answer, err := fetch[api.CountAnswer](ctx, c, c.queryCall("/v1/count", body))
		if err != nil {
			return 0, err
		}
		total += answer.Count
		if cursor = answer.Cursor; cursor == "" {
			return total, nil
		}
	}
}

// VersionOf is what an entry was from one change to the next.
type VersionOf struct {
	// Change says who changed it, and when.
	Change api.AuditView
	// Entry is as it was after that; nil where it was removed.
	Entry *Entry
}

// History gives the versions of an entry, the oldest first, as far back as history was not compacted. The last is the first error.
func (c *Client) History(ctx context.Context, key string) iter.Seq2[*VersionOf, error] {
	return func(yield func(*VersionOf, error) bool) {
		for line, err := range c.Audit(ctx, key, 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			if line.Effect != "changed" && line.Effect != "removed" {
				continue
			}
			version := &VersionOf{Change: *line}
			if line.Effect == "changed" {
				if version.Entry, err = c.Get(ctx, key, &ReadOptions{Revision: line.Revision}); err != nil {
					yield(nil, err)
					return
				}
			}
			if !yield(version, nil) {
				return
			}
		}
	}
}

// Audit gives who changed a key, who tried to, and when, from a revision on; 0 for the oldest that is known. The last is the first error.
func (c *Client) Audit(ctx context.Context, key string, from uint64) iter.Seq2[*api.AuditView, error] {
	return listed(ctx, c, "/v1/audit", func(a *api.AuditAnswer) string { return a.Cursor },
		func(a *api.AuditAnswer) []*api.AuditView { return pointers(a.Lines) }, "key", key, "from", number(from))
}

// RequestOutcome says what became of the write with this request id. Fails with [ErrNotFound] where it was never decided, where its outcome is
// no longer kept (it is for 15 minutes at least), and where it is still on its way and may be decided after this answer.
func (c *Client) RequestOutcome(ctx context.Context, requestID string) (*api.RequestAnswer, error) {
	return get[api.RequestAnswer](ctx, c)(named("/v1/requests/", requestID, "", "a request id"))
}
