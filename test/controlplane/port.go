// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// port is a TCP port of the loopback interface that no one else can get, but on which the API server can listen.
//
// A socket that is bound but does not listen holds it, with SO_REUSEPORT as the API server has with
// --permit-port-sharing. So the port survives a stop of the API server, connections to it are then refused, and nothing
// can take it between its choice and its use.
type port struct {
	number int
	fd     int
}

func reservePort() (*port, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	p := &port{fd: fd}
	if err := p.bind(); err != nil {
		p.release()
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	return p, nil
}

func (p *port) bind() error {
	if err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(p.fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	address, err := unix.Getsockname(p.fd)
	if err != nil {
		return err
	}
	p.number = address.(*unix.SockaddrInet4).Port
	return nil
}

func (p *port) release() {
	if p != nil {
		_ = unix.Close(p.fd)
	}
}
