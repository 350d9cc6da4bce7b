package inventory

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
)

// disk keeps one small file per release record, named by the record's uid, so that a restart decodes nothing.
// The resourceVersion inside says which state of the record it was read from.
type disk struct {
	dir string
}

type entry struct {
	ResourceVersion string `json:"rv"`
	Refs            []Ref  `json:"refs"`
	// How each was when it was applied; absent: unknown.
	Traces []uint64 `json:"traces,omitempty"`
}

// A uid comes from the API server, but it becomes a file name: only harmless ones do.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

// path spreads entries over 256 directories; it is empty when there is no cache.
func (d *disk) path(uid string) string {
	if d.dir == "" || !fileName.MatchString(uid) || len(uid) < 2 {
		return ""
	}
	return filepath.Join(d.dir, uid[:2], uid+".json")
}

// load ignores whatever it cannot read: the caller decodes the record instead.
func (d *disk) load(uid, resourceVersion string) ([]Ref, []uint64, bool) {
	path := d.path(uid)
	if path == "" {
		return nil, nil, false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, false
	}
	var e entry
	if json.Unmarshal(data, &e) != nil || e.ResourceVersion != resourceVersion {
		return nil, nil, false
	}
	refs := make([]Ref, len(e.Refs))
	for i, r := range e.Refs {
		if r.Kind == "" || r.Name == "" {
			return nil, nil, false
		}
		refs[i] = NewRef(r.APIVersion, r.Kind, r.Namespace, r.Name)
	}
	if len(e.Traces) != len(refs) {
		e.Traces = nil
	}
	return refs, e.Traces, true
}

// save writes beside the entry and renames, so that a crash leaves the old entry or the new one.
func (d *disk) save(uid, resourceVersion string, refs []Ref, traces []uint64) {
	path := d.path(uid)
	if path == "" {
		return
	}
	data, err := json.Marshal(entry{ResourceVersion: resourceVersion, Refs: refs, Traces: traces})
	if err != nil {
		return
	}
	if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return
	}
	_, err = temporary.Write(data)
	if closeErr := temporary.Close(); err != nil || closeErr != nil || os.Rename(temporary.Name(), path) != nil {
		_ = os.Remove(temporary.Name())
	}
}

func (d *disk) discard(uid string) {
	if path := d.path(uid); path != "" {
		_ = os.Remove(path)
	}
}
