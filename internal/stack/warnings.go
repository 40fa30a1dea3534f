// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Warnings names the fields of a spec with a rollout that have a tag such as "latest". Each cluster looks such a tag up in its
// turn, so later waves may get other content than the first one.
func Warnings(spec *addonsv1.AddonStackSpec) (all []string) {
	if spec.Rollout == nil {
		return nil
	}
	path := field.NewPath("spec")
	warn := func(at address, path *field.Path) {
		line, err := lineOf(at)
		if line != nil || err != nil || at.digest == nil || *at.digest != "" || *at.version == "" || versions.IsExact(*at.version) {
			return
		}
		all = append(all, fmt.Sprintf("%s: %q names a tag that may be moved while it is rolled out, and later waves would get other content. Name a digest, a range or an exact version",
			path.Child("version"), *at.version))
	}
	if spec.Source != nil && spec.Source.ClusterStack == "" {
		warn(bundleAddress(spec.Source), path.Child("source"))
	}
	for i := range spec.Addons {
		at := addonAddress(&spec.Addons[i])
		warn(at, path.Child("addons").Index(i).Child(at.kind))
	}
	return all
}
