package main

// What steps made and named: sessions, locks, leaderships, watches, mirrors.

import (
	"context"
	"fmt"
	"sync"

	quorate "quorate.dev/go"
	"quorate.dev/go/api"
)

type things struct {
	mu  sync.Mutex
	all map[string]any
}

func newThings() *things { return &things{all: map[string]any{}} }

func (t *things) add(name string, thing any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all[name] = thing
}

// of is the thing of this name, which has to be a T.
func of[T any](t *things, name string) (T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	thing, ok := t.all[name].(T)
	if !ok {
		return thing, fmt.Errorf("`%s` is no %T", name, thing)
	}
	return thing, nil
}

// watching is a watch whose events wait to be taken.
type watching struct {
	watch  *quorate.Watch
	events chan outcome
}

func (w *watching) pump(ctx context.Context) {
	for {
		event, err := w.watch.Next()
		select {
		case w.events <- outcome{answer: eventView(event), err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// shownKey is the key of an event, if it has one.
func shownKey(key string) any {
	if key == "" {
		return nil
	}
	return keyOf(key)
}

// eventView is an event with the names of the HTTP API.
func eventView(event quorate.Event) any {
	return struct {
		Type     string          `json:"type"`
		Revision uint64          `json:"revision,string"`
		Key      any             `json:"key,omitempty"`
		Entry    *quorate.Entry  `json:"entry,omitempty"`
		Prev     *quorate.Entry  `json:"prev,omitempty"`
		Initial  bool            `json:"initial,omitempty"`
		Cause    api.DeleteCause `json:"cause,omitempty"`
	}{string(event.Kind), event.Revision, shownKey(event.Key), event.Entry, event.Prev, event.Initial, event.Cause}
}

func (t *things) next(ctx context.Context, name string) (any, error) {
	watch, err := of[*watching](t, name)
	if err != nil {
		return nil, err
	}
	select {
	case got := <-watch.events:
		return got.answer, got.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no event came: %w", ctx.Err())
	}
}

func (t *things) stop(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch thing := t.all[name].(type) {
	case *watching:
		thing.watch.Close()
	case *quorate.Mirror:
		thing.Close()
	default:
		return fmt.Errorf("`%s` is no watch and no mirror", name)
	}
	delete(t.all, name)
	return nil
}
