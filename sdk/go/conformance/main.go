// Command conformance runs the common suite of the clients, sdk/conformance, with the Go client.
//
// It takes files of the suite as arguments, all of them without any, prints a line for each, and exits 1 if any failed. What the files say is
// told in the README of the suite.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// capabilities are what this runner and its client can do of what a file may need.
var capabilities = map[string]bool{"cancel": true, "cancel_release": true, "suspend": true, "foreign": true, "clock": true}

func main() {
	quick := flag.Bool("quick", false, "only files with `quick: true`")
	suite := flag.String("suite", "", "directory of the suite (default: sdk/conformance in a directory above)")
	flag.Parse()
	failed, err := run(*suite, flag.Args(), *quick)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func run(suite string, files []string, quick bool) (failed int, err error) {
	if suite, err = findSuite(suite); err != nil {
		return 0, err
	}
	if len(files) == 0 {
		if files, err = filepath.Glob(filepath.Join(suite, "*.yaml")); err != nil {
			return 0, err
		}
	}
	var all []*file
	for _, path := range files {
		parsed, err := readFile(path)
		if err != nil {
			return 0, err
		}
		if !quick || parsed.Quick {
			all = append(all, parsed)
		}
	}
	cluster, err := startCluster(filepath.Join(suite, "cluster.py"))
	if err != nil {
		return 0, err
	}
	defer cluster.stop()
	for _, one := range all {
		missing := slices.DeleteFunc(slices.Clone(one.Needs), func(need string) bool { return capabilities[need] })
		if len(missing) > 0 {
			fmt.Printf("not tried %s: %s\n", one.base, strings.Join(missing, ", "))
			continue
		}
		if !report(cluster, one) {
			failed++
		}
		if _, err := cluster.fault("reset", map[string]any{}); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// report runs a file and prints its line.
func report(cluster *cluster, one *file) bool {
	started := time.Now()
	err := runFile(cluster, one)
	if err != nil {
		fmt.Printf("FAILED %s: %s\n", one.base, strings.ReplaceAll(err.Error(), "\n", " "))
		return false
	}
	fmt.Printf("ok %s %d\n", one.base, time.Since(started).Milliseconds())
	return true
}

func findSuite(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := here; ; at = filepath.Dir(at) {
		suite := filepath.Join(at, "sdk", "conformance")
		if _, err := os.Stat(filepath.Join(suite, "cluster.py")); err == nil {
			return suite, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("there is no sdk/conformance above %s; say --suite", here)
		}
	}
}
