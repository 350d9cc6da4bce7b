package server

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestEveryCallIsAnsweredOnce(t *testing.T) {
	const count = 2000
	answered := make(map[uint64]int, count)
	var senders atomic.Int32
	running := newCalls(t.Context(), func(_ context.Context, call *enginev1.ObjectCall, _ func(*enginev1.ObjectAnswer)) *enginev1.ObjectAnswer {
		return &enginev1.ObjectAnswer{Id: call.GetId(), Object: make([]byte, maxBytes/8)}
	}, func(answers *enginev1.ObjectAnswers) {
		if senders.Add(1) != 1 {
			t.Error("two messages are sent at once")
		}
		if size := len(answers.GetAnswers()); size == 0 || size > 8 {
			t.Errorf("a message has %d answers", size)
		}
		for _, answer := range answers.GetAnswers() {
			answered[answer.GetId()]++
		}
		senders.Add(-1)
	})
	for id := range uint64(count) {
		running.start(&enginev1.ObjectCall{Id: id})
	}
	running.finish()
	for id := range uint64(count) {
		if answered[id] != 1 {
			t.Fatalf("call %d was answered %d times", id, answered[id])
		}
	}
	if len(running.cancels) != 0 {
		t.Errorf("%d calls are remembered for ever", len(running.cancels))
	}
}

func TestACancelledCallEndsAndTheOthersGoOn(t *testing.T) {
	answers := make(chan uint64, 2)
	release := make(chan struct{})
	running := newCalls(t.Context(), func(ctx context.Context, call *enginev1.ObjectCall, _ func(*enginev1.ObjectAnswer)) *enginev1.ObjectAnswer {
		select {
		case <-ctx.Done():
		case <-release:
		}
		return &enginev1.ObjectAnswer{Id: call.GetId()}
	}, func(message *enginev1.ObjectAnswers) {
		for _, answer := range message.GetAnswers() {
			answers <- answer.GetId()
		}
	})
	running.start(&enginev1.ObjectCall{Id: 1})
	running.start(&enginev1.ObjectCall{Id: 2})
	running.cancel(3)
	running.cancel(1)
	if first := <-answers; first != 1 {
		t.Fatalf("call %d ended, and 1 was cancelled", first)
	}
	close(release)
	if second := <-answers; second != 2 {
		t.Fatalf("call %d ended, and 2 was under way", second)
	}
	running.finish()
}

func TestWhatIsToldComesInOrderBeforeTheAnswer(t *testing.T) {
	const watches, each = 20, 200
	next := map[uint64]int{}
	running := newCalls(t.Context(), func(_ context.Context, call *enginev1.ObjectCall, tell func(*enginev1.ObjectAnswer)) *enginev1.ObjectAnswer {
		for number := range each {
			object := make([]byte, number)
			tell(&enginev1.ObjectAnswer{Id: call.GetId(), Batch: &enginev1.WatchBatch{
				Changes: []*enginev1.WatchBatch_Change{{Object: object}},
			}})
		}
		return &enginev1.ObjectAnswer{Id: call.GetId()}
	}, func(message *enginev1.ObjectAnswers) {
		for _, answer := range message.GetAnswers() {
			want := next[answer.GetId()]
			if want < each && len(answer.GetBatch().GetChanges()[0].GetObject()) != want {
				t.Errorf("call %d: batch %d did not come in its turn", answer.GetId(), want)
			}
			if want == each && answer.GetBatch() != nil {
				t.Errorf("call %d has no end", answer.GetId())
			}
			next[answer.GetId()]++
		}
	})
	for id := range uint64(watches) {
		running.start(&enginev1.ObjectCall{Id: id})
	}
	running.finish()
	for id := range uint64(watches) {
		if next[id] != each+1 {
			t.Errorf("call %d was answered %d times", id, next[id])
		}
	}
}

