package chart

import (
	"archive/tar"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
)

func TestBadArchives(t *testing.T) {
	for name, row := range map[string]struct {
		packed []byte
		says   string
	}{
		"not an archive":     {[]byte("<html>"), "not a gzip archive"},
		"no Chart.yaml":      {pack(t, file{name: "x/values.yaml"}), "Chart.yaml"},
		"parent":             {small(t, "1.0.0", file{name: "small/../../etc/passwd", body: "x"}), "outside"},
		"absolute":           {small(t, "1.0.0", file{name: "/etc/passwd", body: "x"}), "outside"},
		"link":               {small(t, "1.0.0", file{name: "small/l", kind: tar.TypeSymlink, link: "/etc/passwd"}), "link"},
		"big file":           {small(t, "1.0.0", file{name: "small/big", body: strings.Repeat("0", 6<<20)}), "5 MiB"},
		"bomb in a subchart": {small(t, "1.0.0", file{name: "small/charts/s.tgz", body: string(pack(t, file{name: "s/b", body: strings.Repeat("0", 6<<20)}))}), "5 MiB"},
		"missing dependency": {pack(t, file{name: "x/Chart.yaml", body: "apiVersion: v2\nname: x\nversion: 1.0.0\ndependencies: [{name: db, version: 1.x.x, repository: 'http://nowhere'}]\n"}), "db"},
		"library":            {pack(t, file{name: "x/Chart.yaml", body: "apiVersion: v2\nname: x\nversion: 1.0.0\ntype: library\n"}), "library"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newStore(t).Put(row.packed)
			wantFault(t, err, enginev1.Fault_CHART_INVALID, row.says)
		})
	}
	many := make([]file, maxFiles)
	for i := range many {
		many[i] = file{name: fmt.Sprintf("small/f%d", i)}
	}
	_, err := newStore(t).Put(small(t, "1.0.0", many...))
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "10000 files")
	much := make([]file, 30)
	for i := range much {
		much[i] = file{name: fmt.Sprintf("small/f%d", i), body: strings.Repeat("0", 4<<20)}
	}
	_, err = newStore(t).Put(small(t, "1.0.0", much...))
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "100 MiB")
}

