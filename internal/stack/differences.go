// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/changes"
	"github.com/cluster-chandler/chandler/internal/message"
)

// shownBefore is how many bytes of a previous value a difference shows at most.
const shownBefore = 40

// Differences returns what differs between the specs of two revisions, a field a line, as in
// `addons[cilium].chart.version: "1.19.5" -> "1.19.6"`.
func Differences(before, after *appsv1.ControllerRevision) ([]string, error) {
	was, err := SpecOf(before)
	if err != nil {
		return nil, err
	}
	is, err := SpecOf(after)
	if err != nil {
		return nil, err
	}
	patch, err := changes.Between(was, is)
	if err != nil {
		return nil, fmt.Errorf("comparing %s with %s: %w", before.Name, after.Name, err)
	}
	lines := make([]string, 0, len(patch))
	for _, operation := range patch {
		value := "removed"
		if operation.Op != "remove" {
			value = text(operation.Value)
		}
		if operation.Was != nil {
			value = message.Shorten(text(operation.Was), shownBefore) + " -> " + value
		}
		lines = append(lines, pathOf(was, is, operation)+": "+value)
	}
	return lines, nil
}

// text returns a value as JSON.
func text(value any) string {
	data := &strings.Builder{}
	e := json.NewEncoder(data)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // it was read from JSON
	return strings.TrimSpace(data.String())
}

// Versions returns the versions of a spec, nil for none, as in "web 1.8.0, dns 1.2.0".
func Versions(spec *addonsv1.AddonStackSpec) string {
	var all []string
	for _, f := range sourcesOf(cmp.Or(spec, &addonsv1.AddonStackSpec{})) {
		all = append(all, strings.TrimSpace(f.Name+" "+*f.version))
	}
	return strings.Join(all, ", ")
}

// VersionChanges returns the versions that differ between two specs, nil for none, as in "web 1.8.0 -> 1.9.0", "dns none -> 1.2.0".
func VersionChanges(before, after *addonsv1.AddonStackSpec) (all []string) {
	was, is := versionsOf(before), versionsOf(after)
	both := maps.Clone(was)
	maps.Copy(both, is)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		if from, to := cmp.Or(was[name], "none"), cmp.Or(is[name], "none"); from != to {
			all = append(all, fmt.Sprintf("%s %s -> %s", name, from, to))
		}
	}
	return all
}

// versionsOf returns the version of each add-on and of the bundle, "unversioned" if it has none.
func versionsOf(spec *addonsv1.AddonStackSpec) map[string]string {
	all := map[string]string{}
	for _, f := range sourcesOf(cmp.Or(spec, &addonsv1.AddonStackSpec{})) {
		all[f.Name] = cmp.Or(*f.version, "unversioned")
	}
	return all
}

var addonAt = regexp.MustCompile(`^addons\.(\d+)`)

// pathOf returns the path of a change. The index of an add-on is replaced by its name.
func pathOf(was, is *addonsv1.AddonStackSpec, operation changes.Operation) string {
	path := strings.NewReplacer("/", ".", "~1", "/", "~0", "~").Replace(operation.Path[1:])
	addons := is.Addons
	if operation.Op == "remove" && strings.Count(path, ".") == 1 {
		addons = was.Addons
	}
	return addonAt.ReplaceAllStringFunc(path, func(at string) string {
		index, err := strconv.Atoi(strings.TrimPrefix(at, "addons."))
		if err != nil || index >= len(addons) {
			return at
		}
		return "addons[" + addons[index].Name + "]"
	})
}
