//go:build live

package helm

import (
	"context"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// annotations reads those of the chart in the record of a revision.
func (l *live) annotations(revision int) map[string]string {
	l.Helper()
	a := newRun(context.Background(), l.cluster, &enginev1.RunRequest{Namespace: l.namespace, Name: "app"}, nil, nil)
	rel, err := a.records.release(revision)
	if err != nil {
		l.Fatal(err)
	}
	return rel.Chart.Metadata.Annotations
}

func TestLiveChartAnnotations(t *testing.T) {
	l := newLive(t, false)
	digest := l.put(pack(t, map[string]string{
		"Chart.yaml":       "apiVersion: v2\nname: demo\nversion: 1.0.0\nannotations: {own: chart}\n",
		"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {seen: {{ .Chart.Annotations | toJson | quote }}}\n",
	}))
	one := map[string]string{"release.helm.crossplane.io/patch-1-a": "17"}
	two := map[string]string{"release.helm.crossplane.io/patch-1-b": "18", "own": "request"}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest, ChartAnnotations: one})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, ChartAnnotations: two})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest})
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "app", Revision: 1, ChartAnnotations: two})
	first := map[string]string{"own": "chart", "release.helm.crossplane.io/patch-1-a": "17"}
	for revision, want := range map[int]map[string]string{
		1: first, // superseded, and written again since
		2: two,
		3: {"own": "chart"}, // neither the cached chart nor an older record lends any
		4: first,
	} {
		if got := l.annotations(revision); !maps.Equal(got, want) {
			t.Errorf("revision %d: got %v, want %v", revision, got, want)
		}
	}
	made, err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Get(context.Background(), "app", metav1.GetOptions{})
	if err != nil || made.Data["seen"] != `{"own":"chart"}` {
		t.Errorf("templates see the chart's own annotations only: %v %v", made.Data, err)
	}
}

func TestLiveKustomization(t *testing.T) {
	l := newLive(t, false)
	ctx := context.Background()
	digest := l.put(pack(t, map[string]string{
		"templates/c.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {a: chart}\n",
		"templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}}\ndata: {a: chart}\n",
	}))
	request := func(action enginev1.RunRequest_Action) *enginev1.RunRequest {
		return &enginev1.RunRequest{
			Action: action, Name: "app", ChartDigest: digest,
			Patches:       [][]byte{[]byte(`{"patches":[{"target":{"kind":"ConfigMap"},"patch":"[{\"op\":\"add\",\"path\":\"/data/patched\",\"value\":\"yes\"}]"}]}`)},
			Kustomization: []byte(`{"commonAnnotations":{"example.com/kustomized":"yes"},"labels":[{"pairs":{"team":"blue"}}]}`),
		}
	}
	check := func(when, patched, kustomized, team string) {
		t.Helper()
		maps := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace)
		made, err := maps.Get(ctx, "app", metav1.GetOptions{})
		if err != nil || made.Data["patched"] != patched || made.Annotations["example.com/kustomized"] != kustomized || made.Labels["team"] != team {
			t.Errorf("%s: %v %v", when, made, err)
		}
		for annotation := range made.Annotations {
			if annotation == "postrenderer.helm.sh/postrender-filename" {
				t.Error("Helm's own mark stays on the object")
			}
		}
		hook, err := maps.Get(ctx, "hook", metav1.GetOptions{})
		if err != nil || hook.Data["patched"] != "" || hook.Annotations["example.com/kustomized"] != "" || hook.Labels["team"] != "" {
			t.Errorf("%s: a hook is not touched: %v %v", when, hook, err)
		}
	}
	l.good(request(enginev1.RunRequest_INSTALL))
	check("installed", "yes", "yes", "blue")
	l.good(request(enginev1.RunRequest_UPGRADE))
	check("upgraded", "yes", "yes", "blue")
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest})
	check("no longer asked for", "", "", "")
	refused := l.bad(&enginev1.RunRequest{
		Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, Kustomization: []byte(`{"namePrefix":"x-"}`),
	}, enginev1.Fault_INVALID, "namePrefix is refused", "identity of the release")
	if refused.GetRecord().GetRevision() != 3 {
		t.Errorf("a kustomization that is refused makes no revision: %v", refused)
	}
}
