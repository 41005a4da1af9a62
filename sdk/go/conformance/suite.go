package main

// The form of a file of the suite, and its variables.

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// file is one of the suite.
type file struct {
	Name  string   `yaml:"name"`
	Quick bool     `yaml:"quick"`
	Needs []string `yaml:"needs"`
	// Endpoints is of how many of them the client is made; 0 for all.
	Endpoints int    `yaml:"endpoints"`
	Steps     []step `yaml:"steps"`

	base string
}

// step is one of a file.
type step struct {
	Call   string `yaml:"call"`
	Start  string `yaml:"start"`
	Next   string `yaml:"next"`
	Stop   string `yaml:"stop"`
	Fault  string `yaml:"fault"`
	Cancel string `yaml:"cancel"`
	Join   string `yaml:"join"`

	With       map[string]any    `yaml:"with"`
	As         string            `yaml:"as"`
	Of         string            `yaml:"of"`
	Expect     any               `yaml:"expect"`
	Greater    map[string]any    `yaml:"greater"`
	Error      map[string]any    `yaml:"error"`
	Save       map[string]string `yaml:"save"`
	Background bool              `yaml:"background"`
	Repeat     int               `yaml:"repeat"`
	Eventually bool              `yaml:"eventually"`
	WithinMs   int               `yaml:"within_ms"`
}

func readFile(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	read := &file{base: strings.TrimSuffix(filepath.Base(path), ".yaml")}
	if err := decoder.Decode(read); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(&file{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: it is more than one document", path)
	}
	if read.Name == "" || len(read.Steps) == 0 {
		return nil, fmt.Errorf("%s: it has no name or no steps", path)
	}
	return read, nil
}

// jsonOf gives any value in the form of JSON: objects, lists, text, booleans, nil, and numbers as they are written.
func jsonOf(value any) (any, error) {
	// JSON has no place for a name that is no text.
	text, err := json.Marshal(toWire(value))
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	return fromWire(out), nil
}

// encoded are the fields in base64 of names that are no text, by the fields of names.
var encoded = map[string]string{"key": "key_base64", "prefix": "prefix_base64"}

// alone is the only field of what stands for a name that is no text where there is no field for one: in a list.
const alone = "alone_base64"

// toWire writes names that are no text as the API has them.
func toWire(value any) any {
	switch of := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for field, item := range of {
			name, isText := item.(string)
			if other := encoded[field]; isText && other != "" && !utf8.ValidString(name) {
				out[other] = []byte(name)
				continue
			}
			out[field] = toWire(item)
		}
		return out
	case []any:
		out := make([]any, len(of))
		for n, item := range of {
			out[n] = toWire(item)
		}
		return out
	case string:
		return keyOf(of)
	}
	return value
}

// fromWire reverses toWire.
func fromWire(value any) any {
	switch of := value.(type) {
	case map[string]any:
		if name, isThere := decoded(of, alone); isThere {
			return name
		}
		for field, other := range encoded {
			if name, isThere := decoded(of, other); isThere {
				delete(of, other)
				of[field] = name
			}
		}
		for field, item := range of {
			of[field] = fromWire(item)
		}
	case []any:
		for n, item := range of {
			of[n] = fromWire(item)
		}
	}
	return value
}

// decoded is the name in a field in base64, if it is there.
func decoded(of map[string]any, field string) (string, bool) {
	text, isText := of[field].(string)
	name, err := base64.StdEncoding.DecodeString(text)
	return string(name), isText && err == nil
}

// keyOf is a key in a list.
func keyOf(key string) any {
	if utf8.ValidString(key) {
		return key
	}
	return map[string]any{alone: []byte(key)}
}

var rawByte = regexp.MustCompile(`\\x[0-9a-f]{2}`)

var variable = regexp.MustCompile(`\{([a-z_][a-z0-9_]*)\}`)

// filled gives the value with its variables filled in. Text that is nothing but a variable has its type.
func filled(value any, variables map[string]any) (any, error) {
	switch of := value.(type) {
	case string:
		return filledText(of, variables)
	case map[string]any:
		out := map[string]any{}
		for name, item := range of {
			key, err := filledText(name, variables)
			if err != nil {
				return nil, err
			}
			if out[fmt.Sprint(key)], err = filled(item, variables); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(of))
		for n, item := range of {
			var err error
			if out[n], err = filled(item, variables); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return value, nil
}

func filledText(text string, variables map[string]any) (any, error) {
	// A byte of a name that is no text.
	text = rawByte.ReplaceAllStringFunc(text, func(escape string) string {
		n, _ := strconv.ParseUint(escape[2:], 16, 8)
		return string([]byte{byte(n)})
	})
	if whole := variable.FindString(text); whole == text && text != "" {
		value, ok := variables[text[1:len(text)-1]]
		if !ok {
			return nil, fmt.Errorf("there is no variable %s", text)
		}
		return value, nil
	}
	var missing error
	out := variable.ReplaceAllStringFunc(text, func(name string) string {
		value, ok := variables[name[1:len(name)-1]]
		if !ok {
			missing = fmt.Errorf("there is no variable %s", name)
		}
		return fmt.Sprint(value)
	})
	return out, missing
}
