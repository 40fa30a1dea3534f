// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
)

// metadataServices are addresses outside the link-local ranges at which clouds
// hand out credentials of the node, or of a pod.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS over IPv6
	netip.MustParseAddr("fd00:ec2::23"),    // AWS over IPv6, for pods
	netip.MustParseAddr("fd20:ce::254"),    // Google over IPv6
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure WireServer
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

// carriers are IPv6 addresses that lead to the IPv4 address within them, which
// starts at that byte.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // NAT64 of a network's own, as it is laid out mostly
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4
	{netip.MustParsePrefix("::/96"), 12},          // as IPv4 once was to be written
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
	if carried, ok := carriedBy(addr); ok {
		return RefusedAddress(carried, allowLoopback)
	}
	return ""
}

// carriedBy is the IPv4 address that an IPv6 address leads to.
func carriedBy(addr netip.Addr) (netip.Addr, bool) {
	for _, carrier := range carriers {
		if carrier.prefix.Contains(addr) {
			bytes := addr.As16()
			return netip.AddrFrom4([4]byte(bytes[carrier.at : carrier.at+4])), true
		}
	}
	return netip.Addr{}, false
}

// refusedName tells whether a host is written as an address that nobody may name. A
// proxy would be asked for it, and is free to go there. What ends in a number is no
// name, but some take it for an address: 2852039166 is 169.254.169.254 to them.
func refusedName(host string, allowLoopback bool) bool {
	host = strings.TrimSuffix(host, ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return RefusedAddress(addr, allowLoopback) != ""
	}
	last := strings.ToLower(host[strings.LastIndexByte(host, '.')+1:])
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
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
