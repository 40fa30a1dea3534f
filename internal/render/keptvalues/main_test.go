// SPDX-License-Identifier: Apache-2.0

package keptvalues_test

import (
	"os"
	"testing"

	"github.com/cluster-chandler/chandler/internal/render/worker"
)

func TestMain(m *testing.M) {
	worker.RunIfAsked()
	os.Exit(m.Run())
}
