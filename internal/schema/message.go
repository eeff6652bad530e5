package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// message says what one failed keyword expected. got is the value it failed on.
func message(k jsonschema.ErrorKind, got any) string {
	switch k := k.(type) {
	case *kind.Type:
		return wrongType(k, got)
	case *kind.Enum:
		if len(k.Want) == 1 {
			return "must be " + show(k.Want[0]) + gotten(got)
		}
		return "must be one of " + list(len(k.Want), func(i int) string { return show(k.Want[i]) }) + gotten(got)
	case *kind.Const:
		return "must be " + show(k.Want) + gotten(got)
	case *kind.Format:
		if k.Want == "regex" && k.Err != nil {
			return "must be a regular expression: " + plainText(k.Err.Error())
		}
		return "must be " + formatName(k.Want) + gotten(got)
	case *kind.ContentEncoding:
		return "must be " + clip(k.Want, maxQuoted) + " text"
	case *kind.Pattern:
		return "must match the pattern " + quote(k.Want) + gotten(got)
	case *kind.Minimum:
		return "must be at least " + show(k.Want) + gotten(got)
	case *kind.Maximum:
		return "must be at most " + show(k.Want) + gotten(got)
	case *kind.ExclusiveMinimum:
		return "must be greater than " + show(k.Want) + gotten(got)
	case *kind.ExclusiveMaximum:
		return "must be less than " + show(k.Want) + gotten(got)
	case *kind.MultipleOf:
		return "must be a multiple of " + show(k.Want) + gotten(got)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s, got %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, got %d", count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s, got %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, got %d", count(k.Want, "item"), k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s too many", count(k.Count, "item"))
	case *kind.UniqueItems:
		return fmt.Sprintf("must have unique items, but items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.DependentRequired:
		return dependent(k.Prop, k.Missing)
	case *kind.Dependency:
		return dependent(k.Prop, k.Missing)
	case *kind.Contains:
		return "must have an item of the required kind"
	case *kind.MinContains:
		return fmt.Sprintf("must have at least %s of the required kind, got %d", count(k.Want, "item"), len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("must have at most %s of the required kind, got %d", count(k.Want, "item"), len(k.Got))
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Not:
		return "must not have this form"
	case *kind.RefCycle:
		return "cannot be validated: the schema refers to itself in a circle"
	}
	return "does not conform to the schema"
}

func wrongType(k *kind.Type, got any) string {
	want := make([]string, len(k.Want))
	for i, t := range k.Want {
		want[i] = article(t)
	}
	found := article(k.Got)
	if n, ok := got.(json.Number); ok && len(k.Want) == 1 && k.Want[0] == "integer" {
		found = show(n)
	}
	return "must be " + strings.Join(want, " or ") + ", got " + found
}

func article(jsonType string) string {
	switch jsonType {
	case "null":
		return "null"
	case "integer", "array", "object":
		return "an " + jsonType
	}
	return "a " + jsonType
}

// formatName is a format with an example where the name alone would not do.
func formatName(format string) string {
	switch format {
	case "date-time":
		return "a date-time like 2006-01-02T15:04:05Z"
	case "date":
		return "a date like 2006-01-02"
	case "time":
		return "a time like 15:04:05Z"
	case "duration":
		return "an ISO 8601 duration like PT1H30M"
	case "email":
		return "an email address"
	case "uri", "iri":
		return "an absolute URI"
	case "uuid":
		return "a UUID"
	}
	return "a valid " + clip(format, maxQuoted)
}

// gotten names the value when it is short enough to help.
func gotten(got any) string {
	switch v := got.(type) {
	case string, json.Number, bool:
		return ", got " + show(v)
	}
	return ""
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func dependent(prop string, missing []string) string {
	return "must also have " + list(len(missing), func(i int) string { return quote(missing[i]) }) + " when it has " + quote(prop)
}
