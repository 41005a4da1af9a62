package quorate_test

// Tests against a real node.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	quorate "quorate.dev/go"
	"quorate.dev/go/api"
	"quorate.dev/go/quoratetest"
)

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// must gives the answer of a call that has to go well.
func must[T any](answer T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
}

func collect[T any](t *testing.T, seq func(func(T, error) bool)) []T {
	t.Helper()
	var all []T
	for item, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, item)
	}
	return all
}

type order struct {
	Status string `json:"status"`
	Total  uint64 `json:"total,omitempty"`
}

func TestEntries(t *testing.T) {
	c, ctx := node(t), deadline(t)
	big := order{"new", 1<<64 - 1}
	first := must(c.Insert(ctx, "entries/a", big, nil))(t)
	if _, err := c.Insert(ctx, "entries/a", big, nil); !errors.Is(err, quorate.ErrAlreadyExists) {
		t.Errorf("%v", err)
	}
	doc := must(quorate.Get[order](ctx, c, "entries/a", nil))(t)
	if doc.Value != big || doc.Cas != first.Cas || doc.Version != 1 {
		t.Errorf("%+v", doc)
	}
	if _, err := quorate.Get[int](ctx, c, "entries/a", nil); !errors.Is(err, quorate.ErrDecode) {
		t.Errorf("%v", err)
	}
	second := must(c.Put(ctx, "entries/a", order{Status: "paid"}, &quorate.WriteOptions{Cas: first.Cas, Prev: true}))(t)
	if second.Prev == nil || second.Prev.Cas != first.Cas {
		t.Errorf("%+v", second)
	}
	old := must(quorate.Get[order](ctx, c, "entries/a", &quorate.ReadOptions{Revision: first.Revision}))(t)
	local := must(c.Get(ctx, "entries/a", &quorate.ReadOptions{Freshness: quorate.Freshness{MinRevision: second.Revision}}))(t)
	if old.Value != big || local.Version != 2 {
		t.Errorf("%+v, %+v", old, local)
	}
	dry := must(c.Remove(ctx, "entries/a", &quorate.WriteOptions{DryRun: true}))(t)
	if !dry.DryRun || !must(c.Exists(ctx, "entries/a"))(t) {
		t.Errorf("%+v", dry)
	}
	tried := must(c.GetAndTouch(ctx, "entries/a", time.Hour, &quorate.WriteOptions{DryRun: true}))(t)
	if !tried.DryRun || must(c.Get(ctx, "entries/a", nil))(t).TTLMs != nil {
		t.Errorf("%+v", tried)
	}
	must(c.Remove(ctx, "entries/a", nil))(t)
	if _, err := c.Get(ctx, "entries/a", nil); !errors.Is(err, quorate.ErrNotFound) || must(c.Exists(ctx, "entries/a"))(t) {
		t.Errorf("%v", err)
	}
	if _, err := c.Replace(ctx, "entries/a", 1, nil); !errors.Is(err, quorate.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestKeysAndValuesOfAllKinds(t *testing.T) {
	c, ctx := node(t), deadline(t)
	for _, key := range []string{"kinds/a b", "kinds/ä/ö?x=1#y%2F", "kinds/../up", "kinds/.", "..", "kinds//", `kinds/"'\`, "kinds/\x01"} {
		must(c.Put(ctx, key, key, nil))(t)
		fresh := &quorate.ReadOptions{Freshness: quorate.Freshness{Local: true}}
		for _, options := range []*quorate.ReadOptions{nil, fresh} {
			if got := must(quorate.Get[string](ctx, c, key, options))(t); got.Value != key || got.Key != key {
				t.Errorf("%q: %+v", key, got)
			}
		}
	}
	for prefix, count := range map[string]int{"kinds/a b": 1, "kinds/ä/ö?x=1#y%2F": 1, "kinds/": 7} {
		if got := collect(t, c.List(ctx, prefix, nil)); len(got) != count {
			t.Errorf("%q: %v", prefix, got)
		}
	}
	if len(collect(t, c.List(ctx, "", nil))) < 8 || must(c.CountWhere(ctx, ""))(t) < 8 {
		t.Error("an empty prefix is that of all")
	}
	for _, data := range [][]byte{{}, {0, 255, 10}} {
		must(c.Put(ctx, "kinds/bytes", data, nil))(t)
		got := must(c.Get(ctx, "kinds/bytes", nil))(t)
		if !bytes.Equal(got.Bytes(), data) || got.ContentType != api.ContentTypeBytes || !errors.Is(got.Decode(new(int)), api.ErrNoJSON) {
			t.Errorf("%v: %+v", data, got)
		}
	}
	must(c.Put(ctx, "kinds/json", json.RawMessage(`{"a": [1.50, null]}`), nil))(t)
	if got := must(c.Get(ctx, "kinds/json", nil))(t); string(got.Bytes()) != `{"a":[1.50,null]}` {
		t.Errorf("%s", got.Value)
	}
	must(c.Put(ctx, "kinds/null", nil, nil))(t)
	if got := must(c.Get(ctx, "kinds/null", nil))(t); string(got.Value) != "null" {
		t.Errorf("%s", got.Value)
	}
}

func TestConditionsAndPatches(t *testing.T) {
	c, ctx := node(t), deadline(t)
	must(c.Put(ctx, "conditions/a", order{Status: "pending", Total: 70}, nil))(t)
	pay := func() (*quorate.Written, error) {
		return c.Patch(ctx, "conditions/a", map[string]string{"status": "paid"}, &quorate.WriteOptions{If: []quorate.Criterion{
			quorate.Where("status", api.OperatorEq, "pending"),
			quorate.Any(quorate.Where("total", api.OperatorBetween, 50, 100), quorate.Not(quorate.Where("total", api.OperatorExists))),
		}})
	}
	must(pay())(t)
	_, err := pay()
	var refusal *quorate.Error
	if !errors.Is(err, quorate.ErrConditionNotMet) || !errors.As(err, &refusal) || refusal.Failed[0].Pointer != "/if/0" ||
		string(refusal.Failed[0].Actual) != `"paid"` || refusal.Current == nil {
		t.Errorf("%+v", err)
	}
	must(c.Increment(ctx, "conditions/a", "total", -1, nil))(t)
	must(c.Patch(ctx, "conditions/a", []quorate.PatchOperator{
		quorate.Set("a", nil), quorate.Append("b", 1), quorate.Now("at"), quorate.Max("total", 1), quorate.Min("total", 69), quorate.Unset("note"),
	}, nil))(t)
	must(c.Patch(ctx, "conditions/a", map[string]any{"a": nil, "b": nil, "at": nil}, nil))(t)
	must(c.Patch(ctx, "conditions/a", json.RawMessage(`[{"op":"test","path":"/total","value":69},{"op":"remove","path":"/status"}]`), nil))(t)
	if got := must(quorate.Get[order](ctx, c, "conditions/a", nil))(t); got.Value != (order{Total: 69}) {
		t.Errorf("%+v", got.Value)
	}
	_, err = c.Put(ctx, "conditions/a", 1, &quorate.WriteOptions{If: []quorate.Criterion{quorate.Where("total", "resembles", 1)}})
	if !errors.Is(err, quorate.ErrInvalidArgument) || !errors.As(err, &refusal) || len(refusal.Faults) == 0 {
		t.Errorf("%+v", err)
	}
}

func TestARequestIDIsAppliedOnce(t *testing.T) {
	c, ctx := node(t), deadline(t)
	id := quorate.NewRequestID()
	first := must(c.Insert(ctx, "ids/a", 1, &quorate.WriteOptions{RequestID: id}))(t)
	again := must(c.Insert(ctx, "ids/a", 1, &quorate.WriteOptions{RequestID: id}))(t)
	outcome := must(c.RequestOutcome(ctx, id))(t)
	if !again.Replayed || again.Cas != first.Cas || outcome.State != api.RequestStateApplied || outcome.Cas != first.Cas {
		t.Errorf("%+v, %+v", again, outcome)
	}
	if _, err := c.Insert(ctx, "ids/b", 1, &quorate.WriteOptions{RequestID: id}); !errors.Is(err, quorate.ErrRequestIDReused) {
		t.Errorf("%v", err)
	}
	if _, err := c.RequestOutcome(ctx, quorate.NewRequestID()); !errors.Is(err, quorate.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestTimeToLiveAndWaits(t *testing.T) {
	c, ctx := node(t), deadline(t)
	must(c.Put(ctx, "ttl/a", 1, &quorate.WriteOptions{TTL: time.Hour}))(t)
	touched := must(c.Touch(ctx, "ttl/a", 2*time.Hour, nil))(t)
	if left, ok := touched.TTL(); !ok || left <= time.Hour {
		t.Errorf("%+v", touched)
	}
	entry := must(c.GetAndTouch(ctx, "ttl/a", 0, nil))(t)
	if _, ok := entry.TTL(); ok || string(entry.Value) != "1" {
		t.Errorf("%+v", entry)
	}
	if same := must(c.WaitForChange(ctx, "ttl/a", entry.Cas, 10*time.Millisecond))(t); same != nil {
		t.Errorf("%+v", same)
	}
	must(c.Put(ctx, "ttl/b", 1, &quorate.WriteOptions{TTL: 100 * time.Millisecond}))(t)
	b := must(c.WaitForChange(ctx, "ttl/b", "", time.Second))(t)
	if _, err := c.WaitForChange(ctx, "ttl/b", b.Cas, 10*time.Second); !errors.Is(err, quorate.ErrNotFound) {
		t.Errorf("it has expired: %v", err)
	}
}

func TestEntryLocks(t *testing.T) {
	c, ctx := node(t), deadline(t)
	must(c.Put(ctx, "held/a", 1, nil))(t)
	locked := must(c.GetAndLock(ctx, "held/a", 20*time.Second, nil))(t)
	if hold, ok := locked.LockTime(); !ok || hold != 20*time.Second || string(locked.Value) != "1" {
		t.Errorf("%+v", locked)
	}
	seen := must(c.Get(ctx, "held/a", nil))(t)
	if seen.Cas != "" || !seen.Locked {
		t.Errorf("%+v", seen)
	}
	_, err := c.LockEntry(ctx, "held/a", time.Second, &quorate.WriteOptions{Wait: 10 * time.Millisecond})
	if !errors.Is(err, quorate.ErrLocked) {
		t.Errorf("%v", err)
	}
	_, err = quorate.Update(ctx, c, "held/a", func(n *int) (*int, error) { return n, nil }, nil)
	var refusal *quorate.Error
	if !errors.Is(err, quorate.ErrLocked) || !errors.As(err, &refusal) || refusal.RetryAfter <= 0 {
		t.Errorf("%+v", err)
	}
	must(c.ExtendEntryLock(ctx, "held/a", locked.Cas, 30*time.Second, nil))(t)
	var waited sync.WaitGroup
	waited.Add(1)
	go func() {
		defer waited.Done()
		next, err := c.LockEntry(ctx, "held/a", 0, &quorate.WriteOptions{Wait: 10 * time.Second})
		if err == nil {
			_, err = c.UnlockEntry(ctx, "held/a", next.Cas, nil)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	must(c.Put(ctx, "held/a", 2, &quorate.WriteOptions{Cas: locked.Cas}))(t)
	waited.Wait()
	if _, err := c.UnlockEntry(ctx, "held/a", locked.Cas, nil); !errors.Is(err, quorate.ErrNotLockHolder) {
		t.Errorf("%v", err)
	}
}

func TestUpdatesLoseNothing(t *testing.T) {
	c, ctx := node(t), deadline(t)
	var all sync.WaitGroup
	for n := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := quorate.Update(ctx, c, "updates/a", func(fields *map[string]int) (*map[string]int, error) {
				if fields == nil {
					fields = &map[string]int{}
				}
				(*fields)[fmt.Sprint(n)] = n
				return fields, nil
			}, nil)
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if got := must(quorate.Get[map[string]int](ctx, c, "updates/a", nil))(t); len(got.Value) != 8 || got.Version != 8 {
		t.Errorf("%+v", got)
	}
	same := must(quorate.Update(ctx, c, "updates/a", func(*map[string]int) (*map[string]int, error) { return nil, nil }, nil))(t)
	if same.Written != nil || len(*same.Value) != 8 {
		t.Errorf("%+v", same)
	}
}

func TestUpdatesKeepTimeAndSession(t *testing.T) {
	c, ctx := node(t), deadline(t)
	session := must(c.NewSession(ctx, nil))(t)
	must(c.Put(ctx, "kept/a", 1, &quorate.WriteOptions{TTL: time.Hour, Session: session.ID()}))(t)
	add := func(n *int) (*int, error) {
		*n++
		return n, nil
	}
	lock := must(session.Lock(ctx, "kept", nil))(t)
	updated := must(quorate.Update(ctx, c, "kept/a", add, &quorate.UpdateOptions{Guard: lock}))(t)
	entry := must(c.Get(ctx, "kept/a", nil))(t)
	if left, ok := entry.TTL(); !ok || left < 50*time.Minute || entry.Session != session.ID() || *updated.Value != 2 {
		t.Errorf("%+v", entry)
	}
	if err := lock.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := quorate.Update(ctx, c, "kept/a", add, &quorate.UpdateOptions{Guard: lock}); !errors.Is(err, quorate.ErrGuardFailed) {
		t.Errorf("%v", err)
	}
	if err := session.End(ctx); err != nil {
		t.Fatal(err)
	}
	if must(c.Exists(ctx, "kept/a"))(t) {
		t.Error("it did not go with its session")
	}
}

// TestAnEntryExpiresInItsTimeHoweverOftenItIsUpdated fails where each update gives back the time that it took itself.
func TestAnEntryExpiresInItsTimeHoweverOftenItIsUpdated(t *testing.T) {
	c, ctx := node(t), deadline(t)
	must(c.Put(ctx, "hits/go", 0, &quorate.WriteOptions{TTL: time.Second}))(t)
	begun, isGone := time.Now(), false
	slow := func(n *int) (*int, error) {
		time.Sleep(100 * time.Millisecond)
		if isGone = n == nil; isGone {
			return nil, nil
		}
		*n++
		return n, nil
	}
	for !isGone {
		if time.Since(begun) > 5*time.Second {
			t.Fatal("it lives on")
		}
		must(quorate.Update(ctx, c, "hits/go", slow, nil))(t)
	}
}

func TestListsFindsAndCounts(t *testing.T) {
	c, ctx := node(t), deadline(t)
	for n := range 25 {
		must(c.Put(ctx, fmt.Sprintf("lists/%02d", n), map[string]int{"n": n}, nil))(t)
	}
	list := func(options *quorate.ListOptions) []string {
		var keys []string
		for _, entry := range collect(t, c.List(ctx, "lists/", options)) {
			keys = append(keys, entry.Key)
		}
		return keys
	}
	if got := list(&quorate.ListOptions{Limit: 10}); len(got) != 25 || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
	if got := list(&quorate.ListOptions{Limit: 10, Reverse: true, KeysOnly: true}); len(got) != 25 || got[0] != "lists/24" {
		t.Errorf("%v", got)
	}
	between := collect(t, c.List(ctx, "", &quorate.ListOptions{Start: "lists/03", End: "lists/06"}))
	if len(between) != 3 || must(c.Count(ctx, "lists/", nil))(t) != 25 {
		t.Errorf("%v", between)
	}
	sized := collect(t, c.List(ctx, "lists/", &quorate.ListOptions{Limit: 10, KeysOnly: true, Sizes: true}))
	if len(sized) != 25 || sized[24].Value != nil || sized[24].ValueBytes != uint64(len(`{"n":24}`)) || between[0].ValueBytes != 0 {
		t.Errorf("%+v", sized)
	}
	for range c.List(ctx, "lists/", &quorate.ListOptions{Limit: 5}) {
		break
	}
	found := collect(t, c.Find(ctx, "lists/", &quorate.FindOptions{
		Where: []quorate.Criterion{quorate.Where("n", api.OperatorGte, 10)}, OrderBy: []string{"-n"}, Limit: 4, Fields: []string{"n"},
	}))
	if len(found) != 15 || found[0].Key != "lists/24" {
		t.Errorf("%v", found)
	}
	if got := must(c.CountWhere(ctx, "lists/", quorate.Where("n", api.OperatorLt, 5)))(t); got != 5 {
		t.Errorf("%d", got)
	}
	for _, err := range c.Find(ctx, "lists/", &quorate.FindOptions{Limit: -1}) {
		if !errors.Is(err, quorate.ErrInvalidArgument) {
			t.Errorf("%v", err)
		}
	}
}

func TestHistory(t *testing.T) {
	c, ctx := node(t), deadline(t)
	for _, value := range []int{1, 2} {
		must(c.Put(ctx, "past/a", value, nil))(t)
	}
	must(c.Remove(ctx, "past/a", nil))(t)
	versions := collect(t, c.History(ctx, "past/a"))
	if len(versions) != 3 || string(versions[1].Entry.Value) != "2" || versions[2].Entry != nil {
		t.Errorf("%+v", versions)
	}
}

func TestBulksAndTransactions(t *testing.T) {
	c, ctx := node(t), deadline(t)
	parts := []quorate.Op{
		quorate.OpInsert("batch/a", 1, nil), quorate.OpInsert("batch/a", 2, nil), quorate.OpReplace("batch/none", 3, nil),
		quorate.OpTouch("batch/a", time.Hour, nil),
	}
	done := must(c.Bulk(ctx, parts, &quorate.BatchOptions{FailuresOnly: true}))(t)
	if done.Applied != 2 || done.Skipped != 1 || done.Failed != 1 || done.Results[0].Code != api.ErrorCodeNotFound {
		t.Errorf("%+v", done)
	}
	if _, err := c.Bulk(ctx, []quorate.Op{quorate.OpPut("", 1, nil)}, nil); !errors.Is(err, quorate.ErrInvalidArgument) {
		t.Errorf("%v", err)
	}
	must(c.Put(ctx, "batch/ann", map[string]int{"balance": 50}, nil))(t)
	must(c.Put(ctx, "batch/ben", map[string]int{"balance": 10}, nil))(t)
	pay := quorate.Txn{
		If: []quorate.Check{
			{Key: "batch/ann", Exists: true, Where: []quorate.Criterion{quorate.Where("balance", api.OperatorGte, 40)}},
			{Key: "batch/nobody", Absent: true},
		},
		Then: []quorate.Step{
			quorate.OpPatch("batch/ann", []quorate.PatchOperator{quorate.Inc("balance", -40)}, nil),
			quorate.Txn{Then: []quorate.Step{quorate.OpPatch("batch/ben", []quorate.PatchOperator{quorate.Inc("balance", 40)}, nil)}},
		},
		Else: []quorate.Step{quorate.OpGet("batch/ann")},
	}
	first := must(c.Txn(ctx, pay, nil))(t)
	second := must(c.Txn(ctx, pay, nil))(t)
	if !first.Succeeded || second.Succeeded || second.Failed[0].Key != "batch/ann" || string(second.Results[0].Entry.Value) != `{"balance":10}` {
		t.Errorf("%+v\n%+v", first, second)
	}
	if ben := must(quorate.Get[map[string]int](ctx, c, "batch/ben", nil))(t); ben.Value["balance"] != 50 {
		t.Errorf("%+v", ben)
	}
	bad := quorate.Txn{Then: []quorate.Step{quorate.OpPut("batch/x", 1, nil), quorate.OpInsert("batch/ann", 1, nil)}}
	if _, err := c.Txn(ctx, bad, nil); !errors.Is(err, quorate.ErrAlreadyExists) || must(c.Exists(ctx, "batch/x"))(t) {
		t.Errorf("%v", err)
	}
}

func TestStreams(t *testing.T) {
	c, ctx := node(t), deadline(t)
	must(c.Put(ctx, "streams/there", 1, nil))(t)
	ops := []quorate.Op{quorate.OpInsert("streams/there", 2, nil), quorate.OpGet("streams/there"), quorate.OpGet("streams/none")}
	for n := range 2500 {
		ops = append(ops, quorate.OpPut(fmt.Sprintf("streams/%d", n), strings.Repeat("x", 1000), nil))
	}
	done := make([]*quorate.Streamed, len(ops))
	for one := range c.Stream(ctx, slices.Values(ops)) {
		done[one.N] = one
	}
	if !errors.Is(done[0].Err, quorate.ErrAlreadyExists) || string(done[1].Entry.Value) != "1" || !errors.Is(done[2].Err, quorate.ErrNotFound) {
		t.Errorf("%+v, %+v, %+v", done[0], done[1], done[2])
	}
	for _, one := range done[3:] {
		if one.Err != nil || one.Written.Version != 1 {
			t.Fatalf("%+v", one)
		}
	}
	if count := must(c.Count(ctx, "streams/", nil))(t); count != 2501 {
		t.Errorf("%d", count)
	}
}

func TestChangesOfAllThatMatchAndClaims(t *testing.T) {
	c, ctx := node(t), deadline(t)
	for n := range 6 {
		must(c.Put(ctx, fmt.Sprintf("jobs/%d", n), map[string]any{"n": n, "state": "open"}, nil))(t)
	}
	parts := collect(t, quorate.Parts(&quorate.WhereOptions{Where: []quorate.Criterion{quorate.Where("n", api.OperatorLt, 5)}, Limit: 2},
		func(options *quorate.WhereOptions) (*api.WhereAnswer, error) {
			return c.UpdateWhere(ctx, "jobs/", map[string]string{"state": "due"}, options)
		}))
	applied := uint64(0)
	for _, part := range parts {
		applied += part.Applied
	}
	if applied != 5 || len(parts) < 3 {
		t.Errorf("%d in %d parts", applied, len(parts))
	}
	claims := must(c.Claim(ctx, "jobs/", &quorate.ClaimOptions{
		Where: []quorate.Criterion{quorate.Where("state", api.OperatorEq, "due")}, OrderBy: []string{"-n"}, Limit: 2, Hold: 20 * time.Second,
		Patch: []quorate.PatchOperator{quorate.Inc("tries", 1)},
	}))(t)
	if len(claims.Entries) != 2 || claims.Entries[0].Key != "jobs/4" {
		t.Fatalf("%+v", claims)
	}
	must(c.Remove(ctx, claims.Entries[0].Key, &quorate.WriteOptions{Cas: claims.Entries[0].Cas}))(t)
	must(c.UnlockEntry(ctx, claims.Entries[1].Key, claims.Entries[1].Cas, nil))(t)
	gone := must(c.DeleteWhere(ctx, "jobs/", &quorate.WhereOptions{DryRun: true}))(t)
	if gone.Matched != 5 || !gone.DryRun {
		t.Errorf("%+v", gone)
	}
}

func TestCollectionsAndSequences(t *testing.T) {
	c, ctx := node(t), deadline(t)
	rules := api.CollectionRules{
		Fields:   map[string]api.FieldRule{"number": {Type: api.FieldTypeLong, Sequence: "members"}, "role": {Default: json.RawMessage(`"guest"`)}},
		Required: []string{"email"}, Indexes: []api.IndexRule{{Fields: []string{"email"}, Unique: true}, {Fields: []string{"role", "number"}}},
	}
	made := must(c.PutCollection(ctx, "members", rules, &quorate.CollectionOptions{IfAbsent: true}))(t)
	if _, err := c.PutCollection(ctx, "members", rules, &quorate.CollectionOptions{IfAbsent: true}); !errors.Is(err, quorate.ErrAlreadyExists) {
		t.Errorf("%v", err)
	}
	must(c.Insert(ctx, "members/ann", map[string]string{"email": "a@x"}, nil))(t)
	if _, err := c.Insert(ctx, "members/ben", map[string]string{"email": "a@x"}, nil); !errors.Is(err, quorate.ErrUniqueViolation) {
		t.Errorf("%v", err)
	}
	if _, err := c.Insert(ctx, "members/cid", map[string]int{}, nil); !errors.Is(err, quorate.ErrInvalidDocument) {
		t.Errorf("%v", err)
	}
	seen := must(c.Collection(ctx, "members"))(t)
	if len(seen.Rules.Indexes) != 2 || !seen.Rules.Indexes[0].Unique || seen.Rules.Indexes[1].Fields[1] != "number" || seen.Cas != made.Cas {
		t.Errorf("%+v", seen)
	}
	if all := collect(t, c.Collections(ctx)); len(all) != 1 || must(c.Sequence(ctx, "members"))(t).Value != 1 {
		t.Errorf("%+v", all)
	}
	taken := must(c.NextNumbers(ctx, "tickets", 10, ""))(t)
	if taken.First != 1 || taken.Last != 10 {
		t.Errorf("%+v", taken)
	}
	must(c.DeleteCollection(ctx, "members", &quorate.CollectionOptions{Cas: seen.Cas}))(t)
	if _, err := c.Collection(ctx, "members"); !errors.Is(err, quorate.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestWatches(t *testing.T) {
	c, ctx := node(t), deadline(t)
	must(c.Put(ctx, "watched/a", 1, nil))(t)
	watch := must(c.Watch(ctx, "watched/", &quorate.WatchOptions{Initial: true, Prev: true}))(t)
	filtered := must(c.Watch(ctx, "watched/", &quorate.WatchOptions{
		Where: []quorate.Criterion{quorate.Where("n", api.OperatorGt, 5)}, KeysOnly: true, Only: quorate.EventPut,
	}))(t)
	written := must(c.Put(ctx, "watched/a", map[string]int{"n": 1}, nil))(t)
	txn := quorate.Txn{Then: []quorate.Step{quorate.OpPut("watched/b", map[string]int{"n": 7}, nil), quorate.OpRemove("watched/a", nil)}}
	must(c.Txn(ctx, txn, nil))(t)
	var got []string
	for event, err := range watch.Events() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %v %v %s", event.Kind, event.Key, event.Initial, event.Prev != nil, event.Cause))
		if len(got) == 5 {
			break
		}
	}
	expected := []string{
		"put watched/a true false ", "synced  false false ", "put watched/a false true ", "put watched/b false false ",
		"delete watched/a false true removed",
	}
	if !slices.Equal(got, expected) {
		t.Errorf("%q", got)
	}
	if event := must(filtered.Next())(t); event.Key != "watched/b" || event.Entry.Value != nil {
		t.Errorf("%+v", event)
	}
	filtered.Close()
	if _, err := filtered.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	key := must(c.Watch(ctx, "", &quorate.WatchOptions{Key: "watched/a", From: written.Revision}))(t)
	if event := must(key.Next())(t); event.Revision != written.Revision || event.Entry.Cas != written.Cas {
		t.Errorf("%+v", event)
	}
	if _, err := c.Watch(ctx, "a", &quorate.WatchOptions{Key: "b"}); !errors.Is(err, quorate.ErrInvalidArgument) {
		t.Errorf("%v", err)
	}
}

func TestMirrors(t *testing.T) {
	c, ctx := node(t), deadline(t)
	must(c.Put(ctx, "hosts/1", map[string]string{"zone": "a"}, nil))(t)
	mirror := must(c.Mirror(ctx, "hosts/", &quorate.MirrorOptions{IndexBy: []string{"zone"}}))(t)
	defer mirror.Close()
	changes := mirror.Changes(ctx)
	written := must(c.Put(ctx, "hosts/2", map[string]string{"zone": "a"}, nil))(t)
	must(mirror.Sync(ctx))(t)
	if found := must(mirror.FindBy("zone", "a"))(t); len(found) != 2 || mirror.Len() != 2 || mirror.Get("hosts/2").Cas != written.Cas {
		t.Errorf("%v", found)
	}
	if change := <-changes; change.Key != "hosts/2" || change.Before != nil || change.Revision != written.Revision {
		t.Errorf("%+v", change)
	}
	removed := must(c.Remove(ctx, "hosts/1", nil))(t)
	must(mirror.WaitFor(ctx, removed.Revision))(t)
	if list := mirror.List("hosts/"); len(list) != 1 || mirror.Err() != nil || mirror.Staleness() > 10*time.Second {
		t.Errorf("%v", list)
	}
	if _, err := mirror.FindBy("name", 1); !errors.Is(err, quorate.ErrInvalidArgument) {
		t.Errorf("%v", err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := mirror.WaitFor(short, removed.Revision+1000); !errors.Is(err, quorate.ErrBehind) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestWorkersShareAPrefixByParts(t *testing.T) {
	c, ctx := node(t), deadline(t)
	var puts []quorate.Op
	var all []string
	for n := range 20 {
		all = append(all, fmt.Sprintf("parts/%02d", n))
		puts = append(puts, quorate.OpPut(all[n], n, nil))
	}
	var watches []*quorate.Watch
	for index := range 2 {
		part := quorate.Part{Index: index, Of: 2}
		watches = append(watches, must(c.Watch(ctx, "parts/", &quorate.WatchOptions{Part: part}))(t))
	}
	must(c.Bulk(ctx, puts, nil))(t)
	var union []string
	for index, watch := range watches {
		part := quorate.Part{Index: index, Of: 2}
		var listed, watched, mirrored []string
		for _, entry := range collect(t, c.List(ctx, "parts/", &quorate.ListOptions{Part: part, Limit: 3})) {
			listed = append(listed, entry.Key)
			watched = append(watched, must(watch.Next())(t).Key)
		}
		mirror := must(c.Mirror(ctx, "parts/", &quorate.MirrorOptions{Part: part}))(t)
		for _, entry := range mirror.List("") {
			mirrored = append(mirrored, entry.Key)
		}
		mirror.Close()
		slices.Sort(watched)
		if !slices.Equal(listed, watched) || !slices.Equal(listed, mirrored) {
			t.Errorf("%q, %q, %q", listed, watched, mirrored)
		}
		union = append(union, listed...)
	}
	slices.Sort(union)
	if !slices.Equal(union, all) {
		t.Errorf("%q", union)
	}
	for _, part := range []quorate.Part{{Index: 2, Of: 2}, {Index: 1}, {Index: -1, Of: 2}} {
		if _, err := c.Watch(ctx, "parts/", &quorate.WatchOptions{Part: part}); !errors.Is(err, quorate.ErrInvalidArgument) {
			t.Errorf("%+v: %v", part, err)
		}
	}
}

func TestLocksAndSemaphores(t *testing.T) {
	c, ctx := node(t), deadline(t)
	ann, ben := must(c.NewSession(ctx, &quorate.SessionOptions{Owner: "ann"}))(t), must(c.NewSession(ctx, nil))(t)
	held := must(ann.Lock(ctx, "books", nil))(t)
	if _, err := ann.Lock(ctx, "books", nil); !errors.Is(err, quorate.ErrInvalidArgument) {
		t.Errorf("a session has a lock once: %v", err)
	}
	if _, err := ben.TryLock(ctx, "books", nil); !errors.Is(err, quorate.ErrLocked) {
		t.Errorf("%v", err)
	}
	if _, err := ben.Lock(ctx, "books", &quorate.LockOptions{Wait: 20 * time.Millisecond}); !errors.Is(err, quorate.ErrLocked) {
		t.Errorf("%v", err)
	}
	given, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := ben.Lock(given, "books", nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := ben.Lock(given, "books", nil); err == nil || errors.Is(err, quorate.ErrUnknownOutcome) || !strings.Contains(err.Error(), "held by ann, session "+ann.ID()) {
		t.Errorf("%v", err)
	}
	token := must(held.Token())(t)
	must(c.CheckLock(ctx, "books", token))(t)
	if err := held.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
	next := must(ben.Lock(ctx, "books", nil))(t)
	if after := must(next.Token())(t); after <= token {
		t.Errorf("%d is not greater than %d", after, token)
	}
	if _, err := c.Put(ctx, "books/sum", 1, &quorate.WriteOptions{Guard: held}); !errors.Is(err, quorate.ErrGuardFailed) {
		t.Errorf("%v", err)
	}
	info := must(c.LockInfo(ctx, "books"))(t)
	if len(info.Holders) != 1 || info.WaiterCount != 0 || len(collect(t, c.Locks(ctx))) == 0 {
		t.Errorf("a place is left in the queue: %+v", info)
	}
	must(c.ReleaseLock(ctx, "books", next.Guard().Token))(t)
	if err := next.Unlock(ctx); !errors.Is(err, quorate.ErrNotLockHolder) {
		t.Errorf("%v", err)
	}
	must(ann.Lock(ctx, "taken", nil))(t)
	must(c.ReleaseLockOf(ctx, "taken", ann.ID()))(t)
	if info := must(c.LockInfo(ctx, "taken"))(t); len(info.Holders) != 0 {
		t.Errorf("%+v", info)
	}
	must(ann.Campaign(ctx, "taken", nil))(t)
	must(c.ResignOf(ctx, "taken", ann.ID()))(t)
	if leader := must(c.Leader(ctx, "taken"))(t); leader != nil {
		t.Errorf("%+v", leader)
	}
	slots := &quorate.LockOptions{Slots: 2}
	must(ann.Lock(ctx, "encoder", slots))(t)
	must(ben.Lock(ctx, "encoder", slots))(t)
	other := must(c.NewSession(ctx, nil))(t)
	if _, err := other.TryLock(ctx, "encoder", slots); !errors.Is(err, quorate.ErrLocked) {
		t.Errorf("%v", err)
	}
	if _, err := other.TryLock(ctx, "encoder", &quorate.LockOptions{Slots: 3}); !errors.Is(err, quorate.ErrDifferentSettings) {
		t.Errorf("%v", err)
	}
	if _, err := other.Lock(ctx, "encoder", &quorate.LockOptions{Slots: 2, MaxWaiters: 1001}); !errors.Is(err, quorate.ErrInvalidArgument) {
		t.Errorf("%v", err)
	}
	must(ann.Lock(ctx, "config", &quorate.LockOptions{Shared: true}))(t)
	must(ben.TryLock(ctx, "config", &quorate.LockOptions{Shared: true}))(t)
	if _, err := other.TryLock(ctx, "config", nil); !errors.Is(err, quorate.ErrLocked) {
		t.Errorf("%v", err)
	}
}

func TestWhatHangsOnASessionGoesWithIt(t *testing.T) {
	c, ctx := node(t), deadline(t)
	session := must(c.NewSession(ctx, &quorate.SessionOptions{TTL: 5 * time.Second, Owner: "web", Labels: map[string]string{"zone": "a"}}))(t)
	must(c.Put(ctx, "services/web", 1, &quorate.WriteOptions{Session: session.ID()}))(t)
	lock := must(session.Lock(ctx, "web", nil))(t)
	info := must(c.SessionInfo(ctx, session.ID()))(t)
	if info.Owner != "web" || info.Labels["zone"] != "a" || info.Holds == nil || len(info.Holds.Locks) != 1 || len(collect(t, c.Sessions(ctx))) == 0 {
		t.Errorf("%+v", info)
	}
	must(c.RenewSession(ctx, session.ID()))(t)
	// Somebody else ends it; the next renewal tells.
	must(c.EndSession(ctx, session.ID()))(t)
	<-lock.Done()
	if _, err := lock.Token(); !errors.Is(err, quorate.ErrSessionExpired) || session.Loss() != quorate.LossExpired {
		t.Errorf("%v, %s", err, session.Loss())
	}
	if must(c.Exists(ctx, "services/web"))(t) {
		t.Error("the entry is still there")
	}
	if err := session.End(ctx); err != nil {
		t.Errorf("it had ended by itself: %v", err)
	}
	if _, err := c.RenewSession(ctx, session.ID()); !errors.Is(err, quorate.ErrSessionExpired) {
		t.Errorf("%v", err)
	}
}

func TestElections(t *testing.T) {
	c, ctx := node(t), deadline(t)
	seen := must(c.Observe(ctx, "scheduler"))(t)
	if first := must(seen.Next())(t); first.Leader != nil {
		t.Errorf("%+v", first)
	}
	ann, ben := must(c.NewSession(ctx, nil))(t), must(c.NewSession(ctx, nil))(t)
	leads := must(ann.Campaign(ctx, "scheduler", &quorate.CampaignOptions{Value: "10.0.0.7"}))(t)
	if _, err := ben.Campaign(ctx, "scheduler", &quorate.CampaignOptions{Wait: 20 * time.Millisecond}); !errors.Is(err, quorate.ErrLocked) {
		t.Errorf("%v", err)
	}
	if _, err := ben.TryCampaign(ctx, "scheduler", nil); !errors.Is(err, quorate.ErrLocked) {
		t.Errorf("%v", err)
	}
	if stand := must(c.Election(ctx, "scheduler"))(t).Candidates; len(stand) != 0 {
		t.Errorf("who only tried stands: %+v", stand)
	}
	must(leads.Proclaim(ctx, map[string]int{"port": 1}))(t)
	must(c.Put(ctx, "schedule/last", 1, &quorate.WriteOptions{Guard: leads}))(t)
	leader := must(c.Leader(ctx, "scheduler"))(t)
	if leader == nil || string(leader.Value) != `{"port":1}` || leader.Term != must(leads.Term())(t) {
		t.Errorf("%+v", leader)
	}
	if err := leads.Resign(ctx); err != nil {
		t.Fatal(err)
	}
	var values []string
	for change, err := range seen.Changes() {
		if err != nil {
			t.Fatal(err)
		}
		if change.Leader == nil {
			break
		}
		values = append(values, string(change.Leader.Value))
	}
	if !slices.Equal(values, []string{`"10.0.0.7"`, `{"port":1}`}) {
		t.Errorf("%q", values)
	}
	if leader := must(c.Leader(ctx, "scheduler"))(t); leader != nil {
		t.Errorf("%+v", leader)
	}
	again := must(ben.TryCampaign(ctx, "scheduler", &quorate.CampaignOptions{Wait: time.Minute}))(t)
	must(c.ResignLeader(ctx, "scheduler", again.Guard().Token))(t)
}

func TestBarriersAndLatches(t *testing.T) {
	c, ctx := node(t), deadline(t)
	one, other := must(c.NewSession(ctx, nil))(t), must(c.NewSession(ctx, nil))(t)
	if alone := must(one.EnterBarrier(ctx, "both", 2, &quorate.BarrierOptions{Wait: 20 * time.Millisecond}))(t); alone.State != api.BarrierStateWaiting {
		t.Errorf("%+v", alone)
	}
	var all sync.WaitGroup
	for _, session := range []*quorate.Session{one, other} {
		all.Add(1)
		go func() {
			defer all.Done()
			entered, err := session.EnterBarrier(ctx, "both", 2, nil)
			if err != nil || entered.State != api.BarrierStateOpen {
				t.Errorf("%+v, %v", entered, err)
			}
			if _, err := session.LeaveBarrier(ctx, "both", nil); err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if empty := must(c.Barrier(ctx, "both"))(t); empty.State != api.BarrierStateEmpty {
		t.Errorf("%+v", empty)
	}
	must(c.CreateLatch(ctx, "copied", 2))(t)
	if _, err := c.CreateLatch(ctx, "copied", 3); !errors.Is(err, quorate.ErrDifferentSettings) {
		t.Errorf("%v", err)
	}
	if still := must(c.WaitLatch(ctx, "copied", 20*time.Millisecond))(t); still.Open || still.Left != 2 {
		t.Errorf("%+v", still)
	}
	must(c.CountDown(ctx, "copied", 2))(t)
	if open := must(c.WaitLatch(ctx, "copied", 5*time.Second))(t); !open.Open {
		t.Errorf("%+v", open)
	}
	must(c.DeleteLatch(ctx, "copied"))(t)
	if _, err := c.Latch(ctx, "copied"); !errors.Is(err, quorate.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestTasks(t *testing.T) {
	c, ctx := node(t), deadline(t)
	queue := c.Tasks("mails")
	first := must(queue.Schedule(ctx, map[string]string{"to": "ann"}, &quorate.TaskOptions{ID: "welcome/7", MaxAttempts: 2}))(t)
	again := must(queue.Schedule(ctx, 1, &quorate.TaskOptions{ID: "welcome/7"}))(t)
	if !first.Created || again.Created {
		t.Errorf("%+v, %+v", first, again)
	}
	must(queue.Schedule(ctx, []byte{1}, &quorate.TaskOptions{ID: "later", At: time.Now().Add(time.Hour)}))(t)
	must(queue.Schedule(ctx, nil, &quorate.TaskOptions{ID: "daily", Cron: "0 3 * * *", Zone: "Europe/Berlin"}))(t)
	tasks := must(queue.Claim(ctx, &quorate.ClaimTasksOptions{Limit: 5, Lease: time.Minute, Wait: time.Second, Worker: "w"}))(t)
	if len(tasks) != 1 || tasks[0].ID != "welcome/7" || time.Until(tasks[0].HeldUntil()) > time.Minute {
		t.Fatalf("%+v", tasks)
	}
	must(tasks[0].Extend(ctx, time.Minute))(t)
	must(tasks[0].Fail(ctx, "no such address"))(t)
	if _, err := tasks[0].Complete(ctx); !errors.Is(err, quorate.ErrNotLockHolder) {
		t.Errorf("%v", err)
	}
	view := must(queue.Get(ctx, "welcome/7"))(t)
	if view.LastError != "no such address" || view.State != api.TaskStateScheduled {
		t.Errorf("%+v", view)
	}
	if _, err := queue.Schedule(ctx, 1, &quorate.TaskOptions{Cron: "0 0 30 2 *"}); !errors.Is(err, quorate.ErrInvalidArgument) {
		t.Errorf("%v", err)
	}
	specs := []api.TaskSpec{must((&quorate.TaskOptions{ID: "m1"}).Spec(1))(t), must((*quorate.TaskOptions)(nil).Spec("x"))(t)}
	if all := must(queue.ScheduleAll(ctx, specs, ""))(t); all.Created != 2 {
		t.Errorf("%+v", all)
	}
	if listed := collect(t, queue.List(ctx, "")); len(listed) != 5 {
		t.Errorf("%+v", listed)
	}
	must(queue.Cancel(ctx, "later"))(t)
	if stats := must(queue.Stats(ctx))(t); stats.CancelledTotal != 1 || len(collect(t, c.TaskQueues(ctx))) == 0 {
		t.Errorf("%+v", stats)
	}
}

func TestAWorkerDoesEachTaskOnce(t *testing.T) {
	c, ctx := node(t), deadline(t)
	queue := c.Tasks("parcels")
	for n := range 4 {
		must(queue.Schedule(ctx, n, &quorate.TaskOptions{ID: fmt.Sprint(n), Backoff: &api.TaskBackoff{InitialMs: ms(1)}, MaxAttempts: 3}))(t)
	}
	must(queue.Schedule(ctx, 9, &quorate.TaskOptions{ID: "bad"}))(t)
	must(queue.Schedule(ctx, 9, &quorate.TaskOptions{ID: "panics", MaxAttempts: 1}))(t)
	working, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	done := map[string]int{}
	handler := func(ctx context.Context, task *quorate.Task) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case task.ID == "bad":
			return &quorate.TaskError{Err: errors.New("no such parcel"), Dead: true}
		case task.ID == "panics":
			panic("oh")
		case task.ID == "0" && task.Attempt == 1:
			return errors.New("not yet")
		}
		var n int
		if err := task.Decode(&n); err != nil {
			return err
		}
		if done[task.ID]++; len(done) == 4 {
			stop()
		}
		return nil
	}
	report, err := queue.Work(working, handler, &quorate.WorkerOptions{Concurrency: 2, Lease: 5 * time.Second, Name: "w"})
	if err != nil || report.Completed != 4 || report.Failed != 3 || report.Lost != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	for id, times := range done {
		if times != 1 {
			t.Errorf("%s was done %d times", id, times)
		}
	}
	dead := collect(t, queue.List(ctx, api.TaskStateDead))
	if len(dead) != 2 || must(queue.Requeue(ctx, "bad"))(t).Count != 1 || must(queue.RequeueOldest(ctx, 10))(t).Count != 1 {
		t.Errorf("%+v", dead)
	}
}

func TestAWorkerGivesBackWhatItDoesNotFinish(t *testing.T) {
	c, ctx := node(t), deadline(t)
	queue := c.Tasks("long")
	must(queue.Schedule(ctx, 1, &quorate.TaskOptions{ID: "one"}))(t)
	working, stop := context.WithCancel(ctx)
	defer stop()
	report, err := queue.Work(working, func(ctx context.Context, _ *quorate.Task) error {
		stop()
		<-ctx.Done()
		return ctx.Err()
	}, &quorate.WorkerOptions{StopWithin: 10 * time.Millisecond})
	if err != nil || report.Released != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if view := must(queue.Get(ctx, "one"))(t); view.State != api.TaskStateScheduled || view.Attempts != 0 {
		t.Errorf("%+v", view)
	}
}

func TestAWorkerIsToldThatAClaimIsLost(t *testing.T) {
	c, ctx := node(t), deadline(t)
	queue := c.Tasks("stolen")
	must(queue.Schedule(ctx, 1, &quorate.TaskOptions{ID: "one"}))(t)
	working, stop := context.WithCancel(ctx)
	defer stop()
	report, err := queue.Work(working, func(ctx context.Context, _ *quorate.Task) error {
		if _, err := queue.Cancel(ctx, "one"); err != nil {
			return err
		}
		<-ctx.Done()
		stop()
		if !errors.Is(context.Cause(ctx), quorate.ErrClaimLost) {
			t.Errorf("%v", context.Cause(ctx))
		}
		return nil
	}, &quorate.WorkerOptions{Lease: time.Second})
	if err != nil || report.Lost != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func ms(n uint64) *uint64 { return &n }

func TestTheClusterAboutItself(t *testing.T) {
	c, ctx := node(t), deadline(t)
	status := must(c.Status(ctx))(t)
	if all := c.StatusOfAll(ctx); len(all) != 1 || all[0].Err != nil || all[0].Status.ClusterID != status.ClusterID {
		t.Errorf("%+v", all)
	}
	if members := must(c.Members(ctx))(t); len(members.Members) != 1 || !members.Members[0].Leader {
		t.Errorf("%+v", members)
	}
	if limits := must(c.Limits(ctx))(t); limits.KeyBytes != 4096 {
		t.Errorf("%+v", limits)
	}
	must(c.ServerVersion(ctx))(t)
	must(c.Digest(ctx))(t)
	must(c.Faults(ctx))(t)
	if all := c.MetricsOfAll(ctx); len(all) != 1 || all[0].Err != nil || !strings.HasSuffix(all[0].Text, "# EOF\n") {
		t.Errorf("%+v", all)
	}
	if _, err := c.RemoveMember(ctx, 1, nil); !errors.Is(err, quorate.ErrChangeRefused) {
		t.Errorf("%v", err)
	}
	if _, err := c.PromoteMember(ctx, 9, nil); err == nil {
		t.Error("there is no member 9")
	}
}

func TestBackups(t *testing.T) {
	c, ctx := node(t), deadline(t)
	path := filepath.Join(t.TempDir(), "monday.backup")
	saved := must(c.SaveBackup(ctx, path, nil))(t)
	var stream bytes.Buffer
	made := must(c.Backup(ctx, &stream, &quorate.BackupOptions{Local: true}))(t)
	if saved.Bytes == 0 || saved.Rows == 0 || saved.Revision == 0 || int64(stream.Len()) != made.Bytes {
		t.Errorf("%+v, %+v", saved, made)
	}
	if _, err := c.SaveBackup(ctx, path, nil); !errors.Is(err, quorate.ErrInvalidArgument) {
		t.Errorf("a backup replaces nothing: %v", err)
	}
	if left, err := filepath.Glob(path + ".part*"); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestUsersRolesAndTokens(t *testing.T) {
	c, ctx := quoratetest.Start(t, nil).Client(t, nil), deadline(t)
	must(c.SetRole(ctx, "reader", api.Grant{Permission: api.PermissionRead, Prefix: "public/"}))(t)
	must(c.SetUser(ctx, "app", "reader"))(t)
	if _, err := c.SetUser(ctx, "app", "none"); !errors.Is(err, quorate.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := c.RemoveRole(ctx, "reader"); !errors.Is(err, quorate.ErrInUse) {
		t.Errorf("%v", err)
	}
	token := must(c.CreateToken(ctx, "app", &quorate.TokenOptions{ExpiresIn: time.Hour, Note: "n"}))(t)
	if token.Token == "" || len(collect(t, c.Tokens(ctx))) != 1 || len(collect(t, c.Users(ctx))) != 1 || len(collect(t, c.Roles(ctx))) != 1 {
		t.Errorf("%+v", token)
	}
	if user := must(c.User(ctx, "app"))(t); !slices.Equal(user.Roles, []string{"reader"}) || len(must(c.Role(ctx, "reader"))(t).Grants) != 1 {
		t.Errorf("%+v", user)
	}
	must(c.WhoAmI(ctx))(t)
	must(c.RemoveToken(ctx, token.ID))(t)
	must(c.RemoveUser(ctx, "app"))(t)
	must(c.RemoveRole(ctx, "reader"))(t)
}
