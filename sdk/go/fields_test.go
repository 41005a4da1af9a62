package quorate

// Tests of what an update keeps of a document.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type base struct {
	ID   string `json:"id"`
	Note string `json:"note,omitempty"`
}

// own keeps what it wants.
type own struct{ text json.RawMessage }

func (o *own) UnmarshalJSON(text []byte) error {
	o.text = slices.Clone(text)
	return nil
}

func (o own) MarshalJSON() ([]byte, error) { return o.text, nil }

func TestFieldsThatATypeHasNoPlaceForAreFound(t *testing.T) {
	type item struct{ N int }
	type order struct {
		base
		*Retries
		Items   []item            `json:"items"`
		By      map[string]item   `json:"by"`
		Any     any               `json:"any"`
		Pair    [2]int            `json:"pair"`
		Own     own               `json:"own"`
		At      time.Time         `json:"at"`
		Raw     json.RawMessage   `json:"raw"`
		Texts   map[string]string `json:"texts"`
		Private int               `json:"-"`
		hidden  int
	}
	_ = order{hidden: 1}
	for document, lost := range map[string][]string{
		`{"id":"a","note":"","Times":1,"items":[{"N":1}],"by":{"x":{"N":1}},"any":{"a":{"b":1}},"pair":[1,2],"texts":{"x":"y"}}`: nil,
		`{"own":{"a":1},"raw":{"a":1},"at":"2026-01-01T00:00:00Z","items":null}`:                                                 nil,
		`{"x":1,"items":[{"N":1},{"n":2,"m":{"a":1}}],"by":{"x":{"o":1}},"pair":[1,2,3],"Private":1,"hidden":1,"ID":"b"}`: {
			"ID", "Private", "by.x.o", "hidden", "items.1.m", "items.1.n", "pair.2", "x",
		},
	} {
		if got := lostFields(json.RawMessage(document), reflect.TypeFor[*order]()); !slices.Equal(got, lost) {
			t.Errorf("%s: %q", document, got)
		}
	}
	many := strings.Repeat(`{"a":1},`, 50)
	if got := lostFields(json.RawMessage("["+many+`{}]`), reflect.TypeFor[[]item]()); len(got) != lostMax {
		t.Errorf("%q", got)
	}
}

// Retries are embedded by a pointer.
type Retries struct{ Times int }

// updated runs an update of this document, and gives what was written in its place; nothing where nothing was.
func updated[T any](t *testing.T, document string, change func(*T) (*T, error), options *UpdateOptions) (string, error) {
	t.Helper()
	f := newFake(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			say(w, 200, fmt.Sprintf(`{"key":"k","value":%s,"content_type":"json","cas":"1","create_revision":"1","mod_revision":"1","version":1}`, document))
			return
		}
		say(w, 200, writtenText)
	})
	_, err := Update(soon(t, 5*time.Second), clientOf(t, Options{}, f), "k", change, options)
	if came := f.requests(); len(came) == 2 {
		var op struct{ Value json.RawMessage }
		if err := json.Unmarshal([]byte(came[1].body), &op); err != nil {
			t.Fatal(err)
		}
		return string(op.Value), err
	}
	return "", err
}

const numbers = `{"big":12345678901234567890123,"e":1.50e2,"f":0.1234567890123456789,"id":9007199254740993,"minus":-0,"one":1.0,"t":1}`

func TestAnUpdateChangesNoNumberThatNobodyTouched(t *testing.T) {
	wanted := strings.Replace(numbers, `"t":1`, `"t":2`, 1)
	got, err := updated(t, numbers, func(fields *map[string]any) (*map[string]any, error) {
		if n, ok := (*fields)["t"].(json.Number); !ok || n != "1" {
			t.Errorf("%T", (*fields)["t"])
		}
		(*fields)["t"] = 2
		return fields, nil
	}, nil)
	if err != nil || got != wanted {
		t.Errorf("%s, %v", got, err)
	}
	got, err = updated(t, `{"in":`+numbers+`}`, func(d *struct {
		In any `json:"in"`
	}) (*struct {
		In any `json:"in"`
	}, error) {
		return d, nil
	}, nil)
	if err != nil || got != `{"in":`+numbers+`}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestAnUpdateLosesNoFieldsUnlessItIsToldTo(t *testing.T) {
	const document = `{"t":1,"note":"keep me","more":{"a":1}}`
	type small struct {
		T int `json:"t"`
	}
	change := func(s *small) (*small, error) { return &small{s.T + 1}, nil }
	got, err := updated(t, document, change, nil)
	if got != "" || !errors.Is(err, ErrDecode) || !strings.Contains(err.Error(), "`more`, `note`") || !strings.Contains(err.Error(), "DropUnknown") {
		t.Errorf("%s, %v", got, err)
	}
	if got, err = updated(t, document, change, &UpdateOptions{DropUnknown: true}); err != nil || got != `{"t":2}` {
		t.Errorf("%s, %v", got, err)
	}
	if got, err = updated(t, document, func(*small) (*small, error) { return nil, nil }, nil); err != nil || got != "" {
		t.Errorf("nothing is lost where nothing is written: %s, %v", got, err)
	}
	if got, err = updated(t, `{"t":1}`, change, nil); err != nil || got != `{"t":2}` {
		t.Errorf("%s, %v", got, err)
	}
}
