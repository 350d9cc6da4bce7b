package raw

import (
	"fmt"
	"io"
	"strings"
)

const (
	// firstBuffer holds most events; there is one buffer for each watch, of which there may be thousands.
	firstBuffer = 4 << 10
	// keptBuffer is as large as a buffer stays when what it was made larger for has gone by.
	keptBuffer = 64 << 10
	// largestFrame is far above what an API server can store.
	largestFrame = 64 << 20
)

// frames cuts a stream into the JSON objects it consists of. It looks for their ends only: whoever decodes one finds
// what else is wrong with it. (encoding/json's Decoder reads every byte twice to do the same, and was a quarter of
// what a watch event cost.)
type frames struct {
	in     io.Reader
	buffer []byte
	// buffer[start:end] has been read and not been given out.
	start, end int
}

func newFrames(in io.Reader) *frames { return &frames{in: in} }

// next is the following object, until next is called again. Like a decoder's, its error is io.EOF only between two.
func (f *frames) next() ([]byte, error) {
	f.start = skipSpace(f.buffer[:f.end], f.start) // API servers send a line break behind each
	if f.start == f.end && len(f.buffer) > keptBuffer {
		f.buffer, f.start, f.end = nil, 0, 0
	}
	var found frameEnd
	for {
		size, err := found.look(f.buffer[f.start:f.end])
		if err != nil {
			return nil, err
		}
		if size > 0 {
			f.start += size
			return f.buffer[f.start-size : f.start], nil
		}
		if err := f.fill(); err != nil {
			if err == io.EOF && found.begun() {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// fill reads on, behind what is there.
func (f *frames) fill() error {
	switch held := f.end - f.start; {
	case held >= largestFrame:
		return fmt.Errorf("an object of more than %d bytes", largestFrame)
	case held == len(f.buffer):
		grown := make([]byte, max(firstBuffer, 2*held))
		copy(grown, f.buffer[f.start:f.end])
		f.buffer, f.start, f.end = grown, 0, held
	case f.end == len(f.buffer):
		copy(f.buffer, f.buffer[f.start:f.end])
		f.start, f.end = 0, held
	}
	count, err := f.in.Read(f.buffer[f.end:])
	f.end += count
	if count > 0 {
		return nil // an error comes again
	}
	return err
}

// frameEnd finds where an object ends that comes in pieces.
type frameEnd struct {
	at, depth         int
	quoted, backslash bool
}

// look goes on where it stopped, in the same bytes and those that came since; 0 asks for more.
func (e *frameEnd) look(data []byte) (int, error) {
	for ; e.at < len(data); e.at++ {
		b := data[e.at]
		switch {
		case e.backslash:
			e.backslash = false
		case e.quoted:
			e.backslash, e.quoted = b == '\\', b != '"'
		case b == '{' || (b == '[' && e.begun()):
			e.depth++
		case !e.begun():
			if strings.IndexByte(" \n\t\r", b) < 0 {
				return 0, errMalformed
			}
		case b == '"':
			e.quoted = true
		case b == '}' || b == ']':
			if e.depth--; e.depth == 0 {
				return e.at + 1, nil
			}
		}
	}
	return 0, nil
}

func (e *frameEnd) begun() bool { return e.depth > 0 }
