package observe

import (
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// recordStore passes records from their reflector to the model.
type recordStore struct {
	model     *model
	namespace string // empty: all
}

func (s *recordStore) Add(object any) error {
	if r := object.(*recordObject).record; r != nil {
		s.model.putRecord(r)
	}
	return nil
}

func (s *recordStore) Update(object any) error { return s.Add(object) }

func (s *recordStore) Delete(object any) error {
	if r := object.(*recordObject).record; r != nil {
		s.model.dropRecord(r)
	}
	return nil
}

func (s *recordStore) Replace(objects []any, _ string) error {
	records := make([]*record, 0, len(objects))
	for _, object := range objects {
		if r := object.(*recordObject).record; r != nil {
			records = append(records, r)
		}
	}
	s.model.replaceRecords(s.namespace, records)
	return nil
}

func (s *recordStore) Resync() error { return nil }

// stateStore passes the states of one kind from its reflector to the model.
type stateStore struct {
	model *model
	at    watchKey
}

func (s *stateStore) Add(object any) error {
	o := object.(*stateObject)
	if o.ignored {
		return nil
	}
	s.model.putObject(s.at, objectKey{intern(o.Namespace), o.Name}, o.state)
	return nil
}

func (s *stateStore) Update(object any) error { return s.Add(object) }

func (s *stateStore) Delete(object any) error {
	o := object.(*stateObject)
	s.model.dropObject(s.at, objectKey{o.Namespace, o.Name})
	return nil
}

func (s *stateStore) Replace(objects []any, _ string) error {
	states := make(map[objectKey]objectState, len(objects))
	for _, object := range objects {
		if o := object.(*stateObject); !o.ignored {
			states[objectKey{intern(o.Namespace), o.Name}] = o.state
		}
	}
	s.model.replaceObjects(s.at, states)
	return nil
}

func (s *stateStore) Resync() error { return nil }

func isMissing(err error) bool { return fault.FromAPI(err).Kind == enginev1.Fault_NOT_FOUND }

func isForbidden(err error) bool { return fault.FromAPI(err).Kind == enginev1.Fault_FORBIDDEN }
