package server

import (
	"context"
	"sync"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// maxIdle is how many goroutines wait for the next call: one that has run a request before has the stack for
// it, and growing a new one's is a good part of what a small request costs.
const maxIdle = 32

// started is a call that can be cancelled.
type started struct {
	call *enginev1.ObjectCall
	ctx  context.Context //nolint:containedctx // travels with its call to the worker
	stop context.CancelFunc
}

// do makes a call: what it tells goes out before what it returns, its last answer.
type do func(ctx context.Context, call *enginev1.ObjectCall, tell func(*enginev1.ObjectAnswer)) *enginev1.ObjectAnswer

// calls are those of one connection.
type calls struct {
	ctx  context.Context
	do   do
	send func([]*enginev1.ObjectAnswer)

	workers sync.WaitGroup
	next    chan started

	mu      sync.Mutex
	idle    int
	cancels map[uint64]context.CancelFunc
	ready   []*enginev1.ObjectAnswer
	sending bool
	// told and sent count answers: those that became ready, and those that are out. Whatever is out is news.
	told, sent uint64
	news       sync.Cond
}

func newCalls(ctx context.Context, do do, send func([]*enginev1.ObjectAnswer)) *calls {
	c := &calls{
		ctx: ctx, do: do, send: send,
		next: make(chan started), cancels: map[uint64]context.CancelFunc{},
	}
	c.news.L = &c.mu
	return c
}

// start gives a call to a waiting worker, or to a new one. It can be cancelled from here on.
func (c *calls) start(call *enginev1.ObjectCall) {
	ctx, stop := context.WithCancel(c.ctx)
	c.mu.Lock()
	c.cancels[call.GetId()] = stop
	c.mu.Unlock()
	one := started{call, ctx, stop}
	select {
	case c.next <- one:
	default:
		c.workers.Add(1)
		go c.work(one)
	}
}

// finish waits for the calls under way; nothing may be started after it.
func (c *calls) finish() {
	close(c.next)
	c.workers.Wait()
}

// cancel ends a call whose answer nobody waits for. One that has ended already is unknown here.
func (c *calls) cancel(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop, ok := c.cancels[id]; ok {
		stop()
	}
}

func (c *calls) work(one started) {
	defer c.workers.Done()
	for more := true; more; {
		c.answer(c.do(one.ctx, one.call, c.tell))
		one.stop()
		if !c.rest() {
			return
		}
		one, more = <-c.next
		c.mu.Lock()
		c.idle--
		c.mu.Unlock()
	}
}

func (c *calls) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle >= maxIdle {
		return false
	}
	c.idle++
	return true
}

// answer is a call's last.
func (c *calls) answer(answer *enginev1.ObjectAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cancels, answer.GetId())
	c.sendOff(answer)
}

// tell returns when the answer is out, so that a caller who is slow to read holds a watch, and nothing piles up here.
func (c *calls) tell(answer *enginev1.ObjectAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for number := c.sendOff(answer); c.sent < number; {
		c.news.Wait()
	}
}

// sendOff sends what is ready, at once: what becomes ready meanwhile is sent next, by whoever sends already. It gives
// the answer's number.
func (c *calls) sendOff(answer *enginev1.ObjectAnswer) uint64 {
	c.ready = append(c.ready, answer)
	c.told++
	number := c.told
	if c.sending {
		return number
	}
	c.sending = true
	for len(c.ready) > 0 {
		answers := c.take()
		c.mu.Unlock()
		c.send(answers)
		c.mu.Lock()
		c.sent += uint64(len(answers))
		clear(answers) // or the array behind c.ready keeps what is out
		c.news.Broadcast()
	}
	c.sending = false
	return number
}

// take is what is sent next: bounded, as objects may be large.
func (c *calls) take() []*enginev1.ObjectAnswer {
	count, size := 0, 0
	for count < len(c.ready) {
		size += sizeOf(c.ready[count])
		if count > 0 && size > maxBytes {
			break
		}
		count++
	}
	answers := c.ready[:count:count]
	c.ready = c.ready[count:]
	return answers
}

func sizeOf(answer *enginev1.ObjectAnswer) int {
	size := len(answer.GetObject())
	for _, change := range answer.GetBatch().GetChanges() {
		size += len(change.GetObject())
	}
	return size
}
