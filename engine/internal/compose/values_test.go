package compose

import (
	"strings"
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const canary = "hunter2canary"

func documents(texts ...string) []*enginev1.ComposeRequest_Document {
	var out []*enginev1.ComposeRequest_Document
	for _, text := range texts {
		out = append(out, &enginev1.ComposeRequest_Document{Origin: "spec.here", Text: text})
	}
	return out
}

func assignments(pairs ...string) []*enginev1.ComposeRequest_Assignment {
	var out []*enginev1.ComposeRequest_Assignment
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		out = append(out, &enginev1.ComposeRequest_Assignment{Origin: "spec.set", Name: name, Value: value})
	}
	return out
}

func TestValues(t *testing.T) {
	for _, row := range []struct {
		rule      string
		documents []string
		set       []string
		want      string
	}{
		{"nothing is an empty object", nil, nil, `{}`},
		{"an empty document is an empty object", []string{"", " \n", "null", "# only a comment\n", "---\n"}, nil, `{}`},
		{"maps are merged deeply, the later wins", []string{"a: {b: x, c: w}", "a: {b: z}"}, nil, `{"a":{"b":"z","c":"w"}}`},
		{"lists are replaced", []string{"a: [x, y]", "a: [z]"}, nil, `{"a":["z"]}`},
		{"a map replaces a scalar, a scalar a map", []string{"a: x\nb: {c: x}", "a: {c: x}\nb: x"}, nil, `{"a":{"c":"x"},"b":"x"}`},
		{"null stays, so that Helm removes the default", []string{"a: {b: x}", "a: {b: null}\nc: ~"}, nil, `{"a":{"b":null},"c":null}`},
		{"documents of one text are merged", []string{"a: x\n---\nb: w\n---\na: z\n"}, nil, `{"a":"z","b":"w"}`},
		{"JSON is YAML", []string{`{"a": {"b": [true, null, "x"]}}`}, nil, `{"a":{"b":[true,null,"x"]}}`},
		{"JSON that YAML cannot read is JSON", []string{`{"a": "\ud83d\ude00 \/"}`}, nil, `{"a":"😀 /"}`},
		{"YAML is 1.1: yes is true, 010 is 8", []string{"a: yes\nb: 010"}, nil, `{"a":true,"b":8.0}`},
		{"keys become strings", []string{"1: a\ntrue: b"}, nil, `{"1":"a","true":"b"}`},
		{"a document's numbers are floats", []string{"a: 1\nb: 1000000\nc: 1.5\nd: 1e30"}, nil, `{"a":1.0,"b":1000000.0,"c":1.5,"d":1e+30}`},
		{"an assignment's whole numbers are integers", nil, []string{"a=1", "b=1000680000", "c=9007199254740993", "d=1.5"}, `{"a":1,"b":1000680000,"c":9007199254740993,"d":"1.5"}`},
		{"assignments come last, in order", []string{"a: {b: x, c: w}"}, []string{"a.b=z", "a.b=last"}, `{"a":{"b":"last","c":"w"}}`},
		{"an assignment into a document's list", []string{"a: [{b: x}, {b: y}]"}, []string{"a[1].b=z"}, `{"a":[{"b":"x"},{"b":"z"}]}`},
	} {
		t.Run(row.rule, func(t *testing.T) {
			got, err := Values(documents(row.documents...), assignments(row.set...))
			if err != nil || string(got) != row.want {
				t.Errorf("got %s %v, want %s", got, err, row.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, row := range []struct {
		rule, document, set, want string
	}{
		{"a string is no mapping", canary, "", "spec.here: must be a mapping, not a string"},
		{"a number is no mapping", "1234567", "", "spec.here: must be a mapping, not a number"},
		{"a list is no mapping", "[" + canary + "]", "", "spec.here: must be a mapping, not a list"},
		{"a line is told", "a: x\nb: [" + canary + "\nc: y", "", "spec.here: is not valid YAML: line 2: did not find expected ',' or ']'"},
		{"a line is counted in the whole text", "---\na: x\n---\n\nb: \"" + canary, "", "spec.here: is not valid YAML: line 5: found unexpected end of stream"},
		{"bad indentation", "a: x\n  b: " + canary, "", "spec.here: is not valid YAML: line 2: mapping values are not allowed in this context"},
		{"Helm wants --- alone on its line", "a: x\n--- {b: " + canary + "}", "", "spec.here: is not valid YAML: --- must stand alone on its line"},
		{"half an emoji", `a: "\ud83d\ude00` + canary + `"`, "", "spec.here: is not valid YAML: found invalid Unicode character escape code"},
		{"tabs", "a:\n\t- " + canary, "", "spec.here: is not valid YAML: line 2: found character that cannot start any token"},
		{"an alias is not quoted", "a: *" + canary, "", "spec.here: is not valid YAML: an alias names an anchor that is not there"},
		{"a key is not quoted", "? {" + canary + ": x}\n: " + canary, "", "spec.here: is not valid YAML: a key is not a string, a number or a boolean"},
		{"a null key is not quoted", "~: " + canary, "", "spec.here: is not valid YAML: a key is not a string, a number or a boolean"},
		{"a tagged value is not quoted", "a: !!float " + canary, "", "spec.here: is not valid YAML: a value does not fit its tag"},
		{"infinity is no JSON", "a: .inf", "", "spec.here: is not valid YAML: a number is infinite or not a number"},
		{"a merge key wants a mapping", "<<: " + canary, "", "spec.here: is not valid YAML: a merge key (<<) needs a mapping"},
		{"control characters", "a: \x01" + canary, "", "spec.here: is not valid YAML: control characters are not allowed"},
		{"no name", "", "=" + canary, "spec.set: it has no name"},
		{"a comma begins a new name", "", "a=x," + canary, "spec.set: is not an assignment as --set takes it: a name has no value (a comma that is part of a value is written \\,)"},
		{"a list ends", "", "a={x," + canary, "spec.set: is not an assignment as --set takes it: a list that begins with { does not end with }"},
		{"an index is a number", "", "a[" + canary + "]=x", "spec.set: is not an assignment as --set takes it: an index in brackets is not a number"},
		{"an index is not negative", "", "a[-1]=x", "spec.set: is not an assignment as --set takes it: an index in brackets is negative"},
		{"an index is bounded", "", "a[70000]=x", "spec.set: is not an assignment as --set takes it: an index in brackets is too large"},
		{"nothing follows an index", "", "a[0]" + canary + "=x", "spec.set: is not an assignment as --set takes it: an index in brackets is followed by something else than a dot, a bracket or ="},
		{"an index needs a list", "a: " + canary, "a[0]=x", "spec.set: is not an assignment as --set takes it: an index in brackets is used on something that is not a list"},
		{"a dot needs a mapping", "a: " + canary, "a.b=x", "spec.set: is not an assignment as --set takes it: a name with a dot leads into something that is not a mapping"},
		{"dots are bounded", "", strings.Repeat("a.", 40) + "a=x", "spec.set: is not an assignment as --set takes it: a name has too many dots"},
	} {
		t.Run(row.rule, func(t *testing.T) {
			var set []string
			if row.set != "" {
				set = []string{row.set}
			}
			_, err := Values(documents(row.document), assignments(set...))
			refused(t, err, row.want)
		})
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	if !fault.Is(err, enginev1.Fault_INVALID) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err != nil && strings.Contains(err.Error(), canary) {
		t.Error("the content leaks:", err)
	}
}
