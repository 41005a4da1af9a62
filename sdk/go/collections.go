package quorate

// Rules of collections, and sequences.

import (
	"context"
	"iter"
	"net/http"

	"quorate.dev/go/api"
)

// CollectionOptions refine a change of the rules of a collection.
type CollectionOptions struct {
	// Cas: only while the rules have this token.
	Cas Cas
	// IfAbsent: only where the collection has none.
	IfAbsent bool
	// RequestID repeats a change whose outcome stayed unknown; without it there is a new one.
	RequestID string
}

// PutCollection declares that what is below the name and a slash has these rules.
func (c *Client) PutCollection(ctx context.Context, name string, rules api.CollectionRules, options *CollectionOptions) (*api.CollectionAnswer, error) {
	wanted, err := collectionCall(http.MethodPut, name, rules, options)
	if err != nil {
		return nil, err
	}
	return fetch[api.CollectionAnswer](ctx, c, wanted)
}

// DeleteCollection takes the rules away; the entries stay. Fails with [ErrNotFound].
func (c *Client) DeleteCollection(ctx context.Context, name string, options *CollectionOptions) (*api.CollectionRemoved, error) {
	wanted, err := collectionCall(http.MethodDelete, name, nil, options)
	if err != nil {
		return nil, err
	}
	return fetch[api.CollectionRemoved](ctx, c, wanted)
}

func collectionCall(method, name string, body any, options *CollectionOptions) (*call, error) {
	path, err := collectionPath(name)
	if err != nil {
		return nil, err
	}
	if options == nil {
		options = &CollectionOptions{}
	}
	wanted := writeCall(method, path, options.RequestID, body)
	if options.Cas != "" {
		wanted.set("If-Match", quoted(options.Cas))
	}
	if options.IfAbsent {
		wanted.set("If-None-Match", "*")
	}
	return wanted, nil
}

func collectionPath(name string) (string, error) {
	return named("/v1/collections/", name, "", "the name of a collection")
}

// Collection gives the rules of a collection and the state of its indexes. Fails with [ErrNotFound].
func (c *Client) Collection(ctx context.Context, name string) (*api.CollectionAnswer, error) {
	return get[api.CollectionAnswer](ctx, c)(collectionPath(name))
}

// Collections gives all that have rules, by name. The last is the first error.
func (c *Client) Collections(ctx context.Context) iter.Seq2[*api.CollectionAnswer, error] {
	return listed(ctx, c, "/v1/collections", func(a *api.CollectionList) string { return a.Cursor },
		func(a *api.CollectionList) []*api.CollectionAnswer { return pointers(a.Collections) })
}

func sequencePath(name string) (string, error) {
	return named("/v1/sequences/", name, "", "the name of a sequence")
}

// Sequence gives the last number that a sequence gave out; 0 where it gave none.
func (c *Client) Sequence(ctx context.Context, name string) (*api.SequenceAnswer, error) {
	return get[api.SequenceAnswer](ctx, c)(sequencePath(name))
}

// NextNumbers takes so many numbers of a sequence, which has no gaps. Without a request id there is a new one.
func (c *Client) NextNumbers(ctx context.Context, name string, count uint64, requestID string) (*api.SequenceNext, error) {
	path, err := sequencePath(name)
	if err != nil {
		return nil, err
	}
	return fetch[api.SequenceNext](ctx, c, writeCall(http.MethodPost, path, requestID, api.SequenceRequest{Count: count}))
}
