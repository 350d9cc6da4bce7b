package observe

import (
	"context"
	"sync"
	"time"
)

const (
	// checkers is how many objects are read at once.
	checkers = 4
	// patience is how long a watch may be behind the record that promises its objects.
	patience = 250 * time.Millisecond
	// retryCheck is how soon a read is repeated that the API server did not answer.
	retryCheck = 2 * time.Second
)

type objectID struct {
	at  watchKey
	key objectKey
}

// checker reads the objects no watch shows, each once however often it is asked for.
type checker struct {
	observer *observer
	wake     chan struct{}

	mu      sync.Mutex
	queue   []objectID
	pending map[objectID]bool
}

func newChecker(o *observer) *checker {
	return &checker{observer: o, wake: make(chan struct{}, checkers), pending: map[objectID]bool{}}
}

func (c *checker) add(at watchKey, key objectKey, urgent bool) {
	id := objectID{at, key}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending[id] {
		return
	}
	c.pending[id] = true
	if urgent {
		c.push(id)
		return
	}
	c.observer.after(patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.push(id)
	})
}

func (c *checker) push(id objectID) {
	c.queue = append(c.queue, id)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checker) pop() (objectID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return objectID{}, false
	}
	id := c.queue[0]
	c.queue = c.queue[1:]
	// From here on a new request is a new read: what happens during this one may be missed by it.
	delete(c.pending, id)
	return id, true
}

func (c *checker) run(ctx context.Context) {
	for {
		id, ok := c.pop()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-c.wake:
			}
			continue
		}
		if !c.observer.model.unseen(id.at, id.key) {
			continue
		}
		state, err := c.observer.read(ctx, id.at, id.key)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.observer.after(retryCheck, func() { c.add(id.at, id.key, true) })
		default:
			c.observer.model.checked(id.at, id.key, state)
		}
	}
}
