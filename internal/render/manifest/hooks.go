// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// hookEvents are all events of Helm but tests.
var hookEvents = []helmrelease.HookEvent{
	helmrelease.HookPreInstall, helmrelease.HookPostInstall,
	helmrelease.HookPreUpgrade, helmrelease.HookPostUpgrade,
	helmrelease.HookPreRollback, helmrelease.HookPostRollback,
	helmrelease.HookPreDelete, helmrelease.HookPostDelete,
}

// SplitHooks takes the hooks out of a chart's documents.
func SplitHooks(documents []Document) (manifests []Document, hooks []job.Hook, err error) {
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
	slices.SortStableFunc(hooks, func(a, b job.Hook) int {
		return cmp.Or(cmp.Compare(a.Weight, b.Weight), cmp.Compare(a.Name, b.Name), compareKinds(a.Kind, b.Kind))
	})
	return manifests, hooks, nil
}

// hookOf reads the hook annotations of a document. A hook whose only event is a test has no
// Events; nor has one with an event that Helm doesn't know, as crd-install of Helm 2: Helm leaves that out.
func hookOf(doc Document) (hook job.Hook, isHook bool, err error) {
	if doc.Object == nil {
		return job.Hook{}, false, nil
	}
	annotations, _, err := unstructured.NestedNullCoercingStringMap(doc.Object.Object, "metadata", "annotations")
	if err != nil {
		return job.Hook{}, false, failure.New(job.ReasonManifestInvalid, "%s: %w", doc.Path, checkStrings(doc.Object.Object, "annotations"))
	}
	events, isHook := annotations[helmrelease.HookAnnotation]
	if !isHook {
		return job.Hook{}, false, nil
	}
	hook = job.Hook{Name: doc.Object.GetName(), Kind: doc.kind(), Path: doc.Path, Manifest: doc.text, Object: doc.Object}
	for _, event := range listOf(events) {
		switch {
		case event == string(helmrelease.HookTest), event == "test-success":
		case slices.Contains(hookEvents, helmrelease.HookEvent(event)):
			hook.Events = append(hook.Events, event)
		default:
			return job.Hook{}, true, nil
		}
	}
	if len(hook.Events) == 0 {
		return hook, true, nil
	}
	if isList(doc.Object) {
		return job.Hook{}, false, failure.New(job.ReasonManifestInvalid, "%s: a hook must be a single object, not a List", doc.Path)
	}
	if err := CheckObject(doc.Object); err != nil {
		return job.Hook{}, false, failure.New(job.ReasonManifestInvalid, "%s: %w", doc.Path, err)
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
