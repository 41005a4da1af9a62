package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// docsText says what schemas, their fields and their values mean, which the document does not: a line `Schema: text`, `Schema.field: text` or
// `Schema=value: text` for each.
//
//go:embed docs.txt
var docsText string

// docs are the texts by what they are of.
type docs map[string]string

// parseDocs refuses a text of something that is not in the document.
func parseDocs(text string, schemas *properties) (docs, error) {
	all := docs{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, doc, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("docs.txt: %q has no text", line)
		}
		if !isThere(name, schemas) {
			return nil, fmt.Errorf("docs.txt: there is no %s in the document", name)
		}
		all[name] = doc
	}
	return all, nil
}

func isThere(name string, schemas *properties) bool {
	if owner, value, ok := strings.Cut(name, "="); ok {
		return schemas.of[owner] != nil && slices.Contains(schemas.of[owner].Enum, value)
	}
	owner, field, isField := strings.Cut(name, ".")
	s := schemas.of[owner]
	return s != nil && (!isField || (s.Properties != nil && s.Properties.of[field] != nil))
}

// declaration is the comment of a type, which begins with its name.
func (d docs) declaration(name string) string {
	text, ok := d[name]
	if !ok {
		return "// " + name + " is the schema of that name.\n"
	}
	first, _, _ := strings.Cut(text, " ")
	if len(first) == 1 || first[1:] == strings.ToLower(first[1:]) {
		text = strings.ToLower(first[:1]) + text[1:]
	}
	return comment(name + ": " + text)
}

// of is the comment of a field or a value; empty where nothing is said of it.
func (d docs) of(name string) string {
	if text, ok := d[name]; ok {
		return comment(text)
	}
	return ""
}

// comment has lines of a bearable length.
func comment(text string) string {
	const width = 130
	out, line := "", "//"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width {
			out += line + "\n"
			line = "//"
		}
		line += " " + word
	}
	return out + line + "\n"
}
