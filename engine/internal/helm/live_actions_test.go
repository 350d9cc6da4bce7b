//go:build live

package helm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"

	rcommon "helm.sh/helm/v4/pkg/release/common"
)

func TestLiveLife(t *testing.T) {
	l := newLive(t, true)
	digest := l.put(tiny(t))
	l.asked()
	stamp := strings.Repeat("a", 40)
	first := l.good(&enginev1.RunRequest{
		Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest, StampDigest: stamp, StampOwner: "me", MaxHistory: 3, StampSource: "x@c branch y",
	})
	asked := l.asked()
	t.Logf("install: %d requests\n%s", len(asked), strings.Join(asked, "\n"))
	if len(asked) != 11 {
		t.Error("an install makes 1 list, 4 GET, 4 PATCH, 1 create and 1 update")
	}
	record := first.GetRecord()
	if record.GetStatus() != "deployed" || record.GetRevision() != 1 || record.GetStampDigest() != stamp || record.GetStampOwner() != "me" || record.GetStampSource() != "x@c branch y" ||
		record.GetChartName() != "demo" || record.GetUid() == "" || len(first.GetInventory()) != 4 || first.GetNotes() != "hi app" {
		t.Errorf("%v", first)
	}
	second := l.good(&enginev1.RunRequest{
		Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, StampDigest: strings.Repeat("b", 40), StampOwner: "me",
		Values: object(map[string]any{"message": "two"}), MaxHistory: 3,
	})
	asked = l.asked()
	t.Logf("upgrade: %d requests\n%s", len(asked), strings.Join(asked, "\n"))
	if second.GetRecord().GetRevision() != 2 || second.GetRecord().GetStampDigest() != strings.Repeat("b", 40) || second.GetRecord().GetStampSource() != "" {
		t.Errorf("%v", second)
	}
	history, err := History(context.Background(), l.cluster, &enginev1.HistoryRequest{Namespace: l.namespace, Name: "app", WithConfig: true})
	if err != nil || len(history) != 2 || history[0].GetStatus() != "superseded" || history[0].GetStampDigest() != stamp || history[0].GetStampSource() != "x@c branch y" || string(history[1].GetConfig()) != `{"message":"two"}` {
		t.Errorf("a superseded record keeps its stamp: %v %v", history, err)
	}
	l.asked()
	third := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "app", Revision: 1, StampDigest: stamp, Description: "back", MaxHistory: 3})
	t.Logf("rollback: %d requests", len(l.asked()))
	if third.GetRecord().GetRevision() != 3 || third.GetRecord().GetStampDigest() != stamp || third.GetRecord().GetDescription() != "back" || len(third.GetInventory()) != 4 {
		t.Errorf("%v", third)
	}
	for i := range 3 {
		l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, MaxHistory: 3, Values: object(map[string]any{"message": fmt.Sprint(i)})})
	}
	history, err = History(context.Background(), l.cluster, &enginev1.HistoryRequest{Namespace: l.namespace, Name: "app"})
	if err != nil || len(history) != 3 || history[2].GetRevision() != 6 {
		t.Errorf("history is bounded: %v %v", history, err)
	}
	l.asked()
	gone := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"})
	asked = l.asked()
	t.Logf("uninstall: %d requests\n%s", len(asked), strings.Join(asked, "\n"))
	if gone.GetRecord() != nil {
		t.Errorf("%v", gone)
	}
	if out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"}); out.GetRecord() != nil {
		t.Error("uninstalling nothing succeeds")
	}
}

