package supervise

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// componentError says that a component ended although nobody asked it to.
type componentError struct {
	component string
	reason    string
	tail      []string
}

func (e *componentError) Error() string {
	return fmt.Sprintf("%s stopped (%s); the end of its log:\n%s", e.component, e.reason, strings.Join(e.tail, "\n"))
}

// lastWords are the last lines of a log, without the stack that Go prints after a panic: it is long, and
// the reason stands before it.
func lastWords(log string) []string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if end := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "panic: ") }); end >= 0 {
		lines = lines[:end+1]
	}
	return lines[max(0, len(lines)-10):]
}

// placedError says where something went wrong, if that is not in the cluster's directory.
type placedError struct {
	place string
	err   error
}

func (e *placedError) Error() string { return e.err.Error() }
func (e *placedError) Unwrap() error { return e.err }

// explain turns the causes a user can do something about into one sentence that says what.
func explain(err error, dir string) error {
	var placed *placedError
	if errors.As(err, &placed) {
		dir = placed.place
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is full at %s: free some space and start again", dir)
	}
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("cannot write to %s: %w", dir, err)
	}
	var failed *componentError
	if !errors.As(err, &failed) {
		return err
	}
	log := strings.Join(failed.tail, "\n")
	switch {
	case strings.Contains(log, "no space left on device"):
		return fmt.Errorf("%s stopped because the disk is full at %s: free some space and start again", failed.component, dir)
	case strings.Contains(log, "address already in use"):
		return fmt.Errorf("%s stopped because its port is taken by another program: start again to get another one", failed.component)
	}
	return err
}
