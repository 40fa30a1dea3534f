// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/netip"
	"syscall"

	"github.com/cluster-chandler/chandler/internal/egress"
)

// refusedAddress says what an address is if no kubeconfig may name it, and is
// empty otherwise.
func refusedAddress(addr netip.Addr, policy KubeconfigPolicy) string {
	return egress.RefusedAddress(addr, policy.AllowLoopback)
}

// errAddressRefused is returned for a host name that resolves to an address
// which a kubeconfig may not name.
var errAddressRefused = egress.ErrAddressRefused

// dialControl checks the address that is about to be dialled.
func dialControl(policy KubeconfigPolicy) func(network, address string, _ syscall.RawConn) error {
	return egress.DialControl(policy.AllowLoopback)
}
