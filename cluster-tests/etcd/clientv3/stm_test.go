package clientv3

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"go.etcd.io/etcd/client/v3/concurrency"
)

func text(n int) string { return strconv.Itoa(n) }

var isolations = map[string]concurrency.Isolation{
	"SerializableSnapshot": concurrency.SerializableSnapshot,
	"Serializable":         concurrency.Serializable,
	"RepeatableReads":      concurrency.RepeatableReads,
	"ReadCommitted":        concurrency.ReadCommitted,
}

func TestStmCounts(t *testing.T) {
	for name, isolation := range isolations {
		if isolation == concurrency.ReadCommitted {
			continue // Its reads do not conflict with writes of others, so that it may lose some.
		}
		t.Run(name, func(t *testing.T) {
			c := client(t)
			at := prefix(t, c)
			const workers, rounds, counters = 6, 15, 3
			var group sync.WaitGroup
			for range workers {
				own := client(t)
				group.Go(func() {
					for range rounds {
						key := at + text(rand.IntN(counters))
						_, err := concurrency.NewSTM(own, func(stm concurrency.STM) error {
							stm.Put(key, text(number(stm.Get(key))+1))
							return nil
						}, concurrency.WithIsolation(isolation), concurrency.WithAbortContext(within(t)))
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			group.Wait()
			sum := 0
			for each := range counters {
				sum += number(value(t, c, at+text(each)))
			}
			same(t, sum, workers*rounds, "the sum of the counters")
		})
	}
}

func TestStmTransfers(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	const accounts, workers, rounds = 5, 5, 15
	for each := range accounts {
		_, err := c.Put(within(t), at+text(each), "100")
		ok(t, err)
	}
	var group sync.WaitGroup
	for range workers {
		own := client(t)
		group.Go(func() {
			for range rounds {
				from, to := at+text(rand.IntN(accounts)), at+text(rand.IntN(accounts))
				_, err := concurrency.NewSTM(own, func(stm concurrency.STM) error {
					if from != to {
						amount := number(stm.Get(from)) / 3
						there := number(stm.Get(to))
						stm.Put(from, text(number(stm.Get(from))-amount))
						stm.Put(to, text(there+amount))
					}
					return nil
				}, concurrency.WithPrefetch(from, to))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	sum := 0
	for each := range accounts {
		sum += number(value(t, c, at+text(each)))
	}
	same(t, sum, 100*accounts, "the sum of the accounts")
}

func TestStmActs(t *testing.T) {
	for name, isolation := range isolations {
		t.Run(name, func(t *testing.T) {
			c := client(t)
			at := prefix(t, c)
			put, err := c.Put(within(t), at+"gone", "x")
			ok(t, err)
			for _, address := range endpoints { // Repeatable reads are those of any node, which may be behind before this.
				same(t, value(t, clientAt(t, address), at+"gone"), "x", "what was put")
			}
			answer, err := concurrency.NewSTM(c, func(stm concurrency.STM) error {
				if found := stm.Rev(at + "gone"); found != put.Header.Revision {
					return errors.New("another revision")
				}
				stm.Put(at+"new", stm.Get(at+"gone", at+"none"))
				stm.Del(at + "gone")
				if stm.Get(at+"new") != "x" {
					return errors.New("its own write does not show")
				}
				return nil
			}, concurrency.WithIsolation(isolation))
			ok(t, err)
			same(t, answer.Succeeded, true, "the transaction")
			same(t, value(t, c, at+"new"), "x", "what was written")
			same(t, value(t, c, at+"gone"), "", "what was deleted")
			refusal := errors.New("no")
			_, err = concurrency.NewSTM(c, func(stm concurrency.STM) error {
				stm.Put(at+"new", "never")
				return refusal
			}, concurrency.WithIsolation(isolation))
			same(t, err, refusal, "an abort")
			same(t, value(t, c, at+"new"), "x", "after an abort")
		})
	}
}
