package quorate

// A call before it is sent: method, target, conditions, body, and what may be done with it when it fails. Owns request ids and the
// escaping of names.

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"quorate.dev/go/api"
)

// intent is what may be done with a call whose attempt failed.
type intent int

const (
	// intentRead changes nothing: may be repeated at will.
	intentRead intent = iota
	// intentWrite changes something under an id: may be repeated at will, is applied at most once.
	intentWrite
	// intentOnce changes something without an id: may be repeated only when it was certainly not applied.
	intentOnce
)

// call is ready to be attempted.
type call struct {
	method string
	// target is the path and the query.
	target     string
	intent     intent
	preference preference
	requestID  string
	header     http.Header
	body       []byte
	// timeout is the deadline of the whole call; the client's own where it is 0.
	timeout time.Duration
	// attempt is how long one node may take before another is asked; the client's own where it is 0.
	attempt time.Duration
	// hold is how long the server is asked to hold its answer back, on top of both.
	hold time.Duration
	// subject is what it is about, where its target does not tell.
	subject subject
	err     error
}

// readCall is a GET.
func (c *Client) readCall(target string) *call {
	return &call{method: http.MethodGet, target: target, intent: intentRead, preference: c.readPreference()}
}

// writeCall has a JSON body, and a request id that is the same in all tries: the given one, or a new one.
func writeCall(method, target, requestID string, body any) *call {
	if requestID == "" {
		requestID = NewRequestID()
	}
	wanted := &call{method: method, target: target, intent: intentWrite, requestID: requestID}
	if !isRequestID(requestID) {
		return wanted.fail(invalid("a request id is 1 to 128 printable ASCII characters without spaces, not %q", requestID))
	}
	if body != nil {
		wanted.json(body)
	}
	return wanted
}

// queryCall is a POST that changes nothing.
func (c *Client) queryCall(target string, body any) *call {
	wanted := &call{method: http.MethodPost, target: target, intent: intentRead, preference: c.readPreference()}
	return wanted.json(body)
}

func (c *call) json(body any) *call {
	text, err := requestText(body)
	if err != nil {
		return c.fail(err)
	}
	c.body = text
	return c.set("Content-Type", "application/json")
}

// requestText is the JSON of a request, or of a part of one.
func requestText(body any) ([]byte, error) {
	if wrong := notText(reflect.ValueOf(body), ofRequest); wrong != "" {
		return nil, invalid("%q is not UTF-8; only keys, and what keys begin with, need not be", wrong)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, localError(CodeDecode, err, "the request has no JSON form: %v", err)
	}
	return text, nil
}

func (c *call) set(name, value string) *call {
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set(name, value)
	return c
}

// fail keeps the first error, which the call ends with before it is sent.
func (c *call) fail(err error) *call {
	if c.err == nil {
		c.err = err
	}
	return c
}

// NewRequestID names one write over all its tries: Unix milliseconds and 72 random bits in 20 characters. Every write has one by itself;
// give one to repeat a write whose outcome stayed unknown.
func NewRequestID() string {
	var id [15]byte
	// Does not fail: a system without random numbers ends the program (crypto/rand).
	_, _ = rand.Read(id[6:])
	var now [8]byte
	binary.BigEndian.PutUint64(now[:], uint64(time.Now().UnixMilli()))
	copy(id[:6], now[2:])
	return base64.RawURLEncoding.EncodeToString(id[:])
}

