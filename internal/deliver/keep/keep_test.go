// SPDX-License-Identifier: Apache-2.0

package keep

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/held"
)

// TestSpared tells what stays though it is the release's.
func TestSpared(t *testing.T) {
	namespaced := func(name string) record.Entry { return record.Entry{Version: "v1", Kind: "Namespace", Name: name} }
	settings := record.Entry{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: "settings"}
	for name, tc := range map[string]struct {
		entry  record.Entry
		policy string
		want   bool
	}{
		"an object":                {entry: settings},
		"an object that is kept":   {entry: settings, policy: "keep", want: true},
		"any other policy":         {entry: settings, policy: "delete"},
		"a CRD of crds/":           {entry: record.Entry{Group: object.CRDKind.Group, Version: "v1", Kind: object.CRDKind.Kind, Name: "a", CRD: true}, want: true},
		"a claim":                  {entry: record.Entry{Version: "v1", Kind: "PersistentVolumeClaim", Namespace: "n", Name: "data"}, want: true},
		"another namespace":        {entry: namespaced("own"), want: true},
		"the release's namespace":  {entry: namespaced("n"), want: true},
		"one of Kubernetes' own":   {entry: namespaced("kube-system"), want: true},
		"the namespace of nothing": {entry: namespaced("default"), want: true},
	} {
		live := &metav1.PartialObjectMetadata{}
		live.Annotations = map[string]string{record.ResourcePolicyAnnotation: tc.policy}
		k := &Keeper{Scope: &object.Scope{Release: record.Release{Namespace: "n", Name: "web"}}}
		if why, err := k.Reason(t.Context(), tc.entry, live); (why != "") != tc.want || err != nil {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
}

// twoPages is a cluster with one object on each of two pages.
type twoPages struct{ client.Client }

func (twoPages) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	list := into.(*metav1.PartialObjectMetadataList)
	name, next := "first", "more"
	if asked.Continue == next {
		name, next = "second", ""
	}
	list.Items, list.Continue = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: name}}}, next
	return nil
}

// TestLookGoesOnToTheLastPage: what keeps a namespace or a CRD may come after much that doesn't.
func TestLookGoesOnToTheLastPage(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	k := &Keeper{Reader: twoPages{}, Scope: &object.Scope{Mapper: mapper}}
	for ignored, want := range map[string]string{"": "first", "first": "second"} {
		got, err := k.firstOf(t.Context(), schema.GroupKind{Kind: "ConfigMap"}, "n",
			func(m *metav1.PartialObjectMetadata) bool { return m.Name == ignored })
		if err != nil || got != want {
			t.Errorf("without %q: %q, %v; want %q", ignored, got, err, want)
		}
	}
}

// noKinds is a cluster without kinds.
type noKinds struct{ discovery.DiscoveryInterface }

func (noKinds) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return nil, nil
}

// TestDocumentsCount sees that the documents of a discovery count until the kinds were taken from them.
func TestDocumentsCount(t *testing.T) {
	arrive := held.Answers(t)
	k := &Keeper{Discovery: func(ctx context.Context) (discovery.DiscoveryInterface, error) {
		arrive(ctx)
		return noKinds{}, nil
	}}
	if used, err := k.namespaceInUse(t.Context(), "n"); used != "" || err != nil {
		t.Errorf("%q, %v", used, err)
	}
}
