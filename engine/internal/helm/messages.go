package helm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	schemaPoint = regexp.MustCompile(`- at '([^']*)': (.+)`)
	gotValue    = regexp.MustCompile(`'(?:[^'\\]|\\.)*' (does not match pattern|is not valid)`)
	location    = regexp.MustCompile(`([\w.-]+(?:/[\w.-]+)*/templates/[^\s:()]+?)(:\d+(?::\d+)?)`)
	executing   = regexp.MustCompile(`executing "[^"]*" at (<[^\n]*?>):`)
	yamlError   = regexp.MustCompile(`YAML parse error on ([^:]+): (?:error (?:converting YAML to JSON|unmarshaling JSON)[^:]*: )?(?:yaml: )?(.*)`)
	tplText     = regexp.MustCompile(`(?s)(cannot parse template|tpl function execution for) ".*?":`)
	wholeObject = regexp.MustCompile(`(?s)(Object '(?:Kind|apiVersion)' is missing) in '.*?'`)
	typedValue  = regexp.MustCompile(`got &value\.valueUnstructured\{.*?\}+`)
	noKind      = regexp.MustCompile(`resource mapping not found for name: "([^"]*)" namespace: "[^"]*"(?: from "[^"]*")?:? no matches for kind "([^"]*)" in version "([^"]*)"(?: ensure CRDs are installed first)?`)
	anyValue    = regexp.MustCompile(`(?:[Ii]nvalid value: )("(?:[^"\\]|\\.)*"|\S+)`)
)

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// redact takes out of a message what may repeat a value: the text given to `tpl`, a whole object, what a pattern
// did not match.
func redact(message string) string {
	message = tplText.ReplaceAllString(message, "$1 its text:")
	message = wholeObject.ReplaceAllString(message, "$1")
	message = gotValue.ReplaceAllString(message, "the value $1")
	message = typedValue.ReplaceAllString(message, "got something else")
	return oneLine(message)
}

// withoutValues is for answers about Secrets.
func withoutValues(message string) string {
	return anyValue.ReplaceAllString(message, "invalid value")
}

// tidy drops the wrapping Helm puts around an error.
func tidy(message string) string {
	message = redact(message)
	for _, prefix := range []string{
		"release name check failed: ", "unable to continue with install: ", "unable to continue with update: ",
		"unable to build kubernetes objects from release manifest: ",
		"unable to build kubernetes objects from new release manifest: ",
	} {
		message = strings.TrimPrefix(message, prefix)
	}
	return noKind.ReplaceAllString(message, `no matches for kind "$2" in $3 (object $1): is its CRD missing?`)
}

// schemaMessage makes one sentence of the paths at which values violate a chart's schema.
func schemaMessage(text string) (string, bool) {
	if !strings.Contains(text, "don't meet the specifications of the schema") {
		return "", false
	}
	var points []string
	for _, found := range schemaPoint.FindAllStringSubmatch(text, -1) {
		at := strings.ReplaceAll(strings.TrimPrefix(found[1], "/"), "/", ".")
		if at == "" {
			at = "values"
		}
		points = append(points, fmt.Sprintf("%s: %s", at, redact(found[2])))
	}
	slices.Sort(points) // the validator walks a map: the same violation must make the same message
	if len(points) == 0 {
		_, detail, _ := strings.Cut(text, "\n")
		points = []string{redact(detail)}
	}
	return "the values violate the chart's schema: " + strings.Join(points, "; "), true
}

// renderMessage makes `templates/x.yaml:12:5: what went wrong` of a template's error. With includes, Helm tells a
// chain of places: the innermost is where it went wrong, the outermost which file was rendered.
func renderMessage(text string) (string, bool) {
	if found := yamlError.FindStringSubmatch(text); found != nil {
		return fmt.Sprintf("%s: what it renders is not YAML: %s", inChart(found[1]), redact(found[2])), true
	}
	text = tplText.ReplaceAllString(text, "$1 its text:")
	places := location.FindAllStringSubmatchIndex(text, -1)
	if len(places) == 0 {
		return "", false
	}
	outer, inner := place(text, places[0]), place(text, places[len(places)-1])
	message := text[places[len(places)-1][1]:]
	message = strings.TrimLeft(message, "): \n")
	message = executing.ReplaceAllString(message, "at $1:")
	if inner != outer {
		inner += " (included from " + outer + ")"
	}
	return fmt.Sprintf("%s: %s", inner, redact(message)), true
}

func place(text string, at []int) string {
	return inChart(text[at[2]:at[3]]) + text[at[4]:at[5]]
}

// inChart drops the chart's own name; a subchart's path keeps telling which.
func inChart(file string) string {
	_, rest, found := strings.Cut(file, "/")
	if !found {
		return file
	}
	return rest
}
