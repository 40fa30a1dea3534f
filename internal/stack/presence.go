// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"cmp"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// PresentOf returns when an add-on is there.
func PresentOf(a *addonsv1.Addon) addonsv1.Present {
	if a.Lifecycle == nil {
		return addonsv1.PresentAlways
	}
	return cmp.Or(a.Lifecycle.Present, addonsv1.PresentAlways)
}

// Presences returns when each of a stack's add-ons is there, by "namespace/name".
func Presences(addons []addonsv1.Addon) map[string]addonsv1.Present {
	all := make(map[string]addonsv1.Present, len(addons))
	for i := range addons {
		a := &addons[i]
		all[cmp.Or(a.Namespace, addonsv1.DefaultAddonNamespace)+"/"+a.Name] = PresentOf(a)
	}
	return all
}
