package main

// The steps of a file, one after the other.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	quorate "quorate.dev/go"
	"quorate.dev/go/api"
)

const (
	withinDefault = 15 * time.Second
	// eventuallyRest is between two reads.
	eventuallyRest = 50 * time.Millisecond
)

// runner performs the steps of one file.
type runner struct {
	cluster   *cluster
	client    *quorate.Client
	ctx       context.Context
	variables map[string]any
	things    *things
	// background are calls that run.
	background map[string]running
	// atEnd undoes what calls did to this process.
	atEnd []func()
}

// running is a call in the background.
type running struct {
	cancel context.CancelFunc
	done   chan outcome
}

// outcome of a call.
type outcome struct {
	answer any
	err    error
}

func runFile(cluster *cluster, one *file) error {
	client, err := quorate.New(cluster.endpoints(one.Endpoints), nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer func() {
		cancel()
		// What it could not end, time does.
		_ = client.Close()
	}()
	var prefix [6]byte
	if _, err := rand.Read(prefix[:]); err != nil {
		return err
	}
	r := &runner{
		cluster: cluster, client: client, ctx: ctx, variables: map[string]any{"p": "go" + hex.EncodeToString(prefix[:])},
		things: newThings(), background: map[string]running{},
	}
	defer func() {
		for _, undo := range r.atEnd {
			undo()
		}
	}()
	for n, step := range one.Steps {
		if err := r.step(step); err != nil {
			return fmt.Errorf("step %d: %w", n+1, err)
		}
	}
	return nil
}

func (r *runner) step(s step) error {
	if s.Background {
		return r.begin(s)
	}
	within := withinDefault
	if s.WithinMs > 0 {
		within = time.Duration(s.WithinMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(r.ctx, within)
	defer cancel()
	for i := 1; i <= max(s.Repeat, 1); i++ {
		variables := maps.Clone(r.variables)
		variables["i"] = i
		for {
			err := r.once(ctx, s, variables)
			if err == nil {
				break
			}
			if !s.Eventually || ctx.Err() != nil {
				return err
			}
			time.Sleep(eventuallyRest)
		}
	}
	return nil
}

// begin starts a call in the background.
func (r *runner) begin(s step) error {
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan outcome, 1)
	r.background[s.As] = running{cancel, done}
	variables := maps.Clone(r.variables)
	go func() {
		var last outcome
		for i := 1; i <= max(s.Repeat, 1) && last.err == nil; i++ {
			variables["i"] = i
			with, err := filled(s.With, variables)
			if err != nil {
				last.err = err
				break
			}
			last.answer, last.err = r.call(ctx, s, with)
		}
		done <- last
	}()
	return nil
}

// once does the step and compares.
func (r *runner) once(ctx context.Context, s step, variables map[string]any) error {
	with, err := filled(anyOf(s.With), variables)
	if err != nil {
		return err
	}
	answer, err := r.perform(ctx, s, with)
	if s.Error != nil {
		return r.compareError(s, variables, answer, err)
	}
	if err != nil {
		return err
	}
	return r.compare(s, variables, answer)
}

func anyOf(with map[string]any) any {
	if with == nil {
		return map[string]any{}
	}
	return with
}

func (r *runner) perform(ctx context.Context, s step, with any) (any, error) {
	var answer any
	var err error
	switch {
	case s.Call != "":
		answer, err = r.call(ctx, s, with)
	case s.Start != "":
		err = r.start(ctx, s, with)
	case s.Next != "":
		answer, err = r.things.next(ctx, s.Next)
	case s.Stop != "":
		err = r.things.stop(s.Stop)
	case s.Fault != "":
		answer, err = r.cluster.fault(s.Fault, with)
	case s.Cancel != "":
		err = r.cancel(ctx, s.Cancel)
	case s.Join != "":
		answer, err = r.join(ctx, s.Join)
	default:
		err = errors.New("the step does nothing")
	}
	return answer, err
}

// cancel breaks a call in the background off; whatever it returns is right.
func (r *runner) cancel(ctx context.Context, name string) error {
	call, ok := r.background[name]
	if !ok {
		return fmt.Errorf("there is no call %s", name)
	}
	call.cancel()
	_, err := r.join(ctx, name)
	if ctx.Err() != nil {
		return err
	}
	return nil
}

func (r *runner) join(ctx context.Context, name string) (any, error) {
	call, ok := r.background[name]
	if !ok {
		return nil, fmt.Errorf("there is no call %s", name)
	}
	select {
	case ended := <-call.done:
		return ended.answer, ended.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s still runs: %w", name, ctx.Err())
	}
}

func (r *runner) compare(s step, variables map[string]any, answer any) error {
	value, err := jsonOf(answer)
	if err != nil {
		return err
	}
	if s.Expect != nil {
		if err := compared(s.Expect, variables, value); err != nil {
			return err
		}
	}
	if s.Greater != nil {
		floor, err := filled(s.Greater, variables)
		if err != nil {
			return err
		}
		if err := greater(floor.(map[string]any), value); err != nil {
			return err
		}
	}
	for path, name := range s.Save {
		if r.variables[name], err = fieldOf(value, path); err != nil {
			return err
		}
	}
	return nil
}

func compared(expect any, variables map[string]any, value any) error {
	expected, err := filled(expect, variables)
	if err != nil {
		return err
	}
	if expected, err = jsonOf(expected); err != nil {
		return err
	}
	return matches(expected, value, "answer")
}

func (r *runner) compareError(s step, variables map[string]any, answer any, err error) error {
	var refusal *quorate.Error
	if err == nil {
		return fmt.Errorf("it went well: %s", shown(answer))
	}
	if !errors.As(err, &refusal) {
		return fmt.Errorf("not an error of the client: %w", err)
	}
	value, jsonErr := jsonOf(errorView{
		Code: refusal.Code, Applied: refusal.Applied, Retry: refusal.Retry, Current: refusal.Current, Failed: refusal.Failed,
		OldestRevision: refusal.OldestRevision, Detail: refusal.Detail,
	})
	if jsonErr != nil {
		return jsonErr
	}
	return compared(s.Error, variables, value)
}

// errorView is an error with the names of the HTTP API.
type errorView struct {
	Code           api.ErrorCode  `json:"code"`
	Applied        api.Applied    `json:"applied"`
	Retry          api.Retry      `json:"retry"`
	Current        *quorate.Entry `json:"current,omitempty"`
	Failed         []api.Failed   `json:"failed,omitempty"`
	OldestRevision uint64         `json:"oldest_revision,omitempty,string"`
	Detail         string         `json:"detail"`
}
