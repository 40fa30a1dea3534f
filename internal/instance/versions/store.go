// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// store takes what one watch reports: that of a namespace, or of all.
type store struct {
	kind      *kind
	namespace string
}

// change of an object's version; "" means that there is none.
type change struct{ namespace, name, before, after string }

// Add implements cache.ReflectorStore.
func (s *store) Add(in any) error { return s.Update(in) }

// Update implements cache.ReflectorStore.
func (s *store) Update(in any) error {
	o, _ := in.(*metav1.PartialObjectMetadata) // the reflector has compared the type
	s.kind.tell(s.kind.keep(o.Namespace, o.Name, versionOf(o)))
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(in any) error {
	o, _ := in.(*metav1.PartialObjectMetadata)
	s.kind.tell(s.kind.keep(o.Namespace, o.Name, ""))
	return nil
}

// Replace implements cache.ReflectorStore. The first list changes nothing for those that wait for it.
func (s *store) Replace(list []any, _ string) error {
	is := map[string]map[string]bool{}
	var changes []change
	for _, in := range list {
		o, _ := in.(*metav1.PartialObjectMetadata)
		if is[o.Namespace] == nil {
			is[o.Namespace] = map[string]bool{}
		}
		is[o.Namespace][o.Name] = true
		changes = append(changes, s.kind.keep(o.Namespace, o.Name, versionOf(o)))
	}
	for namespace, names := range s.kind.known(s.namespace) {
		for _, name := range names {
			if !is[namespace][name] {
				changes = append(changes, s.kind.keep(namespace, name, ""))
			}
		}
	}
	if !s.kind.hasList(s.namespace) {
		return nil
	}
	for _, c := range changes {
		s.kind.tell(c)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// versionOf returns what is kept of an object, in one string, which takes less than two.
func versionOf(o *metav1.PartialObjectMetadata) string {
	return string(o.UID) + "/" + o.ResourceVersion
}

// keep replaces the version of an object.
func (k *kind) keep(namespace, name, version string) change {
	k.mu.Lock()
	defer k.mu.Unlock()
	names := k.versions[namespace]
	c := change{namespace, name, names[name], version}
	switch {
	case version == "":
		delete(names, name)
		if len(names) == 0 {
			delete(k.versions, namespace)
		}
	case c.before != version:
		if names == nil {
			names = map[string]string{}
			k.versions[namespace] = names
		}
		names[strings.Clone(name)] = version
	}
	return c
}

// known returns the names that are kept of a namespace, or of all.
func (k *kind) known(of string) map[string][]string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	all := map[string][]string{}
	for namespace, names := range k.versions {
		if of == metav1.NamespaceAll || of == namespace {
			all[namespace] = slices.Collect(maps.Keys(names))
		}
	}
	return all
}

// hasList notes that the list of a namespace has come, and returns if there was one before.
func (k *kind) hasList(namespace string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	had := k.listed[namespace]
	k.listed[namespace] = true
	if !had && len(k.listed) == len(k.namespaces) {
		close(k.synced)
	}
	return had
}

// tell calls the handlers.
func (k *kind) tell(c change) {
	if c.before == c.after {
		return
	}
	k.mu.RLock()
	handlers := slices.Collect(maps.Keys(k.handlers))
	k.mu.RUnlock()
	before, after := k.object(c.namespace, c.name, c.before), k.object(c.namespace, c.name, c.after)
	for _, h := range handlers {
		switch {
		case c.before == "":
			h.OnAdd(after, false)
		case c.after == "":
			h.OnDelete(before)
		default:
			h.OnUpdate(before, after)
		}
	}
}
