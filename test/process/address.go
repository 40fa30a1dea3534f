// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// FreeAddress returns an address of loopback at which no program listens. Its port is below those that the system gives
// to outgoing connections and to listeners without one. No other caller in this process gets it. So nothing takes it
// before the program for which it is does.
func FreeAddress() (string, error) {
	for range lastPort - firstPort {
		port := firstPort + int(nextPort.Add(1)%(lastPort-firstPort))
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if l, err := net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			l.Close()
			return address, nil
		}
	}
	return "", errors.New("no port is free")
}

const firstPort, lastPort = 20000, 32000

// nextPort begins anywhere, as the tests of several packages run at once.
var nextPort = func() *atomic.Uint32 {
	n := &atomic.Uint32{}
	n.Store(rand.Uint32N(lastPort - firstPort))
	return n
}()
