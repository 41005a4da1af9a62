package quorate

// What of a document a Go type has no place for. Owns the search for fields that would be lost if a document were read as that type and written
// back: encoding/json passes over what it does not know.

import (
	"bytes"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// lostMax fields are named at most.
const lostMax = 10

var (
	ownJSON = reflect.TypeFor[json.Unmarshaler]()
	ownText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// lostFields are the dotted paths of what the document has and the type has not, in their order, at most so many.
func lostFields(text json.RawMessage, of reflect.Type) []string {
	var document any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&document) != nil {
		// It was read as the type, so it is one.
		return nil
	}
	found := &losses{}
	found.look("", document, of)
	return found.paths
}

type losses struct{ paths []string }

func (l *losses) add(path string) {
	if len(l.paths) < lostMax {
		l.paths = append(l.paths, path)
	}
}

// look compares a part of a document with the type that it is read as.
func (l *losses) look(path string, part any, of reflect.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if pointer := reflect.PointerTo(of); pointer.Implements(ownJSON) || pointer.Implements(ownText) {
		// What it keeps is its own affair.
		return
	}
	switch part := part.(type) {
	case map[string]any:
		l.lookAtObject(path, part, of)
	case []any:
		l.lookAtList(path, part, of)
	}
}

func (l *losses) lookAtObject(path string, part map[string]any, of reflect.Type) {
	known := map[string]reflect.Type{}
	if of.Kind() == reflect.Struct {
		fieldsOf(of, known, map[reflect.Type]bool{})
	}
	for _, name := range slices.Sorted(maps.Keys(part)) {
		switch field, isKnown := known[name]; {
		case of.Kind() == reflect.Map:
			l.look(joined(path, name), part[name], of.Elem())
		case of.Kind() != reflect.Struct:
		case isKnown:
			l.look(joined(path, name), part[name], field)
		default:
			// One that differs in great and small letters only is read, but written by another name.
			l.add(joined(path, name))
		}
	}
}

func (l *losses) lookAtList(path string, part []any, of reflect.Type) {
	if of.Kind() != reflect.Slice && of.Kind() != reflect.Array {
		return
	}
	for n, element := range part {
		if of.Kind() == reflect.Array && n >= of.Len() {
			l.add(joined(path, strconv.Itoa(n)))
			continue
		}
		l.look(joined(path, strconv.Itoa(n)), element, of.Elem())
	}
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fieldsOf gathers the fields of a struct by the names that they have in JSON. Those of an embedded one are behind its own.
func fieldsOf(of reflect.Type, known map[string]reflect.Type, seen map[reflect.Type]bool) {
	if seen[of] {
		return
	}
	seen[of] = true
	var embedded []reflect.Type
	for n := range of.NumField() {
		field := of.Field(n)
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-":
		case field.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			embedded = append(embedded, inner)
		case field.IsExported():
			if name == "" {
				name = field.Name
			}
			if _, isKnown := known[name]; !isKnown {
				known[name] = field.Type
			}
		}
	}
	for _, inner := range embedded {
		fieldsOf(inner, known, seen)
	}
}
