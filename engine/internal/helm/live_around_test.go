//go:build live

package helm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

const widerTemplate = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - {name: main, image: registry.example/app:1}
      - {name: side, image: registry.example/side:1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
{{- range until 80 }}
  {{ printf "key%02d" . }}: {{ $.Values.value | default "old" }}
{{- end }}
`

func (l *live) editDeployment(patch string) {
	l.Helper()
	_, err := l.cluster.Clientset().AppsV1().Deployments(l.namespace).Patch(context.Background(), "app", types.StrategicMergePatchType,
		[]byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		l.Fatal(err)
	}
}

// images of the Deployment's containers by name.
func (l *live) images() map[string]string {
	l.Helper()
	found, err := l.cluster.Clientset().AppsV1().Deployments(l.namespace).Get(context.Background(), "app", metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	out := map[string]string{}
	for _, one := range found.Spec.Template.Spec.Containers {
		out[one.Name] = one.Image
	}
	return out
}

func TestLiveAround(t *testing.T) {
	l := newLive(t, false)
	digest := l.put(pack(t, map[string]string{"templates/all.yaml": widerTemplate}))
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest})
	// One container goes, another changes: the lists are not equally long any more.
	l.editDeployment(`{"spec":{"template":{"spec":{"containers":[
		{"name":"side","$patch":"delete"},{"name":"main","image":"registry.example/app:theirs"}]}}}}`)
	var data []string
	for i := range 80 {
		data = append(data, fmt.Sprintf(`"key%02d":"theirs"`, i))
	}
	l.edit(`{"data":{` + strings.Join(data, ",") + `}}`)
	leave := []*enginev1.Exemption{
		{Paths: []string{"/spec/template/spec/containers/*/image"}, Kind: "Deployment"},
		{Paths: []string{"/data/key79"}},
	}
	request := &enginev1.RunRequest{
		Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, Preflight: true,
		Values: object(map[string]any{"value": "new"}), Around: &enginev1.Around{Leave: leave},
	}
	out := l.bad(request, enginev1.Fault_CONFLICT, "ConfigMap app", "somebody")
	if out.GetRecord().GetRevision() != 1 {
		t.Errorf("a conflict that remains makes no revision: %v", out.GetRecord())
	}
	request.Around.ForceRest = true
	l.good(request)
	if images := l.images(); images["main"] != "registry.example/app:theirs" || images["side"] != "registry.example/side:1" {
		t.Errorf("an image that is left to others was taken: %v", images)
	}
	made, err := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace).Get(context.Background(), "app", metav1.GetOptions{})
	if err != nil || made.Data["key78"] != "new" || made.Data["key79"] != "theirs" {
		t.Errorf("key78 %q, key79 %q: %v", made.Data["key78"], made.Data["key79"], err)
	}
}
