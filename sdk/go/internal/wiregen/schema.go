package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// schema is the part of JSON Schema that the document uses.
type schema struct {
	Ref        string          `json:"$ref"`
	Type       kinds           `json:"type"`
	Format     string          `json:"format"`
	Pattern    string          `json:"pattern"`
	Enum       []string        `json:"enum"`
	Const      json.RawMessage `json:"const"`
	Items      *schema         `json:"items"`
	Properties *properties     `json:"properties"`
	Required   []string        `json:"required"`
	AnyOf      []*schema       `json:"anyOf"`
	OneOf      []*schema       `json:"oneOf"`
	AllOf      []*schema       `json:"allOf"`
	Additional json.RawMessage `json:"additionalProperties"`
	// InsteadOf is the field of a name that is always there, in one of two forms of which this is the other.
	InsteadOf string `json:"x-instead-of"`

	// origins are the schemas that the fields of a merged one come from.
	origins map[string]string
}

// kinds are the types of a value: the document has one name, or a list with "null" in it.
type kinds []string

// UnmarshalJSON takes a name or a list of names.
func (k *kinds) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		var one string
		if err := json.Unmarshal(text, &one); err != nil {
			return err
		}
		*k = kinds{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(k))
}

// kind is the one type beside "null"; empty where the schema says nothing of its type.
func (s *schema) kind() string {
	for _, name := range s.Type {
		if name != "null" {
			return name
		}
	}
	return ""
}

func (s *schema) requires(name string) bool { return slices.Contains(s.Required, name) }

// requiresName says whether the field, which is a name, is always there in one of its forms.
func (s *schema) requiresName(name string) bool {
	encoded := s.Properties.of[name+"_base64"]
	return encoded != nil && encoded.InsteadOf == name
}

// properties are the fields of an object in the order of the document.
type properties struct {
	names []string
	of    map[string]*schema
}

// UnmarshalJSON keeps the order, which a map would lose.
func (p *properties) UnmarshalJSON(text []byte) error {
	p.of = map[string]*schema{}
	if err := json.Unmarshal(text, &p.of); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		p.names = append(p.names, name.(string))
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return err
		}
	}
	return nil
}

func (p *properties) add(name string, field *schema) {
	if _, known := p.of[name]; !known {
		p.names = append(p.names, name)
	}
	p.of[name] = field
}

// document is what is read of the OpenAPI document.
type document struct {
	Components struct {
		Schemas properties `json:"schemas"`
	} `json:"components"`
}

func parse(text []byte) (*properties, error) {
	var all document
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("the document is not OpenAPI: %w", err)
	}
	if len(all.Components.Schemas.names) == 0 {
		return nil, fmt.Errorf("the document has no schemas")
	}
	return &all.Components.Schemas, nil
}
