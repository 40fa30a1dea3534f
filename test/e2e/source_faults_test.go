// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// sourceFault is what a host does wrong, and what the add-ons say of it that are to
// come from there.
type sourceFault struct {
	fault faulty.Fault
	// perTry is how many requests one attempt may take.
	perTry                  int
	oci, helm, http, github complaint
}

// complaint is phase, reason and message of an add-on.
type complaint struct {
	phase           addonsv1.AddonPhase
	reason, message string
}

func unavailable(message string) complaint {
	return complaint{addonsv1.AddonPending, "SourceUnavailable", message}
}

func failed(reason, message string) complaint {
	return complaint{addonsv1.AddonFailed, reason, message}
}

// alike is a fault that every kind of source meets in the same words.
func alike(fault faulty.Fault, perTry int, c complaint) sourceFault {
	return sourceFault{fault, perTry, c, c, c, c}
}

func (f sourceFault) of(kind string) complaint {
	return map[string]complaint{"oci": f.oci, "helm": f.helm, "http": f.http, "github": f.github}[kind]
}

// slow is first told as ArtifactPending, and then as SourceUnavailable for as long as it lasts.
var slow = complaint{addonsv1.AddonPending, "", ""}

func sourceFaults() map[string]sourceFault {
	const (
		leftAlone = "asks to be left alone for a while"
		damaged   = "it is damaged, or was tampered with"
	)
	return map[string]sourceFault{
		"trickle":        alike(faulty.Trickle, 3, slow),
		"silent":         alike(faulty.Silent, 3, slow),
		"redirects":      alike(faulty.RedirectForever(), 6, unavailable("redirects more than 5 times")),
		"truncated":      alike(faulty.Truncate, 3, unavailable("broke off")),
		"hangs-up":       alike(faulty.HangUp, 3, unavailable("broke off")),
		"throttles":      alike(faulty.Status(429, 4), 3, unavailable(leftAlone)),
		"throttles-more": alike(faulty.Status(429, 0), 3, unavailable(leftAlone)),
		"overloaded":     alike(faulty.Status(503, 4), 3, unavailable(leftAlone)),
		"down":           alike(faulty.Status(503, 0), 3, unavailable("answers 503 Service Unavailable")),
		"broken":         alike(faulty.Status(500, 0), 3, unavailable("answers 500 Internal Server Error")),
		"endless":        alike(faulty.Endless, 3, failed("ArtifactTooLarge", "larger than")),
		"web-page": {faulty.WebPage, 3,
			failed("ArtifactInvalid", "its manifest is no JSON"), failed("ArtifactInvalid", "isn't an index that Helm can read"),
			failed("DigestMismatch", "isn't the archive of http.digest"),
			failed("ArtifactInvalid", "isn't what GitHub's API does")},
		"tampered": {faulty.Tamper, 3,
			failed("DigestMismatch", damaged), failed("DigestMismatch", damaged),
			failed("DigestMismatch", "isn't the archive of http.digest"),
			failed("DigestMismatch", damaged)},
	}
}

// maxGrowth is how much memory the manager may take while all sources fail.
const maxGrowth = 64 // MiB

