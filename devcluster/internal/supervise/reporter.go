package supervise

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// reporter tells the parent what happens, one JSON object per line, and keeps a copy for `dev logs`.
type reporter struct {
	mutex sync.Mutex
	out   io.Writer
	log   *os.File
}

func (r *reporter) alsoTo(path string) error {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	r.log = log
	return err
}

func (r *reporter) close() {
	if r.log != nil {
		_ = r.log.Close()
	}
}

func (r *reporter) progress(text string) {
	r.say(text, map[string]any{"progress": text})
}

func (r *reporter) ready(home *home, server string) {
	r.say("ready at "+server, map[string]any{
		"ready": true, "name": home.record.Name, "server": server,
		"kubeconfig": home.record.Kubeconfig, "pid": os.Getpid(),
	})
}

// failed sends the first line as the error, and the log lines that may follow it apart.
func (r *reporter) failed(err error) {
	sentence, tail, _ := strings.Cut(err.Error(), "\n")
	r.say(err.Error(), map[string]any{"error": sentence, "log": tail})
}

// say ignores failed writes: a parent that is gone needs no report.
func (r *reporter) say(text string, message map[string]any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	line, _ := json.Marshal(message)
	_, _ = r.out.Write(append(line, '\n'))
	if r.log != nil {
		_, _ = fmt.Fprintf(r.log, "%s %s\n", time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), text)
	}
}