func isRequestID(id string) bool {
	if len(id) == 0 || len(id) > 128 {
		return false
	}
	for _, b := range []byte(id) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

// segment is a name as one segment of a path.
func segment(name string) string {
	escaped := url.PathEscape(name)
	// A segment of dots alone would be taken for a way up.
	if name == "." || name == ".." {
		return strings.ReplaceAll(escaped, ".", "%2E")
	}
	return escaped
}

// target builds a path and its query; parameters with empty values are left out.
func target(path string, pairs ...string) string {
	query := url.Values{}
	for at := 0; at < len(pairs); at += 2 {
		if pairs[at+1] != "" {
			query.Set(pairs[at], pairs[at+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// flag is the value of a switch in a query.
func flag(on bool) string {
	if on {
		return "true"
	}
	return ""
}

// number is a number in a query; empty for 0.
func number[N int | uint64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(n), 10)
}

func millis(ms uint64) time.Duration { return time.Duration(ms) * time.Millisecond }

// milliseconds of a duration, rounded up so that a short time is not none.
func milliseconds(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	whole := uint64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		whole++
	}
	return whole
}

// span is a time that was given, by its name.
type span struct {
	name string
	of   time.Duration
}

// notNegative refuses a time below nothing, such as what is left until a moment that has passed: it would be taken for none, which often stands for
// no end.
func notNegative(spans ...span) error {
	for _, one := range spans {
		if one.of < 0 {
			return invalid("%s is %v: a time is not negative", one.name, one.of)
		}
	}
	return nil
}

func someMillis(d time.Duration) *uint64 {
	ms := milliseconds(d)
	return &ms
}

// optionalMillis is nil for 0.
func optionalMillis(d time.Duration) *uint64 {
	if d == 0 {
		return nil
	}
	return someMillis(d)
}

// valueOf is a value as an operation has it: bytes as they are, JSON text as it is, anything else as JSON.
func valueOf(value any) (text json.RawMessage, raw []byte, err error) {
	switch given := value.(type) {
	case []byte:
		// Not nil: an empty value is one.
		return nil, append([]byte{}, given...), nil
	case json.RawMessage:
		if !json.Valid(given) {
			return nil, nil, localError(CodeDecode, nil, "the value is not JSON")
		}
		return given, nil, nil
	}
	text, err = jsonOf(value)
	return text, nil, err
}

// jsonOf is the JSON of a value. Text in it that is not UTF-8 is refused: JSON would have another in its place.
func jsonOf(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, localError(CodeDecode, err, "the value has no JSON form: %v", err)
	}
	// What stands for bytes that are no text; written by itself that character is not escaped.
	if bytes.Contains(text, []byte(`\ufffd`)) {
		if wrong := notText(reflect.ValueOf(value), ofUser); wrong != "" {
			return nil, localError(CodeDecode, nil, "the value has no JSON form: %q is not UTF-8; give a []byte to store bytes", wrong)
		}
	}
	return text, nil
}

// named is a path of a route, a name as one segment, and what follows.
func named(route, name, rest, what string) (string, error) {
	if name == "" {
		return "", invalid("%s has at least one character", what)
	}
	if !utf8.ValidString(name) {
		return "", invalid("%s is UTF-8, and %q is not", what, name)
	}
	return route + segment(name) + rest, nil
}

func quoted(cas api.Cas) string { return fmt.Sprintf("%q", string(cas)) }

var jsonNull = json.RawMessage("null")

// ofWhom says whose types a value is of.
type ofWhom int

const (
	// ofRequest: keys, and what keys begin with, are any bytes, which have a form for that.
	ofRequest ofWhom = iota
	// ofUser: all that JSON shows is text.
	ofUser
)

// notText gives a string that is not UTF-8, where JSON would have another one.
func notText(v reflect.Value, of ofWhom) string {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return v.String()
		}
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			return notText(v.Elem(), of)
		}
	case reflect.Slice, reflect.Array:
		// Bytes are no text, and JSON is checked where it is made.
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return ""
		}
		for at := range v.Len() {
			if wrong := notText(v.Index(at), of); wrong != "" {
				return wrong
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if wrong := notText(entries.Key(), of) + notText(entries.Value(), of); wrong != "" {
				return wrong
			}
		}
	case reflect.Struct:
		for at := range v.NumField() {
			field := v.Type().Field(at)
			isKey := of == ofRequest && (field.Name == "Key" || field.Name == "Prefix")
			// A field that is embedded may have some that are shown.
			isShown := (field.IsExported() || field.Anonymous) && field.Tag.Get("json") != "-"
			if isKey || !isShown {
				continue
			}
			if wrong := notText(v.Field(at), of); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}
