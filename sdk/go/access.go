package quorate

// Users, roles and tokens.

import (
	"context"
	"iter"
	"net/http"
	"time"

	"quorate.dev/go/api"
)

// WhoAmI says whom the cluster takes this client for, and everything that one may do.
func (c *Client) WhoAmI(ctx context.Context) (*api.SelfAnswer, error) {
	return fetch[api.SelfAnswer](ctx, c, c.readCall("/v1/access/self"))
}

func userPath(name string) (string, error) {
	return named("/v1/access/users/", name, "", "the name of a user")
}

func rolePath(name string) (string, error) {
	return named("/v1/access/roles/", name, "", "the name of a role")
}

// SetUser makes a user, or gives one other roles, which must all exist. Fails with [ErrNotFound].
func (c *Client) SetUser(ctx context.Context, name string, roles ...string) (*api.UserAnswer, error) {
	path, err := userPath(name)
	if err != nil {
		return nil, err
	}
	return fetch[api.UserAnswer](ctx, c, writeCall(http.MethodPut, path, "", api.UserRequest{Roles: append([]string{}, roles...)}))
}

// User gives a user. Fails with [ErrNotFound].
func (c *Client) User(ctx context.Context, name string) (*api.UserAnswer, error) {
	return get[api.UserAnswer](ctx, c)(userPath(name))
}

// RemoveUser removes a user, and its tokens with it. Fails with [ErrNotFound].
func (c *Client) RemoveUser(ctx context.Context, name string) (*api.UserRemoved, error) {
	path, err := userPath(name)
	if err != nil {
		return nil, err
	}
	return fetch[api.UserRemoved](ctx, c, writeCall(http.MethodDelete, path, "", nil))
}

// Users gives all users, by name. The last is the first error.
func (c *Client) Users(ctx context.Context) iter.Seq2[*api.UserAnswer, error] {
	return listed(ctx, c, "/v1/access/users", func(a *api.UserList) string { return a.Cursor },
		func(a *api.UserList) []*api.UserAnswer { return pointers(a.Users) })
}

// SetRole makes a role, or gives one other grants: they hold at once for all who have it.
func (c *Client) SetRole(ctx context.Context, name string, grants ...api.Grant) (*api.RoleAnswer, error) {
	path, err := rolePath(name)
	if err != nil {
		return nil, err
	}
	return fetch[api.RoleAnswer](ctx, c, writeCall(http.MethodPut, path, "", api.RoleRequest{Grants: append([]api.Grant{}, grants...)}))
}

// Role gives a role. Fails with [ErrNotFound].
func (c *Client) Role(ctx context.Context, name string) (*api.RoleAnswer, error) {
	return get[api.RoleAnswer](ctx, c)(rolePath(name))
}

// RemoveRole removes a role. Fails with [ErrNotFound], and with [ErrInUse] while a user has it.
func (c *Client) RemoveRole(ctx context.Context, name string) (*api.RoleRemoved, error) {
	path, err := rolePath(name)
	if err != nil {
		return nil, err
	}
	return fetch[api.RoleRemoved](ctx, c, writeCall(http.MethodDelete, path, "", nil))
}

// Roles gives all roles, by name. The last is the first error.
func (c *Client) Roles(ctx context.Context) iter.Seq2[*api.RoleAnswer, error] {
	return listed(ctx, c, "/v1/access/roles", func(a *api.RoleList) string { return a.Cursor },
		func(a *api.RoleList) []*api.RoleAnswer { return pointers(a.Roles) })
}

// TokenOptions refine a token.
type TokenOptions struct {
	// ExpiresIn: after so long it is good for nothing any more; without this, it never ends by itself.
	ExpiresIn time.Duration
	// Note says what it is for, for people.
	Note string
	// RequestID repeats one whose outcome stayed unknown; without it there is a new one.
	RequestID string
}

// CreateToken makes a token of a user. The answer is the only time that it is shown.
func (c *Client) CreateToken(ctx context.Context, user string, options *TokenOptions) (*api.TokenCreated, error) {
	if options == nil {
		options = &TokenOptions{}
	}
	if err := notNegative(span{"ExpiresIn", options.ExpiresIn}); err != nil {
		return nil, err
	}
	body := api.TokenRequest{User: user, ExpiresInMs: optionalMillis(options.ExpiresIn), Note: options.Note}
	return fetch[api.TokenCreated](ctx, c, writeCall(http.MethodPost, "/v1/access/tokens", options.RequestID, body))
}

// RemoveToken takes a token away, by its id. Fails with [ErrNotFound].
func (c *Client) RemoveToken(ctx context.Context, id string) (*api.TokenRemoved, error) {
	path, err := named("/v1/access/tokens/", id, "", "the id of a token")
	if err != nil {
		return nil, err
	}
	return fetch[api.TokenRemoved](ctx, c, writeCall(http.MethodDelete, path, "", nil))
}

// Tokens gives all tokens, without what is secret of them. The last is the first error.
func (c *Client) Tokens(ctx context.Context) iter.Seq2[*api.TokenView, error] {
	return listed(ctx, c, "/v1/access/tokens", func(a *api.TokenList) string { return a.Cursor },
		func(a *api.TokenList) []*api.TokenView { return pointers(a.Tokens) })
}
