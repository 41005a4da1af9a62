package quorate

// What an answer has to be about. Owns the check that it is: a proxy that cleans paths asks for `a/b` where `a//b` was meant, and what is told of
// the one is nothing that is known of the other.

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"quorate.dev/go/api"
)

// subject is what a call is about: the field of its answer that names it, and the name.
type subject struct{ field, name string }

// subjects are the fields in which answers name what their route does, by what stands before the name.
var subjects = []struct{ route, field string }{
	{"/v1/kv/", "Key"}, {"/v1/locks/", "Lock"}, {"/v1/elections/", "Election"}, {"/v1/sessions/", "Session"}, {"/v1/tasks/", "Queue"},
	{"/v1/latches/", "Latch"}, {"/v1/barriers/", "Barrier"}, {"/v1/collections/", "Name"}, {"/v1/sequences/", "Name"},
	{"/v1/access/users/", "User"}, {"/v1/access/roles/", "Role"}, {"/v1/access/tokens/", "ID"}, {"/v1/requests/", "RequestID"},
}

// about is what the call is about; nothing where it is about no single thing.
func (c *call) about() subject {
	if c.subject.name != "" {
		return c.subject
	}
	for _, one := range subjects {
		if rest, ok := strings.CutPrefix(c.target, one.route); ok {
			rest, _, _ = strings.Cut(rest, "?")
			segment, _, _ := strings.Cut(rest, "/")
			// It was escaped here.
			name, _ := url.PathUnescape(segment)
			return subject{one.field, name}
		}
	}
	return subject{}
}

// of says that the call is about this, which its path does not tell.
func (c *call) of(field, name string) *call {
	c.subject = subject{field, name}
	return c
}

// strayed says that an answer names something else than was asked for.
type strayed struct{ asked, named string }

func (s *strayed) Error() string {
	return fmt.Sprintf("the answer is about `%s`, not `%s`: a proxy may have changed the path", s.named, s.asked)
}

// check gives nil where the answer names what was asked for, or nothing.
func (s subject) check(answer any) *strayed {
	of := reflect.Indirect(reflect.ValueOf(answer))
	if s.name == "" || of.Kind() != reflect.Struct {
		return nil
	}
	named := of.FieldByName(s.field)
	if named.Kind() != reflect.String || named.String() == "" || named.String() == s.name {
		return nil
	}
	return &strayed{asked: s.name, named: named.String()}
}

// decode reads the answer to the call.
func (c *call) decode(status int, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return c.undecodable(err, "the body of status %d is not what %s %s answers: %v", status, c.method, c.target, err)
	}
	if wrong := c.about().check(into); wrong != nil {
		return c.undecodable(wrong, "%v", wrong)
	}
	return nil
}

// undecodable: the status says that it worked, the body does not say what.
func (c *call) undecodable(cause error, format string, args ...any) *Error {
	e := localError(CodeProtocol, cause, format, args...)
	if e.RequestID = c.requestID; c.intent != intentRead {
		e.Applied = api.AppliedUnknown
	}
	return e
}

// isOftenChanged says whether proxies like to change a path in which this is a segment, escaped or not: so they do with empty segments, with those
// that go up, and with slashes at an end.
func isOftenChanged(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." {
			return true
		}
	}
	return false
}
