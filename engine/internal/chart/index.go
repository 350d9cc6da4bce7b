package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/yaml"
)

// index is a repository's index.yaml. Its charts are cut apart once per change, and each is read when it is first
// asked for: reading 20,000 versions at once takes seconds and half a gigabyte, for the few that are used.
type index struct {
	validators Validators
	digest     string
	size       int64

	fetched atomic.Int64 // when it was last known to be current, in nanoseconds
	blocks  map[string][][]byte

	mutex sync.Mutex
	read  map[string][]indexVersion
	reads int // how often a chart was read, for tests
}

type indexVersion struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

func (i *index) when() time.Time {
	return time.Unix(0, i.fetched.Load())
}

func (i *index) current() {
	i.fetched.Store(time.Now().UnixNano())
}

// versions returns what the index says of one chart.
func (i *index) versions(name string) ([]indexVersion, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if known, ok := i.read[name]; ok {
		return known, nil
	}
	var all []indexVersion
	for _, block := range i.blocks[name] {
		var found []*indexVersion
		if err := unmarshal(block, &found); err != nil {
			return nil, err
		}
		all = append(all, usable(found)...)
	}
	i.reads++
	i.read[name] = all
	return all, nil
}

func unmarshal(text []byte, into any) error {
	if json.Valid(text) {
		return json.Unmarshal(text, into)
	}
	return yaml.Unmarshal(text, into)
}

func parseIndex(body []byte) (*index, error) {
	parsed := &index{size: int64(len(body)), digest: digestOf(body), read: map[string][]indexVersion{}}
	version, blocks, ok := cut(body)
	if !ok {
		var err error
		if version, blocks, err = parsed.readWhole(body); err != nil {
			return nil, err
		}
	}
	if version == "" {
		return nil, errors.New("it has no apiVersion")
	}
	parsed.blocks = blocks
	parsed.current()
	return parsed, nil
}

// readWhole reads an index that cannot be cut: JSON, which is quick to take apart, or unusual YAML.
func (i *index) readWhole(body []byte) (string, map[string][][]byte, error) {
	blocks := map[string][][]byte{}
	if json.Valid(body) {
		var whole struct {
			APIVersion string                     `json:"apiVersion"`
			Entries    map[string]json.RawMessage `json:"entries"`
		}
		err := json.Unmarshal(body, &whole)
		for name, entry := range whole.Entries {
			blocks[name] = [][]byte{entry}
		}
		return whole.APIVersion, blocks, err
	}
	var whole struct {
		APIVersion string                     `json:"apiVersion"`
		Entries    map[string][]*indexVersion `json:"entries"`
	}
	err := yaml.Unmarshal(body, &whole)
	for name, entries := range whole.Entries {
		i.read[name] = usable(entries)
	}
	return whole.APIVersion, blocks, err
}

// usable are the entries that say something; as in Helm, others are passed over.
func usable(entries []*indexVersion) []indexVersion {
	var all []indexVersion
	for _, one := range entries {
		if one != nil && one.Version != "" {
			all = append(all, *one)
		}
	}
	return all
}

var (
	chartLine   = regexp.MustCompile(`^( +)(["']?)([A-Za-z0-9][A-Za-z0-9._-]*)(["']?):[ \t\r]*$`)
	versionLine = regexp.MustCompile(`^apiVersion:[ \t]*["']?([A-Za-z0-9.]+)["']?[ \t\r]*$`)
)

// cut finds the charts in an index that is laid out as `helm repo index` and its like do it: by lines and
// indentation, which in YAML's block style nothing inside a chart can undercut. Whatever looks otherwise is not
// cut but read as a whole.
func cut(body []byte) (version string, blocks map[string][][]byte, ok bool) {
	if json.Valid(body) {
		return "", nil, false
	}
	c := &cutter{body: body, blocks: map[string][][]byte{}}
	for at := 0; at < len(body); {
		stop := len(body)
		if i := bytes.IndexByte(body[at:], '\n'); i >= 0 {
			stop = at + i + 1
		}
		if !c.line(at, stop) {
			return "", nil, false
		}
		at = stop
	}
	c.end(len(body))
	return c.version, c.blocks, c.version != ""
}

type cutter struct {
	body    []byte
	blocks  map[string][][]byte
	version string
	inside  bool   // below `entries:`
	indent  int    // of the charts' names
	name    string // the chart at hand, and where what is said of it begins
	start   int
}

// line takes one line; false means that this is no index to be cut.
func (c *cutter) line(at, stop int) bool {
	line := bytes.TrimRight(c.body[at:stop], "\r\n")
	text := bytes.TrimLeft(line, " ")
	depth := len(line) - len(text)
	switch {
	case len(text) == 0 || text[0] == '#' && depth <= c.indent:
		return true
	case depth == 0:
		return c.top(at, text)
	case !c.inside || c.indent > 0 && depth > c.indent:
		return true
	}
	found := chartLine.FindSubmatch(line)
	if found != nil && bytes.Equal(found[2], found[4]) && (c.indent == 0 || depth == c.indent) {
		c.end(at)
		c.name, c.start, c.indent = string(found[3]), stop, depth
		return true
	}
	return depth == c.indent && c.name != "" && text[0] == '-'
}

func (c *cutter) top(at int, text []byte) bool {
	if text[0] == '&' || text[0] == '%' || c.inside && text[0] == '-' {
		return false
	}
	c.end(at)
	c.inside = strings.TrimRight(string(text), " \t\r") == "entries:"
	if found := versionLine.FindSubmatch(text); found != nil {
		c.version = string(found[1])
	}
	return c.inside || !bytes.HasPrefix(text, []byte("entries:"))
}

func (c *cutter) end(at int) {
	if c.name != "" {
		c.blocks[c.name] = append(c.blocks[c.name], c.body[c.start:at])
	}
	c.name = ""
}
