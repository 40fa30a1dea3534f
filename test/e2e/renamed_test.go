// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// TestRenamedAddonKeepsPasswords renames, splits and joins add-ons whose charts make passwords up.
func TestRenamedAddonKeepsPasswords(t *testing.T) {
	t.Parallel()
	password := func(name string) string {
		return secretTemplate(name, "stringData:\n  password: {{ randAlphaNum 16 }}\n")
	}
	tn, s := newProd(t, 2)
	generates := tn.writeChart("generates", "1.0.0", chart{"templates/one.yaml": password("one"), "templates/two.yaml": password("two")})
	one := tn.writeChart("one", "1.0.0", chart{"templates/one.yaml": password("one")})
	two := tn.writeChart("two", "1.0.0", chart{"templates/two.yaml": password("two")})
	looksUp := tn.writeChart("looksup", "1.0.0", keepsByLookup)
	tn.install(tn.addon("whole", generates), tn.addon("db", looksUp))
	secrets := func() (all []string) {
		for _, name := range []string{"one", "two", "db"} {
			secret := tn.secretOn(s, name)
			all = append(all, string(secret.UID)+" "+string(secret.Data["password"]))
		}
		return all
	}
	before := secrets()
	for _, step := range []struct {
		reason string
		addons []addonsv1.Addon
		names  []string
	}{
		{"renamed", []addonsv1.Addon{tn.addon("all", generates), tn.addon("database", looksUp)}, []string{"all", "database"}},
		{"split", []addonsv1.Addon{tn.addon("first", one), tn.addon("second", two), tn.addon("database", looksUp)}, []string{"first", "second", "database"}},
		{"joined", []addonsv1.Addon{tn.addon("whole", generates), tn.addon("db", looksUp)}, []string{"whole", "db"}},
	} {
		tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = step.addons })
		tn.awaitReady("platform", step.reason)
		tn.awaitCluster("prod", step.reason, ready(step.names...))
		tn.Expect(secrets()).To(Equal(before), step.reason)
	}
}
