// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/test/audit"
)

// moment is one in the audit logs of the management cluster and of a Cluster's workload cluster.
type moment struct {
	tn            *tenant
	cluster       string
	hub, workload audit.Mark
}

func (tn *tenant) mark(cluster string) moment {
	tn.Helper()
	return moment{tn, cluster, world.Audit.Mark(tn.T), world.Provider.Workload(key(tn.at(cluster))).Audit.Mark(tn.T)}
}

// written is what was asked for in a request that changed something.
type written struct {
	audit.Event
	object map[string]any
}

// hubWrites are those of objects of the Cluster since then.
func (m moment) hubWrites(resource, subresource string) []written {
	return m.writes(m.hub, resource, subresource, func(e *audit.Event) bool {
		return e.ObjectRef.Namespace == m.tn.namespace && strings.HasPrefix(e.ObjectRef.Name, m.cluster+"-")
	})
}

// workloadWrites are those of an object since then, in the order of their answers.
func (m moment) workloadWrites(resource, name string) []written {
	return m.writes(m.workload, resource, "", func(e *audit.Event) bool { return e.ObjectRef.Name == name })
}

func (m moment) writes(since audit.Mark, resource, subresource string, of func(*audit.Event) bool) []written {
	var all []written
	for _, e := range since.Requests(m.tn.T, func(e *audit.Event) bool {
		return audit.Write(e) && e.ObjectRef != nil && e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == subresource &&
			e.ResponseStatus != nil && e.ResponseStatus.Code < 300 && !strings.Contains(e.RequestURI, "dryRun=") && of(e)
	}) {
		w := written{Event: e}
		if e.RequestObject != nil {
			NewWithT(m.tn.T).Expect(json.Unmarshal(e.RequestObject.Raw, &w.object)).To(Succeed())
		}
		all = append(all, w)
	}
	return all
}

// has reports whether a field was asked to be so.
func (w *written) has(value string, field ...string) bool {
	is, _, _ := unstructured.NestedString(w.object, field...)
	return is == value
}

func (w *written) begun() time.Time    { return w.RequestReceivedTimestamp.Time }
func (w *written) answered() time.Time { return w.StageTimestamp.Time }

// first returns the first write that asks a field to be so. There has to be one.
func (m moment) first(all []written, value string, field ...string) *written {
	m.tn.Helper()
	at := slices.IndexFunc(all, func(w written) bool { return w.has(value, field...) })
	NewWithT(m.tn.T).Expect(at).To(BeNumerically(">=", 0), "nobody asks for %s %s", field, value)
	return &all[at]
}

// controlPlane returns the write that asks a control plane to be of a version.
func (m moment) controlPlane(version string) *written {
	m.tn.Helper()
	return m.first(m.hubWrites("localcontrolplanes", ""), version, "spec", "version")
}

// expectOrder expects an upgrade, which is done, to have gone in the order of the add-ons' points. The text is that of all
// add-ons.
func (m moment) expectOrder(version, text, network, controller, scaler string) {
	t, g := m.tn.T, NewWithT(m.tn.T)
	t.Helper()
	ready := m.first(m.workloadWrites("configmaps", network), text, "metadata", "annotations", "ready")
	controlPlane := m.controlPlane(version)
	g.Expect(ready.answered()).To(BeTemporally("<", controlPlane.begun()), "the network was ready before the control plane was upgraded")
	t.Logf("%s of %s is ready; the control plane is upgraded after %s", network, m.cluster, controlPlane.begun().Sub(ready.answered()).Round(time.Millisecond))

	runs := m.first(m.hubWrites("localcontrolplanes", "status"), version, "status", "version")
	controllers := m.first(m.workloadWrites("configmaps", controller), text, "data", "text")
	g.Expect(runs.begun()).To(BeTemporally("<", controllers.begun()), "the cloud controller was changed once the control plane ran the version")

	workers := m.first(m.hubWrites("machinedeployments", ""), version, "spec", "template", "spec", "version")
	scalers := m.first(m.workloadWrites("configmaps", scaler), text, "data", "text")
	g.Expect(workers.answered()).To(BeTemporally("<", scalers.begun()), "the autoscaler was changed after the workers")
}

// awaitAsked returns once Cluster API has asked for the tenant's Clusters so often since then.
func (m moment) awaitAsked(times int) {
	m.tn.Helper()
	asks := func(e *audit.Event) bool {
		return e.Verb == "get" && e.ObjectRef != nil && e.ObjectRef.Resource == "clusteraddons" && e.ObjectRef.Namespace == m.tn.namespace
	}
	until(m.tn.T, "the hooks are to be asked", func() error {
		if n := len(m.hub.Requests(m.tn.T, asks)); n < times {
			return fmt.Errorf("they were asked %d times", n)
		}
		return nil
	})
}

// expectQuiet expects that nothing is written of the tenant's objects while Cluster API asks again and again. What there was
// to say of the wait was said before.
func (tn *tenant) expectQuiet(cluster string) {
	tn.Helper()
	tn.mark(cluster).awaitAsked(4)
	since := tn.mark(cluster)
	since.awaitAsked(6)
	var all []string
	for _, e := range since.hub.Requests(tn.T, func(e *audit.Event) bool {
		return audit.Write(e) && e.User.Username == tn.namespace+"-chandler" && e.ObjectRef != nil && e.ObjectRef.Namespace == tn.namespace && e.ObjectRef.Resource != "providerinstances"
	}) {
		all = append(all, e.User.Username+" "+e.Verb+" "+e.RequestURI)
	}
	NewWithT(tn.T).Expect(all).To(BeEmpty())
}
