// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// stopped holds the first write to a path until it may go on, as if its process had been stopped.
type stopped struct {
	next         http.RoundTripper
	path         string
	once         sync.Once
	reached, end chan struct{}
}

func (s *stopped) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, s.path) && !strings.Contains(r.URL.RawQuery, "dryRun") {
		s.once.Do(func() { close(s.reached) })
		<-s.end
	}
	return s.next.RoundTrip(r)
}

// TestLateWriter has a previous leader, which was stopped in the middle of a write, put an older value over a newer one.
func TestLateWriter(t *testing.T) {
	e, ns := beside(t)
	of := func(version string) deliver.Desired {
		return e.want(ns, chart{version: version, manifest: configMap("x", version)})
	}
	value := func() any { return e.get("v1", "ConfigMap", ns, "x").Object["data"].(map[string]any)["key"] }
	e.install(of("1"))
	s := &stopped{path: "/configmaps/x", reached: make(chan struct{}), end: make(chan struct{})}
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { s.next = rt; return s })
	c, err := client.New(cfg, client.Options{})
	e.Expect(err).NotTo(HaveOccurred())
	target, late := e.target, of("2")
	target.Client, late.Proof = c, e.proofs.of(late.Release)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = deliver.New(deliver.Options{}).Ensure(context.Background(), target, late)
	}()
	<-s.reached
	e.install(of("3")) // the new leader
	close(s.end)
	<-done
	e.Expect(value()).To(Equal("2"), "nobody can hold it up")
	found := e.look(deliver.Repair{Release: late.Release, Values: true})
	e.Expect(changesOf(found)).To(Equal([]string{"x .data.key"}))
	e.Expect(value()).To(Equal("3"))
	e.Expect(changesOf(e.look(deliver.Repair{Release: late.Release, Values: true}))).To(BeEmpty())
}
