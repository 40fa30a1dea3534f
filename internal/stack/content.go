// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/util/validation/field"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/expression"
	"github.com/cluster-chandler/chandler/internal/render"
)

// validateContent checks the directory and the patches of an add-on. Whether the
// patches fit its objects is seen when these are made.
func validateContent(addon *addonsv1.Addon, at *field.Path) []Problem {
	var problems []Problem
	if k := addon.Kustomization; k != nil {
		problems = append(problems, validateDirectory(k.Directory, at.Child("kustomization", "directory"))...)
	}
	if m := addon.Manifests; m != nil {
		problems = append(problems, validateDirectory(m.Directory, at.Child("manifests", "directory"))...)
	}
	for i := range addon.Patches {
		if err := render.CheckPatch(&addon.Patches[i], at.Child("patches").Index(i)); err != nil {
			problems = append(problems, Problem{addonsv1.InvalidPatchReason, err})
		}
	}
	return problems
}

func validateDirectory(directory string, at *field.Path) []Problem {
	if directory == "" || fs.ValidPath(path.Clean(directory)) && !path.IsAbs(directory) {
		return nil
	}
	return []Problem{{addonsv1.InvalidDirectoryReason,
		field.Invalid(at, directory, "it has to be relative to the artifact's root, and to stay in it")}}
}

// validateConditions compiles preconditions or postconditions, and checks whether their
// objects could be read.
func validateConditions(all []addonsv1.ObjectsCondition, path *field.Path) []Problem {
	var problems []Problem
	for i := range all {
		for j, object := range all[i].Objects {
			if wrong := expression.CheckObject(object); wrong != nil {
				problems = append(problems, Problem{addonsv1.InvalidExpressionReason,
					field.Invalid(path.Index(i).Child("objects").Index(j).Child(wrong.Field), wrong.Value, wrong.Fault)})
			}
		}
		if _, err := expression.Of(&all[i]); err != nil {
			problems = append(problems, Problem{addonsv1.InvalidExpressionReason,
				field.Invalid(path.Index(i).Child("expression"), all[i].Expression, err.Error())})
		}
	}
	return problems
}
