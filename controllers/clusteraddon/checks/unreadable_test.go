// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/checks"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/wanted"
)

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
		if missing, err := checks.Unreadable(t.Context(), o, err); err != nil || missing != says {
			t.Errorf("got %q, %v; want %q", missing, err, says)
		}
	}
	for _, err := range []error{&net.OpError{Op: "read"}, apierrors.NewServiceUnavailable("later")} {
		if missing, got := checks.Unreadable(t.Context(), o, err); missing != "" || !errors.Is(got, err) {
			t.Errorf("of the cluster: got %q, %v; want %v", missing, got, err)
		}
	}
	for says, wrong := range map[string]addonsv1.ConditionObject{
		`objects[gate].apiVersion: Invalid value: "apps/v1/x"`: {Key: "gate", APIVersion: "apps/v1/x", Kind: "Deployment", Name: "a"},
		`objects[gate].name: Invalid value: "a/b"`:             {Key: "gate", APIVersion: "v1", Kind: "ConfigMap", Name: "a/b"},
	} {
		if _, missing, err := (checks.Checks{Addon: &wanted.Addon{}}).Object(t.Context(), wrong); err != nil || !strings.HasPrefix(missing, says) {
			t.Errorf("got %q, %v; want %s", missing, err, says)
		}
	}
}
