// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/releases"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
	"github.com/cluster-chandler/chandler/internal/deliver"
)

// The longer a condition doesn't hold, the less often it is looked at.
func TestWaitsGrow(t *testing.T) {
	m, start := newAddonMemory(), time.Unix(0, 0)
	const key, other = "preconditions", "postconditions"
	at := func(key string, times ...time.Duration) (waited []time.Duration) {
		for _, passed := range times {
			waited = append(waited, m.wait(key, start.Add(passed)).retryAfter)
		}
		return waited
	}
	const s = time.Second
	if got, want := at(key, 0, s, 4*s, 8*s, 40*s, 120*s, 121*s, time.Hour), []time.Duration{s, s, s, 2 * s, 10 * s, 30 * s, 30 * s, 30 * s}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := at(other, time.Hour, time.Hour+8*s), []time.Duration{s, 2 * s}; !slices.Equal(got, want) {
		t.Errorf("of another condition: got %v, want %v", got, want)
	}
	delete(m.unmetSince, key)
	if got := at(key, 2*time.Hour); got[0] != s {
		t.Errorf("after it held: %v", got)
	}
	if got := at(other, 2*time.Hour); got[0] != 30*s {
		t.Errorf("of the other one, which doesn't hold: %v", got)
	}
}

// A revision that has begun isn't held any more: half of it may be there.
func TestPreconditionsHoldWhatHasNotBegun(t *testing.T) {
	in := &inputs{artifact: "sha256:1", Addon: &wanted.Addon{Addon: addonsv1.Addon{Namespace: "n", Name: "web"}}}
	digest := in.digest(factsNone)
	shut, open := []addonsv1.ObjectsCondition{{Expression: "false"}}, []addonsv1.ObjectsCondition{{Expression: "true"}}
	for name, tc := range map[string]struct {
		conditions []addonsv1.ObjectsCondition
		record     deliver.Summary
		want       bool
	}{
		"there is none":              {},
		"it isn't installed":         {conditions: shut, want: true},
		"they hold":                  {conditions: open},
		"another one is installed":   {conditions: shut, record: deliver.Summary{Status: deliver.StatusDeployed, Digest: "other"}, want: true},
		"it has begun":               {conditions: shut, record: deliver.Summary{Status: "pending-upgrade", Digest: digest}},
		"it has failed":              {conditions: shut, record: deliver.Summary{Status: "failed", Digest: digest}},
		"another one has failed":     {conditions: shut, record: deliver.Summary{Status: "failed", Digest: "other"}, want: true},
		"a certificate of it is due": {conditions: shut, record: deliver.Summary{Status: deliver.StatusDeployed, Digest: digest}, want: true},
	} {
		in.Preconditions = tc.conditions
		q := &clusterRun{proofs: &releases.Proofs{}, ca: &addonsv1.ClusterAddon{}, memory: newMemory()}
		if held, err := (conditionCheck{q}).unmetPrecondition(t.Context(), in, tc.record); (held != nil) != tc.want || err != nil {
			t.Errorf("%s: %+v, %v", name, held, err)
		}
	}
}

// An object that can't be asked for is told of, and nothing that may be in it.
func TestUnreadableObjects(t *testing.T) {
	o := addonsv1.ConditionObject{Key: "gate", APIVersion: "v1", Kind: "Secret", Namespace: "team", Name: "gate"}
	for says, err := range map[string]error{
		"Secret team/gate, v1, couldn't be asked for, or the answer can't be read; the manager's log has the error": errors.New("sentinel"),
		"the cluster doesn't know the kind of Secret team/gate, v1":                                                 fmt.Errorf("no restmapping: %w", &meta.NoKindMatchError{}),
		"Secret team/gate doesn't exist":                                                                            apierrors.NewNotFound(schema.GroupResource{}, "gate"),
		"Secret team/gate can't be read: Forbidden":                                                                 apierrors.NewForbidden(schema.GroupResource{}, "gate", errors.New("sentinel")),
		"Secret team/gate can't be read: MethodNotAllowed":                                                          apierrors.NewMethodNotSupported(schema.GroupResource{}, "get"),
	} {
		if missing, err := unreadable(t.Context(), o, err); err != nil || missing != says {
			t.Errorf("got %q, %v; want %q", missing, err, says)
		}
	}
	html := reading{handler: says(http.StatusOK, "text/html", "<html>sentinel"), name: "gate"}.do(t)
	if missing, err := unreadable(t.Context(), o, html); err != nil || !strings.Contains(missing, "the answer can't be read") || strings.Contains(missing, "correct") {
		t.Errorf("of what a proxy answers, %v: got %q, %v", html, missing, err)
	}
	for _, err := range []error{&net.OpError{Op: "read"}, apierrors.NewServiceUnavailable("later")} {
		if missing, got := unreadable(t.Context(), o, err); missing != "" || !errors.Is(got, err) {
			t.Errorf("of the cluster: got %q, %v; want %v", missing, got, err)
		}
	}
	q := &clusterRun{proofs: &releases.Proofs{}}
	for says, wrong := range map[string]addonsv1.ConditionObject{
		`objects[gate].apiVersion: Invalid value: "apps/v1/x"`: {Key: "gate", APIVersion: "apps/v1/x", Kind: "Deployment", Name: "a"},
		`objects[gate].name: Invalid value: "a/b"`:             {Key: "gate", APIVersion: "v1", Kind: "ConfigMap", Name: "a/b"},
	} {
		if _, missing, err := (conditionCheck{q}).conditionObject(t.Context(), &wanted.Addon{}, wrong); err != nil || !strings.HasPrefix(missing, says) {
			t.Errorf("got %q, %v; want %s", missing, err, says)
		}
	}
}

// A cluster that loses its records is installed no more than ten times in ten minutes. One
// that loses them now and then is repaired at once.
func TestInstallationsThatDoNotLast(t *testing.T) {
	for name, tc := range map[string]struct {
		every       time.Duration
		within      time.Duration
		least, most int
	}{
		"all the time":        {100 * time.Millisecond, 10 * time.Minute, 5, 10},
		"for hours":           {time.Second, 10 * time.Hour, 100, 130},
		"each quarter hour":   {15 * time.Minute, 10 * time.Hour, 40, 41},
		"twice in one minute": {time.Minute, time.Minute, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m, installed := newMemory(), 0
			time := testingclock.NewFakeClock(time.Now())
			m.installs.Clock = time
			start, release := time.Now(), deliver.Release{Namespace: "apps", Name: "web"}
			for ; !time.Now().After(start.Add(tc.within)); time.Step(tc.every) {
				if m.installPause(release, time.Now()) == 0 {
					m.installs.Next(release.String(), time.Now())
					installed++
				}
			}
			if installed < tc.least || installed > tc.most {
				t.Errorf("installed %d times", installed)
			}
		})
	}
}
