package gitsource

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
)

// objects is what was fetched, in a directory of its own.
type objects struct {
	*filesystem.Storage

	dir string
}

func (o *objects) drop() {
	_ = o.Close()
	_ = os.RemoveAll(o.dir)
}

// download fetches what a chart needs: its own files where the server can filter, else all files of the commit.
func (f *Fetcher) download(ctx context.Context, at *remote, want choice, directory string) (*objects, error) {
	into, err := f.newObjects()
	if err != nil {
		return nil, err
	}
	supports := at.refs.Capabilities.Supports
	if !want.whole && supports(capability.Filter) && supports(capability.AllowReachableSHA1InWant) {
		err := f.downloadFiltered(ctx, at, want, directory, into)
		var missing *missingFiles
		if err == nil || !errors.As(err, &missing) {
			return kept(into, err)
		}
		// Servers that hand out commits need not hand out files: take all of them.
	}
	return kept(into, f.take(ctx, at, ask{wants: want.wants, shallow: !want.whole}, into))
}

func kept(into *objects, err error) (*objects, error) {
	if err != nil {
		into.drop()
		return nil, err
	}
	return into, nil
}

// missingFiles says that the server would not hand out files one by one.
type missingFiles struct{ cause error }

func (m *missingFiles) Error() string { return m.cause.Error() }

func (f *Fetcher) downloadFiltered(ctx context.Context, at *remote, want choice, directory string, into *objects) error {
	if err := f.take(ctx, at, ask{wants: want.wants, shallow: true, noFiles: true}, into); err != nil {
		return err
	}
	files, err := list(into, want.Commit, directory, at.place)
	if err != nil {
		return err
	}
	var wants []plumbing.Hash
	asked := map[plumbing.Hash]bool{}
	for _, file := range files {
		if !asked[file.hash] {
			asked[file.hash] = true
			wants = append(wants, file.hash)
		}
	}
	if err := f.take(ctx, at, ask{wants: wants}, into); err != nil {
		if ctx.Err() != nil || errors.Is(err, egress.ErrRefused) {
			return err
		}
		return &missingFiles{err}
	}
	return nil
}

// take receives one pack, measures it, and takes its objects in.
func (f *Fetcher) take(ctx context.Context, at *remote, what ask, into *objects) error {
	stream, err := at.fetch(ctx, what)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	file, err := os.CreateTemp(into.dir, "pack-")
	if err != nil {
		return fmt.Errorf("no place for a pack: %w", err)
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	limited := &bounded{r: stream, left: f.limits.Transferred, excess: invalid("%s is too large: more than %d MiB for one commit", at.place, f.limits.Transferred>>20)}
	if _, err := io.Copy(file, limited); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return unavailable(at.place, err)
	}
	if err := f.measure(file, at.place); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("a pack cannot be read again: %w", err)
	}
	if err := packfile.WritePackfileToObjectStorage(into, file); err != nil {
		return broken(at.place, err)
	}
	return nil
}

// measure goes through a pack without keeping anything: sizes are what its objects really have, and what deltas in it
// would make.
func (f *Fetcher) measure(file io.ReadSeeker, place string) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("a pack cannot be read again: %w", err)
	}
	scanner := packfile.NewScanner(bufio.NewReader(file))
	_, count, err := scanner.Header()
	if err != nil {
		return broken(place, err)
	}
	if count > f.limits.Objects {
		return invalid("%s is too large: more than %d objects for one commit", place, f.limits.Objects)
	}
	left := f.limits.Inflated
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return broken(place, err)
		}
		if header.Length > f.limits.Object {
			return invalid("%s has a file larger than %d MiB", place, f.limits.Object>>20)
		}
		begin := &beginning{}
		if _, _, err := scanner.NextObject(begin); err != nil {
			return broken(place, err)
		}
		size := header.Length
		if header.Type.IsDelta() {
			size = begin.target()
		}
		if size < 0 || size > f.limits.Object {
			return invalid("%s has a file larger than %d MiB", place, f.limits.Object>>20)
		}
		if left -= header.Length + size; left < 0 {
			return invalid("%s is too large: more than %d MiB unpacked", place, f.limits.Inflated>>20)
		}
	}
	return nil
}

func broken(place string, err error) error {
	return invalid("%s sent a broken pack: %v", place, err)
}

// beginning keeps the first bytes of what is written: a delta begins with two sizes.
type beginning struct{ bytes []byte }

func (b *beginning) Write(p []byte) (int, error) {
	if room := 2*binary.MaxVarintLen64 - len(b.bytes); room > 0 {
		b.bytes = append(b.bytes, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// target is the size of what a delta makes; negative if it does not say.
func (b *beginning) target() int64 {
	_, n := binary.Uvarint(b.bytes)
	if n <= 0 {
		return -1
	}
	size, n := binary.Uvarint(b.bytes[n:])
	if n <= 0 {
		return -1
	}
	return int64(size) //nolint:gosec // too large is negative, and refused
}

func (f *Fetcher) newObjects() (*objects, error) {
	dir, err := f.temporary()
	if err != nil {
		return nil, err
	}
	made := filesystem.NewStorage(osfs.New(filepath.Join(dir, "git"), osfs.WithBoundOS()), cache.NewObjectLRU(16<<20))
	if err := made.Init(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("no place to fetch a repository into: %w", err)
	}
	return &objects{Storage: made, dir: dir}, nil
}

// tree is the root directory of a commit.
func (o *objects) tree(commit, place string) (*object.Tree, error) {
	found, err := object.GetCommit(o, plumbing.NewHash(commit))
	if err != nil {
		return nil, notFound("commit %s is not in %s", commit, place)
	}
	root, err := found.Tree()
	if err != nil {
		return nil, broken(place, err)
	}
	return root, nil
}
