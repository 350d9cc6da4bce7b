package expression

import (
	"strings"
	"testing"
)

var object = map[string]any{
	"metadata": map[string]any{"name": "web", "generation": int64(2)},
	"status": map[string]any{
		"phase": "Ready", "observedGeneration": int64(2),
		"conditions": []any{map[string]any{"type": "Promoted", "status": "True"}},
	},
}

func TestAnswers(t *testing.T) {
	for text, want := range map[string]bool{
		`status.phase == "Ready"`: true,
		`status.conditions.exists(c, c.type == "Promoted" && c.status == "True")`: true,
		`metadata.generation == status.observedGeneration`:                        true,
		`object.metadata.name.startsWith("a")`:                                    false,
		`has(spec.replicas)`:                                                      false,
		`status.?phase.orValue("") == "Failed"`:                                   false,
	} {
		compiled, err := Compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got, err := compiled.True(object); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`status.phase ==`:                      "Syntax error",
		`nonsense == 1`:                        "undeclared reference",
		`"a" + "b"`:                            "not true or false",
		`size(object) == "2"`:                  "no matching overload",
		strings.Repeat("true&&", 999) + "true": "longer than",
	} {
		_, err := Compile(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s: got %v, want %q", text, err, want)
		}
	}
}

func TestFailures(t *testing.T) {
	nested := "[1,2,3,4,5,6,7,8,9,10]"
	endless := "true"
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		endless = nested + ".all(" + name + ", " + endless + ")"
	}
	for text, want := range map[string]string{
		`status.missing == "x"`: "no such key",
		`status.phase`:          "not true or false",
		endless:                 "cost",
	} {
		compiled, err := Compile(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := compiled.True(object); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
