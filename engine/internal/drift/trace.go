// Package drift tells whether objects are still as a release applied them, and in which fields they are not.
//
// The rule to keep: paths and names of field managers leave this package, values never do.
package drift

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Manager is the field manager under which `helm` and this engine write.
const Manager = "helm"

// Trace is all that is kept of an object to notice that somebody changed it.
type Trace struct {
	// Own changes when another manager takes, or removes, a field of the release's. Never 0 for a live object.
	Own uint64
	// Sight changes with every write that is not of the status alone.
	Sight uint64
	// Edit does so too, but not by scaling.
	Edit uint64
	// Version is the object's resourceVersion: of two sights, the greater is the later.
	Version uint64
}

// Meta is the metadata a Trace is made of, beside managedFields.
type Meta struct {
	Generation          int64
	ResourceVersion     string
	Labels, Annotations map[string]string
	// Stateless kinds have no status: every new version is a write worth a look.
	Stateless bool
}

// entry is one of an object's managedFields.
type entry struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Time        string          `json:"time"`
	Subresource string          `json:"subresource"`
	Fields      json.RawMessage `json:"fieldsV1"`
}

// Of makes the trace of an object as a watch or a read shows it; managed is its managedFields as JSON.
func Of(managed []byte, meta Meta) Trace {
	var all, entries []entry
	_ = json.Unmarshal(managed, &all) // what cannot be read is as if it were not there
	for _, one := range all {
		if one.Subresource == "" {
			entries = append(entries, one)
		}
	}
	version, _ := strconv.ParseUint(meta.ResourceVersion, 10, 64)
	own := ownOf(entries, meta.Generation)
	out := Trace{Own: own, Sight: sightOf(own, entries, meta, version), Version: version}
	out.Edit = out.Sight
	if scaledLast(all) {
		// Each time it is scaled it has a new spec: what others write is told by their entries.
		meta.Generation = 0
		out.Edit = sightOf(own, entries, meta, version)
	}
	return out
}

// scaledLast tells whether scaling is certainly what was written last: the times are whole seconds.
func scaledLast(entries []entry) bool {
	scaled, edited := "", ""
	for _, one := range entries {
		switch one.Subresource {
		case "scale":
			scaled = max(scaled, one.Time)
		case "":
			edited = max(edited, one.Time)
		}
	}
	return scaled > edited
}

// OfObject makes the trace of an object that an apply returned. Its Sight is not that of a watch.
func OfObject(object *unstructured.Unstructured) Trace {
	managed, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "managedFields")
	data, _ := json.Marshal(managed)
	return Of(data, Meta{Generation: object.GetGeneration(), ResourceVersion: object.GetResourceVersion()})
}

// ownOf is the hash of the fields the release applied. Where it applied them from the client's side, ownership
// says less: any new owner of anything counts, and so does any new spec.
func ownOf(entries []entry, generation int64) uint64 {
	hash := digest{}
	applied, kept := false, keptBy(entries)
	for _, one := range entries {
		if kept(one) {
			applied = true
			hash.add("apply", canonical(one.Fields))
		}
	}
	if !applied {
		// Who wrote what, in an order that does not depend on who wrote last.
		parts := make([]string, 0, len(entries))
		for _, one := range entries {
			parts = append(parts, one.Manager+"\x00"+one.Operation+"\x00"+canonical(one.Fields))
		}
		slices.Sort(parts)
		hash.add(append(parts, strconv.FormatInt(generation, 10))...)
	}
	return max(hash.sum(), 1)
}

func sightOf(own uint64, entries []entry, meta Meta, version uint64) uint64 {
	hash := digest{}
	hash.add(strconv.FormatUint(own, 16), strconv.FormatInt(meta.Generation, 10))
	for _, one := range entries {
		hash.add(one.Manager, one.Operation, one.Time, canonical(one.Fields)) // who removes a field writes none
	}
	for _, pairs := range []map[string]string{meta.Labels, meta.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(pairs)) {
			hash.add(key, pairs[key])
		}
		hash.add("")
	}
	if meta.Stateless {
		hash.add(strconv.FormatUint(version, 10))
	}
	return hash.sum()
}

// canonical spells fields in one way: an API server and a JSON encoder order them differently.
func canonical(fields json.RawMessage) string {
	var tree any
	if json.Unmarshal(fields, &tree) != nil {
		return ""
	}
	data, _ := json.Marshal(tree)
	return string(data)
}

// digest hashes texts, each with its length, the same way in every process.
type digest struct{ data []byte }

func (d *digest) add(texts ...string) {
	for _, text := range texts {
		d.data = binary.AppendUvarint(d.data, uint64(len(text)))
		d.data = append(d.data, text...)
	}
}

func (d *digest) sum() uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write(d.data)
	return hash.Sum64()
}
