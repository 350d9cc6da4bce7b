package chart

import (
	"container/list"
	"sync"
)

// recent keeps what was used last, as long as the sum of its sizes stays within the bound.
type recent[T any] struct {
	mutex sync.Mutex
	bound int64
	used  int64
	order *list.List // front: used last
	items map[string]*list.Element
}

type item[T any] struct {
	key   string
	value T
	size  int64
}

func newRecent[T any](bound int64) *recent[T] {
	return &recent[T]{bound: bound, order: list.New(), items: map[string]*list.Element{}}
}

func (r *recent[T]) get(key string) (T, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	e, ok := r.items[key]
	if !ok {
		var none T
		return none, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*item[T]).value, true
}

func (r *recent[T]) put(key string, value T, size int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if e, ok := r.items[key]; ok {
		r.remove(e)
	}
	r.items[key] = r.order.PushFront(&item[T]{key, value, size})
	r.used += size
	for r.used > r.bound && r.order.Len() > 0 {
		r.remove(r.order.Back())
	}
}

func (r *recent[T]) remove(e *list.Element) {
	i := r.order.Remove(e).(*item[T])
	delete(r.items, i.key)
	r.used -= i.size
}
