package quorate_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	quorate "quorate.dev/go"
	"quorate.dev/go/api"
)

// The ten lines that the README opens with.
func Example() {
	type Stock struct{ Left int }
	ctx := context.Background()

	client, err := quorate.FromEnv() // the nodes in QUORATE_ENDPOINTS
	check(err)
	defer client.Close()
	first, err := client.Put(ctx, "stock/pears", Stock{Left: 5}, nil)
	check(err)
	_, err = client.Put(ctx, "stock/pears", Stock{Left: 4}, &quorate.WriteOptions{Cas: first.Cas})
	check(err)

	// A write on an old version is refused, and shows what is there.
	_, err = client.Put(ctx, "stock/pears", Stock{Left: 3}, &quorate.WriteOptions{Cas: first.Cas})
	var refusal *quorate.Error
	if errors.Is(err, quorate.ErrCasMismatch) && errors.As(err, &refusal) {
		fmt.Printf("refused: %s, applied: %s\n", refusal.Current.Value, refusal.Applied)
	}

	// Reads the entry, changes it, writes it back if nobody else did meanwhile; else tries again.
	updated, err := quorate.Update(ctx, client, "stock/pears", func(stock *Stock) (*Stock, error) {
		return &Stock{Left: stock.Left - 1}, nil
	}, nil)
	check(err)
	fmt.Println(updated.Value.Left, "pears left")

	// Whatever happens to this process, a write under the lock is applied only while the lock is ours.
	session, err := client.NewSession(ctx, nil)
	check(err)
	lock, err := session.Lock(ctx, "stock", nil)
	check(err)
	counted, err := client.Put(ctx, "stock/counted", true, &quorate.WriteOptions{Guard: lock})
	check(err)
	check(lock.Unlock(ctx))

	watch, err := client.Watch(ctx, "stock/", &quorate.WatchOptions{From: counted.Revision})
	check(err)
	for event, err := range watch.Events() {
		check(err)
		fmt.Println(event.Kind, event.Key)
		break
	}
	// Output:
	// refused: {"Left":4}, applied: no
	// 3 pears left
	// put stock/counted
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// An error says what is known: whether it was applied, and what to do about it.
func ExampleError() {
	ctx := context.Background()
	client, err := quorate.FromEnv()
	check(err)
	defer client.Close()

	_, err = client.Patch(ctx, "orders/o1", map[string]string{"status": "paid"}, nil)
	var refusal *quorate.Error
	switch {
	case err == nil:
		fmt.Println("paid")
	case errors.Is(err, quorate.ErrNotFound):
		fmt.Println("there is no such order")
	case errors.Is(err, quorate.ErrUnknownOutcome) && errors.As(err, &refusal):
		fmt.Println("ask what became of", refusal.RequestID)
	default:
		fmt.Println("not now:", err)
	}
	// Output: there is no such order
}

// Conditions on fields: a transition that happens once.
func ExampleWhere() {
	ctx := context.Background()
	client, err := quorate.FromEnv()
	check(err)
	defer client.Close()
	_, err = client.Put(ctx, "orders/o90", map[string]any{"status": "pending", "total": 70}, nil)
	check(err)

	paid := map[string]string{"status": "paid"}
	pending := []quorate.Criterion{
		quorate.Where("status", api.OperatorEq, "pending"),
		quorate.Where("total", api.OperatorGte, 50),
	}
	for range 2 {
		_, err = client.Patch(ctx, "orders/o90", paid, &quorate.WriteOptions{If: pending})
		fmt.Println(errors.Is(err, quorate.ErrConditionNotMet))
	}
	// Output:
	// false
	// true
}

// Pages are fetched as the loop goes on, and show one revision.
func ExampleClient_List() {
	ctx := context.Background()
	client, err := quorate.FromEnv()
	check(err)
	defer client.Close()
	for _, name := range []string{"ann", "ben"} {
		_, err = client.Put(ctx, "people/"+name, name, nil)
		check(err)
	}

	for entry, err := range client.List(ctx, "people/", nil) {
		check(err)
		fmt.Println(entry.Key, string(entry.Value))
	}
	// Output:
	// people/ann "ann"
	// people/ben "ben"
}

// Several keys, all or nothing.
func ExampleClient_Txn() {
	ctx := context.Background()
	client, err := quorate.FromEnv()
	check(err)
	defer client.Close()
	for name, balance := range map[string]int{"ann": 50, "ben": 10} {
		_, err = client.Put(ctx, "accounts/"+name, map[string]int{"balance": balance}, nil)
		check(err)
	}

	pay := quorate.Txn{
		If: []quorate.Check{{
			Key:   "accounts/ann",
			Where: []quorate.Criterion{quorate.Where("balance", api.OperatorGte, 40)},
		}},
		Then: []quorate.Step{
			quorate.OpPatch("accounts/ann", []quorate.PatchOperator{quorate.Inc("balance", -40)}, nil),
			quorate.OpPatch("accounts/ben", []quorate.PatchOperator{quorate.Inc("balance", 40)}, nil),
		},
	}
	for range 2 {
		done, err := client.Txn(ctx, pay, nil)
		check(err)
		fmt.Println(done.Succeeded)
	}
	// Output:
	// true
	// false
}

// A worker stops when its context ends, and loses no task.
func ExampleTaskQueue_Work() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	client, err := quorate.FromEnv()
	check(err)
	defer client.Close()
	queue := client.Tasks("letters")
	_, err = queue.Schedule(ctx, map[string]string{"to": "ann"}, &quorate.TaskOptions{ID: "welcome-ann"})
	check(err)

	report, err := queue.Work(ctx, func(ctx context.Context, task *quorate.Task) error {
		var letter struct{ To string }
		if err := task.Decode(&letter); err != nil {
			return err
		}
		fmt.Println("to", letter.To)
		stop()
		return nil
	}, nil)
	check(err)
	fmt.Println(report.Completed, "completed")
	// Output:
	// to ann
	// 1 completed
}

// One of several processes leads.
func ExampleSession_Campaign() {
	ctx := context.Background()
	client, err := quorate.FromEnv()
	check(err)
	defer client.Close()

	session, err := client.NewSession(ctx, &quorate.SessionOptions{TTL: 5 * time.Second, Owner: "web-3"})
	check(err)
	leadership, err := session.Campaign(ctx, "reports", &quorate.CampaignOptions{Value: "10.0.0.9:8080"})
	check(err)
	// Ends when the session is lost, and the leadership with it.
	leading, cancel := session.Context(ctx)
	defer cancel()
	_, err = client.Put(leading, "reports/last", 1, &quorate.WriteOptions{Guard: leadership})
	check(err)
	leader, err := client.Leader(ctx, "reports")
	check(err)
	fmt.Println(leader.Owner, "leads")
	check(leadership.Resign(ctx))
	// Output: web-3 leads
}

// A prefix in memory.
func ExampleClient_Mirror() {
	ctx := context.Background()
	client, err := quorate.FromEnv()
	check(err)
	defer client.Close()

	hosts, err := client.Mirror(ctx, "racks/", &quorate.MirrorOptions{IndexBy: []string{"zone"}})
	check(err)
	defer hosts.Close()
	_, err = client.Put(ctx, "racks/r1", map[string]string{"zone": "a"}, nil)
	check(err)
	// What is read after this is as fresh as a linearizable read.
	_, err = hosts.Sync(ctx)
	check(err)
	found, err := hosts.FindBy("zone", "a")
	check(err)
	fmt.Println(len(found), hosts.Get("racks/r1") != nil)
	// Output: 1 true
}
