package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// maxSocketPath is the shortest limit among the systems we run on (macOS; Linux has 108).
const maxSocketPath = 104

// listen opens the socket so that nobody but this user can ever connect to it.
func listen(socket string) (net.Listener, error) {
	switch {
	case socket == "":
		return nil, errors.New("--socket is needed: the path of the Unix socket to serve on")
	case len(socket) >= maxSocketPath:
		return nil, fmt.Errorf("the socket path has %d bytes, and systems allow less than %d: use a shorter directory", len(socket), maxSocketPath)
	}
	dir := filepath.Dir(socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the socket's directory cannot be made: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("the socket's directory cannot be read: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("the socket's directory has mode %04o: it must be private (0700)", mode)
	}
	// The mask makes the socket private from its first moment; chmod would leave a gap.
	old := syscall.Umask(0o177)
	listener, err := net.Listen("unix", socket)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("the socket cannot be opened: %w", err)
	}
	return listener, nil
}
