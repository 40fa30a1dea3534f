// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestSentinels puts a secret into every kind of credential, and into values. It lets
// all go well, and wrong in many ways. Then it looks for the secrets everywhere but
// where they belong, with the log at its highest verbosity.
func TestSentinels(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, ss := newTenant(t), sentinels{}
	s := workloadServer(t, 2)
	foreign := faulty.Start(t, nil, http.NotFoundHandler())
	authority := registry.NewAuthority(t)
	foreignTLS := faulty.Start(t, authority, http.NotFoundHandler())
	own, cache := t.TempDir(), t.TempDir()

	// A proxy that asks for credentials.
	proxied := publish(t, registry.Start(t, registry.Options{PlainHTTP: true}), "proxied")
	user, password := ss.plantPlain("the proxy's username"), ss.plantPlain("the proxy's password")
	proxy := faulty.Start(t, nil, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || strings.Contains(r.Host, "refused") {
			http.Error(w, "not to "+fmt.Sprint(r.Header), http.StatusProxyAuthRequired)
			return
		}
		proxied.ServeHTTP(w, r)
	}))
	tn.environment = []string{"HTTP_PROXY=http://" + user + ":" + password + "@" + proxy.Host, "HTTPS_PROXY=http://" + user + ":" + password + "@" + proxy.Host}

	guarded, reasons, servers := ss.guardedSources(tn, authority, foreignTLS, own)
	tn.startManager("--v=10", "--credentials-dir="+own, "--cache-dir="+cache)
	for _, manner := range slices.Sorted(maps.Keys(guarded)) {
		tn.makeStack(manner, labels("env=prod"), guarded[manner]...)
	}
	through := func(host string) func(*addonsv1.Addon) {
		return func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{HTTP: &addonsv1.HTTPSource{URL: host + "/proxied/http.tgz", Digest: digestOf(proxied.archives["http"]), PlainHTTP: ptr.To(true)}}
		}
	}
	credentialAddons := append(ss.unreadable(tn),
		tn.addon("proxy-sound", "", through("http://charts.chandler.test")),
		tn.addon("proxy-refused", "", through("http://refused.chandler.test")),
		tn.addon("proxy-connect", "", through("https://charts.chandler.test")))
	for _, a := range credentialAddons {
		reasons[a.Name] = "SourceUnauthorized"
	}
	reasons["proxy-sound"] = ""
	reasons["proxy-refused"], reasons["proxy-connect"] = "SourceUnavailable", "SourceUnavailable"
	tn.makeStack("credentials", labels("env=prod"), credentialAddons...)

	// Values, and charts, of Secrets.
	s.quote(t, tn.namespace, "configmaps", admissionv1.Warn, "'it has ' + object.data.text", "warned-about")
	s.quote(t, tn.namespace, "secrets", admissionv1.Deny, "'it has ' + string(object.data.text)", "refused-secret", "refused-secret-of-a-chart")
	s.quote(t, tn.namespace, "configmaps", admissionv1.Deny, "'it has ' + object.data.text", "refused-configmap", "refused-encoded")
	refused := tn.configMapOf("refused-configmap")
	refused.Data = map[string]string{"text": "x"}
	s.awaitRefusal(t, refused)
	var addons []addonsv1.Addon
	for name, m := range misfortunes() {
		addons = append(addons, tn.addon(name, tn.writeChart(name, "1.0.0", m.chart), ss.fromSecret(tn, name)))
		reasons[name] = m.reason
	}
	tn.makeStack("values", labels("env=prod"), addons...)
	addons = ss.unreadableValues(tn, tn.writeChart("settings", "1.0.0", configMapChart))
	for _, a := range addons {
		reasons[a.Name] = "ValuesInvalid"
	}
	reasons["values-binary"], reasons["values-float"] = "ValuesInvalid|", "ValuesInvalid|"
	for name, c := range map[string]chart{
		"refused-secret-of-a-chart": templated(secretOf("refused-secret-of-a-chart", "stringData: {text: "+ss.plantPlain("a Secret in a chart in a Secret")+"}")),
		"broken-chart":              templated("a: b: " + ss.plantPlain("a broken chart in a Secret")),
	} {
		tn.create(tn.secretWithChart(name, c.archive(name, "1.0.0")))
		addons = append(addons, tn.addon(name, "", func(a *addonsv1.Addon) {
			a.Chart = addonsv1.ChartSource{Secret: &addonsv1.ArtifactReference{Name: name}}
		}))
	}
	reasons["refused-secret-of-a-chart"] = "Forbidden|ObjectRejected"
	reasons["broken-chart"] = "ManifestInvalid|TemplateFailed"
	tn.create(tn.secretWithChart("no-chart", []byte(ss.plantPlain("what is no chart"))))
	addons = append(addons, tn.addon("no-chart", "", func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{Secret: &addonsv1.ArtifactReference{Name: "no-chart"}}
	}))
	reasons["no-chart"] = "ArtifactInvalid"
	immutable := templated(secretOf("immutable", "immutable: true\nstringData: {password: {{ .Values.password | quote }}}"))
	addons = append(addons, tn.addon("immutable", tn.writeChart("immutable", "1.0.0", immutable), ss.fromSecret(tn, "immutable")))
	tn.makeStack("more", labels("env=prod"), addons...)

	// Kubeconfigs.
	config := tn.userOn(s, "prod").Kubeconfig
	tn.writeKubeconfig("prod", config)
	parsed, err := clientcmd.Load(config)
	tn.Expect(err).NotTo(HaveOccurred())
	for _, u := range parsed.AuthInfos {
		ss.note("the key of a kubeconfig", lineOf(u.ClientKeyData))
	}
	tn.makeClusterObject("prod", labels("env=prod"))
	unreachable := ss.kubeconfigs(tn, parsed, foreign)

	await(t, world.hub, tn.clusterAddon("prod"), patience, "each add-on fares as it is to", func(ca *addonsv1.ClusterAddon) error {
		return fares(ca, reasons)
	})
	change(tn, tn.secret("immutable", nil), func(secret *corev1.Secret) {
		secret.Data = map[string][]byte{"values.yaml": []byte("password: " + ss.plantPlain("another value of immutable") + "\n")}
	})
	tn.awaitCluster("prod", "a Secret that can't be changed", phase("immutable", addonsv1.AddonFailed, "", ""))
	for name, reason := range unreachable {
		tn.awaitCluster(name, "it can't be reached", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, reason, ""))
	}
	tn.planAll()
	for _, where := range []string{"the proxy's password", "the password of a Secret"} {
		arrived := ss.in(all(append(servers, proxy)))
		tn.Expect(arrived).To(ContainElement(ContainSubstring(where)), "a secret that isn't used can't leak")
	}

	for place, text := range tn.exposed(s, cache) {
		for _, found := range ss.in(text) {
			t.Errorf("%s: %s", place, found)
		}
	}
	tn.Expect(foreign.Seen()).To(BeEmpty(), "no API server leads anywhere else")
	elsewhere := all([]*faulty.Server{foreignTLS})
	tn.Expect(elsewhere).NotTo(BeEmpty(), "sources do")
	tn.Expect(ss.in(elsewhere)).To(BeEmpty(), "but nothing secret is shown there")
	tn.Expect(string(elsewhere)).NotTo(ContainSubstring("it shows a certificate"))
}

