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
	}, func(answers []*enginev1.ObjectAnswer) {
		if senders.Add(1) != 1 {
			t.Error("two send at once")
		}
		if size := len(answers); size == 0 || size > 8 {
			t.Errorf("%d answers are sent at once", size)
		}
		for _, answer := range answers {
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
	ended := make(chan uint64, 2)
	release := make(chan struct{})
	running := newCalls(t.Context(), func(ctx context.Context, call *enginev1.ObjectCall, _ func(*enginev1.ObjectAnswer)) *enginev1.ObjectAnswer {
		select {
		case <-ctx.Done():
		case <-release:
		}
		return &enginev1.ObjectAnswer{Id: call.GetId()}
	}, func(answers []*enginev1.ObjectAnswer) {
		for _, answer := range answers {
			ended <- answer.GetId()
		}
	})
	running.start(&enginev1.ObjectCall{Id: 1})
	running.start(&enginev1.ObjectCall{Id: 2})
	running.cancel(3)
	running.cancel(1)
	if first := <-ended; first != 1 {
		t.Fatalf("call %d ended, and 1 was cancelled", first)
	}
	close(release)
	if second := <-ended; second != 2 {
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
	}, func(answers []*enginev1.ObjectAnswer) {
		for _, answer := range answers {
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
	}, func(answers []*enginev1.ObjectAnswer) {
		sending <- len(answers)
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
			t.Fatal("the second one's batch does not wait until the first is sent")
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
	go sendAnswers(theirs, []*enginev1.ObjectAnswer{
		{Id: 1, Object: []byte("{}")},
		{Id: 2, Fault: &enginev1.Fault{Message: "caf\xe9"}},
		{Id: 3, Object: []byte("[]")},
	})
	var first, second, third enginev1.ObjectAnswer
	for _, answer := range []*enginev1.ObjectAnswer{&first, &second, &third} {
		if err := readFrame(ours, answer); err != nil {
			t.Fatal(err)
		}
	}
	if string(first.GetObject()) != "{}" || second.GetId() != 2 || second.GetFault().GetMessage() == "" ||
		string(third.GetObject()) != "[]" {
		t.Errorf("got %v, %v, %v", &first, &second, &third)
	}
}

func TestAFailureIsAnAnswer(t *testing.T) {
	connection := serveObjects(t)
	var frames []byte
	for _, call := range []*enginev1.ObjectCall{
		{Id: 7, Verb: &enginev1.ObjectCall_Get{Get: &enginev1.GetRequest{Cluster: "none"}}},
		{Id: 8},
	} {
		framed, err := appendFrame(frames, call)
		if err != nil {
			t.Fatal(err)
		}
		frames = framed
	}
	if _, err := connection.Write(frames); err != nil {
		t.Fatal(err)
	}
	kinds := map[uint64]enginev1.Fault_Kind{}
	for len(kinds) < 2 {
		var answer enginev1.ObjectAnswer
		if err := readFrame(connection, &answer); err != nil {
			t.Fatal(err)
		}
		kinds[answer.GetId()] = answer.GetFault().GetKind()
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
