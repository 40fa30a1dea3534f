// SPDX-License-Identifier: Apache-2.0

package answer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cluster-chandler/chandler/fleet/internal/answer"
)

// metadataOf is the metadata of Pods as an API server has it, but for most of the managed fields.
func metadataOf(n int) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	for i := range n {
		uid := types.UID(fmt.Sprintf("8f1e2c5a-7a1b-4c55-9d7e-%012d", i))
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-5d78c9869d-%05d", i), GenerateName: "web-5d78c9869d-", Namespace: "default", UID: uid, ResourceVersion: "1234", Generation: 1,
			CreationTimestamp: metav1.Unix(1e9, 0), Labels: map[string]string{"app": "web", "pod-template-hash": "5d78c9869d"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d78c9869d", UID: uid, Controller: new(true), BlockOwnerDeletion: new(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &metav1.Time{Time: time.Unix(1e9, 0)}, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"` + string(uid) + `\"}":{}}}}`),
			}},
		}})
	}
	return list
}

// kindsOf is the discovery of a cluster with CRDs of so many groups.
func kindsOf(groups int) json.RawMessage {
	kind := `{"resource":"kinds","responseKind":{"group":"example.com","version":"v1","kind":"Kind"},"scope":"Namespaced","singularResource":"kind",` +
		`"verbs":["delete","deletecollection","get","list","patch","create","update","watch"],` +
		`"subresources":[{"subresource":"status","responseKind":{"group":"example.com","version":"v1","kind":"Kind"},"verbs":["get","patch","update"]}]}`
	group := `{"metadata":{"name":"example.com","creationTimestamp":null},"versions":[{"version":"v1","resources":[` + kind + "," + kind + `],"freshness":"Current"}]}`
	return json.RawMessage(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[` + strings.Repeat(group+",", groups-1) + group + `]}`)
}

// rolesOf are ClusterRoles, which have many short values.
func rolesOf(n int) *rbacv1.ClusterRoleList {
	list := &rbacv1.ClusterRoleList{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleList"}}
	for i, m := range metadataOf(n).Items {
		rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "pods/status"}, Verbs: []string{"get", "list", fmt.Sprint(i)}}
		list.Items = append(list.Items, rbacv1.ClusterRole{ObjectMeta: m.ObjectMeta, Rules: []rbacv1.PolicyRule{rule, rule, rule}})
	}
	return list
}

// Values of real answers count at most half as much again as their text in JSON, in whichever form they come.
func TestSizesOfRealAnswers(t *testing.T) {
	for name, object := range map[string]any{
		"metadata": metadataOf(500), "kinds": kindsOf(500), "roles": rolesOf(500),
		"a CRD without descriptions": json.RawMessage(`{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{` +
			strings.Repeat(`"replicas":{"format":"int32","type":"integer"},"selector":{"items":{"type":"string"},"type":"array"},`, 30_000) + `"last":{}}}}}]}}`),
	} {
		inJSON, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		forms := map[string][]byte{"JSON": inJSON}
		if known, ok := object.(interface{ Marshal() ([]byte, error) }); ok {
			fields, err := known.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			forms["protobuf"] = protobufOf(t, "v1", "List", fields)
		}
		for form, data := range forms {
			if got := answer.SizeOf(data); got > len(inJSON)/2*3 {
				t.Errorf("%s in %s: %d for %d bytes, %d in JSON", name, form, got, len(data), len(inJSON))
			}
		}
	}
}