// planAll plans each stack as it is. What fails is refused there, too, for reasons that mustn't tell more.
func (tn *tenant) planAll() {
	tn.t.Helper()
	stacks := &addonsv1.AddonStackList{}
	must.Succeed(tn.t, world.hub.List(tn.t.Context(), stacks, client.InNamespace(tn.namespace)))
	for i := range stacks.Items {
		tn.create(&addonsv1.AddonPlan{ObjectMeta: tn.named(stacks.Items[i].Name), Spec: addonsv1.AddonPlanSpec{StackName: stacks.Items[i].Name}})
	}
	for i := range stacks.Items {
		p := awaitPlan(tn.t, &addonsv1.AddonPlan{ObjectMeta: tn.named(stacks.Items[i].Name)})
		tn.Expect(p.Status.Groups).NotTo(BeEmpty(), "%+v", p.Status)
	}
}

// all is what came to some hosts.
func all(servers []*faulty.Server) []byte {
	var text bytes.Buffer
	for _, server := range servers {
		for _, r := range server.Seen() {
			text.Write(r.Bytes())
			if r.Certified {
				text.WriteString("it shows a certificate\n")
			}
		}
	}
	return text.Bytes()
}

// fares compares the add-ons' reasons with those that they are to have; there may be
// several, with | between, and an empty one means Ready.
func fares(ca *addonsv1.ClusterAddon, reasons map[string]string) error {
	var wrong []string
	for name, wanted := range reasons {
		s := statusOf(ca, name)
		switch {
		case s == nil:
			wrong = append(wrong, name+" isn't there")
		case !slices.Contains(strings.Split(wanted, "|"), s.Reason), s.Reason == "" && s.Phase != addonsv1.AddonReady:
			wrong = append(wrong, fmt.Sprintf("%s is %s, %s: %q; not %s", name, s.Phase, s.Reason, s.Message, wanted))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d fare otherwise:\n%s", len(wrong), len(reasons), strings.Join(wrong, "\n"))
	}
	return nil
}

// kubeconfigs makes Clusters that can't be reached with the credentials that they
// have, and returns the reasons.
func (ss sentinels) kubeconfigs(tn *tenant, good *clientcmdapi.Config, foreign *faulty.Server) map[string]string {
	tn.t.Helper()
	authority := registry.NewAuthority(tn.t)
	redirecting := faulty.Start(tn.t, authority, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, foreign.URL(r.URL.Path+"?got="+r.Header.Get("Authorization")), http.StatusFound)
	}))
	echoing := faulty.Start(tn.t, authority, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "you sent me "+fmt.Sprint(r.Header), http.StatusInternalServerError)
	}))
	tn.writeKubeconfig("broken", []byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {token: *"+ss.plantPlain("a broken kubeconfig")+"}}]\n"))
	reasons := map[string]string{"broken": "KubeconfigRefused"}
	for name, with := range map[string]struct {
		reason string
		user   func(*clientcmdapi.AuthInfo)
		server *faulty.Server
	}{
		"token": {"Unauthorized", func(u *clientcmdapi.AuthInfo) { u.Token = ss.plantPlain("a token") }, nil},
		"exec": {"KubeconfigRefused", func(u *clientcmdapi.AuthInfo) {
			u.Token = ss.plantPlain("a token beside a program")
			u.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/true", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
				Env: []clientcmdapi.ExecEnvVar{{Name: "TOKEN", Value: ss.plantPlain("a program's environment")}}}
		}, nil},
		"no-key": {"KubeconfigRefused", func(u *clientcmdapi.AuthInfo) {
			u.ClientCertificateData, u.ClientKeyData = []byte("none"), []byte(ss.plantPlain("a key that is none"))
		}, nil},
		"redirect": {"", func(u *clientcmdapi.AuthInfo) { u.Token = ss.plantPlain("a token that is sent elsewhere") }, redirecting},
		"echo":     {"", func(u *clientcmdapi.AuthInfo) { u.Token = ss.plantPlain("a token that comes back") }, echoing},
	} {
		config := good.DeepCopy()
		for _, u := range config.AuthInfos {
			u.ClientCertificateData, u.ClientKeyData = nil, nil
			with.user(u)
		}
		for _, c := range config.Clusters {
			if with.server != nil {
				c.Server, c.CertificateAuthorityData = with.server.URL(""), authority.PEM
			}
		}
		data, err := clientcmd.Write(*config)
		must.Succeed(tn.t, err)
		tn.writeKubeconfig(name, data)
		reasons[name] = with.reason
	}
	for name := range reasons {
		tn.makeClusterObject(name, labels("env=prod"))
	}
	return reasons
}

