package quorate

import (
	"encoding/json"
	"slices"
	"testing"
)

func mirroredEntry(key, value string) *Entry {
	return &Entry{Key: key, Value: json.RawMessage(value)}
}

func keysOf(entries []*Entry) []string {
	keys := []string{}
	for _, entry := range entries {
		keys = append(keys, entry.Key)
	}
	return keys
}

func TestEntriesAreFoundByWhatTheirFieldsAreAndNotByWhatTheyWere(t *testing.T) {
	m := newMirrored([]string{"email", "address.zip", "/tags"})
	m.set("u/ann", mirroredEntry("u/ann", `{"email": "a@x", "address": {"zip": 8}, "tags": ["red", "blue"]}`))
	m.set("u/ben", mirroredEntry("u/ben", `{"email": "b@x", "address": {"zip": 8.0}}`))
	found := func(field, value string) []string {
		entries, ok := m.find(field, json.RawMessage(value))
		if !ok {
			t.Fatalf("%s is not indexed", field)
		}
		return keysOf(entries)
	}
	for _, c := range []struct {
		field, value string
		keys         []string
	}{
		{"email", `"b@x"`, []string{"u/ben"}}, {"address.zip", `8`, []string{"u/ann", "u/ben"}}, {"address.zip", `80e-1`, []string{"u/ann", "u/ben"}},
		{"/tags", `"blue"`, []string{"u/ann"}}, {"/tags", `["red","blue"]`, []string{"u/ann"}}, {"email", `8`, []string{}},
	} {
		if got := found(c.field, c.value); !slices.Equal(got, c.keys) {
			t.Errorf("by %s = %s: %v", c.field, c.value, got)
		}
	}
	if _, ok := m.find("name", json.RawMessage(`1`)); ok {
		t.Error("nobody asked for an index by name")
	}
	if before := m.set("u/ann", mirroredEntry("u/ann", `{"email": "b@x"}`)); before.Key != "u/ann" {
		t.Error("it was there before")
	}
	if got := found("email", `"b@x"`); !slices.Equal(got, []string{"u/ann", "u/ben"}) {
		t.Errorf("after the change: %v", got)
	}
	if len(found("email", `"a@x"`))+len(found("/tags", `"red"`)) != 0 {
		t.Error("found by what it was")
	}
	m.set("u/ann", nil)
	m.set("u/ben", nil)
	for field, index := range m.indexes {
		if len(index.keys) != 0 {
			t.Errorf("the index by %s keeps %v", field, index.keys)
		}
	}
	if len(m.of)+len(m.keys) != 0 {
		t.Error("entries are left")
	}
}

func TestAListIsOfWhatBeginsSo(t *testing.T) {
	m := newMirrored(nil)
	for _, key := range []string{"b", "a/2", "a", "a/1"} {
		m.set(key, mirroredEntry(key, "1"))
	}
	for prefix, keys := range map[string][]string{"a/": {"a/1", "a/2"}, "": {"a", "a/1", "a/2", "b"}, "c": {}} {
		if got := keysOf(m.list(prefix)); !slices.Equal(got, keys) {
			t.Errorf("%q: %v", prefix, got)
		}
	}
}

func TestNumbersOfAllSizesAreByTheirWorth(t *testing.T) {
	same := [][2]string{{"1", "1.0"}, {"1e2", "100"}, {"18446744073709551615", "18446744073709551615.0"}}
	for _, pair := range same {
		if numberText(json.Number(pair[0])) != numberText(json.Number(pair[1])) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	if numberText("9007199254740993") == numberText("9007199254740992") {
		t.Error("a digit was lost")
	}
	if numberText("1e999999999") != "1e999999999" {
		t.Error("a number as long as memory was made")
	}
}
