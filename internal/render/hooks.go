// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
)

// Hook is an object that Helm creates at an event and does not keep as part of the release.
type Hook struct {
	Name, Kind string
	// Path is that of the template, as in Helm's record.
	Path     string
	Manifest string
	// Events are such as pre-install and post-upgrade.
	Events []string
	// Weight orders the hooks of one event, the lowest first.
	Weight int
	// DeletePolicies are such as before-hook-creation, which is the default.
	DeletePolicies []string
	Object         *unstructured.Unstructured
}

// hookEvents are those that Helm knows.
var hookEvents = []helmrelease.HookEvent{
	helmrelease.HookPreInstall, helmrelease.HookPostInstall,
	helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade,
	helmrelease.HookPreRollback, helmrelease.HookPostRollback,
	helmrelease.HookPreDelete, helmrelease.HookPostDelete,
}

// splitHooks takes the hooks out of a chart's documents.
func splitHooks(documents []document) (manifests []document, hooks []Hook, err error) {
	for _, doc := range documents {
		hook, isHook, err := hookOf(doc)
		switch {
		case err != nil:
			return nil, nil, err
		case !isHook:
			manifests = append(manifests, doc)
		case len(hook.Events) > 0:
			hooks = append(hooks, hook)
		}
	}
	// Helm runs those of one event by weight, then name, then kind.
	slices.SortStableFunc(hooks, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name), compareKinds(a.Kind, b.Kind))
	})
	return manifests, hooks, nil
}

// hookOf reads the hook annotations of a document. A hook whose only event is a test has no
// Events; nor has one with an event that Helm doesn't know, as crd-install of Helm 2: Helm leaves that out.
func hookOf(doc document) (hook Hook, isHook bool, err error) {
	if doc.object == nil {
		return Hook{}, false, nil
	}
	annotations, _, err := unstructured.NestedNullCoercingStringMap(doc.object.Object, "metadata", "annotations")
	if err != nil {
		return Hook{}, false, failf(ReasonManifestInvalid, "%s: %w", doc.path, checkStrings(doc.object.Object, "annotations"))
	}
	events, isHook := annotations[helmrelease.HookAnnotation]
	if !isHook {
		return Hook{}, false, nil
	}
	hook = Hook{Name: doc.object.GetName(), Kind: doc.kind(), Path: doc.path, Manifest: doc.text, Object: doc.object}
	for _, event := range listOf(events) {
		switch {
		case event == string(helmrelease.HookTest), event == "test-success":
		case slices.Contains(hookEvents, helmrelease.HookEvent(event)):
			hook.Events = append(hook.Events, event)
		default:
			return Hook{}, true, nil
		}
	}
	if len(hook.Events) == 0 {
		return hook, true, nil
	}
	if isList(doc.object) {
		return Hook{}, false, failf(ReasonManifestInvalid, "%s: a hook must be a single object, not a List", doc.path)
	}
	if err := checkObject(doc.object); err != nil {
		return Hook{}, false, failf(ReasonManifestInvalid, "%s: %w", doc.path, err)
	}
	hook.Weight, _ = strconv.Atoi(annotations[helmrelease.HookWeightAnnotation]) // no number is 0, as in Helm
	hook.DeletePolicies = []string{string(helmrelease.HookBeforeHookCreation)}
	if policies, ok := annotations[helmrelease.HookDeleteAnnotation]; ok {
		hook.DeletePolicies = listOf(policies)
	}
	return hook, true, nil
}

// listOf reads an annotation that is a list with commas.
func listOf(text string) []string {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		all = append(all, strings.ToLower(strings.TrimSpace(part)))
	}
	return all
}
