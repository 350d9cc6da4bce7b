// Package raw lists, watches and reads objects of any kind as the bytes the API server sent.
//
// The rule to keep: an object is scanned once for its head (names, version), and decoded, if at all, by whoever
// asked for it.
package raw

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Head is the part of an object a reflector needs. What a Decode returns embeds it.
type Head struct {
	APIVersion, Kind                      string
	Namespace, Name, UID, ResourceVersion string
	// initialEventsEnd marks the bookmark that ends a streamed list.
	initialEventsEnd bool
	managed          []byte
}

// Managed gives the managedFields that were cut out of the object, once, to those who asked for them: they share
// the memory of what the API server sent, which must not be kept.
func (h *Head) Managed() []byte {
	managed := h.managed
	h.managed = nil
	return managed
}

// Object is an object as bytes, without its managedFields.
type Object struct {
	Head
	JSON []byte
}

var _ runtime.Object = (*Head)(nil)

// GetObjectKind implements runtime.Object; reflectors do not look at it.
func (h *Head) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object: heads and what embeds them are never changed after decoding.
func (h *Head) DeepCopyObject() runtime.Object { return h }

// GetObjectMeta lets client-go read the head as it reads any object.
func (h *Head) GetObjectMeta() metav1.Object {
	meta := &metav1.ObjectMeta{
		Namespace: h.Namespace, Name: h.Name, UID: types.UID(h.UID), ResourceVersion: h.ResourceVersion,
	}
	if h.initialEventsEnd {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return meta
}

// Keep is the Decode of those who want the bytes.
func Keep(head Head, data []byte) (runtime.Object, error) {
	return &Object{Head: head, JSON: data}, nil
}

// HeadJSON is the object reduced to apiVersion, kind and the metadata that names it.
func (h *Head) HeadJSON() []byte {
	type metadata struct {
		Namespace       string `json:"namespace,omitempty"`
		Name            string `json:"name"`
		UID             string `json:"uid,omitempty"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	}
	data, _ := json.Marshal(struct { // strings always encode
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
	}{h.APIVersion, h.Kind, metadata{h.Namespace, h.Name, h.UID, h.ResourceVersion}})
	return data
}

// read scans an object's head and cuts its managedFields out. The result may share data's memory.
func read(data []byte) (Head, []byte, error) {
	var (
		head    Head
		managed span
	)
	_, err := fields(data, 0, func(key []byte, _, value span) error {
		switch string(key) {
		case "apiVersion":
			head.APIVersion = text(data[value.start:value.end])
		case "kind":
			head.Kind = text(data[value.start:value.end])
		case "metadata":
			return readMeta(data, value, &head, &managed)
		}
		return nil
	})
	if err != nil {
		return head, nil, err
	}
	return head, cut(data, managed), nil
}

func readMeta(data []byte, at span, head *Head, managed *span) error {
	if data[at.start] != '{' { // null
		return nil
	}
	_, err := fields(data, at.start, func(key []byte, member, value span) error {
		switch string(key) {
		case "namespace":
			head.Namespace = text(data[value.start:value.end])
		case "name":
			head.Name = text(data[value.start:value.end])
		case "uid":
			head.UID = text(data[value.start:value.end])
		case "resourceVersion":
			head.ResourceVersion = text(data[value.start:value.end])
		case "annotations":
			// Only a bookmark carries it; a look at the bytes is cheaper than a map.
			head.initialEventsEnd = bytes.Contains(data[value.start:value.end], initialEventsEnd)
		case "managedFields":
			*managed = member
			head.managed = data[value.start:value.end]
		}
		return nil
	})
	return err
}

var initialEventsEnd = []byte(`"` + metav1.InitialEventsAnnotationKey + `":"true"`)

// cut removes one member of an object, with one comma beside it.
func cut(data []byte, member span) []byte {
	if member.end == 0 {
		return data
	}
	start, end := member.start, member.end
	if after := skipSpace(data, end); after < len(data) && data[after] == ',' {
		end = after + 1
	} else {
		for start > 0 && (data[start-1] == ' ' || data[start-1] == '\n' || data[start-1] == '\t' || data[start-1] == '\r') {
			start--
		}
		if start > 0 && data[start-1] == ',' {
			start--
		}
	}
	out := make([]byte, 0, len(data)-(end-start))
	return append(append(out, data[:start]...), data[end:]...)
}

// withKind puts apiVersion and kind in front of a list item that lacks them: built-in kinds leave them out.
func withKind(data []byte, apiVersion, kind string) []byte {
	has := false
	if _, err := fields(data, 0, func(key []byte, _, _ span) error {
		has = has || string(key) == "kind"
		return nil
	}); err != nil || has {
		return data
	}
	rest := bytes.TrimLeft(bytes.TrimLeft(data, " \n\t\r")[1:], " \n\t\r")
	comma := ","
	if bytes.HasPrefix(rest, []byte("}")) {
		comma = ""
	}
	prefix, _ := json.Marshal(map[string]string{"apiVersion": apiVersion, "kind": kind})
	out := append(prefix[:len(prefix)-1], comma...)
	return append(out, rest...)
}
