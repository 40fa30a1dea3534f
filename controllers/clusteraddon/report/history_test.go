// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/gather"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/member"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// causesOf returns the add-ons of a history, each with why it changed.
func causesOf(history []addonsv1.AddonChange) string {
	var all []string
	for _, c := range history {
		all = append(all, c.Addon+" "+string(c.Cause))
	}
	return strings.Join(all, ", ")
}

// TestHistoryIsBounded has the newest change first, ten at most, and one repair of an add-on.
func TestHistoryIsBounded(t *testing.T) {
	var history []addonsv1.AddonChange
	add := func(addon string, cause addonsv1.ChangeCause) {
		history = report.WithChange(history, addonsv1.AddonChange{Addon: addon, Cause: cause})
	}
	for _, addon := range []string{"web", "dns", "web", "web", "dns"} {
		add(addon, addonsv1.ChangeRepaired)
	}
	add("web", addonsv1.ChangeEdited)
	if got := causesOf(history); got != "web Edited, dns Repaired, web Repaired" {
		t.Error(got)
	}
	for range 20 {
		add("web", addonsv1.ChangeEdited)
	}
	if len(history) != addonsv1.MaxHistory || strings.Contains(causesOf(history), "Repaired") {
		t.Error(causesOf(history))
	}
}

// TestHistoryOutlivesAFailedWrite brings the changes of a reconcile whose write failed into the status with the next one, and once only.
func TestHistoryOutlivesAFailedWrite(t *testing.T) {
	memory := &report.Memory{}
	finish := func(history []addonsv1.AddonChange, write error, addons ...string) []addonsv1.AddonChange {
		var did result.Deeds
		for _, addon := range addons {
			did.Changed(addonsv1.AddonStatus{Name: addon}, addonsv1.ChangeInstalled, "", "1.0.0", 1)
		}
		ca := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{History: history}}
		report.Report{Observed: &gather.Observed{ClusterAddon: ca}, Stored: ca.DeepCopy(), Cluster: &member.Member{}, Memory: memory}.Finish(result.All{Deeds: did}, nil, true, now)
		memory.Written(write)
		return ca.Status.History
	}
	finish(nil, errors.New("conflict"), "dns")
	written := finish(nil, nil, "web")
	if got := causesOf(written); got != "web Installed, dns Installed" || !written[1].Time.Time.Equal(now) {
		t.Error(written)
	}
	if got := causesOf(finish(written, nil)); got != "web Installed, dns Installed" {
		t.Error(got)
	}
}

// TestReadyTellsTheChange names both versions and the cause in the event of an add-on that is ready.
func TestReadyTellsTheChange(t *testing.T) {
	was, is := addonIn("web", addonsv1.AddonUpgrading, "", ""), addonIn("web", addonsv1.AddonReady, "", "")
	was.Revision, is.Revision, was.Version, is.Version = 1, 2, "1.0.0", "1.1.0"
	change := addonsv1.AddonChange{Addon: is.Name, Namespace: is.Namespace, Stack: is.Stack, Cause: addonsv1.ChangeEdited, From: "1.0.0", To: "1.1.0", Revision: 2}
	for name, tc := range map[string]struct {
		change func(c *addonsv1.AddonChange)
		want   string
	}{
		"it was upgraded":   {func(*addonsv1.AddonChange) {}, "Upgraded add-on web from 1.0.0 to 1.1.0"},
		"the same version":  {func(c *addonsv1.AddonChange) { c.From, c.Cause = "1.1.0", addonsv1.ChangeValues }, "Upgraded add-on web 1.1.0"},
		"it was installed":  {func(c *addonsv1.AddonChange) { c.From, c.Cause = "", addonsv1.ChangeInstalled }, "Installed add-on web 1.1.0"},
		"it isn't known":    {func(c *addonsv1.AddonChange) { c.Revision = 1 }, "Installed add-on web 1.1.0"},
		"it was repaired":   {func(c *addonsv1.AddonChange) { c.Cause = addonsv1.ChangeRepaired }, "Installed add-on web 1.1.0"},
		"it is another one": {func(c *addonsv1.AddonChange) { c.Addon = "dns" }, "Installed add-on web 1.1.0"},
	} {
		after, c := with(is), change
		tc.change(&c)
		after.Status.History = []addonsv1.AddonChange{c}
		told := (&report.Memory{}).Events(with(was), after)
		if len(told) != 1 || told[0].Reason != "AddonReady" || !strings.HasPrefix(told[0].Note, tc.want+" in namespace ") {
			t.Errorf("%s: %+v", name, told)
		}
	}
}
