// Package expression asks CEL yes-or-no questions about objects.
//
// An expression sees the whole object as `object`, and its parts as `metadata`, `spec` and `status`. The rule to
// keep: whatever is asked, an answer costs a bounded time.
package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
)

const (
	// maxText bounds what is compiled.
	maxText = 4096
	// maxCost bounds one evaluation, in CEL's own unit; a look at a hundred conditions costs some hundreds.
	maxCost = 100_000
)

var parts = []string{"metadata", "spec", "status"}

// Made when first asked for: most clusters never ask.
var environment = sync.OnceValue(func() *cel.Env {
	options := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(), ext.Lists(),
		cel.Variable("object", cel.MapType(cel.StringType, cel.DynType)),
	}
	for _, part := range parts {
		options = append(options, cel.Variable(part, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		panic(err) // nothing in it depends on input
	}
	return env
})

// Expression is compiled once and asked often, by several goroutines if need be.
type Expression struct{ program cel.Program }

// Compile reads an expression; an error is one sentence.
func Compile(text string) (*Expression, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	checked, issues := environment().Compile(text)
	if err := issues.Err(); err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it gives %s, not true or false", kind)
	}
	program, err := environment().Program(checked, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	return &Expression{program}, nil
}

// True asks about an object; an error is one sentence without a word of the object's content but names.
func (e *Expression) True(object map[string]any) (bool, error) {
	input := map[string]any{"object": object}
	for _, part := range parts {
		if input[part] = object[part]; input[part] == nil {
			input[part] = map[string]any{}
		}
	}
	answer, _, err := e.program.Eval(input)
	if err != nil {
		return false, errors.New(firstLine(err.Error()))
	}
	yes, ok := answer.Value().(bool)
	if !ok {
		return false, fmt.Errorf("it gives %s, not true or false", answer.Type().TypeName())
	}
	return yes, nil
}

// firstLine takes CEL's "ERROR: <input>:1:8: undeclared reference…" without the picture below it.
func firstLine(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	line = strings.TrimPrefix(strings.TrimSpace(line), "ERROR: ")
	return strings.Replace(line, "<input>:", "", 1)
}
