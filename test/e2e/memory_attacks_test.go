// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/fleettest"
	"github.com/cluster-chandler/chandler/test/must"
)

// memoryAttacks are ways in which a tenant, or the owner of one of its clusters, tries to take all memory of the manager. Names of
// objects begin with that of the attack. The first one waits until the manager has followed each of its steps.
var memoryAttacks = []struct {
	name  string
	begin func(tn *tenant)
}{
	{"values", (*tenant).attackByValues},
	{"aliases", (*tenant).attackByAliases},
	{"charts", (*tenant).attackByCharts},
	{"endless", func(tn *tenant) { tn.attackByDiscovery("endless", "/c1", 1, 300) }},
	{"indexes", (*tenant).attackByIndexes},
	{"kinds", func(tn *tenant) { tn.attackByDiscovery("kinds", "", 20, 8) }},
	{"lists", (*tenant).attackByLists},
}

// attackByIndexes has one AddonStack name 64 Helm repositories, whose indexes have 31 MiB each.
func (tn *tenant) attackByIndexes() {
	index := []byte("entries:\n  a: []\njunk: '" + strings.Repeat(strings.Repeat("x ", 500)+"\n ", 31<<10) + "'\n")
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		different := fmt.Sprintf("# %s\n", r.URL.Path)
		w.Header().Set("Content-Length", fmt.Sprint(len(different)+len(index)))
		_, _ = io.WriteString(w, different)
		_, _ = w.Write(index)
	}))
	tn.root.Cleanup(host.Close)
	var addons []addonsv1.Addon
	for i := range 64 {
		addons = append(addons, addonsv1.Addon{Name: fmt.Sprint("a", i), Namespace: tn.namespace, Chart: addonsv1.ChartSource{
			Version: "1.0.0", Helm: &addonsv1.HelmSource{URL: fmt.Sprintf("%s/r%d", host.URL, i), Chart: "a", PlainHTTP: ptr.To(true)},
		}})
	}
	tn.makeStack("indexes", labels("who=indexes"), addons...)
	tn.makeHostile("indexes", 1, "", func(*http.Request) http.HandlerFunc { return nil })
}

// attackByDiscovery has clusters say that they have so many groups of 13,500 kinds each.
func (tn *tenant) attackByDiscovery(name, below string, clusters, groups int) {
	tn.makeStack(name, labels("who="+name), tn.small("settings"))
	tn.makeHostile(name, clusters, below, func(r *http.Request) http.HandlerFunc {
		write := func(text string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
		}
		switch {
		case r.URL.Path == "/api":
			return write(`{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/api/v1":
			return write(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[` +
				`{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","get","list","patch","update","watch"]}]}`)
		case r.URL.Path == "/apis":
			var list []string
			for i := range groups {
				list = append(list, fmt.Sprintf(`{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]}`, i, i))
			}
			return write(`{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Join(list, ",") + `]}`)
		case strings.HasPrefix(r.URL.Path, "/apis/g"):
			return func(w http.ResponseWriter, r *http.Request) {
				group, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/")
				w.Header().Set("Content-Encoding", "gzip")
				z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
				_, _ = fmt.Fprintf(z, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[{"name":"x","kind":"X"}`, group)
				for i := range 13_500 {
					_, _ = fmt.Fprintf(z, `,{"name":"%s-%d","kind":"%s-%s-%d"}`, group, i, r.Host, group, i)
				}
				_, _ = io.WriteString(z, "]}")
				_ = z.Close()
			}
		}
		return nil
	})
}

// attackByLists has a cluster answer the list of each of an add-on's 60 kinds with 31 MiB, and keep the last byte back.
func (tn *tenant) attackByLists() {
	var kinds, objects []string
	for i := range 60 {
		kinds = append(kinds, fmt.Sprintf(`{"resource":"k%ds","scope":"Namespaced","responseKind":{"group":"x.example.com","version":"v1","kind":"K%d"},`, i, i)+
			`"verbs":["create","delete","get","list","patch","update","watch"]}`)
		objects = append(objects, fmt.Sprintf("apiVersion: x.example.com/v1\nkind: K%d\nmetadata: {name: x}\n", i))
	}
	var page bytes.Buffer
	z := gzip.NewWriter(&page)
	_, _ = io.WriteString(z, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[`)
	for range 31 {
		_, _ = io.WriteString(z, `{"metadata":{"name":"x","namespace":"x","annotations":{"x":"`+strings.Repeat("y", 1<<20)+`"}}},`)
	}
	_ = z.Flush()
	head := bytes.Clone(page.Bytes())
	page.Reset()
	_, _ = io.WriteString(z, `{"metadata":{"name":"z"}}]}`)
	_ = z.Close()
	tail := page.Bytes()
	tn.makeStack("lists", labels("who=lists"), tn.addon("lists", tn.writeChart(tn.apart("lists"), "1.0.0", chart{"templates/x.yaml": strings.Join(objects, "---\n")})))
	tn.makeHostile("lists", 1, "", func(r *http.Request) http.HandlerFunc {
		switch {
		case r.URL.Path == "/apis":
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
				_, _ = fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[`+
					`{"metadata":{"name":"x.example.com"},"versions":[{"version":"v1","resources":[%s]}]}]}`, strings.Join(kinds, ","))
			}
		case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/apis/x.example.com/v1/k") && r.URL.Query().Get("watch") == "":
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(head)
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(40 * time.Second):
				}
				_, _ = w.Write(tail)
			}
		}
		return nil
	})
}

