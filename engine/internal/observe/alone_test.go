package observe

import (
	"testing"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestObjectsWithoutAReleaseNeedNoRecords(t *testing.T) {
	s := newScene(t)
	job := []*enginev1.Ref{{ApiVersion: "batch/v1", Kind: "Job", Namespace: "else", Name: "job"}}
	s.reader.Attend([]*enginev1.Attention{{Name: "d", Alone: true, External: job}})
	s.hands.asked = nil
	s.model.narrowRecords()
	s.asked("records ns true") // and not those of no namespace, which are all there are
	s.reader.Attend([]*enginev1.Attention{{Name: "e", Alone: true, External: job}})
	s.asked()
	at := watchKey{GroupVersionKind: jobs.GroupVersionKind, namespace: "else", name: "job"}
	s.model.replaceObjects(at, map[objectKey]objectState{{"else", "job"}: current})
	batch := s.reader.take()
	if len(batch.GetObjects()) != 2 || len(batch.GetNamespaces()) != 0 {
		t.Fatalf("told %v", batch)
	}
}

func TestWhatHasNoRecordsIsToldAgainWhenTheyBecomeNarrow(t *testing.T) {
	s := newScene(t)
	job := []*enginev1.Ref{{ApiVersion: "batch/v1", Kind: "Job", Namespace: "else", Name: "job"}}
	s.reader.Attend([]*enginev1.Attention{{Name: "d", Alone: true, External: job}})
	at := watchKey{GroupVersionKind: jobs.GroupVersionKind, namespace: "else", name: "job"}
	s.model.replaceObjects(at, map[objectKey]objectState{{"else", "job"}: current})
	if batch := s.reader.take(); len(batch.GetObjects()) != 1 {
		t.Fatalf("told %v", batch)
	}
	s.model.narrowRecords()
	if batch := s.reader.take(); !batch.GetReset_() || len(batch.GetObjects()) != 1 {
		t.Fatalf("told %v", batch)
	}
}
