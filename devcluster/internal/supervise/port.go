package supervise

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
)

// Below the range from which kernels take ports for outgoing connections, so that those cannot clash.
const (
	lowestPort  = 20000
	highestPort = 32000
)

var errPortTaken = errors.New("it is taken by another program")

// reservedPort is a free port that no other supervisor of this user takes before our API server does.
type reservedPort struct {
	number int
	lock   *os.File
}

// reservePort takes the port asked for, else the last one if it is still free, else any free one.
func reservePort(asked, last int) (*reservedPort, error) {
	if asked != 0 {
		port, err := tryPort(asked)
		if errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("port %d on 127.0.0.1 is taken by another program: choose another port, or none to get a free one", asked)
		}
		return port, err
	}
	if last != 0 {
		if port, err := tryPort(last); err == nil {
			return port, nil
		}
	}
	var err error
	for range 100 {
		var port *reservedPort
		if port, err = tryPort(lowestPort + rand.IntN(highestPort-lowestPort)); err == nil {
			return port, nil
		}
	}
	return nil, fmt.Errorf("found no free port on 127.0.0.1 between %d and %d: %w", lowestPort, highestPort, err)
}

func tryPort(number int) (*reservedPort, error) {
	// Always the same place, whoever's data is elsewhere for want of room.
	root, err := sharedRoot(ephemeralPlaces()[0])
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(root, fmt.Sprintf("port-%d", number)))
	if err != nil {
		return nil, errPortTaken
	}
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", number))
	port := &reservedPort{number: number, lock: lock}
	if err != nil {
		port.close()
		return nil, fmt.Errorf("%w (%w)", errPortTaken, err)
	}
	return port, listener.Close()
}

func (p *reservedPort) close() {
	_ = os.Remove(p.lock.Name())
	_ = p.lock.Close()
}
