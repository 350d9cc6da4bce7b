package server

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

const (
	// frameHead is a frame's length, before its message.
	frameHead = 4
	// maxFrame is the largest message taken: as much as gRPC is allowed.
	maxFrame = 64 << 20
	// readAhead holds several frames of the usual size.
	readAhead = 64 << 10
)

// ServeObjects takes connections for calls on single objects, and for watches, until the listener closes.
func (s *Server) ServeObjects(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.objects(connection)
	}
}

// objects serves one connection. Whoever has left waits for no answer, so what is under way then is cancelled.
func (s *Server) objects(connection net.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	running := newCalls(ctx, s.call, func(answers []*enginev1.ObjectAnswer) { sendAnswers(connection, answers) })
	_ = readCalls(bufio.NewReaderSize(connection, readAhead), running)
	cancel()
	_ = connection.Close()
	running.finish()
}

func sendAnswers(connection net.Conn, answers []*enginev1.ObjectAnswer) {
	var frames []byte
	for _, answer := range answers {
		framed, err := appendFrame(frames, answer)
		if err != nil {
			// The connection is everybody's, and must not end for one answer that cannot be a message.
			why := fault.New(enginev1.Fault_UNKNOWN, "the answer cannot be told: %v", err).Proto()
			framed, err = appendFrame(frames, &enginev1.ObjectAnswer{Id: answer.GetId(), Fault: why})
		}
		if err != nil {
			_ = connection.Close() // the caller hears that no answer will come
			return
		}
		frames = framed
	}
	if _, err := connection.Write(frames); err != nil {
		_ = connection.Close()
	}
}

func readCalls(in io.Reader, running *calls) error {
	for {
		call := &enginev1.ObjectCall{}
		if err := readFrame(in, call); err != nil {
			return err
		}
		if call.GetCancel() {
			running.cancel(call.GetId())
		} else {
			running.start(call)
		}
	}
}

func readFrame(in io.Reader, message proto.Message) error {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return fmt.Errorf("a message of %d bytes, and %d are the most", size, maxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(in, body); err != nil {
		return err
	}
	return proto.Unmarshal(body, message)
}

func appendFrame(frames []byte, message proto.Message) ([]byte, error) {
	size := proto.Size(message)
	frames = slices.Grow(frames, frameHead+size)
	frames = binary.BigEndian.AppendUint32(frames, uint32(size))
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(frames, message)
}

// call runs one verb; a watch tells before it ends. A failure is part of the answer.
func (s *Server) call(ctx context.Context, call *enginev1.ObjectCall, tell func(*enginev1.ObjectAnswer)) *enginev1.ObjectAnswer {
	var object []byte
	var err error
	switch verb := call.GetVerb().(type) {
	case *enginev1.ObjectCall_Get:
		object, err = s.get(ctx, verb.Get)
	case *enginev1.ObjectCall_Create:
		object, err = s.create(ctx, verb.Create)
	case *enginev1.ObjectCall_Patch:
		object, err = s.patch(ctx, verb.Patch)
	case *enginev1.ObjectCall_Delete:
		err = s.delete(ctx, verb.Delete)
	case *enginev1.ObjectCall_Review:
		object, err = s.review(ctx, verb.Review)
	case *enginev1.ObjectCall_Watch:
		err = s.watch(ctx, verb.Watch, func(batch *enginev1.WatchBatch) {
			tell(&enginev1.ObjectAnswer{Id: call.GetId(), Batch: batch})
		})
	default:
		err = fault.New(enginev1.Fault_INVALID, "a call needs a verb")
	}
	if err != nil {
		return &enginev1.ObjectAnswer{Id: call.GetId(), Fault: fault.From(err).Proto()}
	}
	return &enginev1.ObjectAnswer{Id: call.GetId(), Object: object}
}
