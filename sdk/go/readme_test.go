package quorate_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestReadmeIsRun: each block of Go in README.md is the body of an example, which go test runs.
func TestReadmeIsRun(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	dedented := regexp.MustCompile(`(?m)^\t`).ReplaceAllString(string(examples), "")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) == 0 {
		t.Fatal("README.md has no block of Go")
	}
	for _, block := range blocks {
		if !strings.Contains(dedented, block[1]) {
			t.Errorf("no example of example_test.go has these lines:\n%s", block[1])
		}
	}
}
