// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"hash/fnv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/drift"
)

// seenObject is what is kept of an object.
type seenObject struct {
	release deliver.Release
	fields  drift.Fields
	version uint64 // a hash of its resourceVersion
}

func kindOf(key deliver.ObjectKey) schema.GroupKind {
	return schema.GroupKind{Group: key.Group, Kind: key.Kind}
}

func objectName(key deliver.ObjectKey) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
}

// objectOf returns what is kept of an object; no fields if nothing of it is to be compared.
func objectOf(m *metav1.PartialObjectMetadata) seenObject {
	o := seenObject{release: object.OwnerOf(&m.ObjectMeta), version: versionOf(m.ResourceVersion)}
	if m.Annotations[deliver.HookRunAnnotation] == "" { // hooks run when their time comes
		o.fields = drift.FieldsOf(m.ManagedFields, object.FieldManager(o.release))
	}
	return o
}

func versionOf(resourceVersion string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(resourceVersion))
	return h.Sum64()
}

// replace takes in the objects of a list, which is complete, and their sums.
func (k *kindOfObjects) replace(objects map[types.NamespacedName]seenObject, sums map[deliver.Release]drift.Sum) error {
	c := k.cluster
	c.mu.Lock()
	if c.kinds[k.kind] != k {
		c.mu.Unlock()
		return nil
	}
	wasUnwatched := k.err != nil
	c.objects += len(objects) - len(k.objects)
	var changed []deliver.Release
	for release := range c.releases {
		if k.objects == nil || k.sums[release] != sums[release] {
			changed = append(changed, release)
		}
	}
	for name, o := range objects {
		if k.objects[name].version != o.version {
			c.noteChange(k.kind, name, o.release)
		}
	}
	k.objects, k.sums, k.err = objects, sums, nil
	return c.unlockAndTell(c.anyNews(changed) || wasUnwatched)
}

// change takes in an event. An event that isn't about fields of an add-on ends here.
func (k *kindOfObjects) change(m *metav1.PartialObjectMetadata, there bool) error {
	var now seenObject
	if there {
		now = objectOf(m)
	}
	name, c := nameOf(m), k.cluster
	c.mu.Lock()
	if c.kinds[k.kind] != k || k.objects == nil {
		c.mu.Unlock()
		return nil
	}
	was, known := k.objects[name]
	if known {
		c.noteChange(k.kind, name, was.release)
	}
	if was.release == now.release && was.fields == now.fields {
		if known {
			k.objects[name] = now
		}
		c.mu.Unlock()
		return nil
	}
	before := len(k.objects)
	put(k.objects, k.sums, name, now)
	c.objects += len(k.objects) - before
	return c.unlockAndTell(c.anyNews([]deliver.Release{was.release, now.release}))
}

// unlockAndTell gives the lock back, which the caller has, and tells of news. It returns an error
// if there are too many objects.
func (c *clusterObjects) unlockAndTell(news bool) error {
	tooMany := c.objects > c.limit
	c.mu.Unlock()
	if news {
		c.notify()
	}
	if tooMany {
		return errTooManyObjects
	}
	return nil
}

// put puts an object in the place of the one of its name. An object without fields isn't kept.
func put(objects map[types.NamespacedName]seenObject, sums map[deliver.Release]drift.Sum, name types.NamespacedName, o seenObject) {
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
