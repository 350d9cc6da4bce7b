package raw

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func all(t *testing.T, in io.Reader) ([]string, error) {
	t.Helper()
	var out []string
	f := newFrames(in)
	for {
		frame, err := f.next()
		if err != nil {
			return out, err
		}
		out = append(out, strings.TrimSpace(string(frame)))
	}
}

func TestFramesAreWhatADecoderFinds(t *testing.T) {
	values := []string{
		`{}`,
		`{"type":"ADDED","object":{"a":["}",{"b":"\\"}],"c":"\"{","d":null,"e":-1.5e3}}`,
		`{"a":"` + strings.Repeat(`\\\"x`, 3*firstBuffer) + `"}`,
		`{"a":[[[]]],"ü":"☃"}`,
		`{"a":"` + strings.Repeat("y", keptBuffer) + `"}`,
	}
	stream := " " + strings.Join(values, "\n") + "\r\n\t" + strings.Join(values, "")
	want := append(append([]string{}, values...), values...)
	for name, in := range map[string]io.Reader{
		"at once":       strings.NewReader(stream),
		"byte by byte":  iotest.OneByteReader(strings.NewReader(stream)),
		"half by half":  iotest.HalfReader(strings.NewReader(stream)),
		"end with data": iotest.DataErrReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := all(t, in)
			if !errors.Is(err, io.EOF) {
				t.Fatalf("ended with %v", err)
			}
			if len(got) != len(want) {
				t.Fatalf("%d frames, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("frame %d: %.80s, want %.80s", i, got[i], want[i])
				}
			}
		})
	}
}

func TestFramesOfABrokenStream(t *testing.T) {
	for stream, want := range map[string]error{
		`{"a":1}{"b":`:        io.ErrUnexpectedEOF,
		`{"a":"}`:             io.ErrUnexpectedEOF,
		`{"a":1} null`:        errMalformed,
		`{"a":1}}`:            errMalformed,
		`[{"a":1}]`:           errMalformed,
		`upstream went away`:  errMalformed,
		"":                    io.EOF,
		"{\"a\":1}\n   \n\t ": io.EOF,
	} {
		if _, err := all(t, strings.NewReader(stream)); !errors.Is(err, want) {
			t.Errorf("%q ended with %v, want %v", stream, err, want)
		}
	}
	lost := errors.New("lost")
	in := io.MultiReader(strings.NewReader(`{"a":1}{"b"`), iotest.ErrReader(lost))
	if got, err := all(t, in); !errors.Is(err, lost) || len(got) != 1 {
		t.Errorf("got %v and %v", got, err)
	}
}

func TestFramesThatNeverEnd(t *testing.T) {
	_, err := all(t, io.MultiReader(strings.NewReader(`{"a":"`), endless{}))
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("ended with %v", err)
	}
}

func TestAFramesMemoryIsNotKept(t *testing.T) {
	f := newFrames(strings.NewReader(`{"a":"` + strings.Repeat("y", 4*keptBuffer) + "\"}\n"))
	if _, err := f.next(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.next(); !errors.Is(err, io.EOF) || len(f.buffer) > keptBuffer {
		t.Errorf("%v, and %d bytes are kept", err, len(f.buffer))
	}
}

type endless struct{}

func (endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = 'x'
	}
	return len(into), nil
}

// FuzzFrames: whatever a decoder takes for a row of objects, frames cut at the same places; nothing panics.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"type":"MODIFIED","object":{"metadata":{"name":"a","managedFields":[{"x":"\\"}]}}}{"b":[]}`))
	f.Add([]byte(`{"type":"ADDED","object":`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		decoder, cutter := json.NewDecoder(bytes.NewReader(stream)), newFrames(iotest.HalfReader(bytes.NewReader(stream)))
		for {
			var want json.RawMessage
			sane := decoder.Decode(&want) == nil && want[0] == '{'
			got, err := cutter.next()
			if err == nil {
				_, _, _ = readEvent(got) // may fail
			}
			if !sane {
				return
			}
			if err != nil || !bytes.Equal(bytes.TrimSpace(got), want) {
				t.Fatalf("cut %q and %v, want %q", got, err, want)
			}
		}
	})
}
