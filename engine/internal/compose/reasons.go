package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reason says in our words what an error of a library says while quoting the document.
type reason struct{ theirs, ours string }

var (
	// The parser's own complaints are constants; every other error of the YAML library may quote.
	syntax = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?:did not find|could not find|found|control characters|` +
		`mapping keys|mapping values|block sequence|exceeded|incomplete|unexpected low|expected low|` +
		`invalid (?:leading|trailing|length|Unicode|character)) ?[^"\x60{}\n]*)$`)

	fromParser = regexp.MustCompile(`^did not find expected (?:<|key$|',' or|'-'|node)`)

	yamlReasons = []reason{
		{"document separator", "--- must stand alone on its line"},
		{"unknown anchor", "an alias names an anchor that is not there"},
		{"value contains itself", "an anchor contains itself"},
		{"excessive aliasing", "it uses too many aliases"},
		{"map merge requires", "a merge key (<<) needs a mapping"},
		{"map key", "a key is not a string, a number or a boolean"},
		{"unsupported value", "a number is infinite or not a number"},
		{"cannot decode", "a value does not fit its tag"},
		{"base64", "a binary value is not base64"},
	}

	assignmentReasons = []reason{
		{"cannot end with ,", "a name after a comma has no value (a comma that is part of a value is written \\,)"},
		{"has no value", "a name has no value (a comma that is part of a value is written \\,)"},
		{"list must terminate", "a list that begins with { does not end with }"},
		{"parsing index", "an index in brackets is not a number"},
		{"negative", "an index in brackets is negative"},
		{"maximum supported index", "an index in brackets is too large"},
		{"maximum supported nested level", "a name has too many dots"},
		{"end of array index", "an index in brackets is followed by something else than a dot, a bracket or ="},
		{"not []interface {}", "an index in brackets is used on something that is not a list"},
		{"not map[string]interface {}", "a name with a dot leads into something that is not a mapping"},
	}

	jsonTypes = map[string]string{
		"array": "a list", "object": "a mapping", "string": "a string", "number": "a number", "bool": "a boolean",
	}
)

// whyNotYAML says what is wrong with a document that is not a mapping in YAML.
func whyNotYAML(text string, err error) string {
	if given, _, ok := wrongType(err); ok {
		return "must be a mapping, not " + given
	}
	if why := syntaxError(text); why != "" {
		return why
	}
	return "is not valid YAML" + because(err, yamlReasons)
}

// syntaxError parses the text again, as one stream: Helm's loader cuts it into documents first, and counts the
// lines of each alone.
func syntaxError(text string) string {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if err == nil {
			continue
		}
		found := syntax.FindStringSubmatch(err.Error())
		if errors.Is(err, io.EOF) || found == nil {
			return ""
		}
		line, _ := strconv.Atoi(found[1])
		if fromParser.MatchString(found[2]) {
			line++ // it counts from 0, while the scanner counts from 1
		}
		if line == 0 {
			return "is not valid YAML: " + found[2]
		}
		return fmt.Sprintf("is not valid YAML: line %d: %s", line, found[2])
	}
}

// wrongType tells what was given where something else is wanted, and at which field.
func wrongType(err error) (given, field string, ok bool) {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return "", "", false
	}
	// "number 12" would repeat the number.
	kind, _, _ := strings.Cut(mismatch.Value, " ")
	given, known := jsonTypes[kind]
	if !known {
		given = "something else"
	}
	return given, mismatch.Field, true
}

func whyNotAssignment(err error) string {
	return "is not an assignment as --set takes it" + because(err, assignmentReasons)
}

func because(err error, reasons []reason) string {
	for _, known := range reasons {
		if strings.Contains(err.Error(), known.theirs) {
			return ": " + known.ours
		}
	}
	return ""
}
