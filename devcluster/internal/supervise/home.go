package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// recordVersion changes when a directory written by an older devcluster can no longer be read.
const recordVersion = 1

// record is cluster.json: what the next start, and `pilothouse dev status`, want to know.
type record struct {
	Version    int    `json:"version"`
	Name       string `json:"name"`
	Port       int    `json:"port"`
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	PID        int    `json:"pid"`
	Ephemeral  bool   `json:"ephemeral"`
	// Data is the place of etcd's data: for an ephemeral cluster not memory everywhere.
	Data string `json:"data"`
	// How often the API server has been restarted since the cluster started.
	Restarts int `json:"restarts"`
}

// home is a cluster's directory, locked for as long as this process lives.
type home struct {
	dir    string
	record record
	lock   *os.File
}

// openHome creates or takes over dir; it refuses one that is in use or that is not a cluster's.
func openHome(dir, name string) (*home, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := refuseForeign(dir); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	home := &home{dir: dir, lock: lock}
	if home.record, err = readRecord(home.path("cluster.json")); err != nil {
		home.close()
		return nil, err
	}
	home.record.Version, home.record.Name = recordVersion, name
	// Early, so that a directory whose first start was cut short is still known as ours.
	if err := home.save(home.record); err != nil {
		home.close()
		return nil, err
	}
	if err := os.MkdirAll(home.path("logs"), 0o700); err != nil {
		home.close()
		return nil, err
	}
	return home, nil
}

func (h *home) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

// close releases the lock; the file stays, since removing it would race with the next start.
func (h *home) close() { _ = h.lock.Close() }

func (h *home) save(record record) error {
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	h.record = record
	return writeFile(h.path("cluster.json"), append(content, '\n'))
}

// refuseForeign protects a directory that was named by mistake.
func refuseForeign(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, "cluster.json")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != "lock" {
			return fmt.Errorf("%s holds %q but no cluster.json, so it is not a cluster's directory: choose an empty one", dir, entry.Name())
		}
	}
	return nil
}

func readRecord(path string) (record, error) {
	var found record
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	if json.Unmarshal(content, &found) != nil || found.Version != recordVersion || found.Port < 0 || found.Port > 65535 {
		return found, fmt.Errorf("%s is damaged or from another version: delete %s to start with an empty cluster", path, filepath.Dir(path))
	}
	return found, nil
}

// heldError says that another process holds a lock.
type heldError struct{ dir, holder string }

func (e *heldError) Error() string {
	return fmt.Sprintf("%s is in use by the cluster with process id %s: stop that one first, or choose another name", e.dir, e.holder)
}

// lockFile takes an exclusive lock that the kernel drops with the process, so none is ever stale.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = file.Close() }()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("cannot lock %s: %w", path, err)
		}
		holder, _ := os.ReadFile(path)
		return nil, &heldError{filepath.Dir(path), strings.TrimSpace(string(holder))}
	}
	if err := file.Truncate(0); err != nil {
		_ = file.Close()
		return nil, err
	}
	// Only for the sentence above: on a full disk the lock holds without it.
	_, _ = fmt.Fprintln(file, os.Getpid())
	return file, nil
}

// writeFile replaces a file in one step, readable by its owner only: most of ours hold keys.
func writeFile(path string, content []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
