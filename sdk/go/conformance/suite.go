package main

// The form of a file of the suite, and its variables.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is one of the suite.
type file struct {
	Name  string `yaml:"name"`
	Quick bool   `yaml:"quick"`
	Steps []step `yaml:"steps"`

	base string
}

// step is one of a file.
type step struct {
	Call  string `yaml:"call"`
	Start string `yaml:"start"`
	Next  string `yaml:"next"`
	Stop  string `yaml:"stop"`
	Fault string `yaml:"fault"`
	Join  string `yaml:"join"`

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
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out any
	return out, decoder.Decode(&out)
}

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
