// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
)

// note remembers texts that kustomize would repeat in its messages.
func (s *survey) note(file string, k *types.Kustomization) {
	add := func(text, field string, i int) {
		if len(text) >= 4 {
			s.labels[text] = fmt.Sprintf("(%s[%d] of %s)", field, i, file)
		}
	}
	for i, patch := range k.Patches {
		add(strings.TrimSpace(patch.Patch), "patches", i)
	}
	for i, patch := range k.PatchesJson6902 {
		add(strings.TrimSpace(patch.Patch), "patchesJson6902", i)
	}
	for i, patch := range k.PatchesStrategicMerge {
		if strings.Contains(string(patch), "\n") {
			add(strings.TrimSpace(string(patch)), "patchesStrategicMerge", i)
		}
	}
	for i, generator := range k.SecretGenerator {
		for _, literal := range generator.LiteralSources {
			add(literal, "secretGenerator", i)
		}
	}
}

// notDirectory is what kustomize says after it tried a broken file as a directory, too.
var notDirectory = regexp.MustCompile(`accumulation err='(.*)': must build at directory: '[^']*': file is not directory`)

// clean makes a message of kustomize fit for people. Names in it start with "/",
// the artifact's root.
func (s *survey) clean(message string) string {
	message = notDirectory.ReplaceAllString(message, "$1")
	byLength := slices.SortedFunc(maps.Keys(s.labels), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	for _, text := range byLength {
		message = strings.ReplaceAll(message, fmt.Sprintf("%q", text), s.labels[text])
		message = strings.ReplaceAll(message, text, s.labels[text])
	}
	return message
}
