// Command footprint opens watches and leases at a server that speaks etcd's protocol, and keeps them until its input ends.
//
// Owns what is held: WATCHES watches of keys of their own, over streams of 100 each, and LEASES leases with one key each. It says `held`
// once all of them stand, so that the memory of the servers can be read.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const watchesPerStream = 100

func main() {
	endpoints := flag.String("endpoints", "", "addresses, with commas between")
	watches := flag.Int("watches", 1000, "watches")
	leases := flag.Int("leases", 10000, "leases, each with a key")
	flag.Parse()
	ctx := context.Background()

	var streams []*clientv3.Client
	var all sync.WaitGroup
	for first := 0; first < *watches; first += watchesPerStream {
		client := connect(*endpoints)
		streams = append(streams, client)
		for n := first; n < min(first+watchesPerStream, *watches); n++ {
			watched := client.Watch(ctx, fmt.Sprintf("watched/%04d", n), clientv3.WithCreatedNotify())
			all.Go(func() {
				if response := <-watched; response.Err() != nil || !response.Created {
					log.Fatalf("watch %d: %v", n, response.Err())
				}
			})
		}
	}
	all.Wait()

	const workers = 64
	client := connect(*endpoints)
	for worker := range workers {
		all.Go(func() {
			for n := worker; n < *leases; n += workers {
				lease, err := client.Grant(ctx, 3600)
				if err == nil {
					_, err = client.Put(ctx, fmt.Sprintf("leased/%05d", n), strings.Repeat("x", 64), clientv3.WithLease(lease.ID))
				}
				if err != nil {
					log.Fatalf("lease %d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
	fmt.Println("held")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		log.Fatal(err)
	}
	for _, client := range append(streams, client) {
		if err := client.Close(); err != nil {
			log.Print(err)
		}
	}
}

func connect(endpoints string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(endpoints, ",")})
	if err != nil {
		log.Fatal(err)
	}
	return client
}
