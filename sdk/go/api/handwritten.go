// Package api has the types of Quorate's HTTP API, version 1.
//
// All but a few are generated from the OpenAPI document of a node, and have the names that they have there. 64-bit numbers, which the
// API shows as decimal strings, are uint64; a cas is text that is handed back as it came. JSON values are kept as their text, so that
// no number loses a digit. Numbers that may be missing and may be 0 are pointers.
//
// What a newer node says beyond these types is passed over.
package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

//go:generate go run ../internal/wiregen ../../../docs/openapi.json types.gen.go

// Cas is the token of a version of an entry: opaque, never valid twice. It is empty where there is none, as of an entry that is locked.
type Cas string

// MarshalJSON writes none as null.
func (c Cas) MarshalJSON() ([]byte, error) {
	if c == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(c))
}

// Moment is a time in the form of RFC 3339, or Unix milliseconds as text.
type Moment string

// MomentOf is that time.
func MomentOf(at time.Time) Moment { return Moment(at.UTC().Format("2006-01-02T15:04:05.000Z07:00")) }

// MarshalJSON writes Unix milliseconds as a number, anything else as text.
func (m Moment) MarshalJSON() ([]byte, error) {
	if m != "" && json.Valid([]byte(m)) {
		return []byte(m), nil
	}
	return json.Marshal(string(m))
}

// IndexRule is an index of a collection: over these fields, in this order.
type IndexRule struct {
	// Fields are dotted paths or JSON pointers.
	Fields []string `json:"fields"`
	// Unique refuses a second document with the same values.
	Unique bool `json:"unique,omitempty"`
}

// UnmarshalJSON takes the short form too, which is the list of fields.
func (r *IndexRule) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, &r.Fields)
	}
	type full IndexRule
	return json.Unmarshal(text, (*full)(r))
}

// TxnStep is a step of a transaction: one of the two.
type TxnStep struct {
	// Op is an operation.
	Op *Op
	// Txn is a transaction of its own.
	Txn *TxnBlock
}

// MarshalJSON writes what the step is.
func (s TxnStep) MarshalJSON() ([]byte, error) {
	if s.Txn != nil {
		return json.Marshal(s.Txn)
	}
	return json.Marshal(s.Op)
}

// UnmarshalJSON reads either by its `op`.
func (s *TxnStep) UnmarshalJSON(text []byte) error {
	var tag struct{ Op string }
	if err := json.Unmarshal(text, &tag); err != nil {
		return err
	}
	if tag.Op == string(TxnTagTxn) {
		return json.Unmarshal(text, &s.Txn)
	}
	return json.Unmarshal(text, &s.Op)
}

// ErrNoJSON says that a value is bytes, or was not sent.
var ErrNoJSON = errors.New("the value is not JSON")

// Decode reads the value, which has to be JSON, as encoding/json does; where the target says nothing of its type, as an `any` or the values of a
// map[string]any, a number is a [json.Number], which keeps all its digits.
func (e *EntryView) Decode(into any) error {
	if e.Value == nil {
		return fmt.Errorf("`%s`: %w", e.Key, ErrNoJSON)
	}
	if err := decode(e.Value, into); err != nil {
		return fmt.Errorf("the value of `%s`: %w", e.Key, err)
	}
	return nil
}

// Bytes is the value as it is stored: its bytes, or the text of its JSON.
func (e *EntryView) Bytes() []byte {
	if e.Value != nil {
		return e.Value
	}
	return e.ValueBase64
}

// TTL is the time that the entry has left; false where it never expires.
func (e *EntryView) TTL() (time.Duration, bool) { return duration(e.TTLMs) }

// LockTime is how long the lock of the entry holds unless it is extended; false where that is not known.
func (e *EntryView) LockTime() (time.Duration, bool) { return duration(e.LockMs) }

// LockTime is how long the lock holds that the operation took or extended; false where it did neither.
func (a *WriteAnswer) LockTime() (time.Duration, bool) { return duration(a.LockMs) }

// TTL is the time that the entry has left; false where it never expires.
func (a *WriteAnswer) TTL() (time.Duration, bool) { return duration(a.TTLMs) }

// Guard gives the guard itself, so that it can stand where a lock does.
func (g Guard) Guard() Guard { return g }

// Decode reads the payload, which has to be JSON, as [EntryView.Decode] reads a value.
func (t *TaskClaimed) Decode(into any) error {
	if t.Payload == nil {
		return fmt.Errorf("the payload of task `%s`: %w", t.ID, ErrNoJSON)
	}
	if err := decode(t.Payload, into); err != nil {
		return fmt.Errorf("the payload of task `%s`: %w", t.ID, err)
	}
	return nil
}

// decode reads one JSON value, without a float in between.
func decode(text json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func duration(ms *uint64) (time.Duration, bool) {
	if ms == nil {
		return 0, false
	}
	return time.Duration(*ms) * time.Millisecond, true
}
