// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net/netip"
	"syscall"
)

// metadataServices are addresses outside the link-local ranges at which clouds
// hand out credentials of the node.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS over IPv6
	netip.MustParseAddr("fd20:ce::254"),    // Google over IPv6
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure WireServer
}

// ErrAddressRefused is returned for a host name that resolves to a refused address.
var ErrAddressRefused = errors.New("address refused")

// RefusedAddress says what an address is if nobody but the administrator may
// name it, and is empty otherwise.
func RefusedAddress(addr netip.Addr, allowLoopback bool) string {
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsLoopback():
		if allowLoopback {
			return ""
		}
		return "a loopback address"
	case addr.IsUnspecified(), addr.Is4() && addr.As4()[0] == 0: // 0.0.0.0/8 reaches this host, too
		return "an unspecified address"
	case addr.IsLinkLocalUnicast():
		return "a link-local address"
	case addr.IsMulticast(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast or broadcast address"
	}
	for _, service := range metadataServices {
		if addr == service {
			return "the address of a cloud's metadata service"
		}
	}
	return ""
}

// DialControl checks the address that is about to be dialled. It sees what the
// name resolved to, so a name can't be moved after a check.
func DialControl(allowLoopback bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		addrPort, err := netip.ParseAddrPort(address)
		if err != nil || RefusedAddress(addrPort.Addr(), allowLoopback) != "" {
			return ErrAddressRefused
		}
		return nil
	}
}
