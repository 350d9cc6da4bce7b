// Package fault says what went wrong in the words the brain reasons with.
//
// Every error that leaves the engine is one Error: a kind, one sentence that names the thing, and the HTTP
// status if an API server answered. The rule to keep: a message never carries a credential.
package fault

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// Kind is the contract's kind of failure.
type Kind = enginev1.Fault_Kind

// maxMessage bounds a message: an admission webhook may answer with pages.
const maxMessage = 2048

// Error is a failure as the contract tells it.
type Error struct {
	Kind       Kind
	Message    string
	HTTPStatus int32
	// Err is the cause, for errors.Is; it never leaves the engine.
	Err error
}

// New makes a fault from a sentence.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: Sentence(fmt.Sprintf(format, args...))}
}

// Wrap makes a fault from a sentence and remembers its cause.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	e := New(kind, format, args...)
	e.Err = cause
	return e
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Proto is the fault as it crosses to the brain.
func (e *Error) Proto() *enginev1.Fault {
	return &enginev1.Fault{Kind: e.Kind, Message: e.Message, HttpStatus: e.HTTPStatus}
}

// From finds the fault in an error chain, or makes one of an API or network error. It is nil for a nil error.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return FromAPI(err)
}

// Is tells whether err is a fault of that kind.
func Is(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

var (
	spaces = regexp.MustCompile(`\s+`)
	// Credentials an error text could repeat: a header, the user part of a URL, the request's body in hex.
	bearer   = regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	userinfo = regexp.MustCompile(`://[^/\s@"]+@`)
	hexDump  = regexp.MustCompile(` \([0-9a-f]{16,}[0-9a-f .…]*\)`)
)

// Sentence makes one line of a text: no line breaks, lower-case start, no credentials, bounded; UTF-8, without which no
// message can be sent.
func Sentence(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.TrimSpace(spaces.ReplaceAllString(text, " "))
	text = bearer.ReplaceAllString(text, "$1 ***")
	text = userinfo.ReplaceAllString(text, "://***@")
	text = hexDump.ReplaceAllString(text, "")
	text = strings.TrimSuffix(text, ".")
	if len(text) > maxMessage {
		cut := maxMessage
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	word, _, _ := strings.Cut(text, " ")
	first, size := utf8.DecodeRuneInString(word)
	// "Operation cannot" becomes "operation cannot"; "CRD x" and "ConfigMap x" stay.
	if unicode.IsUpper(first) && word[size:] == strings.ToLower(word[size:]) {
		text = string(unicode.ToLower(first)) + text[size:]
	}
	return text
}
