package gitsource

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

func wantFault(t *testing.T, err error, kind fault.Kind, parts ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Fatalf("got %v, want a fault of kind %v", err, kind)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("%q does not say %q", err.Error(), part)
		}
	}
	if strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("not one clean sentence: %q", err.Error())
	}
}

// sources are the same repository, over each protocol.
func sources(r *repository) map[string]Request {
	return map[string]Request{"https": r.overHTTPS(r.serveHTTPS()), "ssh": r.serveSSH().request()}
}

func TestEveryReferenceOverEveryProtocol(t *testing.T) {
	r := newRepository(t)
	r.chart("deploy/hello", "1.0.0")
	first := r.commit("first")
	r.git("tag", "v1.0.0")
	r.chart("deploy/hello", "1.1.0")
	second := r.commit("second")
	r.git("tag", "-a", "-m", "annotated", "1.1.0")
	r.git("branch", "stable")
	r.git("tag", "v2.0.0-rc.1")
	r.git("tag", "nonsense")
	r.chart("deploy/hello", "3.0.0")
	third := r.commit("third")
	for name, source := range sources(r) {
		for _, row := range []struct {
			reference       Reference
			commit, version string
			tag             string
		}{
			{Reference{}, third, "3.0.0", ""},
			{Reference{Branch: "main"}, third, "3.0.0", ""},
			{Reference{Branch: "stable"}, second, "1.1.0", ""},
			{Reference{Tag: "v1.0.0"}, first, "1.0.0", "v1.0.0"},
			{Reference{Tag: "1.1.0"}, second, "1.1.0", "1.1.0"},
			{Reference{Semver: "1.x"}, second, "1.1.0", "1.1.0"},
			{Reference{Semver: "<1.1"}, first, "1.0.0", "v1.0.0"},
			{Reference{Semver: ">=2.0.0-0"}, second, "1.1.0", "v2.0.0-rc.1"},
			{Reference{Commit: third}, third, "3.0.0", ""},
			{Reference{Commit: strings.ToUpper(first)}, first, "1.0.0", ""},
			{Reference{Commit: first, Branch: "main"}, first, "1.0.0", ""},
		} {
			source.Reference, source.Path = row.reference, "deploy/hello/"
			got, err := fetch(t, source)
			if err != nil {
				t.Errorf("%s %+v: %v", name, row.reference, err)
				continue
			}
			chart, err := loader.LoadArchive(bytes.NewReader(got.Chart))
			if err != nil || chart.Metadata.Version != row.version || got.Commit != row.commit || got.Tag != row.tag {
				t.Errorf("%s %+v: got %v %v, %v", name, row.reference, got.Pointer, chart, err)
			}
			pointer, err := newFetcher(t, Limits{}).Resolve(context.Background(), source)
			if err != nil || pointer != got.Pointer {
				t.Errorf("%s %+v: resolved to %v, %v", name, row.reference, pointer, err)
			}
		}
	}
}

// A commit that no reference points to, from servers that hand out what is asked for and from those that do not.
func TestACommitInTheMiddle(t *testing.T) {
	r := newRepository(t)
	r.chart("", "1.0.0")
	first := r.commit("first")
	r.chart("", "2.0.0")
	r.commit("second")
	https := r.overHTTPS(r.serveHTTPS())
	https.Reference.Commit = first
	for _, allowed := range []string{"false", "true"} {
		r.configure("uploadpack.allowReachableSHA1InWant", allowed)
		got, err := fetch(t, https)
		if err != nil || got.Commit != first {
			t.Errorf("allowed %s: %v, %v", allowed, got.Pointer, err)
		}
		https.Reference.Commit = strings.Repeat("ab", 20)
		_, err = fetch(t, https)
		wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND, "commit")
		https.Reference.Commit = first
	}
}

func TestTheSameFilesAreTheSameBytes(t *testing.T) {
	r := newRepository(t)
	r.chart("chart", "1.0.0")
	r.write("chart/.helmignore", "*.bak\nnotes/\n")
	r.write("chart/x.bak", "x")
	r.write("chart/notes/y", "y")
	r.commit("first")
	source := r.overHTTPS(r.serveHTTPS())
	source.Path = "chart"
	one, err := fetch(t, source)
	if err != nil {
		t.Fatal(err)
	}
	r.write("README.md", "something else")
	r.commit("second")
	other, err := fetch(t, source)
	if err != nil {
		t.Fatal(err)
	}
	if one.Commit == other.Commit || !bytes.Equal(one.Chart, other.Chart) {
		t.Fatal("another commit with the same chart makes another archive")
	}
	chart, err := loader.LoadArchive(bytes.NewReader(one.Chart))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range chart.Raw {
		if strings.HasSuffix(file.Name, ".bak") || strings.HasPrefix(file.Name, "notes") {
			t.Errorf("%s should be ignored", file.Name)
		}
	}
}

// What attributes ask for is done by a checkout, and there is none: a pointer stays a pointer.
func TestAttributesAreNotFollowed(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	r := newRepository(t)
	r.chart("", "1.0.0")
	r.write("files/large.bin", pointer)
	r.write("files/text", "one\ntwo $Id$ $Format:%H$\n")
	r.git("add", "-A")
	r.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\nfiles/text eol=crlf ident export-subst\nvalues.yaml export-ignore\n")
	r.commit("first")
	for name, source := range sources(r) {
		got, err := fetch(t, source)
		if err != nil {
			t.Fatal(err)
		}
		chart, err := loader.LoadArchive(bytes.NewReader(got.Chart))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, file := range chart.Raw {
			found[file.Name] = string(file.Data)
		}
		if found["files/large.bin"] != pointer || found["files/text"] != "one\ntwo $Id$ $Format:%H$\n" || found["values.yaml"] == "" {
			t.Errorf("%s: %q", name, found)
		}
	}
}

func TestMissingReferences(t *testing.T) {
	r := newRepository(t)
	r.chart("", "1.0.0")
	r.commit("first")
	source := r.overHTTPS(r.serveHTTPS())
	for _, row := range []struct {
		reference Reference
		kind      fault.Kind
		part      string
	}{
		{Reference{Branch: "none"}, enginev1.Fault_CHART_NOT_FOUND, `no branch "none"`},
		{Reference{Tag: "none"}, enginev1.Fault_CHART_NOT_FOUND, `no tag "none"`},
		{Reference{Semver: "1.x"}, enginev1.Fault_CHART_NOT_FOUND, `in the range "1.x"`},
		{Reference{Semver: "x y"}, enginev1.Fault_CHART_INVALID, "not a version range"},
		{Reference{Commit: "abc"}, enginev1.Fault_CHART_INVALID, "40 hex"},
		{Reference{Branch: "main", Tag: "x"}, enginev1.Fault_CHART_INVALID, "more than one"},
	} {
		source.Reference = row.reference
		_, err := fetch(t, source)
		wantFault(t, err, row.kind, row.part)
	}
	empty := newRepository(t)
	_, err := fetch(t, empty.overHTTPS(empty.serveHTTPS()))
	wantFault(t, err, enginev1.Fault_CHART_NOT_FOUND, "is empty")
}

func TestIgnoreRulesLookAtDirectories(t *testing.T) {
	rules, err := rulesOf([]byte("docs/\n*.md\n"))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, name := range []string{"docs/a/b", "x.md", "templates/x.yaml", "Chart.yaml", "templates/.keep"} {
		if !ignored(rules, name) {
			left = append(left, name)
		}
	}
	if !slices.Equal(left, []string{"templates/x.yaml", "Chart.yaml"}) {
		t.Fatalf("left: %v", left)
	}
}
