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

const portsTemplate = `apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}, labels: {tier: {{ .Values.tier | default "front" }}}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{{ .Values.ports | default "{port: 80}" }}]}
{{- if .Values.another }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Values.another }}}
spec: {ports: [{port: 99999}]}
{{- end }}
`

func (l *live) setPorts(ports string) {
	l.Helper()
	_, err := l.cluster.Clientset().CoreV1().Services(l.namespace).Patch(context.Background(), "app", types.MergePatchType,
		[]byte(`{"spec":{"ports":`+ports+`}}`), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		l.Fatal(err)
	}
}

// ports of the Service, and who has anything of it.
func (l *live) ports() string {
	l.Helper()
	found, err := l.cluster.Clientset().CoreV1().Services(l.namespace).Get(context.Background(), "app", metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	var out []string
	for _, one := range found.Spec.Ports {
		out = append(out, fmt.Sprint(one.Name, one.Port))
	}
	for _, one := range found.ManagedFields {
		out = append(out, one.Manager+" "+string(one.Operation))
	}
	return strings.Join(out, ", ")
}

func TestLiveReplacedElement(t *testing.T) {
	l := newLive(t, false)
	digest := l.put(pack(t, map[string]string{"templates/all.yaml": portsTemplate}))
	out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest})
	service := out.GetInventory()[0]
	l.setPorts(`[{"port":81}]`)
	one := l.compare(1, service)[0]
	if len(one.GetDifferences()) != 1 || one.GetDifferences()[0].GetPath() != "/spec/ports/0/port" || one.GetDifferences()[0].GetManager() != "somebody" {
		t.Errorf("%v", one)
	}
	if err := l.repair(1, &enginev1.RepairRequest_Part{Ref: service}); err != nil {
		t.Fatal(err)
	}
	if got := l.ports(); got != "80, helm Apply" {
		t.Error("after a repair:", got)
	}
	if one := l.compare(1, service)[0]; len(one.GetDifferences()) != 0 || one.GetFault() != nil {
		t.Errorf("%v", one)
	}
	l.setPorts(`[{"port":82}]`)
	if err := l.repair(1, &enginev1.RepairRequest_Part{Ref: service, Leave: []string{"/spec/ports/0/port"}}); err != nil {
		t.Fatal(err)
	}
	if got := l.ports(); !strings.HasPrefix(got, "82, ") {
		t.Error("what is to be left:", got)
	}
	request := func(ports string, around *enginev1.Around) *enginev1.RunRequest {
		return &enginev1.RunRequest{
			Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, Preflight: true, Around: around,
			Values: object(map[string]any{"tier": "back", "ports": ports}),
		}
	}
	mine := "{port: 80}"
	if refused := l.bad(request(mine, &enginev1.Around{}), enginev1.Fault_REJECTED, "Service app"); refused.GetRecord().GetRevision() != 1 {
		t.Errorf("what is refused makes no revision: %v", refused.GetRecord())
	}
	l.good(request(mine, &enginev1.Around{Leave: []*enginev1.Exemption{{Paths: []string{"/spec/ports/*/port"}}}}))
	if got := l.ports(); !strings.HasPrefix(got, "82, ") {
		t.Error("an upgrade took what is to be left:", got)
	}
	l.good(request(mine, &enginev1.Around{ForceRest: true}))
	if got := l.ports(); got != "80, helm Apply" {
		t.Error("after an upgrade:", got)
	}
	// A refusal that has another reason changes nothing, not even whose theirs is.
	l.setPorts(`[{"port":83}]`)
	before := l.ports()
	bad := request("{port: 80, name: Not_A_Name}", &enginev1.Around{ForceRest: true})
	revision := l.bad(bad, enginev1.Fault_REJECTED, "Service app", "Not_A_Name").GetRecord().GetRevision()
	bad.Preflight = false
	if failed := l.bad(bad, enginev1.Fault_REJECTED, "Service app", "Not_A_Name"); failed.GetRecord().GetRevision() != revision+1 {
		t.Errorf("only the preflight spares a revision: %v", failed.GetRecord())
	}
	if got := l.ports(); got != before {
		t.Errorf("%s, and before %s", got, before)
	}
	// Nor is one that is new, and wrong, taken for one that others changed.
	for _, preflight := range []bool{true, false} {
		another := request(mine, &enginev1.Around{ForceRest: true})
		another.Preflight, another.Values = preflight, object(map[string]any{"another": "new"})
		l.bad(another, enginev1.Fault_REJECTED, "Service new", "99999")
	}
	both := "{name: web, port: 80}, {name: admin, port: 90}"
	l.good(request(both, &enginev1.Around{ForceRest: true}))
	l.setPorts(`[{"name":"admin","port":91},{"name":"web","port":80}]`)
	l.good(request(both, &enginev1.Around{ForceRest: true}))
	if got := l.ports(); !strings.Contains(got, "web80") || !strings.Contains(got, "admin90") || strings.Contains(got, "91") {
		t.Error("one of two that have names:", got)
	}
}
