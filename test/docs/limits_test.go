// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// limitTests has a test of each limit on what a workload cluster answers, by the row of docs/security.md: it is in a package, and runs
// for API servers at the root and below a path.
var limitTests = map[string]struct{ pkg, test string }{
	"an object, an event of a watch, a page of a list that is read in pages": {"fleet", "TestLimitsBelowAPath"},
	"a list with all of its pages":                                           {"fleet", "TestLimitsBelowAPath"},
	"a watch":                                                                {"fleet", "TestWatchesThatSendTooMuch"},
	"kinds, and API versions":                                                {"fleet", "TestDiscoveryBelowAPath"},
	"all discovery documents":                                                {"fleet", "TestDiscoveryBelowAPath"},
	"any answer":                                                             {"fleet", "TestListsThatHang"},
	"all answers that are read at the same time, or used":                    {"fleet", "TestFullMemory"},
	"metadata of release records":                                            {"internal/fleetwatch", "TestOwnRecordsStayAtEachPath"},
	"metadata of add-ons' objects":                                           {"internal/fleetwatch", "TestObjectsOfOneClusterAreLimited"},
	"the text of a refusal":                                                  {"fleet", "TestRefusalsBelowAPath"},
}

// decodedLimits are those of what is made of answers, whose address nobody knows any more.
var decodedLimits = map[string]struct{ pkg, test string }{
	"release records and objects of add-ons that are worked on": {"internal/deliver", "TestAddonIsTooLarge"},
	"records of add-ons that are waited for":                    {"internal/deliver", "TestValuesCountInWhatIsKept"},
}

// TestLimitsOfClusters compares the table of docs/security.md with the tests of its rows.
func TestLimitsOfClusters(t *testing.T) {
	rows := mustSection(t, "docs/security.md", "## What it doesn't trust").Rows("of a cluster")
	must.Equal(t, len(limitTests)+len(decodedLimits), len(rows), "rows")
	for _, row := range rows {
		is, ofAnswers := limitTests[row.Text(0)]
		if !ofAnswers {
			is = decodedLimits[row.Text(0)]
		}
		body := testIn(t, is.pkg, is.test)
		if body == "" {
			t.Errorf("%q has no test %s in %q", row.Text(0), is.test, is.pkg)
		}
		if ofAnswers && !strings.Contains(body, "aths {") { // range paths, or connection.Paths
			t.Errorf("%s, of %q, isn't for API servers below a path and at the root", is.test, row.Text(0))
		}
	}
}

// testIn returns the text of a test, "" if the package doesn't have it.
func testIn(t *testing.T, pkg, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	must.Succeed(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Succeed(t, err)
		if _, after, found := strings.Cut(string(data), "\nfunc "+name+"("); found {
			body, _, _ := strings.Cut(after, "\n}\n")
			return body
		}
	}
	return ""
}
