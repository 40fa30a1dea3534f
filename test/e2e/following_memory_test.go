// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// One stack follows many charts, of which each has as many tags as may be, of as many
// characters: the manager's memory is bounded, and all lists land.
// It isn't parallel: beside others a source would count as slow.
func TestMemoryOfManyLists(t *testing.T) {
	long.Test(t)
	tn := newTenant(t)
	tags := make([]string, 0, 99_000)
	for i := range 99_000 {
		tags = append(tags, fmt.Sprintf("1.%d.0-%s", i, strings.Repeat("a", 100)))
	}
	page, err := json.Marshal(map[string]any{"tags": tags})
	must.Succeed(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return // it is a registry
		}
		if !strings.HasSuffix(r.URL.Path, "/tags/list") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(page[:len(page)-16])
		_ = http.NewResponseController(w).Flush()
		time.Sleep(200 * time.Millisecond)
		_, _ = w.Write(page[len(page)-16:])
	}))
	t.Cleanup(server.Close)
	m := tn.startManager()
	var addons []addonsv1.Addon
	for i := range 24 {
		addons = append(addons, tn.addon(fmt.Sprintf("chart-%d", i), "", func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{Version: ">=0-0", OCI: &addonsv1.OCISource{
				URL: fmt.Sprintf("oci://%s/%d/demo", strings.TrimPrefix(server.URL, "http://"), i), PlainHTTP: ptr.To(true),
			}}
		}))
	}
	begun := time.Now()
	tn.makeStack("many", labels("env=none"), addons...)
	most := 0
	tn.awaitStatus("many", "all lists landed, and what is newest there is asked for", func(*addonsv1.AddonStack) error {
		most = max(most, memoryOf(t, m))
		return nil
	}, func(s *addonsv1.AddonStack) error {
		if err := checkCondition(s, addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "", "1.98999.0-"); err != nil {
			return err
		}
		if len(s.Status.Sources) != len(addons) {
			return fmt.Errorf("%d sources", len(s.Status.Sources))
		}
		for _, source := range s.Status.Sources {
			if !strings.Contains(source.Conditions[0].Message, "the registry has no tag") {
				return fmt.Errorf("%s: %s", source.Addon, source.Conditions[0].Message)
			}
		}
		return nil
	})
	t.Logf("the lists of 10 MiB took %s, and %d MiB at most", time.Since(begun).Round(time.Second), most)
	// 96 MiB of answers, what they are parsed to, and as much garbage: 326 MiB for 24 lists, 348 for 48.
	if most > 450 {
		t.Errorf("it takes %d MiB", most)
	}
}