func TestASlowReaderHoldsAWatch(t *testing.T) {
	sending, read := make(chan int), make(chan struct{})
	told := make(chan uint64, 2)
	begin := make(chan struct{})
	running := newCalls(t.Context(), func(_ context.Context, call *enginev1.ObjectCall, tell func(*enginev1.ObjectAnswer)) *enginev1.ObjectAnswer {
		if call.GetId() == 2 {
			<-begin
		}
		tell(&enginev1.ObjectAnswer{Id: call.GetId(), Batch: &enginev1.WatchBatch{}})
		told <- call.GetId()
		return &enginev1.ObjectAnswer{Id: call.GetId()}
	}, func(message *enginev1.ObjectAnswers) {
		sending <- len(message.GetAnswers())
		<-read
	})
	running.start(&enginev1.ObjectCall{Id: 1})
	running.start(&enginev1.ObjectCall{Id: 2})
	<-sending // the first one's batch, which its own goroutine sends
	close(begin)
	waits := func() bool {
		running.mu.Lock()
		defer running.mu.Unlock()
		return len(running.ready) > 0
	}
	for deadline := time.Now().Add(30 * time.Second); !waits(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the second one's batch does not wait for the next message")
		}
	}
	if len(told) != 0 {
		t.Fatal("told before it was read")
	}
	read <- struct{}{}
	<-sending
	if len(told) != 0 {
		t.Fatal("the second was told before it was read, or the first before it had sent all")
	}
	close(read)
	go func() {
		for range sending {
		}
	}()
	running.finish()
	close(sending)
	if len(told) != 2 {
		t.Error("not all was told")
	}
}

func TestAnAnswerThatCannotBeToldEndsOnlyItself(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close() }()
	go sendAnswers(theirs, &enginev1.ObjectAnswers{Answers: []*enginev1.ObjectAnswer{
		{Id: 1, Object: []byte("{}")},
		{Id: 2, Fault: &enginev1.Fault{Message: "caf\xe9"}},
	}})
	var got enginev1.ObjectAnswers
	if err := readFrame(ours, &got); err != nil {
		t.Fatal(err)
	}
	first, second := got.GetAnswers()[0], got.GetAnswers()[1]
	if string(first.GetObject()) != "{}" || second.GetId() != 2 || second.GetFault().GetMessage() == "" {
		t.Errorf("got %v", &got)
	}
}

func TestAFailureIsAnAnswer(t *testing.T) {
	connection := serveObjects(t)
	sent := &enginev1.ObjectCalls{Calls: []*enginev1.ObjectCall{
		{Id: 7, Verb: &enginev1.ObjectCall_Get{Get: &enginev1.GetRequest{Cluster: "none"}}},
		{Id: 8},
	}}
	frame, err := frameOf(sent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connection.Write(frame); err != nil {
		t.Fatal(err)
	}
	kinds := map[uint64]enginev1.Fault_Kind{}
	for len(kinds) < 2 {
		var message enginev1.ObjectAnswers
		if err := readFrame(connection, &message); err != nil {
			t.Fatal(err)
		}
		for _, answer := range message.GetAnswers() {
			kinds[answer.GetId()] = answer.GetFault().GetKind()
		}
	}
	if kinds[7] != enginev1.Fault_UNKNOWN_CLUSTER || kinds[8] != enginev1.Fault_INVALID {
		t.Errorf("the kinds are %v", kinds)
	}
}

func TestWhoSpeaksAnotherLanguageIsCutOff(t *testing.T) {
	for name, sent := range map[string][]byte{
		"not a message": {0, 0, 0, 2, 0xff, 0xff},
		"too large":     binary.BigEndian.AppendUint32(nil, maxFrame+1),
	} {
		t.Run(name, func(t *testing.T) {
			connection := serveObjects(t)
			if _, err := connection.Write(sent); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(connection); err != nil || len(rest) != 0 {
				t.Errorf("the answer is %q, %v", rest, err)
			}
		})
	}
}

// serveObjects is the caller's end of a connection.
func serveObjects(t *testing.T) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		(&Server{Clusters: cluster.NewRegistry()}).objects(theirs)
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		<-done
	})
	return ours
}
