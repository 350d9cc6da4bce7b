package chart

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

const incoming = ".incoming-"

// write puts the packed chart on disk in one step: a crash leaves the old state or the new one, and a reader
// never sees half a file.
func (s *Store) write(digest string, packed []byte) error {
	if info, err := os.Stat(s.path(digest)); err == nil && info.Size() == int64(len(packed)) {
		return nil
	}
	f, err := os.CreateTemp(s.options.Dir, incoming+"*")
	if err != nil {
		return fmt.Errorf("cannot keep a chart: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(packed)
	if err == nil {
		err = f.Sync() // a rename that survives a power cut must not name an empty file
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path(digest))
	}
	if err != nil {
		return fmt.Errorf("cannot keep a chart: %w", err)
	}
	s.prune()
	return nil
}

// clean removes what a crash left half written. Several engines may share the directory, so what is young may be
// somebody's work.
func (s *Store) clean() {
	left, err := filepath.Glob(filepath.Join(s.options.Dir, incoming+"*"))
	if err != nil {
		return
	}
	for _, name := range left {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(name)
		}
	}
}

// prune forgets the charts not read for longest, until the rest fits.
func (s *Store) prune() {
	s.disk.Lock()
	defer s.disk.Unlock()
	names, err := os.ReadDir(s.options.Dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	var total int64
	for _, name := range names {
		info, err := name.Info()
		if err != nil {
			continue
		}
		if strings.HasPrefix(info.Name(), incoming) {
			continue
		}
		files = append(files, info)
		total += info.Size()
	}
	sort.Slice(files, func(i, j int) bool { return files[i].ModTime().Before(files[j].ModTime()) })
	for _, info := range files {
		if total <= s.options.DiskBytes {
			return
		}
		if os.Remove(filepath.Join(s.options.Dir, info.Name())) == nil {
			total -= info.Size()
		}
	}
}
