package quorate

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"quorate.dev/go/api"
)

func TestRequestIDsAreHarmlessAndDiffer(t *testing.T) {
	one, other := NewRequestID(), NewRequestID()
	if len(one) != 20 || one == other || !isRequestID(one) {
		t.Errorf("%q and %q", one, other)
	}
	for _, bad := range []string{"", "a b", "a\nb", "ä", strings.Repeat("x", 129)} {
		if isRequestID(bad) {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestKeysAreOneSegment(t *testing.T) {
	for key, path := range map[string]string{
		"orders/o42": "/v1/kv/orders%2Fo42", "a b?#%ä": "/v1/kv/a%20b%3F%23%25%C3%A4", "..": "/v1/kv/%2E%2E", ".": "/v1/kv/%2E",
	} {
		if got, err := keyPath(key); err != nil || got != path {
			t.Errorf("%q: %s, %v", key, got, err)
		}
	}
	if _, err := keyPath(""); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("an empty key: %v", err)
	}
}

func TestAnOperationSaysWhatWasAskedFor(t *testing.T) {
	guard := api.Guard{Lock: "l", Token: 18446744073709551615}
	for _, c := range []struct {
		op   Op
		text string
	}{
		{OpPut("k", map[string]any{"n": json.Number("18446744073709551615")}, &WriteOptions{TTL: time.Microsecond, Guard: guard}),
			`{"guard":{"lock":"l","token":"18446744073709551615"},"key":"k","op":"upsert","ttl_ms":1,"value":{"n":18446744073709551615}}`},
		{OpPut("k", json.RawMessage(`1.50`), &WriteOptions{Cas: "7", If: []Criterion{Where("n", api.OperatorEq, 1), Where("x", api.OperatorNexists)}}),
			`{"cas":"7","if":[{"field":"n","op":"eq","value":1},{"field":"x","op":"nexists"}],"key":"k","op":"replace","value":1.50}`},
		{OpPut("k", []byte{}, nil), `{"key":"k","op":"upsert","value_base64":""}`},
		{OpInsert("k", nil, nil), `{"key":"k","op":"insert","value":null}`},
		{OpTouch("k", 0, nil), `{"key":"k","op":"touch","ttl_ms":0}`},
		{OpPatch("k", []PatchOperator{Inc("n", -1)}, nil), `{"key":"k","op":"update","patch":[{"op":"inc","path":"n","value":-1}]}`},
		{OpRemove("k", &WriteOptions{If: []Criterion{Not(Any(Where("n", api.OperatorEq, nil)))}}),
			`{"if":[{"not":{"any":[{"field":"n","op":"eq","value":null}]}}],"key":"k","op":"remove"}`},
	} {
		text, err := json.Marshal(c.op.op)
		if err != nil || c.op.err != nil || string(text) != c.text {
			t.Errorf("%s\nnot\n%s\n%v %v", text, c.text, err, c.op.err)
		}
	}
}

func TestWhatMakesNoSenseIsNotSent(t *testing.T) {
	for _, c := range []struct {
		op   Op
		code error
	}{
		{OpPut("", 1, nil), ErrInvalidArgument}, {OpPut("k", make(chan int), nil), ErrDecode}, {OpPut("k", json.RawMessage("{"), nil), ErrDecode},
		{OpPatch("k", []byte("x"), nil), ErrDecode},
	} {
		if !errors.Is(c.op.err, c.code) || !errors.Is(c.op.call(nil).err, c.code) {
			t.Errorf("%v, not %v", c.op.err, c.code)
		}
	}
	if _, err := (Txn{If: []Check{{Key: "k", Exists: true, Absent: true}}}).request(); !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("a check of what cannot be: %v", err)
	}
	if err := OpRemove("k", nil).call(&WriteOptions{RequestID: "a b"}).err; !errors.Is(err, ErrInvalidArgument) {
		t.Errorf("a request id with a space: %v", err)
	}
}

// TestWhatIsNoTextIsNotSentAsAnother: JSON would have U+FFFD in its place.
func TestWhatIsNoTextIsNotSentAsAnother(t *testing.T) {
	const wrong = "a\xff"
	type embedded struct{ Name string }
	guarded := &WriteOptions{Guard: api.Guard{Lock: wrong}}
	f := newFake(t, sessions(600_000, renewedAll))
	c, ctx := clientOf(t, Options{}, f), soon(t, 10*time.Second)
	s, err := c.NewSession(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	queue := c.Tasks(wrong)
	for what, ask := range map[string]func() error{
		"lock":       func() error { _, err := s.Lock(ctx, wrong, nil); return err },
		"campaign":   func() error { _, err := s.Campaign(ctx, wrong, nil); return err },
		"barrier":    func() error { _, err := s.EnterBarrier(ctx, wrong, 2, nil); return err },
		"latch":      func() error { _, err := c.CountDown(ctx, wrong, 1); return err },
		"observe":    func() error { _, err := c.Observe(ctx, wrong); return err },
		"schedule":   func() error { _, err := queue.Schedule(ctx, 1, nil); return err },
		"work":       func() error { _, err := queue.Work(ctx, nil, nil); return err },
		"task":       func() error { _, err := c.Tasks("q").Get(ctx, wrong); return err },
		"id":         func() error { _, err := c.Tasks("q").Schedule(ctx, 1, &TaskOptions{ID: wrong}); return err },
		"collection": func() error { _, err := c.Collection(ctx, wrong); return err },
		"sequence":   func() error { _, err := c.NextNumbers(ctx, wrong, 1, ""); return err },
		"owner":      func() error { _, err := c.NewSession(ctx, &SessionOptions{Owner: wrong}); return err },
		"role":       func() error { _, err := c.SetUser(ctx, "u", wrong); return err },
		"guard":      func() error { _, err := c.Put(ctx, "k", 1, guarded); return err },
		"session":    func() error { _, err := c.Put(ctx, "k", 1, &WriteOptions{Session: wrong}); return err },
		"watch": func() error {
			_, err := c.Watch(ctx, "", &WatchOptions{Where: []Criterion{Where("f", api.OperatorEq, wrong)}})
			return err
		},
		"find":       func() error { _, err := c.FindPage(ctx, "", "", &FindOptions{OrderBy: []string{wrong}}); return err },
		"value":      func() error { _, err := c.Put(ctx, "k", wrong, nil); return err },
		"deep":       func() error { _, err := c.Put(ctx, "k", map[string]any{"a": []any{1, wrong}}, nil); return err },
		"name":       func() error { _, err := c.Put(ctx, "k", map[string]int{wrong: 1}, nil); return err },
		"field":      func() error { _, err := c.Insert(ctx, "k", &struct{ Key string }{wrong}, nil); return err },
		"embedded":   func() error { _, err := c.Insert(ctx, "k", struct{ embedded }{embedded{wrong}}, nil); return err },
		"patch":      func() error { _, err := c.Patch(ctx, "k", []PatchOperator{Set("a", wrong)}, nil); return err },
		"payload":    func() error { _, err := c.Tasks("q").Schedule(ctx, wrong, nil); return err },
		"proclaimed": func() error { _, err := s.Campaign(ctx, "e", &CampaignOptions{Value: wrong}); return err },
		"many at once": func() (err error) {
			for done := range c.Stream(ctx, slices.Values([]Op{OpPut("k", 1, guarded)})) {
				err = done.Err
			}
			return err
		},
	} {
		if err := ask(); !errors.Is(err, ErrInvalidArgument) && !errors.Is(err, ErrDecode) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if came := f.requests(); len(came) != 1 {
		t.Errorf("was sent: %v", came[1:])
	}
	type whole struct {
		Same   *whole `json:"-"`
		Secret string `json:"-"`
		Text   string
		Raw    json.RawMessage
	}
	kept := &whole{Secret: wrong, Text: "\ufffd", Raw: json.RawMessage(`"\ufffd"`)}
	kept.Same = kept
	if text, err := jsonOf(kept); err != nil || string(text) != "{\"Text\":\"\ufffd\",\"Raw\":\"\\ufffd\"}" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestNumbersOf64BitsKeepAllDigits(t *testing.T) {
	text := `{"key":"k","value":{"n":18446744073709551615},"content_type":"json","cas":null,"locked":true,"create_revision":"18446744073709551615",
		"mod_revision":"9007199254740993","version":9007199254740993}`
	var entry Entry
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		t.Fatal(err)
	}
	if entry.CreateRevision != 1<<64-1 || entry.ModRevision != 9007199254740993 || entry.Version != 9007199254740993 || entry.Cas != "" {
		t.Errorf("%+v", entry)
	}
	var value struct{ N uint64 }
	if err := entry.Decode(&value); err != nil || value.N != 1<<64-1 {
		t.Errorf("%d, %v", value.N, err)
	}
}

func TestEndpointsAreSplitTrimmedAndDeduplicated(t *testing.T) {
	parsed, err := parseEndpoints(" a:1, http://b:2/ ,,a:1,http://[::1]:3", false)
	if err != nil || len(parsed) != 3 || parsed[0] != (node{address: "a:1"}) || parsed[1] != (node{address: "b:2"}) || parsed[2].address != "[::1]:3" {
		t.Errorf("%v, %v", parsed, err)
	}
	parsed, err = parseEndpoints("a:1,http://b:2,https://c:3", true)
	if err != nil || !parsed[0].isTLS || parsed[1].isTLS || !parsed[2].isTLS {
		t.Errorf("%v, %v", parsed, err)
	}
	parsed, err = parseEndpoints("unix:/run/quorate.sock,unix:///run/quorate.sock,a:1", true)
	if err != nil || len(parsed) != 2 || parsed[0] != (node{address: "unix:/run/quorate.sock", socket: "/run/quorate.sock"}) || !parsed[1].isTLS {
		t.Errorf("%v, %v", parsed, err)
	}
	for _, bad := range []string{"", " , ", "localhost", "unix:", "unix:a.sock", "unix:/", "a:x", "a:70000", "unix://a/b", "unix:/a/", "https://a:1", "a:1,b", "user@a:1", "a b:1", ":1"} {
		if _, err := New(bad, nil); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAnAddressOfTheNodesOwnMachineIsOursOnlyWhereWeAreOnIt(t *testing.T) {
	for _, c := range []struct {
		address, given string
		isReachable    bool
	}{
		{"10.0.0.4:7100", "db.example.org:7100", true}, {"127.0.0.1:7104", "127.0.0.1:7101", true}, {"[::1]:7104", "localhost:7101", true},
		{"127.0.0.1:7100", "db.example.org:7100", false}, {"localhost:7100", "10.0.0.1:7100", false}, {"0.0.0.0:7100", "127.0.0.1:7101", false},
		{"", "127.0.0.1:7101", false}, {"127.0.0.1:7104", "unix:/run/quorate.sock", true}, {"0.0.0.0:7104", "unix:/run/quorate.sock", false},
	} {
		if got := isReachable(c.address, []string{c.given}); got != c.isReachable {
			t.Errorf("%s from %s: %v", c.address, c.given, got)
		}
	}
}

// TestKeysAreBytes: no two keys become the same on their way, and what has to be text is refused if it is none.
func TestKeysAreBytes(t *testing.T) {
	for _, c := range []struct {
		body any
		want string
	}{
		{api.Op{Op: api.OpKindGet, Key: "a/\xff"}, `{"op":"get","key_base64":"YS//"}`},
		{api.Op{Op: api.OpKindGet, Key: "a/\ufffd"}, `{"key":"a/\ufffd","op":"get"}`},
		{api.WhereRequest{Prefix: "\xfe", Where: []Criterion{}}, `{"where":[],"prefix_base64":"/g=="}`},
		{Where("$key", api.OperatorIn, []string{"a", "a/\xff"}), `{"field":"$key","op":"in","value":["a",{"base64":"YS//"}]}`},
	} {
		wanted := (&call{}).json(c.body)
		var got, want any
		if err := errors.Join(wanted.err, json.Unmarshal(wanted.body, &got), json.Unmarshal([]byte(c.want), &want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s, not %s", wanted.body, c.want)
		}
	}
	var entry Entry
	if err := json.Unmarshal([]byte(`{"key_base64":"YS//","value":1,"cas":"7"}`), &entry); err != nil || entry.Key != "a/\xff" || entry.Cas != "7" {
		t.Errorf("%q %v", entry.Key, err)
	}
	var holds api.SessionHolds
	if err := json.Unmarshal([]byte(`{"keys":["a"],"keys_base64":["YS//"]}`), &holds); err != nil || !slices.Equal(holds.Keys, []string{"a", "a/\xff"}) {
		t.Errorf("%q %v", holds.Keys, err)
	}
	if path, err := keyPath("a/\xff"); err != nil || path != "/v1/kv/a%2F%FF" {
		t.Errorf("%s %v", path, err)
	}
	if got := target("/v1/kv", "prefix", "\xff"); got != "/v1/kv?prefix=%FF" {
		t.Error(got)
	}
	if _, err := named("/v1/locks/", "a\xff", "/acquire", "a lock"); err == nil {
		t.Error("a lock was named by what is no text")
	}
	for _, body := range []any{
		api.SessionRequest{Owner: "a\xff"},
		&api.TxnRequest{Then: []api.TxnStep{{Op: &api.Op{Op: api.OpKindGet, Key: "a", Guard: &api.Guard{Lock: "a\xff"}}}}},
		map[string]string{"a\xff": "b"},
	} {
		if wanted := (&call{}).json(body); wanted.err == nil {
			t.Errorf("%+v became %s", body, wanted.body)
		}
	}
}

// The methods of the entry are those of the document, and these write and read both.
func TestADocumentIsWrittenAndReadWithItsValue(t *testing.T) {
	type stock struct {
		Left int    `json:"left"`
		Unit string `json:"unit"`
	}
	entry := &Entry{Key: "stock/pears", Cas: "7", Version: 2, Value: json.RawMessage(`{"left":5,"unit":"kg"}`)}
	doc, err := Decode[stock](entry)
	if err != nil {
		t.Fatal(err)
	}
	doc.Value.Left = 4
	for name, value := range map[string]any{"value": *doc, "pointer": doc} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(name, err)
		}
		var read Doc[stock]
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("%s: %v in %s", name, err, text)
		}
		if read.Value != (stock{4, "kg"}) || read.Key != "stock/pears" || read.Cas != "7" || read.Version != 2 {
			t.Errorf("%s: %s was read as %+v of %+v", name, text, read.Value, read.Entry)
		}
	}
	if string(entry.Value) != `{"left":5,"unit":"kg"}` {
		t.Errorf("the entry was changed: %s", entry.Value)
	}
	if _, err := json.Marshal(Doc[stock]{}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{`[]`, `{"key":"a","value":[]}`, `{"key":"a"}`} {
		if err := json.Unmarshal([]byte(bad), new(Doc[stock])); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}
