// Package apiserver runs the Kubernetes API server for custom resources on the nodes, and uses it as controllers do.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apiextensions-apiserver/test/integration/fixtures"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	objects  = 10_000
	workers  = 16
	patience = 2 * time.Minute
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Has the server know a resource, and gives clients for it.
func resources(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	extensions, err := clientset.NewForConfig(config)
	ok(t, err)
	all, err := dynamic.NewForConfig(config)
	ok(t, err)
	definition := fixtures.NewNoxuV1CustomResourceDefinition(apiextensionsv1.NamespaceScoped)
	if _, err = extensions.ApiextensionsV1().CustomResourceDefinitions().Get(context.Background(), definition.Name, metav1.GetOptions{}); err != nil {
		_, err = fixtures.CreateNewV1CustomResourceDefinition(definition, extensions, all)
		ok(t, err)
	}
	version := definition.Spec.Versions[0].Name
	return all.Resource(schema.GroupVersionResource{Group: definition.Spec.Group, Version: version, Resource: definition.Spec.Names.Plural}).Namespace("default")
}

func object(n int) *unstructured.Unstructured {
	return fixtures.NewNoxuInstance("default", fmt.Sprintf("object-%05d", n))
}

// Calls `work` for each number below `count`, in several workers.
func each(count int, work func(n int)) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range workers {
		group.Go(func() {
			for n := int(next.Add(1)) - 1; n < count; n = int(next.Add(1)) - 1 {
				work(n)
			}
		})
	}
	group.Wait()
}

// Lists all in pages, and gives them with the resource version of the list.
func list(t *testing.T, client dynamic.ResourceInterface) (map[string]string, string) {
	t.Helper()
	found, options := map[string]string{}, metav1.ListOptions{Limit: 500}
	for {
		page, err := client.List(context.Background(), options)
		ok(t, err)
		for _, item := range page.Items {
			found[item.GetName()] = item.GetResourceVersion()
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return found, page.GetResourceVersion()
		}
	}
}

// Watches from a resource version on, and takes what comes at once: the server ends a watch whose client is slow.
func watching(t *testing.T, client dynamic.ResourceInterface, version string) <-chan watch.Event {
	t.Helper()
	from, err := client.Watch(context.Background(), metav1.ListOptions{ResourceVersion: version})
	ok(t, err)
	t.Cleanup(from.Stop)
	taken := make(chan watch.Event, 2*objects)
	go func() {
		for event := range from.ResultChan() {
			taken <- event
		}
		close(taken)
	}()
	return taken
}

// Counts the events of a watch by their types until there are as many as wanted.
func events(t *testing.T, from <-chan watch.Event, wanted int) map[watch.EventType]int {
	t.Helper()
	found, seen := map[watch.EventType]int{}, map[string]bool{}
	for deadline := time.After(patience); len(seen) < wanted; {
		select {
		case event, open := <-from:
			if !open {
				t.Fatalf("the watch ended after %v", found)
			}
			if event.Type == watch.Error || event.Type == watch.Bookmark {
				if event.Type == watch.Error {
					t.Fatalf("the watch says %v", event.Object)
				}
				continue
			}
			item := event.Object.(*unstructured.Unstructured)
			if key := string(event.Type) + item.GetName() + item.GetResourceVersion(); seen[key] {
				t.Fatalf("twice: %s", key)
			} else {
				seen[key] = true
			}
			found[event.Type]++
		case <-deadline:
			t.Fatalf("no further event after %v", found)
		}
	}
	return found
}

func TestManyObjects(t *testing.T) {
	config := server(t)
	client := resources(t, config)
	ok(t, client.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	_, start := list(t, client)
	seen := watching(t, client, start)

	began := time.Now()
	each(objects, func(n int) {
		if _, err := client.Create(context.Background(), object(n), metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d objects created in %.1f s, %.0f/s", objects, time.Since(began).Seconds(), objects/time.Since(began).Seconds())
	if found := events(t, seen, objects); found[watch.Added] != objects {
		t.Fatalf("events: %v", found)
	}
	t.Logf("their last event came %.1f s after the first was created", time.Since(began).Seconds())
	began = time.Now()
	there, version := list(t, client)
	t.Logf("listed in pages of 500 in %.2f s", time.Since(began).Seconds())
	if len(there) != objects {
		t.Fatalf("%d objects", len(there))
	}
	began = time.Now()
	whole, err := client.List(context.Background(), metav1.ListOptions{})
	ok(t, err)
	t.Logf("listed at once in %.2f s", time.Since(began).Seconds())
	if len(whole.Items) != objects {
		t.Fatalf("%d objects at once", len(whole.Items))
	}

	_, err = client.Create(context.Background(), object(1), metav1.CreateOptions{})
	if !errors.IsAlreadyExists(err) {
		t.Fatalf("a second creation: %v", err)
	}
	each(1000, func(n int) {
		if n%2 == 0 {
			item, err := client.Get(context.Background(), object(n).GetName(), metav1.GetOptions{})
			if err == nil {
				item.SetLabels(map[string]string{"changed": "yes"})
				_, err = client.Update(context.Background(), item, metav1.UpdateOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		} else if err := client.Delete(context.Background(), object(n).GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if found := events(t, seen, 1000); found[watch.Modified] != 500 || found[watch.Deleted] != 500 {
		t.Fatalf("events: %v", found)
	}
	stale := whole.Items[0].DeepCopy()
	if _, err = client.Update(context.Background(), stale, metav1.UpdateOptions{}); !errors.IsConflict(err) {
		t.Fatalf("an update of what has changed: %v", err)
	}

	// A second server, whose cache begins with what is there, and a watch from before the changes.
	second := resources(t, server(t))
	if there, _ = list(t, second); len(there) != objects-500 {
		t.Fatalf("%d objects by a second server", len(there))
	}
	if found := events(t, watching(t, client, version), 1000); found[watch.Modified] != 500 || found[watch.Deleted] != 500 {
		t.Fatalf("events from before the changes: %v", found)
	}
}

func TestLeaderKill(t *testing.T) {
	servers, keeper := os.Getenv("CONFORMANCE_SERVERS"), os.Getenv("CONFORMANCE_KEEPER")
	if servers == "" {
		t.Skip("kills nodes, and these servers are not the suite's")
	}
	client := resources(t, server(t))
	ok(t, client.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	_, start := list(t, client)
	seen := watching(t, client, start)
	const count = 3000
	var created, killed atomic.Int64
	var once sync.Once
	var leader string
	kill := func() {
		said, err := exec.Command(keeper, "leader", servers).Output()
		leader = strings.TrimSpace(string(said))
		if err == nil {
			err = exec.Command(keeper, "kill", servers, leader).Run()
		}
		if err != nil {
			t.Error(err)
		}
		killed.Store(created.Load())
	}
	each(count, func(n int) {
		if created.Load() >= count/3 {
			once.Do(kill)
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			_, err := client.Create(context.Background(), object(n), metav1.CreateOptions{})
			if err == nil || errors.IsAlreadyExists(err) { // Where an earlier answer was lost.
				created.Add(1)
				return
			}
			if time.Now().After(deadline) {
				t.Error(err)
				return
			}
		}
	})
	t.Logf("node %s, which led, was killed after %d of %d objects", leader, killed.Load(), count)
	if found := events(t, seen, count); found[watch.Added] != count {
		t.Fatalf("events: %v", found)
	}
	if there, _ := list(t, client); len(there) != count {
		t.Fatalf("%d objects", len(there))
	}
	if said, err := exec.Command(keeper, "start", servers, leader).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}
