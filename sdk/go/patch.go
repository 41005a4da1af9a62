package quorate

// Operators of a patch: what changes a part of a document in one step, whatever the rest of it is.

import (
	"context"
)

// PatchOperator changes a field of a document, by dotted path or JSON pointer. A list of them is a patch for [Client.Patch]: all of them take effect,
// or none.
type PatchOperator struct {
	// Op is its name.
	Op string `json:"op"`
	// Path of the field.
	Path string `json:"path"`
	// Value, where the operator has one.
	Value any `json:"value,omitempty"`
}

func patchOperator(op, path string, value any) PatchOperator {
	if value == nil {
		value = jsonNull
	}
	return PatchOperator{op, path, value}
}

// Inc adds to a number. Integers stay integers of 64 bits; a sum that has no place in them is refused.
func Inc(path string, by any) PatchOperator { return patchOperator("inc", path, by) }

// Set gives a field this value.
func Set(path string, value any) PatchOperator { return patchOperator("set", path, value) }

// Unset takes a field away.
func Unset(path string) PatchOperator { return PatchOperator{Op: "unset", Path: path} }

// Append adds an element to the end of an array.
func Append(path string, element any) PatchOperator { return patchOperator("append", path, element) }

// Max makes a number at least so great.
func Max(path string, value any) PatchOperator { return patchOperator("max", path, value) }

// Min makes a number at most so great.
func Min(path string, value any) PatchOperator { return patchOperator("min", path, value) }

// Now gives a field the time of the write.
func Now(path string) PatchOperator { return PatchOperator{Op: "now", Path: path} }

// Increment adds to a number of a document in one step. Fails with [ErrNotFound].
func (c *Client) Increment(ctx context.Context, key, path string, by int64, options *WriteOptions) (*Written, error) {
	return c.Patch(ctx, key, []PatchOperator{Inc(path, by)}, options)
}
