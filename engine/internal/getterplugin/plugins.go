package getterplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pilothouse-dev/pilothouse/engine/internal/enginev1"
	"github.com/pilothouse-dev/pilothouse/engine/internal/fault"
)

// Argument is what makes this program act as the child.
const Argument = "getter-plugin"

const (
	usualTimeout = time.Minute
	// atOnce bounds how many plugins run.
	atOnce = 4
	// maxWords bounds what is kept of what a plugin writes on standard error.
	maxWords = 8 << 10
	// killGrace is how long the pipes of an ended child may stay open.
	killGrace = 2 * time.Second
)

// ours are the schemes that need no plugin, and those that must not have one.
var ours = []string{"http", "https", "oci", "file", "git", "ssh"}

var validScheme = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)

// Options are the operator's.
type Options struct {
	Dir     string   // where plugins are, each in a directory of its own; empty: there are none
	Schemes []string // what they may be used for
	// CacheDir is for what Helm keeps about plugins; empty: a temporary directory.
	CacheDir string
	Timeout  time.Duration // of one fetch; 0: a minute
}

// Plugins fetches with plugins. It is safe for concurrent use, and a nil one provides nothing.
type Plugins struct {
	options Options
	program string
	turns   chan struct{}
}

// Credentials are for one fetch.
type Credentials struct {
	Username string
	Password string
}

// order is what the child is told.
type order struct {
	Dir      string
	URL      string
	Scheme   string
	Username string
	Password string
	Timeout  time.Duration
	Most     int64 // bytes
}

// New checks the operator's options. Plugins are read when they are used, so that one can be added while the engine
// runs.
func New(options Options) (*Plugins, error) {
	switch {
	case options.Dir == "" && len(options.Schemes) == 0:
		return nil, nil //nolint:nilnil // a nil Plugins provides nothing
	case options.Dir == "":
		return nil, errors.New("--getter-plugin-scheme needs --getter-plugins: the directory the plugins are in")
	case len(options.Schemes) == 0:
		return nil, errors.New("--getter-plugins needs --getter-plugin-scheme: the URL schemes its plugins may be used for")
	}
	if found, err := os.Stat(options.Dir); err != nil || !found.IsDir() {
		return nil, fmt.Errorf("--getter-plugins names %s, which is not a directory", options.Dir)
	}
	for _, scheme := range options.Schemes {
		if !validScheme.MatchString(scheme) || slices.Contains(ours, scheme) {
			return nil, fmt.Errorf("--getter-plugin-scheme cannot be %q: it takes the scheme of a URL that is not one of %s", scheme, strings.Join(ours, ", "))
		}
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the engine cannot find itself, to run getter plugins: %w", err)
	}
	if options.Timeout == 0 {
		options.Timeout = usualTimeout
	}
	return &Plugins{options: options, program: program, turns: make(chan struct{}, atOnce)}, nil
}

// Provides tells whether the operator allows plugins for a scheme.
func (p *Plugins) Provides(scheme string) bool {
	return p != nil && slices.Contains(p.options.Schemes, strings.ToLower(scheme))
}

// Get fetches a URL whose scheme is provided for; most bounds the answer.
func (p *Plugins) Get(ctx context.Context, target *url.URL, credentials Credentials, most int64) ([]byte, error) {
	if !p.Provides(target.Scheme) {
		return nil, fault.New(enginev1.Fault_CHART_INVALID, "charts cannot be fetched with %s://: the operator allows no plugin for it", target.Scheme)
	}
	if target.User != nil {
		return nil, fault.New(enginev1.Fault_CHART_INVALID, "%s carries a user: put credentials into a Secret", shown(target))
	}
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return nil, p.explain(ctx, target, nil, credentials, ctx.Err())
	}
	told, err := json.Marshal(order{p.options.Dir, target.String(), target.Scheme, credentials.Username, credentials.Password, p.options.Timeout, most})
	if err != nil {
		return nil, err
	}
	words := &tail{}
	body, err := p.run(ctx, told, words, most)
	if err != nil {
		return nil, p.explain(ctx, target, words, credentials, err)
	}
	return body, nil
}

// errTooLarge is also the child's last word when Helm holds more of a plugin's output than could ever be taken.
var errTooLarge = errors.New("larger than is allowed")

// run starts the child and reads what it writes, up to a bound.
func (p *Plugins) run(ctx context.Context, told []byte, words io.Writer, most int64) ([]byte, error) {
	home, err := os.MkdirTemp(p.options.CacheDir, "getter-plugin-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	child := exec.CommandContext(ctx, p.program, Argument)
	child.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "TMPDIR="+home)
	child.Stdin, child.Stderr = bytes.NewReader(told), words
	child.Cancel = func() error { return endGroup(child) }
	child.WaitDelay = killGrace
	inGroup(child)
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	body, readErr := io.ReadAll(io.LimitReader(out, most+1))
	tooLarge := int64(len(body)) > most
	if tooLarge || readErr != nil {
		cancel()
	}
	err = child.Wait()
	switch {
	case tooLarge:
		return nil, errTooLarge
	case readErr != nil:
		return nil, readErr
	}
	return body, err
}

func (p *Plugins) explain(ctx context.Context, target *url.URL, words *tail, credentials Credentials, err error) error {
	switch {
	case errors.Is(err, errTooLarge), words.has(ownWords + errTooLarge.Error()):
		return fault.Wrap(enginev1.Fault_CHART_INVALID, err, "what the plugin got from %s is %v", shown(target), errTooLarge)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "the plugin for %s did not end in time", shown(target))
	case ctx.Err() != nil:
		return fault.Wrap(enginev1.Fault_CANCELLED, err, "fetching %s was cancelled", shown(target))
	}
	return fault.Wrap(enginev1.Fault_CHART_UNAVAILABLE, err, "the plugin for %s failed: %s", shown(target), words.last(credentials, err))
}

// shown is a URL fit for messages.
func shown(target *url.URL) string {
	bare := *target
	bare.User, bare.RawQuery, bare.Fragment = nil, "", ""
	return bare.String()
}

// tail keeps the end of what is written to it.
type tail struct {
	mutex sync.Mutex
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - maxWords; over > 0 {
		t.kept = slices.Delete(t.kept, 0, over)
	}
	return len(p), nil
}

func (t *tail) has(line string) bool {
	if t == nil {
		return false
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return bytes.HasSuffix(t.kept, []byte(line+"\n"))
}

var queries = regexp.MustCompile(`\?\S+`)

// ownWords begins what the child itself has to say, as every error of the engine does.
const ownWords = "engine: "

// last is the plugin's last line, or else the child's, without what should not be repeated.
func (t *tail) last(credentials Credentials, otherwise error) string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	text := otherwise.Error()
	for line := range strings.Lines(string(t.kept)) {
		line = strings.TrimSpace(line)
		own, isOwn := strings.CutPrefix(line, ownWords)
		switch {
		case line == "" || (isOwn && text != otherwise.Error()):
		case isOwn:
			text = own
		default:
			text = line
		}
	}
	if credentials.Password != "" {
		text = strings.ReplaceAll(text, credentials.Password, "***")
	}
	return queries.ReplaceAllString(text, "?***")
}
