package server

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/pilothouse-dev/pilothouse/engine/internal/chart"
	"github.com/pilothouse-dev/pilothouse/engine/internal/cluster"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
	"github.com/pilothouse-dev/pilothouse/engine/internal/helm"
)

// A call that cannot start ends with a status, and its fault is in the trailer.
func TestRunThatCannotStart(t *testing.T) {
	charts, err := chart.New(chart.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	clusters := cluster.NewRegistry()
	listener := bufconn.Listen(1 << 16)
	served := grpc.NewServer()
	enginev1.RegisterEngineServer(served, &Server{Clusters: clusters, Charts: charts, Helm: helm.NewRunner(charts)})
	go func() { _ = served.Serve(listener) }()
	defer served.Stop()
	connection, err := grpc.NewClient("passthrough:engine", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := enginev1.NewEngineClient(connection)
	known, err := client.Connect(context.Background(), &enginev1.ConnectRequest{Credentials: &enginev1.ConnectRequest_Kubeconfig{Kubeconfig: []byte(
		`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, row := range []struct {
		request *enginev1.RunRequest
		kind    enginev1.Fault_Kind
	}{
		{&enginev1.RunRequest{Cluster: "nobody"}, enginev1.Fault_UNKNOWN_CLUSTER},
		{&enginev1.RunRequest{Cluster: known.GetCluster(), Namespace: "n", Name: "r"}, enginev1.Fault_INVALID},
		{&enginev1.RunRequest{Cluster: known.GetCluster(), Namespace: "n", Name: "r", Action: enginev1.RunRequest_INSTALL, ChartDigest: nowhere}, enginev1.Fault_UNKNOWN_CHART},
	} {
		stream, err := client.Run(context.Background(), row.request)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		if got := trailerFault(t, stream.Trailer()); err == nil || errors.Is(err, io.EOF) || got.GetKind() != row.kind {
			t.Errorf("%v: got %v, %v", row.request, got, err)
		}
	}
	// A cluster that is down is an outcome: the action started.
	stream, err := client.Run(context.Background(), &enginev1.RunRequest{Cluster: known.GetCluster(), Namespace: "n", Name: "r", Action: enginev1.RunRequest_UNINSTALL})
	if err != nil {
		t.Fatal(err)
	}
	var last *enginev1.RunEvent
	for event, err := stream.Recv(); err == nil; event, err = stream.Recv() {
		last = event
	}
	if last.GetOutcome().GetFault().GetKind() != enginev1.Fault_UNREACHABLE {
		t.Errorf("%v", last)
	}
}

func trailerFault(t *testing.T, trailer metadata.MD) *enginev1.Fault {
	t.Helper()
	out := &enginev1.Fault{}
	values := trailer.Get(fault.Trailer)
	if len(values) != 1 {
		return out
	}
	if err := proto.Unmarshal([]byte(values[0]), out); err != nil {
		t.Fatal(err)
	}
	return out
}
