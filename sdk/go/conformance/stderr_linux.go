package main

// The loss of standard error, which kills a Go program that writes to it.

import (
	"context"
	"os"
	"syscall"
)

func init() {
	capabilities["stderr"] = true
	callables["close_stderr"] = func(r *runner, _ context.Context, _ step, _ *args) (any, error) {
		return map[string]any{}, r.closeStderr()
	}
}

// closeStderr makes it a pipe that nobody reads, until the end of the file.
func (r *runner) closeStderr() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = write.Close() }()
	if err := read.Close(); err != nil {
		return err
	}
	kept, err := syscall.Dup(syscall.Stderr)
	if err != nil {
		return err
	}
	if err := syscall.Dup3(int(write.Fd()), syscall.Stderr, 0); err != nil {
		return err
	}
	r.atEnd = append(r.atEnd, func() {
		// Whoever reads the output sees nothing else of it.
		if err := syscall.Dup3(kept, syscall.Stderr, 0); err != nil {
			panic(err)
		}
		_ = syscall.Close(kept)
	})
	return nil
}
