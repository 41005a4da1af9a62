package clientv3

import (
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	v3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/client/v3/leasing"
	"go.etcd.io/etcd/client/v3/mirror"
	"go.etcd.io/etcd/client/v3/namespace"
	endpointsof "go.etcd.io/etcd/client/v3/naming/endpoints"
	"go.etcd.io/etcd/client/v3/naming/resolver"
	"go.etcd.io/etcd/client/v3/ordering"
)

func TestNamespace(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	kv, watcher, lease := namespace.NewKV(c.KV, at), namespace.NewWatcher(c.Watcher, at), namespace.NewLease(c.Lease, at)
	granted, err := lease.Grant(within(t), 60)
	ok(t, err)
	events := watcher.Watch(within(t), "", v3.WithPrefix())
	put, err := kv.Put(within(t), "a", "1", v3.WithLease(granted.ID))
	ok(t, err)
	same(t, value(t, c, at+"a"), "1", "below the prefix")
	seen := next(t, events, "a watch")
	same(t, string(seen.Events[0].Kv.Key), "a", "the key of an event")
	left, err := lease.TimeToLive(within(t), granted.ID, v3.WithAttachedKeys())
	ok(t, err)
	same(t, string(left.Keys[0]), "a", "an attached key")
	answer, err := kv.Txn(within(t)).
		If(v3.Compare(v3.ModRevision("a"), "=", put.Header.Revision), v3.Compare(v3.Version("b"), "=", 0)).
		Then(v3.OpPut("b", "2"), v3.OpGet("", v3.WithFromKey()), v3.OpTxn(nil, []v3.Op{v3.OpDelete("a", v3.WithPrevKV())}, nil)).
		Commit()
	ok(t, err)
	same(t, answer.Succeeded, true, "the transaction")
	same(t, string(answer.Responses[1].GetResponseRange().Kvs[1].Key), "b", "what a transaction reads")
	same(t, string(answer.Responses[2].GetResponseTxn().Responses[0].GetResponseDeleteRange().PrevKvs[0].Key), "a", "what one in it deletes")
	all, err := kv.Get(within(t), "\x00", v3.WithFromKey())
	ok(t, err)
	same(t, len(all.Kvs), 1, "all that is in the namespace")
	_, err = kv.Delete(within(t), "", v3.WithPrefix())
	ok(t, err)
	same(t, count(t, c, at), 0, "what is left")
}

func TestOrdering(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	kv := ordering.NewKV(c.KV, ordering.NewOrderViolationSwitchEndpointClosure(c))
	writer := client(t)
	last := 0
	for n := 1; n <= 60; n++ {
		_, err := writer.Put(within(t), at+"a", text(n))
		ok(t, err)
		if n%3 == 0 {
			c.SetEndpoints(endpoints[n/3%len(endpoints)])
		}
		answer, err := kv.Get(within(t), at+"a", v3.WithSerializable())
		if err != nil { // All nodes may be behind what was read before, for a moment.
			same(t, err.Error(), ordering.ErrNoGreaterRev.Error(), "a read that gives up")
			continue
		}
		if len(answer.Kvs) == 0 {
			same(t, last, 0, "a read of nothing after one of something")
			continue
		}
		found := number(string(answer.Kvs[0].Value))
		if found < last {
			t.Fatalf("%d was read after %d", found, last)
		}
		last = found
	}
	if last == 0 {
		t.Fatal("nothing was read")
	}
}

func TestMirror(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	const entries = 2500 // More than two of its pages.
	for n := 0; n < entries; n += 100 {
		var puts []v3.Op
		for each := n; each < n+100; each++ {
			puts = append(puts, v3.OpPut(fmt.Sprintf("%s%05d", at, each), text(each)))
		}
		_, err := c.Txn(within(t)).Then(puts...).Commit()
		ok(t, err)
	}
	syncer := mirror.NewSyncer(c, at, 0)
	pages, failures := syncer.SyncBase(within(t))
	found := 0
	for page := range pages {
		for _, kv := range page.Kvs {
			same(t, string(kv.Value), text(found), string(kv.Key))
			found++
		}
	}
	for err := range failures {
		ok(t, err)
	}
	same(t, found, entries, "entries of the base")
	updates := syncer.SyncUpdates(within(t))
	_, err := c.Put(within(t), at+"later", "x")
	ok(t, err)
	same(t, string(next(t, updates, "an update").Events[0].Kv.Key), at+"later", "the update")
}

