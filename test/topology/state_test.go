// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/topology"
	"github.com/cluster-chandler/chandler/test/wait"
)

// patience is how long what takes seconds may take on a busy machine.
const patience = 90 * time.Second

// state is the versions of a Cluster's parts.
type state struct {
	controlPlane string // asked for; empty if there is no control plane
	runs         string // what the control plane says it is
	workers      string // asked for; empty if there are none
}

func (s state) String() string {
	controlPlane := s.controlPlane
	if s.runs != s.controlPlane {
		controlPlane = fmt.Sprintf("%s (is %s)", s.controlPlane, s.runs)
	}
	return fmt.Sprintf("control plane %s, workers %s", controlPlane, s.workers)
}

func readState(ctx context.Context, cluster string) (s state, err error) {
	of := []client.ListOption{client.InNamespace(key(cluster).Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key(cluster).Name}}
	planes := &unstructured.UnstructuredList{}
	planes.SetGroupVersionKind(topology.LocalControlPlane)
	if err := world.List(ctx, planes, of...); err != nil {
		return s, err
	}
	for _, plane := range planes.Items {
		s.controlPlane, _, _ = unstructured.NestedString(plane.Object, "spec", "version")
		s.runs, _, _ = unstructured.NestedString(plane.Object, "status", "version")
	}
	workers := &clusterv1.MachineDeploymentList{}
	if err := world.List(ctx, workers, of...); err != nil {
		return s, err
	}
	for _, w := range workers.Items {
		s.workers = w.Spec.Template.Spec.Version
	}
	return s, nil
}

// expectState fails the test unless the Cluster's parts are so now.
func expectState(t *testing.T, cluster string, want state) {
	t.Helper()
	if is, err := readState(t.Context(), cluster); err != nil || is != want {
		t.Fatalf("%s is %s (%v), expected %s", cluster, is, err, want)
	}
}

// awaitState returns when the Cluster's parts are so.
func awaitState(t *testing.T, cluster string, want state) {
	t.Helper()
	until(t, fmt.Sprintf("%s is to be %s", cluster, want), func() error {
		is, err := readState(t.Context(), cluster)
		if err == nil && is != want {
			err = fmt.Errorf("it is %s", is)
		}
		return err
	})
}

// awaitBlocked returns when a hook was asked again after it was told to wait: so Cluster API has done all that it does
// meanwhile. The Cluster tells its users of it.
func awaitBlocked(t *testing.T, cluster, hook, message string) {
	t.Helper()
	until(t, hook+" is to be asked for "+cluster, func() error {
		if n := world.hooks.count(key(cluster).Name, hook); n < 2 {
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	})
	awaitCondition(t, cluster, clusterv1.ClusterTopologyReconciledCondition, false, message)
}

// awaitCondition returns when a condition of a Cluster is true, or false, and has the text in its message.
func awaitCondition(t *testing.T, cluster, condition string, is bool, text string) {
	t.Helper()
	until(t, fmt.Sprintf("%s of %s is to be %t with %q", condition, cluster, is, text), func() error {
		obj := &clusterv1.Cluster{}
		if err := world.Get(t.Context(), key(cluster), obj); err != nil {
			return err
		}
		c := conditions.Get(obj, condition)
		if c == nil {
			return errors.New("there is no such condition")
		}
		if (c.Status == "True") != is || !strings.Contains(c.Message, text) {
			return fmt.Errorf("it is %s, %s: %s", c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

func until(t *testing.T, reason string, check func() error) {
	t.Helper()
	wait.Until(t, patience, reason, func() error {
		if world.killing.Load() {
			return check()
		}
		if err := world.Core.Ended(); err != nil {
			return fmt.Errorf("%w: %w", wait.ErrFinal, err)
		}
		return check()
	})
}

// key returns the key of a Cluster: its name, or namespace/name if it is in a namespace of its own.
func key(cluster string) client.ObjectKey {
	if in, name, found := strings.Cut(cluster, "/"); found {
		return client.ObjectKey{Namespace: in, Name: name}
	}
	return client.ObjectKey{Namespace: namespace, Name: cluster}
}
