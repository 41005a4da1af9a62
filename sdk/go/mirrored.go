package quorate

// The entries of a mirror, and how they are found by their fields. Is told what changed, and knows neither where that comes from nor how fresh
// it is.

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

type mirrored struct {
	of map[string]*Entry
	// keys are all in order.
	keys    []string
	indexes map[string]*mirrorIndex
}

type mirrorIndex struct {
	path []string
	// keys by the text of the value.
	keys map[string]map[string]bool
}

func newMirrored(fields []string) *mirrored {
	m := &mirrored{of: map[string]*Entry{}, indexes: map[string]*mirrorIndex{}}
	for _, field := range fields {
		m.indexes[field] = &mirrorIndex{path: pathOf(field), keys: map[string]map[string]bool{}}
	}
	return m
}

// set: the entry is so now, or gone. Gives it as it was.
func (m *mirrored) set(key string, entry *Entry) *Entry {
	before := m.of[key]
	at, isThere := slices.BinarySearch(m.keys, key)
	switch {
	case entry == nil && isThere:
		m.keys = slices.Delete(m.keys, at, at+1)
		delete(m.of, key)
	case entry != nil && !isThere:
		m.keys = slices.Insert(m.keys, at, key)
	}
	if entry != nil {
		m.of[key] = entry
	}
	if len(m.indexes) > 0 {
		old, now := document(before), document(entry)
		for _, index := range m.indexes {
			index.take(key, old)
			index.put(key, now)
		}
	}
	return before
}

func (m *mirrored) list(prefix string) []*Entry {
	from, _ := slices.BinarySearch(m.keys, prefix)
	var found []*Entry
	for _, key := range m.keys[from:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		found = append(found, m.of[key])
	}
	return found
}

// find gives those whose field has this value, by key; false where the field has no index.
func (m *mirrored) find(field string, value json.RawMessage) ([]*Entry, bool) {
	index, ok := m.indexes[field]
	if !ok {
		return nil, false
	}
	var found []*Entry
	for _, key := range slices.Sorted(maps.Keys(index.keys[textOf(parsed(value))])) {
		found = append(found, m.of[key])
	}
	return found, true
}

func (x *mirrorIndex) put(key string, doc any) {
	for _, text := range x.texts(doc) {
		if x.keys[text] == nil {
			x.keys[text] = map[string]bool{}
		}
		x.keys[text][key] = true
	}
}

func (x *mirrorIndex) take(key string, doc any) {
	for _, text := range x.texts(doc) {
		if delete(x.keys[text], key); len(x.keys[text]) == 0 {
			delete(x.keys, text)
		}
	}
}

// texts are what the field of this document is found by: its value, and if that is an array each element too.
func (x *mirrorIndex) texts(doc any) []string {
	value, ok := valueAt(doc, x.path)
	if !ok {
		return nil
	}
	texts := []string{textOf(value)}
	if elements, ok := value.([]any); ok {
		for _, element := range elements {
			texts = append(texts, textOf(element))
		}
	}
	return texts
}

func document(entry *Entry) any {
	if entry == nil || entry.Value == nil {
		return nil
	}
	return parsed(entry.Value)
}

// parsed keeps numbers as they are written.
func parsed(text json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

// pathOf are the steps of a dotted path or a JSON pointer.
func pathOf(field string) []string {
	pointer, isPointer := strings.CutPrefix(field, "/")
	if !isPointer {
		return strings.Split(field, ".")
	}
	steps := strings.Split(pointer, "/")
	for n := range steps {
		steps[n] = strings.ReplaceAll(strings.ReplaceAll(steps[n], "~1", "/"), "~0", "~")
	}
	return steps
}

func valueAt(value any, path []string) (any, bool) {
	for _, step := range path {
		switch of := value.(type) {
		case map[string]any:
			next, ok := of[step]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			at, err := strconv.Atoi(step)
			if err != nil || at < 0 || at >= len(of) {
				return nil, false
			}
			value = of[at]
		default:
			return nil, false
		}
	}
	return value, true
}

// textOf is the same for what is equal: numbers are by value, and objects have no order.
func textOf(value any) string {
	switch of := value.(type) {
	case json.Number:
		return numberText(of)
	case []any:
		parts := make([]string, len(of))
		for n, item := range of {
			parts[n] = textOf(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(of)) {
			parts = append(parts, strconv.Quote(name)+":"+textOf(of[name]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case string:
		return strconv.Quote(of)
	case bool:
		return strconv.FormatBool(of)
	}
	return "null"
}

// exponentMax: beyond it a number is by its text, or its digits would fill the memory.
const exponentMax = 400

// numberText is by the worth of a number, whatever its digits; exact, since it is not a float.
func numberText(n json.Number) string {
	text := string(n)
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if exponent, err := strconv.Atoi(strings.TrimPrefix(text[at+1:], "+")); err != nil || max(exponent, -exponent) > exponentMax {
			return text
		}
	}
	worth, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	return worth.RatString()
}
