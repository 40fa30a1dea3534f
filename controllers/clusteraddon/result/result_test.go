// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

// What goes wrong with one request leaves the other add-ons alone, and is told as what it is, and nothing that may be in it.
// Only where it is about the cluster's kinds, nothing else is asked.
func TestFailuresOfRequests(t *testing.T) {
	limit := func(discovery bool) error {
		return fmt.Errorf("unexpected error when reading response body: %w", &fleet.LimitError{
			Reason: fleet.ReasonResponseTooLarge, Message: "GET /x was answered with more than 4096 KiB", Discovery: discovery,
		})
	}
	for _, tc := range []struct {
		err         error
		unreachable bool
		reason      string
		says        string
	}{
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true, reasons.Retrying, "The cluster didn't answer; trying again"},
		{&url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/namespaces/a/secrets?limit=5", Err: context.DeadlineExceeded}, true, reasons.Retrying, "The cluster didn't answer; trying again"},
		{apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("changed")), false, reasons.Retrying, "Another write came first; trying again"},
		{apierrors.NewInternalError(errors.New("etcd")), false, reasons.Retrying, `The cluster answered "Internal error occurred: etcd"; trying again`},
		{errors.New("sentinel"), false, reasons.Retrying, "A request failed before it was sent"},
		{limit(true), true, reasons.ResponseTooLarge, "GET /x was answered with more than 4096 KiB"},
		{limit(false), false, reasons.ResponseTooLarge, "GET /x was answered with more than 4096 KiB"},
		{&fleet.LimitError{Reason: fleet.WaitingForMemory, Message: "Cluster a/b is full"}, false, fleet.WaitingForMemory, "Cluster a/b is full; trying again"},
	} {
		one := result.RequestFailed(tc.err, addonsv1.AddonStatus{Name: "web", Phase: addonsv1.AddonPending})
		status := one.Status
		if one.Unreachable != tc.unreachable || status.Reason != tc.reason || status.Phase != addonsv1.AddonPending || !strings.HasPrefix(status.Message, tc.says) ||
			strings.Contains(status.Message, "sentinel") || !errors.Is(one.Err, tc.err) {
			t.Errorf("%v: unreachable %v, %+v", tc.err, one.Unreachable, status)
		}
	}
}

// An add-on that is to be another one isn't ready while that can't be brought into the cluster.
func TestFailedUpgradeIsNotReady(t *testing.T) {
	for was, want := range map[addonsv1.AddonPhase]addonsv1.AddonPhase{
		addonsv1.AddonReady:      addonsv1.AddonUpgrading,
		addonsv1.AddonInstalling: addonsv1.AddonInstalling,
		"":                       addonsv1.AddonPending,
	} {
		var known []addonsv1.AddonStatus
		if was != "" {
			known = []addonsv1.AddonStatus{{Name: "web", Phase: was}}
		}
		one := result.UpgradeFailed(context.DeadlineExceeded, result.Previous(known, addonsv1.AddonStatus{Name: "web"}))
		if one.Status.Phase != want || one.Status.Reason != reasons.Retrying || !one.Unreachable {
			t.Errorf("was %s: %+v", was, one.Status)
		}
	}
}
