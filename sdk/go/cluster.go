package quorate

// Questions to the cluster about itself, and the outcome of requests.

import (
	"context"

	"quorate.dev/go/api"
)

func (c *Client) statusCall() *call {
	return &call{method: "GET", target: "/v1/cluster/status", intent: intentRead, preference: preferAny}
}

// Status is the cluster as one node sees it.
func (c *Client) Status(ctx context.Context) (*api.StatusAnswer, error) {
	return fetch[api.StatusAnswer](ctx, c, c.statusCall())
}
