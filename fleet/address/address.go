// SPDX-License-Identifier: Apache-2.0

// Package address says which addresses nobody but an administrator may name: those that lead to
// this host, to its network segment, or to a cloud's metadata service.
package address

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/net/idna"
)

// metadataServices are addresses outside the link-local ranges at which clouds
// hand out credentials of the node, or of a pod.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // AWS over IPv6
	netip.MustParseAddr("fd00:ec2::23"),    // AWS over IPv6, for pods
	netip.MustParseAddr("fd20:ce::254"),    // Google over IPv6
	netip.MustParseAddr("fd00:42::42"),     // Scaleway over IPv6
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure WireServer
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

// carriers are IPv6 addresses that lead to an IPv4 address within them. Each of at says
// which bytes that may be; it is written inverted if flip is set.
var carriers = []struct {
	prefix netip.Prefix
	at     [][4]int
	flip   byte
}{
	{netip.MustParsePrefix("64:ff9b::/96"), lastBytes, 0}, // NAT64
	// NAT64 of a network's own: whether it is a /96, /48, /56 or /64 doesn't show (RFC 6052).
	{netip.MustParsePrefix("64:ff9b:1::/48"), [][4]int{{12, 13, 14, 15}, {6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}}, 0},
	{netip.MustParsePrefix("2002::/16"), [][4]int{{2, 3, 4, 5}}, 0}, // 6to4
	{netip.MustParsePrefix("2001::/32"), [][4]int{{4, 5, 6, 7}}, 0}, // Teredo: the server
	{netip.MustParsePrefix("2001::/32"), lastBytes, 0xff},           // Teredo: the client
	{netip.MustParsePrefix("::ffff:0:0:0/96"), lastBytes, 0},        // SIIT
	{netip.MustParsePrefix("::/96"), lastBytes, 0},                  // as IPv4 once was to be written
}

var lastBytes = [][4]int{{12, 13, 14, 15}}

// ErrRefused is returned for a host name that resolves to a refused address.
var ErrRefused = errors.New("address refused")

// Refused says what an address is if nobody but the administrator may
// name it, and is empty otherwise.
func Refused(addr netip.Addr, allowLoopback bool) string {
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
	case slices.Contains(metadataServices, addr):
		return "the address of a cloud's metadata service"
	}
	for _, carried := range carriedBy(addr) {
		if refused := Refused(carried, allowLoopback); refused != "" {
			return refused
		}
	}
	return ""
}

// carriedBy returns the IPv4 addresses that an IPv6 address may lead to. If there are several
// readings, a reading with zeros where another has the address doesn't count.
func carriedBy(addr netip.Addr) []netip.Addr {
	if !addr.Is6() {
		return nil
	}
	bytes := addr.As16()
	var all []netip.Addr
	for _, carrier := range carriers {
		if !carrier.prefix.Contains(addr) {
			continue
		}
		for _, at := range carrier.at {
			var four [4]byte
			for i, from := range at {
				four[i] = bytes[from] ^ carrier.flip
			}
			all = append(all, netip.AddrFrom4(four))
		}
	}
	if id := binary.BigEndian.Uint32(bytes[8:]); id == 0x00005efe || id == 0x02005efe { // ISATAP, in any network
		all = append(all, netip.AddrFrom4([4]byte(bytes[12:])))
	}
	told := slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return a.As4()[0] == 0 })
	if len(told) == 0 {
		return all
	}
	return told
}

// RefusedName reports whether a host is written as an address that nobody may name. A
// proxy would be asked for it, and is free to go there. A host that ends in a number is no name,
// but some clients take it for an address: 2852039166 is 169.254.169.254 to them. Digits and dots of other scripts are
// those of ASCII, as net/http reads them (Unicode Technical Standard 46).
func RefusedName(host string, allowLoopback bool) bool {
	if inASCII, err := idna.Lookup.ToASCII(host); err == nil {
		host = inASCII
	}
	host = strings.TrimSuffix(host, ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return Refused(addr, allowLoopback) != ""
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
		if err != nil || Refused(addrPort.Addr(), allowLoopback) != "" {
			return ErrRefused
		}
		return nil
	}
}
