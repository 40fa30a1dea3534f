// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// object is what is kept of an object.
type object struct {
	release deliver.Release
	fields  drift.Fields
}

func objectName(key deliver.ObjectKey) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// slim returns an object with the fields of its add-on alone.
func slim(m *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion,
		Labels: map[string]string{
			addonsv1.AddonLabel: m.Labels[addonsv1.AddonLabel], addonsv1.AddonNamespaceLabel: m.Labels[addonsv1.AddonNamespaceLabel],
		},
		Annotations: map[string]string{deliver.HookRunAnnotation: m.Annotations[deliver.HookRunAnnotation]},
	}}
	manager := deliver.FieldManager(deliver.OwnerOf(&m.ObjectMeta))
	for _, e := range m.ManagedFields {
		if e.Manager == manager {
			kept.ManagedFields = append(kept.ManagedFields, e)
		}
	}
	return kept
}

// objectOf returns what is kept of an object; no fields if nothing of it is to be compared.
func objectOf(m *metav1.PartialObjectMetadata) object {
	o := object{release: deliver.OwnerOf(&m.ObjectMeta)}
	if m.Annotations[deliver.HookRunAnnotation] == "" { // hooks run when their time comes
		o.fields = drift.FieldsOf(m.ManagedFields, deliver.FieldManager(o.release))
	}
	return o
}

// objectStore keeps hashes of the objects that are followed.
type objectStore struct {
	*kindOfObjects
	end context.CancelCauseFunc // of the watch
}

// replace takes in a list, which is complete.
func (s *objectStore) replace(list []metav1.PartialObjectMetadata) {
	objects, sums := make(map[types.NamespacedName]object, len(list)), map[deliver.Release]drift.Sum{}
	for i := range list {
		put(objects, sums, nameOf(&list[i]), objectOf(&list[i]))
	}
	c := s.cluster
	c.mu.Lock()
	if c.kinds[s.kind] != s.kindOfObjects {
		c.mu.Unlock()
		return
	}
	wasUnwatched := s.err != nil
	c.objects += len(objects) - len(s.objects)
	var changed []deliver.Release
	for release := range c.releases {
		if s.objects == nil || s.sums[release] != sums[release] {
			changed = append(changed, release)
		}
	}
	s.objects, s.sums, s.err = objects, sums, nil
	s.unlockAndTell(c.anyNews(changed) || wasUnwatched)
}

// change takes in an event. What isn't about fields of an add-on ends here.
func (s *objectStore) change(m *metav1.PartialObjectMetadata, there bool) {
	var now object
	if there {
		now = objectOf(m)
	}
	name, c := nameOf(m), s.cluster
	c.mu.Lock()
	was := s.objects[name]
	if c.kinds[s.kind] != s.kindOfObjects || s.objects == nil || was == now {
		c.mu.Unlock()
		return
	}
	before := len(s.objects)
	put(s.objects, s.sums, name, now)
	c.objects += len(s.objects) - before
	s.unlockAndTell(c.anyNews([]deliver.Release{was.release, now.release}))
}

// unlockAndTell gives the cluster's lock back, which the caller has, and tells of news and of
// too many objects.
func (s *objectStore) unlockAndTell(news bool) {
	c := s.cluster
	tooMany := c.objects > c.limit
	c.mu.Unlock()
	if tooMany {
		s.end(errTooManyObjects)
	}
	if news {
		c.notify()
	}
}

// put puts an object in the place of the one of its name. One without fields isn't kept.
func put(objects map[types.NamespacedName]object, sums map[deliver.Release]drift.Sum, name types.NamespacedName, o object) {
	if was, known := objects[name]; known {
		sum := sums[was.release]
		sum.Remove(name, was.fields)
		sums[was.release] = sum
		delete(objects, name)
	}
	if o.fields != 0 {
		sum := sums[o.release]
		sum.Add(name, o.fields)
		sums[o.release] = sum
		objects[name] = o
	}
}
