package getterplugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/metrics"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/getter"
)

const (
	memorySlack = 64 << 20
	memoryLook  = 20 * time.Millisecond
)

// Child runs one plugin: the order comes on in, what it fetched goes to out. The caller exits with its error.
func Child(in io.Reader, out io.Writer) error {
	var told order
	if err := json.NewDecoder(in).Decode(&told); err != nil {
		return fmt.Errorf("the order cannot be read: %w", err)
	}
	time.AfterFunc(told.Timeout+killGrace, endOwnGroup)
	go watchMemory(told.Most)
	settings := cli.New()
	settings.PluginsDirectory = told.Dir
	// Helm gives its own getters first; those are never asked for here.
	fetch, err := getter.All(settings).ByScheme(strings.ToLower(told.Scheme))
	if err != nil {
		return fmt.Errorf("no plugin provides the scheme %s", told.Scheme)
	}
	got, err := fetch.Get(told.URL, getter.WithBasicAuth(told.Username, told.Password), getter.WithURL(told.URL))
	if err != nil {
		// Helm prints the whole plugin around the reason.
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return err
	}
	_, err = out.Write(got.Bytes())
	return err
}

// watchMemory ends everything when Helm, which takes in whatever a plugin sends, has taken in far too much.
func watchMemory(most int64) {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	limit := heap[0].Value.Uint64() + 4*uint64(most) + memorySlack //nolint:gosec // a bound of ours, positive
	for range time.Tick(memoryLook) {
		if metrics.Read(heap); heap[0].Value.Uint64() > limit {
			fmt.Fprintln(os.Stderr, ownWords+errTooLarge.Error())
			endOwnGroup()
		}
	}
}
