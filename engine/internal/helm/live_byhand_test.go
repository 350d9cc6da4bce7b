//go:build live

package helm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

// byHand runs the real helm; PILOTHOUSE_TEST_HELM is where it is.
func (l *live) byHand(arguments ...string) string {
	l.Helper()
	program := os.Getenv("PILOTHOUSE_TEST_HELM")
	if program == "" {
		l.Fatal("PILOTHOUSE_TEST_HELM must name the real helm")
	}
	command := exec.Command(program, append(arguments, "--namespace", l.namespace, "--kubeconfig", os.Getenv("PILOTHOUSE_TEST_KUBECONFIG"))...)
	out, err := command.CombinedOutput()
	if err != nil {
		l.Fatalf("helm %v: %v\n%s", arguments, err, out)
	}
	return string(out)
}

func (l *live) file(packed []byte) string {
	l.Helper()
	path := filepath.Join(l.TempDir(), "chart.tgz")
	if err := os.WriteFile(path, packed, 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

func TestLiveByHand(t *testing.T) {
	l := newLive(t, false)
	packed := tiny(t)
	digest := l.put(packed)
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_INSTALL, Name: "app", ChartDigest: digest, StampDigest: "one"})
	if out := l.byHand("status", "app"); !strings.Contains(out, "STATUS: deployed") {
		t.Error(out)
	}
	l.byHand("upgrade", "app", l.file(packed), "--set", "message=by-hand", "--labels", "team=a")
	history, err := History(context.Background(), l.cluster, &enginev1.HistoryRequest{Namespace: l.namespace, Name: "app"})
	if err != nil || len(history) != 2 || history[1].GetStampDigest() != "" {
		t.Errorf("a revision made by hand has no stamp: %v %v", history, err)
	}
	out := l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: digest, StampDigest: "three"})
	if out.GetRecord().GetRevision() != 3 || out.GetRecord().GetStampDigest() != "three" {
		t.Errorf("%v", out)
	}
	if out := l.byHand("get", "values", "app"); !strings.Contains(out, "null") {
		t.Error("the values given by hand are reset:", out)
	}
	l.byHand("rollback", "app", "1")
	l.byHand("uninstall", "app")
}

func TestLiveUninstallOfWhatWasMadeByHandIsOurs(t *testing.T) {
	l := newLive(t, false)
	held := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}, finalizers: [example.com/hold]}\n"
	l.byHand("install", "app", l.file(pack(t, map[string]string{"templates/c.yaml": held})))
	out := l.bad(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app", TimeoutMs: 5_000, StampDigest: "two", StampOwner: "us"},
		enginev1.Fault_TIMEOUT, "example.com/hold")
	record := out.GetRecord()
	if record.GetStatus() != "uninstalling" || record.GetStampOwner() != "us" || record.GetStampDigest() != "" {
		t.Errorf("the uninstall is ours, the revision is not: %v", record)
	}
	maps := l.cluster.Clientset().CoreV1().ConfigMaps(l.namespace)
	if _, err := maps.Patch(context.Background(), "app", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app", StampOwner: "us"})
}

func TestLiveAdoptedTemplateCRD(t *testing.T) {
	l := newLive(t, false)
	group := fmt.Sprintf("h%d.example.com", time.Now().UnixNano())
	definition := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.%[1]s}\nspec: {group: %[1]s, scope: Namespaced, names: {plural: things, singular: thing, kind: Thing}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n", group)
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
	l.byHand("install", "app", l.file(pack(t, map[string]string{"templates/crd.yaml": definition, "templates/c.yaml": config})))
	there := func(when string) {
		t.Helper()
		if _, err := l.cluster.Dynamic().Resource(crdResource).Get(context.Background(), "things."+group, metav1.GetOptions{}); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
	}
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UPGRADE, Name: "app", ChartDigest: l.put(pack(t, map[string]string{"templates/c.yaml": config}))})
	there("after an upgrade without the CRD")
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_ROLLBACK, Name: "app", Revision: 1})
	there("after a rollback")
	l.good(&enginev1.RunRequest{Action: enginev1.RunRequest_UNINSTALL, Name: "app"})
	there("after an uninstall")
}
