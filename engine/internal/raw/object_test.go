package raw

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestRead(t *testing.T) {
	for name, text := range map[string]string{
		"first":  `{"apiVersion":"v1","kind":"A","metadata":{"managedFields":[{"x":"]}\\\""}],"name":"n","namespace":"s","uid":"u","resourceVersion":"7"},"z":1}`,
		"last":   `{"metadata":{"name":"n","namespace":"s","uid":"u","resourceVersion":"7" , "managedFields":[{"a":{}}] },"kind":"A","apiVersion":"v1"}`,
		"middle": `{"kind":"A","apiVersion":"v1","metadata":{"name":"n","managedFields":null,"namespace":"s","uid":"u","resourceVersion":"7"}}`,
		"none":   ` { "kind" : "A" , "apiVersion" : "v1" , "metadata" : { "name" : "n" , "namespace":"s","uid":"u","resourceVersion":"7"} , "spec" : [ 1 , {"a":"}"} ] }`,
		"odd":    `{"kind":"A","apiVersion":"v1","spec":{"metadata":{"managedFields":1}},"metadata":{"name":"\u006e","namespace":"s","uid":"u","resourceVersion":"7","annotations":{"a\\":"\\\\"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			head, data, err := read([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			var managed, cut any
			if fields := head.Managed(); fields != nil {
				if err := json.Unmarshal(fields, &cut); err != nil {
					t.Fatal(err)
				}
			}
			if head.Managed() != nil {
				t.Fatal("it pins the memory of what was sent")
			}
			if want := (Head{APIVersion: "v1", Kind: "A", Namespace: "s", Name: "n", UID: "u", ResourceVersion: "7"}); !reflect.DeepEqual(head, want) {
				t.Fatalf("got %+v", head)
			}
			var got, want map[string]any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			managed = want["metadata"].(map[string]any)["managedFields"]
			if !reflect.DeepEqual(managed, cut) {
				t.Fatalf("cut out %v, want %v", cut, managed)
			}
			delete(want["metadata"].(map[string]any), "managedFields")
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %s", data)
			}
		})
	}
}

func TestWithKind(t *testing.T) {
	for text, want := range map[string]string{
		`{"metadata":{"name":"n"}}`:           `{"apiVersion":"v1","kind":"A","metadata":{"name":"n"}}`,
		`{"kind":"B","spec":{"kind":"none"}}`: `{"kind":"B","spec":{"kind":"none"}}`,
		` { }`:                                `{"apiVersion":"v1","kind":"A"}`,
	} {
		if got := string(withKind([]byte(text), "v1", "A")); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

// FuzzRead looks for input that breaks the scanner: it must never panic, and what it makes of JSON is JSON.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"metadata":{"managedFields":[],"name":"n"}}`))
	f.Add([]byte(`{"a`))
	f.Add([]byte(`{"metadata":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, out, err := read(data)
		if err == nil && json.Valid(data) && !json.Valid(out) {
			t.Fatalf("%q became %q", data, out)
		}
	})
}