// exposed returns everything that users without a right to Secrets can see, by place.
func (tn *tenant) exposed(s *server, cache string) map[string][]byte {
	t := tn.t
	places := map[string][]byte{}
	for _, m := range tn.managers {
		log, err := os.ReadFile(m.LogFile)
		must.Succeed(t, err)
		places["the log "+filepath.Base(m.LogFile)] = log
	}
	response, err := http.Get(tn.manager.Metrics)
	must.Succeed(t, err)
	defer response.Body.Close()
	if places["metrics"], err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	put := func(place string, content any) {
		data, err := json.Marshal(content)
		must.Succeed(t, err)
		places[place] = append(places[place], data...)
	}
	for _, on := range []*server{world.hub, s} {
		for _, list := range []client.ObjectList{&eventsv1.EventList{}, &corev1.EventList{}} {
			must.Succeed(t, on.List(t.Context(), list, client.InNamespace(tn.namespace)))
			put("events of "+on.Name(), list)
		}
	}
	var stacks addonsv1.AddonStackList
	var clusterAddons addonsv1.ClusterAddonList
	var instances addonsv1.ProviderInstanceList
	var revisions appsv1.ControllerRevisionList
	var clusters clusterv1.ClusterList
	var plans addonsv1.AddonPlanList
	for _, list := range []client.ObjectList{&stacks, &clusterAddons, &instances, &revisions, &clusters, &plans} {
		must.Succeed(t, world.hub.List(t.Context(), list, client.InNamespace(tn.namespace)))
	}
	for i := range stacks.Items { // what is in its spec, as a signed URL, was written by who may see it
		put("AddonStack "+stacks.Items[i].Name, []any{stacks.Items[i].ObjectMeta, stacks.Items[i].Status})
	}
	for i := range revisions.Items {
		put("ControllerRevision "+revisions.Items[i].Name, revisions.Items[i].ObjectMeta)
	}
	put("ClusterAddons", clusterAddons)
	put("AddonPlans", plans)
	put("ProviderInstances", instances)
	put("Clusters", clusters)
	for name, obj := range s.contents(t, tn.namespace) {
		put("metadata on "+s.Name(), []any{name, obj.GetLabels(), obj.GetAnnotations(), obj.Object["status"]})
	}
	err = filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		places["the cache"] = append(append(places["the cache"], path...), data...)
		return err
	})
	must.Succeed(t, err)
	return places
}

// secretWithChart is a Secret that holds an archive.
func (tn *tenant) secretWithChart(name string, archive []byte) *corev1.Secret {
	s := tn.secret(name, nil)
	s.Data = map[string][]byte{addonsv1.DefaultArtifactKey: archive}
	return s
}