// TestSourceFaults has hosts that fail, each in its own way, for each kind of source;
// and beside them one that doesn't.
func TestSourceFaults(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials := trusting(t, authority.PEM)
	good := publish(t, origin, "good")
	sound := faulty.Start(t, authority, good)
	tn.startManager("--credentials-dir="+credentials, "--cache-dir="+t.TempDir())

	// Two clusters with all add-ons, and one with none that fails.
	affected := []string{"one", "two"}
	for i, name := range affected {
		tn.makeCluster(name, workloadServer(t, i), labels("sources=all"))
	}
	tn.makeCluster("calm", workloadServer(t, 1), labels("sources=good"))
	offered := func(prefix, namespace string) (addons []addonsv1.Addon, names []string) {
		for _, kind := range sourceKinds {
			addons = append(addons, tn.addon(prefix+kind, "", inNamespace(namespace), func(a *addonsv1.Addon) { a.Chart = good.from(kind, sound) }))
			names = append(names, prefix+kind)
		}
		return addons, names
	}
	addons, names := offered("good-", tn.namespace)
	tn.makeStack("good", labels("sources=all"), addons...)
	calmAddons, calm := offered("calm-", tn.namespace+"-calm")
	tn.makeStack("calm", labels("sources=good"), calmAddons...)
	for _, cluster := range affected {
		tn.awaitCluster(cluster, "a sound source is used", ready(names...))
	}
	tn.awaitCluster("calm", "a sound source is used", ready(calm...))
	tn.settle()
	before := memoryOf(t, tn.manager)

	faults, servers := sourceFaults(), map[string]*faulty.Server{}
	var failing []addonsv1.Addon
	for name, f := range faults {
		p := publish(t, origin, name)
		servers[name] = faulty.Start(t, authority, p)
		servers[name].Fail(f.fault)
		for _, kind := range sourceKinds {
			failing = append(failing, tn.addon(name+"-"+kind, "", func(a *addonsv1.Addon) { a.Chart = p.from(kind, servers[name]) }))
			names = append(names, name+"-"+kind)
		}
	}
	begun := time.Now()
	tn.makeStack("failing", labels("sources=all"), failing...)
	for name, f := range faults {
		tn.run(name, func(_ *testing.T, tn *tenant) {
			for _, kind := range sourceKinds {
				for _, cluster := range affected {
					c := f.of(kind)
					tn.awaitCluster(cluster, "the add-on says what is wrong with its source", phase(name+"-"+kind, c.phase, c.reason, c.message))
				}
			}
		})
	}
	tn.run("others", func(_ *testing.T, tn *tenant) {
		for _, cluster := range affected {
			tn.awaitCluster(cluster, "what doesn't fail isn't held up",
				installedAs("good-oci", 1, "1.0.0"), installedAs("good-helm", 1, "1.0.0"), installedAs("good-http", 1, "1.0.0"), installedAs("good-github", 1, "1.0.0"),
				condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "", ""))
		}
		tn.changeAddon("calm", calm[0], withValues(map[string]any{"text": "changed"}))
		tn.awaitCluster("calm", "other clusters aren't held up", installedAs(calm[0], 2, "1.0.0"), ready(calm...))
	})
	t.Run("a request that isn't answered is given up", func(t *testing.T) {
		tn.in(t).awaitCluster("one", "it doesn't hang forever", phase("silent-oci", addonsv1.AddonPending, "SourceUnavailable", "doesn't answer in time"))
	})

	lasted := time.Since(begun)
	grown := memoryOf(t, tn.manager) - before
	t.Logf("after %s the manager has %d MiB more", lasted.Round(time.Second), grown)
	tn.Expect(grown).To(BeNumerically("<", maxGrowth))
	for name, server := range servers {
		asked, total := map[string][]string{}, 0
		for _, r := range server.Requests() {
			asked[kindAsked(r)] = append(asked[kindAsked(r)], r.String())
			total++
		}
		tn.Expect(total).To(BeNumerically(">", 0), "%s is asked", name)
		for kind, requests := range asked {
			tn.Expect(len(requests)).To(BeNumerically("<=", attempts(lasted)*faults[name].perTry),
				"in %s, however many clusters wait, %s of %s is asked seldom: %v", lasted, kind, name, requests)
		}
	}

	for _, server := range servers {
		server.Heal()
	}
	healed := time.Now()
	// After a 429 without Retry-After, GitHub wants to be left alone for a minute.
	var others []clusterCheck
	for _, name := range names {
		if !strings.HasPrefix(name, "throttles") || !strings.HasSuffix(name, "-github") {
			others = append(others, installedAs(name, 1, "1.0.0"))
		}
	}
	for _, cluster := range affected {
		tn.awaitCluster(cluster, "all is well after the faults are gone", others...)
	}
	t.Logf("ready %s after the faults were gone", time.Since(healed).Round(time.Millisecond))
	// What somebody has to fix is asked for again after as long as it has lasted.
	tn.Expect(time.Since(healed)).To(BeNumerically("<", lasted+45*time.Second))
	for _, cluster := range affected {
		tn.awaitCluster(cluster, "the others, too", ready(names...))
	}
}

// attempts is how often a source may be asked within a time: after a second, and after
// twice as long each time, up to 15 seconds. One attempt may just have begun.
func attempts(within time.Duration) int {
	n, delay := 2, time.Second
	for at := delay; at < within; at += delay {
		delay = min(2*delay, 15*time.Second)
		n++
	}
	return n
}
