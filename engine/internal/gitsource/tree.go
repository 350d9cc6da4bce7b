package gitsource

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"helm.sh/helm/v4/pkg/ignore"
)

// Bounds of a chart, as for charts from anywhere else.
const (
	maxPacked   = 10 << 20
	maxUnpacked = 100 << 20
	maxFile     = 5 << 20
	maxFiles    = 10_000
	maxDepth    = 100
)

const chartFile = "Chart.yaml"

// entry is a file of a chart; its name is relative to the chart.
type entry struct {
	name string
	hash plumbing.Hash
}

// list walks the chart's directory. Everything in it must be a file or a directory.
func list(from *objects, commit, directory, place string) ([]entry, error) {
	root, err := from.tree(commit, place)
	if err != nil {
		return nil, err
	}
	if directory != "" {
		inner, err := root.Tree(directory)
		if err != nil {
			return nil, notFound("there is no directory %q in %s at %s", directory, place, commit[:12])
		}
		root = inner
	}
	if _, err := root.FindEntry(chartFile); err != nil {
		return nil, notFound("there is no chart at %q in %s at %s: no Chart.yaml", orElse(directory, "."), place, commit[:12])
	}
	walk := &walker{from: from, place: place}
	if err := walk.directory(root, "", 0); err != nil {
		return nil, err
	}
	slices.SortFunc(walk.found, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return walk.found, nil
}

type walker struct {
	from  *objects
	place string
	found []entry
	seen  int
}

func (w *walker) directory(tree *object.Tree, prefix string, depth int) error {
	if depth > maxDepth {
		return invalid("the chart in %s has directories more than %d deep", w.place, maxDepth)
	}
	for _, one := range tree.Entries {
		if w.seen++; w.seen > 2*maxFiles {
			return invalid("the chart in %s has more than %d files", w.place, maxFiles)
		}
		name := path.Join(prefix, one.Name)
		if !plain(one.Name) {
			return invalid("the chart in %s has a file with an unusable name: %q", w.place, name)
		}
		switch one.Mode {
		case filemode.Dir:
			inner, err := object.GetTree(w.from, one.Hash)
			if err != nil {
				return broken(w.place, err)
			}
			if err := w.directory(inner, name, depth+1); err != nil {
				return err
			}
		case filemode.Regular, filemode.Executable, filemode.Deprecated:
			w.found = append(w.found, entry{name, one.Hash})
		case filemode.Symlink:
			return invalid("the chart in %s contains a symbolic link: %q", w.place, name)
		case filemode.Submodule:
			return invalid("the chart in %s contains a submodule, and submodules are not fetched: %q", w.place, name)
		default:
			return invalid("the chart in %s contains a special file: %q", w.place, name)
		}
	}
	if len(w.found) > maxFiles {
		return invalid("the chart in %s has more than %d files", w.place, maxFiles)
	}
	return nil
}

func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}

// content reads one file.
func (o *objects) content(hash plumbing.Hash, name, place string) ([]byte, error) {
	blob, err := object.GetBlob(o, hash)
	if err != nil {
		return nil, broken(place, err)
	}
	if blob.Size > maxFile {
		return nil, invalid("the chart's file %q in %s is larger than 5 MiB", name, place)
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, broken(place, err)
	}
	defer func() { _ = reader.Close() }()
	data, err := io.ReadAll(io.LimitReader(reader, maxFile+1))
	if err != nil {
		return nil, broken(place, err)
	}
	return data, nil
}

// ignored leaves out what `helm package` would leave out.
func ignored(rules *ignore.Rules, name string) bool {
	for at := range len(name) {
		if name[at] == '/' && rules.Ignore(name[:at], info{path.Base(name[:at]), true}) {
			return true
		}
	}
	return rules.Ignore(name, info{path.Base(name), false})
}

func rulesOf(text []byte) (*ignore.Rules, error) {
	rules, err := ignore.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("the chart's .helmignore cannot be read")
	}
	rules.AddDefaults()
	return rules, nil
}

// info is as much of a file as ignore rules look at.
type info struct {
	name string
	dir  bool
}

func (i info) Name() string { return i.name }
func (i info) IsDir() bool  { return i.dir }
func (info) Size() int64    { return 0 }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir
	}
	return 0
}
func (info) ModTime() time.Time { return time.Time{} }
func (info) Sys() any           { return nil }