func TestLiveWaitAndCancel(t *testing.T) {
	l := newLive(t, false)
	stuck := pack(t, map[string]string{"templates/x.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck}
spec:
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec: {nodeSelector: {no: where}, containers: [{name: main, image: registry.example/x}]}
`})
	request := &enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Namespace: l.namespace, Name: "stuck", ChartDigest: l.put(stuck), Wait: true, TimeoutMs: 60_000}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var phases []enginev1.Progress_Phase
	outcome, err := l.runner.Run(ctx, l.cluster, request, func(progress *enginev1.Progress) {
		phases = append(phases, progress.GetPhase())
		if progress.GetPhase() == enginev1.Progress_WAITING {
			busy := l.run(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "stuck"})
			if busy.GetFault().GetKind() != enginev1.Fault_BUSY {
				t.Errorf("%v", busy)
			}
			cancel()
		}
	})
	if err != nil || outcome.GetFault().GetKind() != enginev1.Fault_CANCELLED || outcome.GetRecord().GetStatus() != "failed" {
		t.Errorf("%v %v", outcome, err)
	}
	if fmt.Sprint(phases) != "[PREPARING APPLYING WAITING]" {
		t.Error(phases)
	}
	l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "stuck", ChartDigest: request.GetChartDigest(), Wait: true, TimeoutMs: 500},
		enginev1.Fault_TIMEOUT, "Deployment stuck")
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "stuck", ChartDigest: l.put(tiny(t)), Wait: true, TimeoutMs: 30_000})
}

func TestLiveUninstallWaits(t *testing.T) {
	l := newLive(t, false)
	ctx := context.Background()
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: l.put(tiny(t))})
	maps := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace)
	if _, err := maps.Patch(ctx, "app", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	out := l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app", TimeoutMs: 5_000}, enginev1.Fault_TIMEOUT, "ConfigMap app", "example.com/hold")
	if out.GetRecord().GetStatus() != "uninstalling" {
		t.Errorf("%v", out)
	}
	released := make(chan struct{})
	outcome, err := l.runner.Run(ctx, l.cluster, &enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Namespace: l.namespace, Name: "app", TimeoutMs: 30_000},
		func(progress *enginev1.Progress) {
			if progress.GetPhase() == enginev1.Progress_WAITING {
				go func() {
					_, _ = maps.Patch(ctx, "app", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
					close(released)
				}()
			}
		})
	<-released
	if err != nil || outcome.GetFault() != nil || outcome.GetRecord() != nil {
		t.Errorf("%v %v", outcome, err)
	}
}

func TestLiveUnlockAndPatches(t *testing.T) {
	l := newLive(t, false)
	ctx := context.Background()
	digest := l.put(tiny(t))
	secrets := l.cluster.Clientset().CoreV1().Secrets(l.namespace)
	patch := []byte(`{patches: [{target: {kind: ConfigMap}, patch: "[{\"op\": \"add\", \"path\": \"/data/added\", \"value\": \"yes\"}]"}]}`)
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest, Patches: [][]byte{patch}, StampDigest: "x"})
	live, err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Get(ctx, "app", metav1.GetOptions{})
	if err != nil || live.Data["added"] != "yes" {
		t.Errorf("%v %v", live, err)
	}
	if out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNLOCK, Name: "app", Revision: 1}); out.GetRecord().GetStatus() != "deployed" {
		t.Error("a record that is not pending is left alone")
	}
	pend := func(name string, revision int, status string) {
		a := newRun(ctx, l.cluster, &enginev1.RunRequest{Namespace: l.namespace, Name: name}, nil, nil)
		rel, err := a.records.release(revision)
		if err != nil {
			t.Fatal(err)
		}
		rel.Info.Status = rcommon.Status(status)
		if err := a.records.Update(recordName(name, revision), rel); err != nil {
			t.Fatal(err)
		}
	}
	pend("app", 1, "pending-install")
	l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest}, enginev1.Fault_BUSY)
	if out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNLOCK, Name: "app", Revision: 1}); out.GetRecord() != nil {
		t.Errorf("%v", out)
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, StampDigest: "y"})
	pend("app", 2, "pending-upgrade")
	out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNLOCK, Name: "app", Revision: 2})
	if out.GetRecord().GetStatus() != "failed" || out.GetRecord().GetStampDigest() != "y" {
		t.Errorf("%v", out)
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest})
	if list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,status=deployed"}); err != nil || len(list.Items) != 1 {
		t.Errorf("%d deployed, %v", len(list.Items), err)
	}
}

// TestLiveHundred measures; it fails only when an install does.
func TestLiveHundred(t *testing.T) {
	l := newLive(t, false)
	digest := l.put(tiny(t))
	measure := func(action enginev1.RunRequest_Action, values any) {
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		start := time.Now()
		var all sync.WaitGroup
		slots := make(chan struct{}, 20)
		for i := range 100 {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				out, err := l.runner.Run(context.Background(), l.cluster, &enginev1.RunRequest{
					Action: action, Namespace: l.namespace, Name: fmt.Sprintf("app-%d", i), ChartDigest: digest,
					Values: object(values), MaxHistory: 10, StampDigest: strings.Repeat("a", 40),
				}, nil)
				if err != nil || out.GetFault() != nil {
					t.Errorf("%v %v", out.GetFault(), err)
				}
			})
		}
		all.Wait()
		took := time.Since(start)
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		cpu := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
		t.Logf("100 x %s: %s, %s CPU", action, took.Round(time.Millisecond), cpu.Round(time.Millisecond))
	}
	measure(enginev1.RunRequest_INSTALL, map[string]any{})
	measure(enginev1.RunRequest_UPGRADE, map[string]any{"message": "two"})
	measure(enginev1.RunRequest_UNINSTALL, map[string]any{})
}
