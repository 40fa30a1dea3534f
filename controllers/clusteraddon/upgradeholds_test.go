// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/series"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// However many names of add-ons tenants make up, the series of holds are limited.
func TestSeriesOfHoldsAreLimited(t *testing.T) {
	point := addonsv1.UpgradeBeforeControlPlane
	held := &addonsv1.ClusterUpgrade{Gates: []addonsv1.UpgradeGate{{Point: point, State: addonsv1.GateWaiting}}}
	for i := range 2 * maxHolders {
		countHolds(nil, held, upgrade.Causes{Waiting: []upgrade.Cause{{Point: point, Addon: fmt.Sprint("addon-", i)}}}, time.Now())
	}
	if got := testutil.CollectAndCount(upgradeHolds); got > maxHolders+1 {
		t.Errorf("%d series", got)
	}
	if got := testutil.ToFloat64(upgradeHolds.WithLabelValues(string(point), series.Other)); got < maxHolders {
		t.Errorf("%v holds of others", got)
	}
}
