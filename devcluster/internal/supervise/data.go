package supervise

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// enoughRoom is twice what etcd was seen to use in a busy cluster (112 MB: six log segments of 8 MB and a
// database of 64 MB): two clusters that start together see the same free room. Docker gives 64 MB unasked.
const enoughRoom = 256 << 20

// dataDir is where etcd keeps its data; an ephemeral one goes away at the end.
type dataDir struct {
	path  string
	place string   // what a user knows of the path: the cluster's directory, or a file system
	lock  *os.File // held while an ephemeral directory is alive, so that others do not sweep it
}

// openData gives etcd the cluster's own directory, or one in memory.
func openData(home *home, ephemeral bool, report *reporter) (*dataDir, error) {
	if !ephemeral {
		return &dataDir{path: home.path("etcd"), place: home.dir}, os.MkdirAll(home.path("etcd"), 0o700)
	}
	places := ephemeralPlaces()
	data, err := openEphemeral(places, enoughRoom)
	if err == nil && data.place != places[0] {
		report.progress(fmt.Sprintf("%s has less than %d MB: keeping the data in %s", places[0], enoughRoom>>20, data.place))
	}
	return data, err
}

// openEphemeral makes a directory in the first place that has enough room, else in the last.
func openEphemeral(places []string, enough uint64) (*dataDir, error) {
	last := len(places) - 1
	for _, place := range places[:last] {
		data, err := openIn(place, enough)
		if !errors.Is(err, syscall.ENOSPC) {
			return data, err
		}
	}
	return openIn(places[last], 0)
}

// openIn makes a directory in one place, after what killed supervisors left there has been removed.
func openIn(place string, enough uint64) (*dataDir, error) {
	path, lock, err := makeIn(place, enough)
	if err != nil {
		return nil, &placedError{place, err}
	}
	return &dataDir{path: path, place: place, lock: lock}, nil
}

func makeIn(place string, enough uint64) (string, *os.File, error) {
	root, err := sharedRoot(place)
	if err != nil {
		return "", nil, err
	}
	gate, err := waitForLock(filepath.Join(root, "gate"))
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = gate.Close() }()
	sweep(root)
	if free, err := room(place); err != nil {
		return "", nil, err
	} else if free < enough {
		return "", nil, syscall.ENOSPC
	}
	path, err := os.MkdirTemp(root, "etcd-")
	if err != nil {
		return "", nil, err
	}
	lock, err := lockFile(filepath.Join(path, "lock"))
	if err != nil {
		_ = os.RemoveAll(path)
	}
	return path, lock, err
}

func (d *dataDir) close() {
	if d.lock != nil {
		_ = os.RemoveAll(d.path)
		_ = d.lock.Close()
	}
}

// placed says of an error where it happened: of the components, etcd alone writes elsewhere than to its log.
func (d *dataDir) placed(err error) error {
	var failed *componentError
	if errors.As(err, &failed) && failed.component == "etcd" {
		return &placedError{d.place, err}
	}
	return err
}

// sharedRoot is a directory that all supervisors of this user share.
func sharedRoot(place string) (string, error) {
	root := filepath.Join(place, fmt.Sprintf("pilothouse-dev-%d", os.Getuid()))
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

// ephemeralPlaces are the memory file system of Linux, where there is one, and the temporary directory.
func ephemeralPlaces() []string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return []string{"/dev/shm", os.TempDir()}
	}
	return []string{os.TempDir()}
}

// room is how many bytes a file system has left for us.
func room(place string) (uint64, error) {
	var found syscall.Statfs_t
	if err := syscall.Statfs(place, &found); err != nil {
		return 0, err
	}
	if found.Blocks == 0 { // a memory file system without a limit
		return math.MaxUint64, nil
	}
	return found.Bavail * uint64(found.Bsize), nil
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