// attackByAliases gives 40 add-ons values of 14 KB, which aliases make to 47 MiB.
func (tn *tenant) attackByAliases() {
	var values []addonsv1.ValuesReference
	for i := range 12 {
		cm := &corev1.ConfigMap{ObjectMeta: tn.named(fmt.Sprint("aliases-", i))}
		cm.Data = map[string]string{"values.yaml": fmt.Sprintf("t%d: &a %s\nl%d: [%s]\n", i, strings.Repeat("x", 1000), i, strings.TrimSuffix(strings.Repeat("*a,", 3900), ","))}
		tn.create(cm)
		values = append(values, addonsv1.ValuesReference{Kind: "ConfigMap", Name: cm.Name})
	}
	path := tn.writeChart(tn.apart("aliases"), "1.0.0", configMapChart)
	var addons []addonsv1.Addon
	for i := range 40 {
		addons = append(addons, tn.addon(fmt.Sprint("v", i), path, func(a *addonsv1.Addon) {
			a.ValuesFrom = values
			a.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.metadata.name == 'never'"}}
		}))
	}
	tn.makeStack("aliases", labels("who=aliases"), addons...)
	tn.makeHostile("aliases", 1, "", func(*http.Request) http.HandlerFunc { return nil })
}

// attackByValues makes ConfigMaps with 1,000 KiB beside a small values.yaml, has an AddonStack read them, deletes them, and makes others.
func (tn *tenant) attackByValues() {
	path := tn.smallChart()
	junk := make([]byte, 1000<<10)
	_, _ = rand.Read(junk)
	tn.makeHostile("values", 1, "", func(*http.Request) http.HandlerFunc { return nil })
	for round := range 3 {
		var addons []addonsv1.Addon
		for i := range 7 {
			addon := tn.addon(fmt.Sprint("a", i), path)
			for j := range 16 {
				cm := &corev1.ConfigMap{ObjectMeta: tn.named(fmt.Sprintf("values-%d-%d-%d", round, i, j))}
				cm.Data, cm.BinaryData = map[string]string{"values.yaml": "text: x\n"}, map[string][]byte{"junk": junk}
				tn.create(cm)
				addon.ValuesFrom = append(addon.ValuesFrom, addonsv1.ValuesReference{Kind: "ConfigMap", Name: cm.Name})
			}
			addons = append(addons, addon)
		}
		if round == 0 {
			tn.makeStack("values", labels("who=values"), addons...)
		} else {
			change(tn, &addonsv1.AddonStack{ObjectMeta: tn.named("values")}, func(s *addonsv1.AddonStack) { s.Spec.Addons = addons })
		}
		tn.awaitCluster("values-0", "its values are read", ready("a0", "a1", "a2", "a3", "a4", "a5", "a6"))
		for i := range 7 * 16 {
			cm := &corev1.ConfigMap{ObjectMeta: tn.named(fmt.Sprintf("values-%d-%d-%d", round, i/16, i%16))}
			must.Succeed(tn.t, client.IgnoreNotFound(world.hub.Delete(tn.t.Context(), cm)))
		}
	}
}

// attackByCharts has charts rendered that take all the time and memory that they get.
func (tn *tenant) attackByCharts() {
	bombs := []string{
		`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
		`{{ define "a" }}{{ tpl "{{ include \"a\" . }}" . }}{{ end }}{{ include "a" . }}`,
		`{{ range until 2000000000 }}x{{ end }}`,
		`{{ repeat 2000000000 "x" }}`,
		`{{ $x := "xxxxxxxx" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ $x }}`,
		`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`,
		`{{ range until 1000 }}{{ genPrivateKey "rsa" }}{{ end }}`,
		`{{ $d := dict }}{{ range $i := until 10000000 }}{{ $_ := set $d (print $i) (repeat 1000 "x") }}{{ end }}`,
	}
	var addons []addonsv1.Addon
	for i := range 31 {
		name := fmt.Sprint("bomb-", i)
		path := tn.writeChart(tn.apart(name), "1.0.0", chart{"templates/x.yaml": fmt.Sprintf("# %d\n", i) + bombs[i%len(bombs)]})
		addons = append(addons, tn.addon(name, path))
	}
	tn.makeStack("charts", labels("who=charts"), addons...)
	tn.makeHostile("charts", 1, "", func(*http.Request) http.HandlerFunc { return nil })
}

// apart returns the name of a chart that no other attack has, nor the same one at another time.
func (tn *tenant) apart(name string) string {
	return fmt.Sprintf("%s-%s-%s", name, tn.namespace, path.Base(tn.t.Name()))
}

// makeHostile makes Clusters whose API server, which may be below a path, misbehaves.
func (tn *tenant) makeHostile(name string, clusters int, below string, misbehave fleettest.Misbehaviour) {
	tn.t.Helper()
	for i := range clusters {
		s := fleettest.Start(tn.root, func(r *http.Request) http.HandlerFunc {
			r.URL.Path = strings.TrimPrefix(r.URL.Path, below)
			if r.URL.Path == "/version" {
				return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`) }
			}
			return misbehave(r)
		})
		s.Remembers.Store(true)
		cluster := fmt.Sprintf("%s-%d", name, i)
		tn.writeKubeconfig(cluster, bytes.ReplaceAll(s.Kubeconfig(tn.t), []byte(s.URL), []byte(s.URL+below)))
		tn.makeClusterObject(cluster, labels("who="+name))
	}
}
