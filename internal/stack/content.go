// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
	"github.com/cluster-chandler/chandler/internal/render/patch"
)

// checkContent checks the directory and the patches of an add-on. Whether the
// patches fit its objects is seen when these are made.
func (p *problems) checkContent(addon *addonsv1.Addon, at *field.Path) {
	if k := addon.Kustomization; k != nil {
		p.checkDirectory(k.Directory, at.Child("kustomization", "directory"))
	}
	if m := addon.Manifests; m != nil {
		p.checkDirectory(m.Directory, at.Child("manifests", "directory"))
	}
	for i := range addon.Patches {
		if err := patch.Check(&addon.Patches[i], at.Child("patches").Index(i)); err != nil {
			*p = append(*p, Problem{addonsv1.InvalidPatchReason, err})
		}
	}
}

func (p *problems) checkDirectory(directory string, at *field.Path) {
	if directory != "" && !fs.ValidPath(path.Clean(directory)) {
		p.add(addonsv1.InvalidDirectoryReason, at, directory, "it has to be relative to the artifact's root, and to stay in it")
	}
}

// expressionsOf returns all expressions of add-ons.
func expressionsOf(addons []addonsv1.Addon) (all []string) {
	for i := range addons {
		for _, condition := range slices.Concat(addons[i].Preconditions, addons[i].Postconditions) {
			all = append(all, condition.Expression)
		}
		for _, check := range addons[i].Readiness {
			all = append(all, check.Expression)
		}
	}
	return all
}

// checkConditions compiles preconditions or postconditions, and checks whether their
// objects could be read.
func (p *problems) checkConditions(all []addonsv1.ObjectsCondition, path *field.Path) {
	for i := range all {
		for j, object := range all[i].Objects {
			if wrong := expression.CheckObject(object); wrong != nil {
				p.add(addonsv1.InvalidExpressionReason, path.Index(i).Child("objects").Index(j).Child(wrong.Field), wrong.BadValue, wrong.Detail)
			}
		}
		if err := expression.Check(&all[i]); err != nil {
			p.add(addonsv1.InvalidExpressionReason, path.Index(i).Child("expression"), all[i].Expression, err.Error())
		}
	}
}
