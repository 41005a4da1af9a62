// Command wiregen writes the types of the HTTP API, package api, from the OpenAPI document of a node.
//
// It knows the few forms that the document uses, and stops at any other: what it writes is never a guess. 64-bit numbers that the
// API shows as decimal strings become uint64, and no number ever passes through a float.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: wiregen OPENAPI.json TYPES.go")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "wiregen:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	document, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	text, err := generate(document, docsText)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