func TestLeasing(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	first, closeFirst, err := leasing.NewKV(client(t), at+"leases/")
	ok(t, err)
	defer closeFirst()
	second, closeSecond, err := leasing.NewKV(client(t), at+"leases/")
	ok(t, err)
	defer closeSecond()
	key := at + "entries/a"
	_, err = first.Get(within(t), key)
	ok(t, err)
	same(t, count(t, c, at+"leases/"), 1, "who reads holds a lease of the key")
	for n := 1; n <= 20; n++ {
		writer, reader := first, second
		if n%2 == 0 {
			writer, reader = second, first
		}
		_, err := writer.Put(within(t), key, text(n))
		ok(t, err)
		for _, kv := range []v3.KV{reader, writer, reader} {
			answer, err := kv.Get(within(t), key)
			ok(t, err)
			same(t, string(answer.Kvs[0].Value), text(n), "a read of another's write")
		}
	}
	answer, err := first.Txn(within(t)).If(v3.Compare(v3.Value(key), "=", "20")).Then(v3.OpPut(key, "21"), v3.OpPut(key+"b", "1")).Commit()
	ok(t, err)
	same(t, answer.Succeeded, true, "a transaction")
	read, err := second.Get(within(t), key)
	ok(t, err)
	same(t, string(read.Kvs[0].Value), "21", "after a transaction")
	deleted, err := second.Delete(within(t), at+"entries/", v3.WithPrefix())
	ok(t, err)
	same(t, deleted.Deleted, 2, "deleted entries")
	read, err = first.Get(within(t), key)
	ok(t, err)
	same(t, len(read.Kvs), 0, "entries after a deletion")
}

// Starts a gRPC server that says whether it is well.
func greeter(t *testing.T) (string, func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String(), server.Stop
}

func TestNaming(t *testing.T) {
	c := client(t)
	at := prefix(t, c) + "service"
	manager, err := endpointsof.NewManager(c, at)
	ok(t, err)
	updates, err := manager.NewWatchChannel(within(t))
	ok(t, err)
	one, stopOne := greeter(t)
	two, _ := greeter(t)
	lease, err := c.Grant(within(t), 60)
	ok(t, err)
	ok(t, manager.AddEndpoint(within(t), at+"/one", endpointsof.Endpoint{Addr: one}, v3.WithLease(lease.ID)))
	same(t, next(t, updates, "an update")[0].Endpoint.Addr, one, "the first endpoint")

	builder, err := resolver.NewBuilder(c)
	ok(t, err)
	connection, err := grpc.NewClient("etcd:///"+at, grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`))
	ok(t, err)
	defer connection.Close()
	asked := func() string {
		var who peer.Peer
		_, err := grpc_health_v1.NewHealthClient(connection).Check(within(t), &grpc_health_v1.HealthCheckRequest{}, grpc.Peer(&who))
		if err != nil {
			return err.Error()
		}
		return who.Addr.String()
	}
	same(t, asked(), one, "who is asked")
	ok(t, manager.AddEndpoint(within(t), at+"/two", endpointsof.Endpoint{Addr: two}))
	eventually(t, "both are asked", func() bool { return asked() == two })
	listed, err := manager.List(within(t))
	ok(t, err)
	same(t, len(listed), 2, "listed endpoints")
	stopOne()
	_, err = c.Revoke(within(t), lease.ID)
	ok(t, err)
	eventually(t, "only the second is asked", func() bool { return asked() == two && asked() == two && asked() == two })
}

func TestKubernetesInterface(t *testing.T) {
	c := client(t)
	at := prefix(t, c)
	k, err := kubernetes.New(v3.Config{Endpoints: endpoints})
	ok(t, err)
	defer k.Close()
	created, err := k.OptimisticPut(within(t), at+"a", []byte("1"), 0, kubernetes.PutOptions{GetOnFailure: true})
	ok(t, err)
	same(t, created.Succeeded, true, "a creation")
	again, err := k.OptimisticPut(within(t), at+"a", []byte("2"), 0, kubernetes.PutOptions{GetOnFailure: true})
	ok(t, err)
	same(t, again.Succeeded, false, "a second creation")
	same(t, again.KV.ModRevision, created.Revision, "what it gives instead")
	updated, err := k.OptimisticPut(within(t), at+"a", []byte("2"), created.Revision, kubernetes.PutOptions{})
	ok(t, err)
	same(t, updated.Succeeded, true, "an update")
	for _, key := range []string{"b", "c", "d"} {
		_, err = k.OptimisticPut(within(t), at+key, []byte(key), 0, kubernetes.PutOptions{})
		ok(t, err)
	}
	page, err := k.List(within(t), at, kubernetes.ListOptions{Limit: 3})
	ok(t, err)
	same(t, page.Count, 4, "the count of a page")
	rest, err := k.List(within(t), at, kubernetes.ListOptions{Revision: page.Revision, Limit: 3, Continue: at + "c\x00"})
	ok(t, err)
	same(t, string(rest.Kvs[0].Value), "d", "the next page")
	counted, err := k.Count(within(t), at, kubernetes.CountOptions{})
	ok(t, err)
	same(t, counted, 4, "the count")
	old, err := k.Get(within(t), at+"a", kubernetes.GetOptions{Revision: created.Revision})
	ok(t, err)
	same(t, string(old.KV.Value), "1", "an old revision")
	deleted, err := k.OptimisticDelete(within(t), at+"a", created.Revision, kubernetes.DeleteOptions{GetOnFailure: true})
	ok(t, err)
	same(t, deleted.Succeeded, false, "a deletion of what has changed")
	deleted, err = k.OptimisticDelete(within(t), at+"a", updated.Revision, kubernetes.DeleteOptions{})
	ok(t, err)
	same(t, deleted.Succeeded, true, "a deletion")
}
