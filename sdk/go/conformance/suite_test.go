package main

import (
	"encoding/json"
	"testing"
)

func parsed(t *testing.T, text string) any {
	t.Helper()
	value, err := jsonOf(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestObjectsArePartialListsAreWholeAndNullIsMetByWhatIsAbsent(t *testing.T) {
	for _, c := range []struct {
		expected, value string
		fits            bool
	}{
		{`{"a":1}`, `{"a":1,"b":2}`, true}, {`{"a":1}`, `{"a":2}`, false}, {`{"a":1}`, `{"a":"1"}`, false}, {`{"a":"1"}`, `{"a":1}`, false},
		{`{"a":null}`, `{}`, true}, {`{"a":null}`, `{"a":0}`, false}, {`{"a":false}`, `{}`, false}, {`[1,{"a":1}]`, `[1,{"a":1,"b":2}]`, true},
		{`[1]`, `[1,2]`, false}, {`[]`, `null`, false}, {`{"a":{}}`, `{"a":[]}`, false}, {`9007199254740993`, `9007199254740992`, false},
	} {
		if err := matches(parsed(t, c.expected), parsed(t, c.value), "answer"); (err == nil) != c.fits {
			t.Errorf("%s beside %s: %v", c.value, c.expected, err)
		}
	}
}

func TestVariablesAreFilledInAndKeepTheirTypes(t *testing.T) {
	variables := map[string]any{"p": "x", "n": json.Number("7")}
	got, err := filled(map[string]any{"{p}/k": []any{"{n}", "{p}-{n}", 1}}, variables)
	if err != nil {
		t.Fatal(err)
	}
	list := got.(map[string]any)["x/k"].([]any)
	if list[0] != json.Number("7") || list[1] != "x-7" || list[2] != 1 {
		t.Errorf("%v", list)
	}
	for _, bad := range []string{"{missing}", "a {missing}"} {
		if _, err := filled(bad, variables); err == nil {
			t.Errorf("%q was filled in", bad)
		}
	}
}

func TestFieldsAreFoundInObjectsAndLists(t *testing.T) {
	value := parsed(t, `{"a":[{"b":"9"}]}`)
	if got, err := fieldOf(value, "a.0.b"); err != nil || got != "9" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"a.1", "a.x", "b", "a.0.b.c"} {
		if got, err := fieldOf(value, bad); err == nil {
			t.Errorf("%s is %v", bad, got)
		}
	}
	if greater(map[string]any{"a.0.b": "8"}, value) != nil || greater(map[string]any{"a.0.b": "10"}, value) == nil {
		t.Error("9 is greater than 8, and not than 10")
	}
}
