package supervise

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
)

// Below the range from which kernels take ports for outgoing connections, so that those cannot clash.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// reservedPort holds a port without listening on it, until the API server shares it by SO_REUSEPORT.
type reservedPort struct {
	number     int
	descriptor int
}

// reservePort takes the port asked for, else the last one if it is still free, else any free one.
func reservePort(asked, last int) (*reservedPort, error) {
	if asked != 0 {
		port, err := bindPort(asked)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("port %d on 127.0.0.1 is taken by another program: choose another port, or none to get a free one", asked)
		}
		return port, err
	}
	if last != 0 {
		if port, err := bindPort(last); err == nil {
			return port, nil
		}
	}
	var err error
	for range 100 {
		var port *reservedPort
		if port, err = bindPort(lowestPort + rand.IntN(highestPort-lowestPort)); err == nil {
			return port, nil
		}
	}
	return nil, fmt.Errorf("found no free port on 127.0.0.1 between %d and %d: %w", lowestPort, highestPort, err)
}

func bindPort(number int) (*reservedPort, error) {
	descriptor, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(descriptor)
	port := &reservedPort{number: number, descriptor: descriptor}
	// SO_REUSEADDR: connections of the last run, in TIME_WAIT, are no clash. A listener still is.
	err = errors.Join(
		syscall.SetsockoptInt(descriptor, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(descriptor, &syscall.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}}),
		// Only after binding: before, two supervisors could share a port.
		syscall.SetsockoptInt(descriptor, syscall.SOL_SOCKET, soReusePort, 1),
	)
	if err != nil {
		port.close()
		return nil, err
	}
	return port, nil
}

func (p *reservedPort) close() { _ = syscall.Close(p.descriptor) }
