package raw

import (
	"bytes"
	"encoding/json"
	"errors"
)

// This file finds its way in JSON without decoding it. Objects cross the engine as bytes; decoding one to a
// tree and encoding it again would cost ten times what is done here. The input is what an API server sends, which is
// well formed; where it is not, it ends in errMalformed here or with whoever decodes it, never in a panic.

var errMalformed = errors.New("malformed JSON")

// span is data[start:end].
type span struct{ start, end int }

// fields calls visit for every member of the object that begins at data[at], with the raw key (no quotes; keys
// of Kubernetes objects that matter here need no escapes) and the spans of the whole member and of its value.
func fields(data []byte, at int, visit func(key []byte, member, value span) error) (int, error) {
	at = skipSpace(data, at)
	if at >= len(data) || data[at] != '{' {
		return at, errMalformed
	}
	at = skipSpace(data, at+1)
	for at < len(data) && data[at] != '}' {
		keyStart := at
		keyEnd, err := skipString(data, at)
		if err != nil {
			return at, err
		}
		at = skipSpace(data, keyEnd)
		if at >= len(data) || data[at] != ':' {
			return at, errMalformed
		}
		valueStart := skipSpace(data, at+1)
		valueEnd, err := skipValue(data, valueStart)
		if err != nil {
			return at, err
		}
		if err := visit(data[keyStart+1:keyEnd-1], span{keyStart, valueEnd}, span{valueStart, valueEnd}); err != nil {
			return at, err
		}
		at = skipSpace(data, valueEnd)
		if at < len(data) && data[at] == ',' {
			at = skipSpace(data, at+1)
		}
	}
	if at >= len(data) {
		return at, errMalformed
	}
	return at + 1, nil
}

func skipSpace(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

func skipString(data []byte, at int) (int, error) {
	if at >= len(data) || data[at] != '"' {
		return at, errMalformed
	}
	for at++; at < len(data); at++ {
		quote := bytes.IndexByte(data[at:], '"')
		if quote < 0 {
			return at, errMalformed
		}
		at += quote
		// The quote ends the string unless an odd number of backslashes stands before it.
		slashes := 0
		for at-1-slashes > 0 && data[at-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return at + 1, nil
		}
	}
	return at, errMalformed
}

func skipValue(data []byte, at int) (int, error) {
	if at >= len(data) {
		return at, errMalformed
	}
	switch data[at] {
	case '"':
		return skipString(data, at)
	case '{', '[':
		depth := 0
		for at < len(data) {
			switch data[at] {
			case '"':
				end, err := skipString(data, at)
				if err != nil {
					return at, err
				}
				at = end
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return at + 1, nil
				}
			}
			at++
		}
		return at, errMalformed
	}
	end := at
	for end < len(data) && data[end] != ',' && data[end] != '}' && data[end] != ']' && data[end] > ' ' {
		end++
	}
	if end == at {
		return at, errMalformed
	}
	return end, nil
}

// text decodes a JSON string value; strings without escapes, nearly all, need no decoder.
func text(value []byte) string {
	if len(value) >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	var s string
	_ = json.Unmarshal(value, &s)
	return s
}
