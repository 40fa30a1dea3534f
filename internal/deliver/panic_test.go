// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// through has the target's requests go through a transport.
func (e *env) through(transport func(next http.RoundTripper) roundTrip) deliver.Target {
	e.t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.ContentType = "application/json" // so that answers can be changed
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport(next) })
	target := e.target
	var err error
	target.Client, err = client.New(cfg, client.Options{})
	e.Expect(err).NotTo(HaveOccurred())
	target.Dynamic, err = dynamic.NewForConfig(cfg)
	e.Expect(err).NotTo(HaveOccurred())
	return target
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// rewritten is an answer whose body was changed.
func rewritten(resp *http.Response, change func(object map[string]any)) (*http.Response, error) {
	defer resp.Body.Close()
	object := map[string]any{}
	if err := json.NewDecoder(resp.Body).Decode(&object); err != nil {
		return nil, err
	}
	change(object)
	data, err := json.Marshal(object)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	resp.Header.Del("Content-Length")
	return resp, err
}

// TestPanicIsOneAddonsFailure panics in each goroutine that handles what a cluster
// answers. The add-on says so, another one is installed, and the first one is as well
// once nothing panics any more.
func TestPanicIsOneAddonsFailure(t *testing.T) {
	for name, isPanicking := range map[string]func(r *http.Request) bool{
		"in the call": func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets")
		},
		"while objects are applied": func(r *http.Request) bool { return r.Method == http.MethodPatch },
		"in a watch":                func(r *http.Request) bool { return r.URL.Query().Get("watch") != "" },
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			target := e.through(func(next http.RoundTripper) roundTrip {
				return func(r *http.Request) (*http.Response, error) {
					if isPanicking(r) {
						panic("as if an answer led to it")
					}
					return next.RoundTrip(r)
				}
			})
			want := gated(e, ns)
			e.ctx = logr.NewContext(e.ctx, logr.Discard())
			o := e.drive(func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, target, want) },
				func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonFailed })
			e.Expect(o.Reason).To(Equal(deliver.ReasonInternalError))
			e.Expect(o.RetryAfter).To(BeNumerically(">", 0))

			other := e.want(ns, chart{version: "1", manifest: configMap("b", "x")})
			other.Name = "other"
			e.install(other)
			e.clock.step(11 * time.Second)
			e.ensure(want)
			open(e, ns)
			e.install(want)
		})
	}
}

// TestAnswerWithoutUIDIsRefused gets answers to the write of the record that no API
// server gives.
func TestAnswerWithoutUIDIsRefused(t *testing.T) {
	for name, change := range map[string]func(metadata map[string]any){
		"no uid":       func(metadata map[string]any) { delete(metadata, "uid") },
		"another name": func(metadata map[string]any) { metadata["name"] = "other" },
		"no labels":    func(metadata map[string]any) { delete(metadata, "labels") },
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			target := e.through(func(next http.RoundTripper) roundTrip {
				return func(r *http.Request) (*http.Response, error) {
					resp, err := next.RoundTrip(r)
					if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/secrets") {
						return resp, err
					}
					return rewritten(resp, func(object map[string]any) { change(object["metadata"].(map[string]any)) })
				}
			})
			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
			o, err := e.d.Ensure(e.ctx, target, want)
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
			e.Expect(o.Reason).To(Equal(deliver.ReasonAnswerInvalid))
			e.Expect(o.Message).To(ContainSubstring(ns + "/sh.helm.release.v1.demo.v1"))
			e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil(), "nothing is applied that no record is known of")
			e.clock.step(11 * time.Second)
			e.install(want)
		})
	}
}
