package quorate_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	quorate "quorate.dev/go"
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
