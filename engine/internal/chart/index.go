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
	blocks = map[string][][]byte{}
	name, start, indent, inside := "", 0, 0, false
	end := func(at int) {
		if name != "" {
			blocks[name] = append(blocks[name], body[start:at])
		}
		name = ""
	}
	for at := 0; at < len(body); {
		stop := len(body)
		if i := bytes.IndexByte(body[at:], '\n'); i >= 0 {
			stop = at + i + 1
		}
		line := bytes.TrimRight(body[at:stop], "\r\n")
		text := bytes.TrimLeft(line, " ")
		depth := len(line) - len(text)
		switch {
		case len(text) == 0 || text[0] == '#' && depth <= indent:
		case depth == 0 && (text[0] == '&' || text[0] == '%' || inside && text[0] == '-'):
			return "", nil, false
		case depth == 0:
			end(at)
			inside = strings.TrimRight(string(text), " \t\r") == "entries:"
			if found := versionLine.FindSubmatch(line); found != nil {
				version = string(found[1])
			}
			if bytes.HasPrefix(text, []byte("entries:")) && !inside {
				return "", nil, false
			}
		case !inside || depth > indent && indent > 0:
		default:
			found := chartLine.FindSubmatch(line)
			switch {
			case found != nil && bytes.Equal(found[2], found[4]) && (indent == 0 || depth == indent):
				end(at)
				name, start, indent = string(found[3]), stop, depth
			case depth == indent && name != "" && text[0] == '-':
			default:
				return "", nil, false
			}
		}
		at = stop
	}
	end(len(body))
	return version, blocks, version != ""
}
