package supervise

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// Below the range from which kernels take ports for outgoing connections, so that those cannot clash.
const (
	lowestPort  = 20000
	highestPort = 32000
)

var errPortTaken = errors.New("is taken by another program: choose another port, or none to get a free one")

// reservedPort is a free port that no other supervisor of this user takes before our API server does.
type reservedPort struct {
	number int
	lock   *os.File
}

// reservePort takes the port asked for, else the last one if it is still free, else any free one.
func reservePort(asked, last int) (*reservedPort, error) {
	if asked != 0 {
		return tryPort(asked)
	}
	if last != 0 {
		if port, err := tryPort(last); err == nil {
			return port, nil
		}
	}
	for range 100 {
		port, err := tryPort(lowestPort + rand.IntN(highestPort-lowestPort))
		if !errors.Is(err, errPortTaken) {
			return port, err
		}
	}
	return nil, fmt.Errorf("found no free port on 127.0.0.1 between %d and %d", lowestPort, highestPort)
}

func tryPort(number int) (*reservedPort, error) {
	// Always the same place, whoever's data is elsewhere for want of room.
	place := ephemeralPlaces()[0]
	root, err := sharedRoot(place)
	if err != nil {
		return nil, &placedError{place, err}
	}
	lock, err := lockFile(filepath.Join(root, fmt.Sprintf("port-%d", number)))
	var held *heldError
	if errors.As(err, &held) {
		return nil, portRefused(number, errPortTaken)
	}
	if err != nil {
		return nil, &placedError{place, err}
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", number))
	port := &reservedPort{number: number, lock: lock}
	if err != nil {
		port.close()
		return nil, portRefused(number, err)
	}
	return port, listener.Close()
}

// portRefused says why a port cannot be ours. No error of the system is wrapped: explain would take a missing
// right for one to write to a directory.
func portRefused(number int, err error) error {
	var listening *net.OpError
	switch {
	case errors.Is(err, errPortTaken), errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d on 127.0.0.1 %w", number, errPortTaken)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("port %d on 127.0.0.1 is not for this user (permission denied): choose one from 1024 up, or none to get a free one", number)
	case errors.As(err, &listening):
		err = listening.Err // without the address, which is named before
	}
	return fmt.Errorf("cannot listen on port %d on 127.0.0.1: %v", number, err)
}

func (p *reservedPort) close() {
	_ = os.Remove(p.lock.Name())
	_ = p.lock.Close()
}
