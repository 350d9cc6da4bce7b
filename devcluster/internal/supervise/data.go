package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dataDir is where etcd keeps its data; an ephemeral one goes away at the end.
type dataDir struct {
	path string
	lock *os.File // held while an ephemeral directory is alive, so that others do not sweep it
}

// openData gives etcd the cluster's own directory, or one in memory.
func openData(home *home, ephemeral bool) (*dataDir, error) {
	if !ephemeral {
		return &dataDir{path: home.path("etcd")}, os.MkdirAll(home.path("etcd"), 0o700)
	}
	root, err := sharedRoot()
	if err != nil {
		return nil, err
	}
	gate, err := waitForLock(filepath.Join(root, "gate"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = gate.Close() }()
	sweep(root)
	path, err := os.MkdirTemp(root, "etcd-")
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(path, "lock"))
	if err != nil {
		_ = os.RemoveAll(path)
		return nil, err
	}
	return &dataDir{path: path, lock: lock}, nil
}

func (d *dataDir) close() {
	if d.lock != nil {
		_ = os.RemoveAll(d.path)
		_ = d.lock.Close()
	}
}

// sharedRoot is a directory in memory that all supervisors of this user share.
func sharedRoot() (string, error) {
	root := filepath.Join(memoryRoot(), fmt.Sprintf("pilothouse-dev-%d", os.Getuid()))
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	info, err := os.Lstat(root)
	if err != nil {
		return "", err
	}
	// The parent is world-writable: somebody else may have made the directory first.
	if owner, known := info.Sys().(*syscall.Stat_t); !info.IsDir() || !known || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("%s belongs to somebody else: remove it", root)
	}
	return root, nil
}

// memoryRoot is the memory file system of Linux where there is one, else the temporary directory.
func memoryRoot() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}

// waitForLock serialises making and sweeping, so that no directory is swept before it is locked.
func waitForLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return file, syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
}

// sweep removes what killed supervisors left in memory: the directories nobody holds a lock on.
func sweep(root string) {
	left, _ := filepath.Glob(filepath.Join(root, "etcd-*"))
	for _, path := range left {
		lock, err := lockFile(filepath.Join(path, "lock"))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}
