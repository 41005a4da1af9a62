package main

// Whether an answer is as a file expects it.

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// matches says why the value is not as expected. Objects are partial, lists are whole; null is also met by what is absent.
func matches(expected, value any, at string) error {
	switch of := expected.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %s, not an object", at, shown(value))
		}
		for name, item := range of {
			if err := matches(item, object[name], at+"."+name); err != nil {
				return err
			}
		}
		return nil
	case []any:
		list, ok := value.([]any)
		if !ok || len(list) != len(of) {
			return fmt.Errorf("%s is %s, not %s", at, shown(value), shown(expected))
		}
		for n := range of {
			if err := matches(of[n], list[n], at+"."+strconv.Itoa(n)); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		number, ok := value.(json.Number)
		if ok && sameNumber(of, number) {
			return nil
		}
	default:
		if expected == value {
			return nil
		}
	}
	return fmt.Errorf("%s is %s, not %s", at, shown(value), shown(expected))
}

func sameNumber(one, other json.Number) bool {
	a, okA := new(big.Rat).SetString(string(one))
	b, okB := new(big.Rat).SetString(string(other))
	return okA && okB && a.Cmp(b) == 0
}

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// greater says why the fields of the value are not greater than these, as whole numbers.
func greater(than map[string]any, value any) error {
	for path, floor := range than {
		have, err := fieldOf(value, path)
		if err != nil {
			return err
		}
		a, okA := new(big.Int).SetString(fmt.Sprint(have), 10)
		b, okB := new(big.Int).SetString(fmt.Sprint(floor), 10)
		if !okA || !okB || a.Cmp(b) <= 0 {
			return fmt.Errorf("%s is %s, not greater than %s", path, shown(have), shown(floor))
		}
	}
	return nil
}

// fieldOf goes into objects and lists.
func fieldOf(value any, path string) (any, error) {
	for step := range slices.Values(strings.Split(path, ".")) {
		switch of := value.(type) {
		case map[string]any:
			next, ok := of[step]
			if !ok {
				return nil, fmt.Errorf("the answer has no field %s: %s", path, shown(value))
			}
			value = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(of) {
				return nil, fmt.Errorf("the answer has no field %s: %s", path, shown(value))
			}
			value = of[n]
		default:
			return nil, fmt.Errorf("the answer has no field %s", path)
		}
	}
	return value, nil
}
