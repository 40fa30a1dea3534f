// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Warnings names the fields of a spec with a rollout that have a tag such as "latest". Each cluster looks such a tag up in its
// turn, so later waves may get other content than the first one.
func Warnings(spec *addonsv1.AddonStackSpec) (all []string) {
	if spec.Rollout == nil {
		return nil
	}
	for _, source := range sourcesOf(spec) {
		line, err := source.line()
		version, digest := *source.version, source.digest
		if line != nil || err != nil || digest == nil || *digest != "" || version == "" || versions.IsExact(version) {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %q names a tag that may be moved while it is rolled out, and later waves would get other content. Name a digest, a range or an exact version",
			source.path.Child("version"), version))
	}
	return all
}
