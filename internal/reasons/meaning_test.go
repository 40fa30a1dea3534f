// SPDX-License-Identifier: Apache-2.0

package reasons_test

import (
	"slices"
	"testing"

	"github.com/cluster-chandler/chandler/internal/reasons"
)

func TestMeaningOfEachReason(t *testing.T) {
	for _, row := range reasons.Table {
		if meaning := reasons.Meaning(row.Name); meaning == "" || slices.Contains([]rune(meaning), '`') {
			t.Errorf("%s: %q", row.Name, meaning)
		}
	}
	if got := reasons.Meaning("NoSuchReason"); got != "" {
		t.Error(got)
	}
}
