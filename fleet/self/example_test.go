// SPDX-License-Identifier: Apache-2.0

package self_test

import (
	"testing"

	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/fleet/internal/controlplane"
	"github.com/cluster-chandler/chandler/fleet/self"
)

func TestMain(m *testing.M) { controlplane.Main(m) }

// The cluster that the manager runs for is one of the fleet, with the manager's own credentials.
func Example() {
	provider := fleet.NewProvider(fleet.Options{Sources: []fleet.Source{self.Source{}}})
	controlplane.Run(provider, nil, "self#local")
	// Output: self#local: Connected
}
