// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/release/common"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/must"
)

// contents is what is in a cluster because of the add-ons of one namespace, by
// "Kind.group namespace/name".
type contents map[string]unstructured.Unstructured

// madeByKubernetes are kinds whose objects come and go by themselves.
var madeByKubernetes = []string{"Event", "Endpoints", "EndpointSlice", "Pod", "ReplicaSet", "Lease", "ControllerRevision", "ComponentStatus", "APIService"}

// contents reads all objects of the namespace, and all cluster-scoped objects
// of its add-ons. They have the add-ons' label. Those that were let go of have
// lost it, and have the namespace's name in their own.
func (s *server) contents(t *testing.T, namespace string) contents {
	t.Helper()
	all := contents{}
	s.each(t, metav1.ListOptions{}, func(resource metav1.APIResource, gv schema.GroupVersion, obj unstructured.Unstructured) {
		isOurs := obj.GetNamespace() == namespace
		if !resource.Namespaced {
			isOurs = obj.GetLabels()[addonsv1.AddonNamespaceLabel] == namespace || strings.Contains(obj.GetName(), namespace)
		}
		if isOurs && !slices.Contains(madeByKubernetes, resource.Kind) && !isDefault(&obj) {
			all[resource.Kind+"."+gv.Group+" "+obj.GetNamespace()+"/"+obj.GetName()] = obj
		}
	})
	return all
}

// each calls see with the objects of all kinds.
func (s *server) each(t *testing.T, of metav1.ListOptions, see func(metav1.APIResource, schema.GroupVersion, unstructured.Unstructured)) {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(s.clientset.Discovery())
	if !discovery.IsGroupDiscoveryFailedError(err) { // as of metrics, which no pod serves
		must.Succeed(t, err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must.Succeed(t, err)
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			found, err := s.dynamic.Resource(gv.WithResource(resource.Name)).List(t.Context(), of)
			if err != nil {
				continue // its CRD is going away, or its API doesn't answer
			}
			for _, obj := range found.Items {
				see(resource, gv, obj)
			}
		}
	}
}

// isDefault reports whether each namespace has such an object.
func isDefault(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "ServiceAccount" && obj.GetName() == "default" || obj.GetKind() == "ConfigMap" && obj.GetName() == "kube-root-ca.crt"
}

// texts returns what users and charts wrote of each object, comparable between namespaces:
// no status, no identity, of records just the labels, and of Jobs just the name.
func (c contents) texts(t *testing.T, namespace string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, obj := range c {
		text := "{}"
		switch {
		case isRecord(&obj):
			l := obj.GetLabels()
			text = fmt.Sprintf("%s of %s is %s", l["version"], l["name"], l["status"])
		case obj.GetKind() != "Job":
			text = textOf(t, &obj)
		}
		texts[strings.ReplaceAll(name, namespace, "NAMESPACE")] = strings.ReplaceAll(text, namespace, "NAMESPACE")
	}
	return texts
}

func textOf(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	content := obj.DeepCopy().Object
	delete(content, "status")
	content["metadata"] = map[string]any{"labels": obj.GetLabels(), "annotations": obj.GetAnnotations(), "name": obj.GetName()}
	text, err := json.Marshal(content)
	must.Succeed(t, err)
	return string(text)
}

// textIn returns the text of a ConfigMap.
func (s *server) textIn(t *testing.T, namespace, name string) string {
	t.Helper()
	found := &corev1.ConfigMap{}
	must.Succeed(t, s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found))
	return found.Data["text"]
}

// isRecord reports whether an object is a Helm release record.
func isRecord(obj *unstructured.Unstructured) bool {
	return obj.GetKind() == "Secret" && strings.HasPrefix(obj.GetName(), "sh.helm.release.v1.")
}

// helmStorage is Helm's own view of the releases in a namespace.
func (s *server) helmStorage(namespace string) *storage.Storage {
	return storage.Init(driver.NewSecrets(s.clientset.CoreV1().Secrets(namespace)))
}

// history are the revisions of a release, the oldest first, as "helm history"
// has them.
func (s *server) history(t *testing.T, namespace, name string) []*helmrelease.Release {
	t.Helper()
	found, err := s.helmStorage(namespace).History(name)
	if err != nil {
		t.Fatalf("reading the history of release %s/%s with Helm's library: %v", namespace, name, err)
	}
	var releases []*helmrelease.Release
	for _, r := range found {
		release, ok := r.(*helmrelease.Release)
		if !ok {
			t.Fatalf("Helm's library returns a %T", r)
		}
		releases = append(releases, release)
	}
	slices.SortFunc(releases, func(a, b *helmrelease.Release) int { return cmp.Compare(a.Version, b.Version) })
	return releases
}

// releaseState is what "helm list" says of a release: its newest revision and
// the status of that.
type releaseState struct {
	revision int
	status   common.Status
}

// release returns the newest revision; zero if there is no such release.
func (s *server) release(t *testing.T, namespace, name string) releaseState {
	t.Helper()
	found, err := s.helmStorage(namespace).ListReleases()
	if err != nil {
		t.Fatalf("listing the releases of namespace %s with Helm's library: %v", namespace, err)
	}
	var newest releaseState
	for _, r := range found {
		release, ok := r.(*helmrelease.Release)
		if !ok {
			t.Fatalf("Helm's library returns a %T", r)
		}
		if release.Name == name && release.Version > newest.revision {
			newest = releaseState{revision: release.Version, status: release.Info.Status}
		}
	}
	return newest
}
