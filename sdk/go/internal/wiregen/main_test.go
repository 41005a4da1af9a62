package main

import (
	"bytes"
	"os"
	"testing"
)

// TestTypesAreThoseOfTheDocument generates the types again and compares.
func TestTypesAreThoseOfTheDocument(t *testing.T) {
	const document = "../../../../docs/openapi.json"
	text, err := os.ReadFile(document)
	if os.IsNotExist(err) {
		t.Skip("docs/openapi.json is not in a copy of the module alone")
	}
	if err != nil {
		t.Fatal(err)
	}
	generated, err := generate(text, docsText)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../../api/types.gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(generated, kept) {
		t.Error("api/types.gen.go is not what docs/openapi.json says: go generate ./api")
	}
}

// TestUnknownFormsAreRefused: what the generator does not know it does not guess.
func TestUnknownFormsAreRefused(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"type":"integer","format":"int128"}}}`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/components/schemas/Missing"}}}`,
		`{"type":"string"}`,
	} {
		text := `{"components":{"schemas":{"Odd":` + schema + `}}}`
		if out, err := generate([]byte(text), ""); err == nil {
			t.Errorf("%s became\n%s", schema, out)
		}
	}
}

// TestATextOfNothingIsRefused: what the document does not have any more has no text either.
func TestATextOfNothingIsRefused(t *testing.T) {
	document := []byte(`{"components":{"schemas":{"A":{"type":"object","properties":{"b":{"type":"string"}}},"E":{"type":"string","enum":["x"]}}}}`)
	for _, told := range []string{"A", "B: t", "A.c: t", "E=y: t", "A=x: t"} {
		if out, err := generate(document, told); err == nil {
			t.Errorf("%q became\n%s", told, out)
		}
	}
	out, err := generate(document, "A: t\nA.b: u\nE=x: v")
	for _, text := range []string{"// A: t", "// u", "// v"} {
		if err != nil || !bytes.Contains(out, []byte(text)) {
			t.Errorf("%q is not in\n%s\n%v", text, out, err)
		}
	}
}
