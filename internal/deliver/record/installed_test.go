// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

func TestInstalled(t *testing.T) {
	for statuses, want := range map[string]bool{
		"": false, "failed": false, "failed superseded": true, "deployed": true, "pending-upgrade deployed": true,
		"uninstalled deployed": false, "failed uninstalling superseded": false,
	} {
		var records []record.Summary
		for _, s := range strings.Fields(statuses) {
			records = append(records, record.Summary{Status: s})
		}
		if got := record.Installed(records); got != want {
			t.Errorf("%q: %t", statuses, got)
		}
	}
}
