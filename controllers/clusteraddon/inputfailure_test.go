// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// The failures of several add-ons stand side by side in the stack's conditions: each one
// names its add-on, whether the digest couldn't be had or the archive.
func TestFailuresOfSourcesNameTheAddon(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("\x1f\x8bno archive"))
	}))
	t.Cleanup(server.Close)
	sources, err := source.New(source.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	at := &addonsv1.HTTPSource{URL: server.URL + "/web.tgz", Digest: "sha256:" + strings.Repeat("a", 64), PlainHTTP: ptr.To(true)}
	a := &addon{Addon: addonsv1.Addon{Name: "web", Chart: addonsv1.ChartSource{HTTP: at}}}
	p := &pass{Reconciler: &Reconciler{Sources: sources}, ca: &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}}

	in := &inputs{chart: p.reference(a), artifact: at.Digest}
	_, err = p.desired(a, in).Render(context.Background(), deliver.RenderInput{})
	failed, ok := err.(*failure.Error) //nolint:errorlint // as the deliverer words it
	if want := "addons[web].chart.http: " + server.URL + "/web.tgz@"; !ok || failed.Reason != failure.DigestMismatch || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("of the archive: %v, want it to begin with %s", err, want)
	}
	if !strings.HasSuffix(err.Error(), "correct http.digest or url") {
		t.Errorf("%v names no way out", err)
	}

	lost := &addon{Addon: addonsv1.Addon{Name: "dns", Chart: addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: "charts"}}}}
	_, err = sources.Resolve(context.Background(), p.reference(lost))
	if reason, message, _ := describeInput(err, lost); reason != failure.SourceDisabled || !strings.HasPrefix(message, "addons[dns].chart.configMap: ConfigMap team/charts") {
		t.Errorf("of the digest: %s: %s", reason, message)
	}
}
