// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// forge asks the hooks of a Cluster that is held, as somebody who has a certificate as the core manager's. That changes
// nothing. Nobody else is told anything.
func (tn *tenant) forge(cluster string) {
	tn.Helper()
	g := NewWithT(tn.T)
	versions := func() (all []string) {
		for _, obj := range []client.Object{&clusterv1.Cluster{}, &addonsv1.ClusterAddon{}} {
			g.Expect(world.Get(tn.Context(), key(tn.at(cluster)), obj)).To(Succeed())
			all = append(all, fmt.Sprint(obj.GetGeneration(), obj.GetAnnotations()))
			if ca, ok := obj.(*addonsv1.ClusterAddon); ok {
				all = append(all, ca.ResourceVersion)
			}
		}
		return all
	}
	before := versions()
	pool := x509.NewCertPool()
	g.Expect(pool.AppendCertsFromPEM(world.Authority.Certificate)).To(BeTrue())
	type answer struct {
		status int
		text   string
	}
	pair, err := world.Authority.Client("mallory")
	g.Expect(err).NotTo(HaveOccurred())
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	g.Expect(err).NotTo(HaveOccurred())
	certified := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	server := &http.Client{Transport: &http.Transport{TLSClientConfig: certified}}
	ask := func(body string) answer {
		tn.Helper()
		response, err := server.Post(tn.address+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/before-cluster-upgrade", "application/json", strings.NewReader(body))
		g.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(response.Body)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		return answer{response.StatusCode, string(text)}
	}
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	response, err := stranger.Post(tn.address+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/before-cluster-upgrade", "application/json", strings.NewReader("{}"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusUnauthorized))
	for name, tc := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"nothing":           {"", http.StatusBadRequest, ""},
		"no JSON":           {"<a/>", http.StatusBadRequest, ""},
		"too large":         {`{"cluster": "` + strings.Repeat("x", 1<<20) + `"}`, http.StatusRequestEntityTooLarge, ""},
		"no Cluster":        {`{}`, http.StatusOK, `"retryAfterSeconds":0`},
		"a Cluster of none": {`{"cluster": {"metadata": {"namespace": "x", "name": "../y"}}}`, http.StatusOK, `"retryAfterSeconds":0`},
		"this one":          {fmt.Sprintf(`{"cluster": {"metadata": {"namespace": %q, "name": %q}, "spec": {"topology": {"version": %q}}}}`, tn.namespace, cluster, world.newer), http.StatusOK, `"retryAfterSeconds":2`},
		"this one, skipped": {fmt.Sprintf(`{"cluster": {"metadata": {"namespace": %q, "name": %q, "annotations": {%q: "v9"}}, "spec": {"topology": {"version": "v9"}}}}`,
			tn.namespace, cluster, addonsv1.SkipGatesAnnotation), http.StatusOK, `"retryAfterSeconds":0`},
	} {
		is := ask(tc.body)
		g.Expect(is.status).To(Equal(tc.status), "%s: %s", name, is.text)
		g.Expect(is.text).To(ContainSubstring(tc.says), name)
	}
	texts := sets.New[string]()
	for range 100 {
		texts.Insert(ask(fmt.Sprintf(`{"cluster": {"metadata": {"namespace": %q, "name": %q}, "spec": {"topology": {"version": %q}}}}`, tn.namespace, cluster, world.newer)).text)
	}
	g.Expect(texts).To(HaveLen(1), "Cluster API writes each text into the Cluster")
	g.Expect(versions()).To(Equal(before))
}