func TestDiskIsVerified(t *testing.T) {
	dir := t.TempDir()
	first, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	info, err := first.Put(small(t, "1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	second, _ := New(Options{Dir: dir})
	if _, err := second.Load(info.Digest); err != nil {
		t.Fatal("a restart keeps charts:", err)
	}
	if err := os.WriteFile(first.path(info.Digest), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	third, _ := New(Options{Dir: dir})
	_, err = third.Load(info.Digest)
	wantFault(t, err, enginev1.Fault_UNKNOWN_CHART)
	_, err = third.Load("sha256:../../etc/passwd")
	wantFault(t, err, enginev1.Fault_INVALID)
}

func TestDiskIsBounded(t *testing.T) {
	dir := t.TempDir()
	s, _ := New(Options{Dir: dir, DiskBytes: 1200})
	for i := range 10 {
		if _, err := s.Put(small(t, fmt.Sprintf("1.0.%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	left, _ := os.ReadDir(dir)
	if len(left) == 0 || len(left) > 5 {
		t.Errorf("%d charts are left", len(left))
	}
}

func TestCrashMidWrite(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, incoming+"old"), filepath.Join(dir, incoming+"young")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("what a crash left behind is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("what another engine may be writing was removed")
	}
	// The digest's own file can only be whole: cut it, as a disk might, and it is not served but fetched again.
	r := newRepository(t, "1.0.0")
	info, err := s.Resolve(context.Background(), r.source("1.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.path(info.Digest), 100); err != nil {
		t.Fatal(err)
	}
	again, _ := New(Options{Dir: dir})
	if _, err := again.Load(info.Digest); err == nil {
		t.Error("half a chart was served")
	}
	if _, err := again.Resolve(context.Background(), r.source("1.0.0")); err != nil {
		t.Error(err)
	}
	if _, err := again.Load(info.Digest); err != nil {
		t.Error(err)
	}
}

func TestVerifyComesFirst(t *testing.T) {
	r := newRepository(t, "1.0.0")
	dir := t.TempDir()
	var seen []string
	s, _ := New(Options{Dir: dir, Verify: func(_ context.Context, ask *Ask, located *Located, packed []byte) error {
		seen = append(seen, digestOf(packed))
		if _, err := located.Provenance(context.Background()); err != nil && ask.GetName() == "small" {
			return invalid("not signed")
		}
		return nil
	}})
	_, err := s.Resolve(context.Background(), r.source("1.0.0"))
	wantFault(t, err, enginev1.Fault_CHART_INVALID, "not signed")
	if _, err := s.Load(digestOf(r.charts["1.0.0"])); err == nil || len(seen) != 1 {
		t.Error("an unverified chart is in the store", seen)
	}
	if r.count("/small-1.0.0.tgz.prov") != 1 {
		t.Error("the provenance file was not asked for")
	}
}

func TestLockIsToldNotEnforced(t *testing.T) {
	sub := pack(t, file{name: "db/Chart.yaml", body: "apiVersion: v2\nname: db\nversion: 1.2.4\n"})
	chart := func(lock string) []byte {
		return pack(t,
			file{name: "x/Chart.yaml", body: "apiVersion: v2\nname: x\nversion: 1.0.0\ndependencies: [{name: db, version: ~1.2, repository: 'http://nowhere'}]\n"},
			file{name: "x/charts/db-1.2.4.tgz", body: string(sub)}, file{name: "x/Chart.lock", body: lock})
	}
	for lock, says := range map[string]string{
		"dependencies: [{name: db, version: 1.2.4}]\n": "[]",
		"dependencies: [{name: db, version: 1.2.3}]\n": "[Chart.lock says db 1.2.3, but charts/ has 1.2.4]",
		"dependencies: [{name: db, version: 1.1.0}]\n": "[Chart.lock says db 1.1.0, but charts/ has 1.2.4 Chart.lock says db 1.1.0, but Chart.yaml wants ~1.2]",
		"dependencies: []\n":                           "[Chart.lock does not know db, which Chart.yaml names]",
	} {
		info, err := newStore(t).Put(chart(lock))
		if err != nil || fmt.Sprint(info.Warnings) != says {
			t.Errorf("%s: %v %v", lock, info.Warnings, err)
		}
	}
}

// Every action changes its chart; run with -race.
func TestTwentyActionsShareAChart(t *testing.T) {
	s := newStore(t)
	sub := pack(t,
		file{name: "sub/Chart.yaml", body: "apiVersion: v2\nname: sub\nversion: 1.0.0\n"},
		file{name: "sub/templates/b.yaml", body: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"})
	info, err := s.Put(pack(t,
		file{name: "small/Chart.yaml", body: "apiVersion: v2\nname: small\nversion: 1.0.0\ndependencies: [{name: sub, alias: other, version: 1.0.0, condition: other.enabled}]\n"},
		file{name: "small/values.yaml", body: "other: {enabled: true}\n"},
		file{name: "small/charts/sub.tgz", body: string(sub)},
		file{name: "small/templates/a.yaml", body: "name: {{ .Release.Name }}\n"}))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			c, err := s.Load(info.Digest)
			if err != nil {
				t.Error(err)
				return
			}
			values := map[string]any{"other": map[string]any{"enabled": i%2 == 0}}
			if err := chartutil.ProcessDependencies(c, values); err != nil {
				t.Error(err)
				return
			}
			name := fmt.Sprintf("r%d", i)
			top, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: name}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			files, err := engine.Render(c, top)
			if err != nil || files["small/templates/a.yaml"] != "name: "+name+"\n" || len(files) != 2-i%2 {
				t.Errorf("%v %v", files, err)
			}
		})
	}
	all.Wait()
}
