// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/changes"
)

// Differences returns what differs between the specs of two revisions, a field a line, as in
// `addons[cilium].chart.version: "1.19.6"`.
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
		text := []byte("removed")
		if operation.Op != "remove" {
			if text, err = json.Marshal(operation.Value); err != nil {
				return nil, fmt.Errorf("writing %s: %w", operation.Path, err)
			}
		}
		lines = append(lines, pathOf(was, is, operation)+": "+string(text))
	}
	return lines, nil
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
