package chart

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/pilothouse-dev/pilothouse/engine/internal/egress"
	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Options say where charts are kept and how much of them.
type Options struct {
	Dir         string        // the directory for packed charts; created when missing
	MemoryBytes int64         // bound of unpacked files kept in memory; 0: 64 MiB
	DiskBytes   int64         // bound of packed charts kept on disk; 0: 1 GiB
	Timeout     time.Duration // of getting one chart, however slowly it drips; 0: 2 min
	Idle        time.Duration // how long a source may send nothing at all; 0: 20 s
	// DialContext opens connections to sources; nil: an ordinary dialer. Proxy chooses their proxy; nil: the
	// environment's. Both are the egress guard's, outside tests.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	Proxy       egress.ProxyFunc
	// Verify is asked about every chart before it can be used; nil: nothing is.
	Verify Verify
	// Keychain finds the machine's own credentials for a registry, where a request brings none at all; verified says
	// whether the registry's certificate will be. No name and no error: it has none. Nil: there are none.
	Keychain func(ctx context.Context, host string, verified bool) (username, password string, err error)
}

// Info is what a chart says about itself, with the digest of its packed bytes.
type Info struct {
	Digest      string // sha256:<hex>
	Name        string
	Version     string
	AppVersion  string
	Description string
	Type        string
	HasCRDs     bool
	Warnings    []string // what Helm accepts, and a person should know
	Republished string   // the source has this digest now, not the expected one
}

// entry is a chart in memory: its files, never changed after they were read, and what they say.
type entry struct {
	info  Info
	files []*archive.BufferedFile
	size  int64
}

// Store is a content-addressed cache of charts. It is safe for concurrent use.
type Store struct {
	options Options
	network *Network
	sources map[string]Source
	flights singleflight.Group
	memory  *recent[*entry]
	known   *recent[resolution]
	disk    sync.Mutex // one pruning at a time
}

// New opens the store in options.Dir.
func New(options Options) (*Store, error) {
	if options.MemoryBytes == 0 {
		options.MemoryBytes = 64 << 20
	}
	if options.DiskBytes == 0 {
		options.DiskBytes = 1 << 30
	}
	if options.Timeout == 0 {
		options.Timeout = 2 * time.Minute
	}
	if options.Idle == 0 {
		options.Idle = 20 * time.Second
	}
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot keep charts in %s: %w", options.Dir, err)
	}
	pages := newWeb(overHTTP)
	s := &Store{
		options: options,
		network: newNetwork(options),
		sources: map[string]Source{"http": pages, "https": pages, "oci": registries{}, inlineKind: inlineSource{}},
		memory:  newRecent[*entry](options.MemoryBytes),
		known:   newRecent[resolution](4096),
	}
	s.clean()
	return s, nil
}

// Load returns a fresh copy of the chart with that digest. The caller may do with it what it likes.
func (s *Store) Load(digest string) (*chartv2.Chart, error) {
	e, err := s.entry(digest)
	if err != nil {
		return nil, err
	}
	// LoadFiles makes new structures around the same, never written, bytes: cheaper than unpacking again.
	c, err := loader.LoadFiles(e.files)
	if err != nil {
		return nil, invalid("%s", oneLine(err.Error()))
	}
	return c, nil
}

// Describe returns what the chart with that digest says about itself.
func (s *Store) Describe(digest string) (Info, error) {
	e, err := s.entry(digest)
	if err != nil {
		return Info{}, err
	}
	return e.info, nil
}

// Put takes a packed chart into the store after checking that it is one.
func (s *Store) Put(packed []byte) (Info, error) {
	e, err := open(packed)
	if err != nil {
		return Info{}, err
	}
	if err := s.write(e.info.Digest, packed); err != nil {
		return Info{}, err
	}
	s.memory.put(e.info.Digest, e, e.size)
	return e.info, nil
}

// entry finds a chart in memory, then on disk; there its bytes are checked against the digest.
func (s *Store) entry(digest string) (*entry, error) {
	digest, err := normal(digest)
	if err != nil {
		return nil, err
	}
	if e, ok := s.memory.get(digest); ok {
		return e, nil
	}
	found, err, _ := s.flights.Do("read "+digest, func() (any, error) {
		packed, err := os.ReadFile(s.path(digest))
		if err != nil {
			return nil, unknown(digest)
		}
		if digestOf(packed) != digest {
			// A damaged file must not be served, and would otherwise hide the good one for ever.
			_ = os.Remove(s.path(digest))
			return nil, unknown(digest)
		}
		e, err := open(packed)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		_ = os.Chtimes(s.path(digest), now, now) // the order in which pruning forgets
		s.memory.put(digest, e, e.size)
		return e, nil
	})
	if err != nil {
		return nil, err
	}
	return found.(*entry), nil
}

// open checks and reads a packed chart.
func open(packed []byte) (*entry, error) {
	files, size, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, invalid("this is not a chart: %s", oneLine(err.Error()))
	}
	if err := c.Validate(); err != nil {
		return nil, invalid("this is not a usable chart: %s", oneLine(err.Error()))
	}
	if err := dependencies(c); err != nil {
		return nil, err
	}
	kind := c.Metadata.Type
	if kind == "" {
		kind = "application"
	}
	if kind == "library" {
		return nil, invalid("chart %q is a library chart: it cannot be installed", c.Name())
	}
	return &entry{files: files, size: size, info: Info{
		Digest:      digestOf(packed),
		Name:        c.Name(),
		Version:     c.Metadata.Version,
		AppVersion:  c.Metadata.AppVersion,
		Description: oneLine(c.Metadata.Description),
		Type:        kind,
		HasCRDs:     len(c.CRDObjects()) > 0,
		Warnings:    lockWarnings(c),
	}}, nil
}

func (s *Store) path(digest string) string {
	return filepath.Join(s.options.Dir, strings.TrimPrefix(digest, "sha256:")+".tgz")
}

func digestOf(packed []byte) string {
	sum := sha256.Sum256(packed)
	return "sha256:" + hex.EncodeToString(sum[:])
}

var hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// normal brings a digest into the one form used here, and keeps anything else out of file names.
func normal(digest string) (string, error) {
	bare := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(digest)), "sha256:")
	if !hex64.MatchString(bare) {
		return "", &fault.Error{Kind: enginev1.Fault_INVALID, Message: fmt.Sprintf("%q is not a sha256 digest", digest)}
	}
	return "sha256:" + bare, nil
}
