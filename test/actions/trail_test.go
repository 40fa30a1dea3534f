// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
)

// trail returns all writes to a component's objects, and to the records of its releases, with their owner and a mark of
// each password that is in them. It is for people who look for the cause of a failure.
func (j *judge) trail(k int) string {
	j.t.Helper()
	events := j.workloads[j.cluster].Audit.Beginning().Requests(j.t, func(e *audit.Event) bool {
		if e.ObjectRef == nil || !audit.Write(e) || strings.Contains(e.RequestURI, "dryRun") {
			return false
		}
		name := e.ObjectRef.Name
		return strings.HasPrefix(name, componentName(k)+"-") || strings.HasPrefix(name, "sh.helm.release.v1."+componentName(k)+"-") ||
			strings.HasPrefix(name, "things."+componentName(k)+".")
	})
	var text strings.Builder
	for i := range events {
		e := &events[i]
		fmt.Fprintf(&text, "\n%s %s %s %d %s", e.RequestReceivedTimestamp.UTC().Format("15:04:05.000"), e.Verb, e.ObjectRef.Name, e.ResponseStatus.Code, e.User.Username)
		secret := &corev1.Secret{}
		if e.ResponseObject == nil || json.Unmarshal(e.ResponseObject.Raw, secret) != nil || secret.Name == "" {
			continue
		}
		fmt.Fprintf(&text, " of=%s status=%s by=%s", secret.Labels[addonsv1.AddonLabel], secret.Labels["status"], e.UserAgent)
		if password, has := secret.Data["password"]; has {
			fmt.Fprintf(&text, " password=%s", marked(password))
		}
		generated := generatedIn(secret)
		for _, key := range slices.Sorted(maps.Keys(generated)) {
			fmt.Fprintf(&text, " %s=%s", key, marked([]byte(generated[key])))
		}
	}
	return text.String()
}

// plans returns what was written on the management cluster about a cluster's ClusterAddon, and about AddonStacks.
func (j *judge) plans() string {
	j.t.Helper()
	events := j.hub().Audit.Beginning().Requests(j.t, func(e *audit.Event) bool {
		if e.ObjectRef == nil || !audit.Write(e) || strings.Contains(e.RequestURI, "dryRun") || e.ObjectRef.Subresource != "" {
			return false
		}
		return e.ObjectRef.Resource == "addonstacks" || e.ObjectRef.Resource == "controllerrevisions" || e.ObjectRef.Resource == "clusters" ||
			e.ObjectRef.Resource == "clusteraddons" && e.ObjectRef.Name == clusterName(j.cluster)
	})
	var text strings.Builder
	for i := range events {
		e := &events[i]
		fmt.Fprintf(&text, "\n%s %s %s %s %d %s", e.RequestReceivedTimestamp.UTC().Format("15:04:05.000"), e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name, e.ResponseStatus.Code, e.User.Username)
		var is struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				Stacks          json.RawMessage `json:"stacks"`
				ClusterSelector json.RawMessage `json:"clusterSelector"`
				Addons          []struct {
					Name string `json:"name"`
				} `json:"addons"`
			} `json:"spec"`
		}
		if e.ResponseObject != nil && json.Unmarshal(e.ResponseObject.Raw, &is) == nil {
			fmt.Fprintf(&text, " uid=%.4s generation=%d %s %s %v", is.Metadata.UID, is.Metadata.Generation, is.Spec.Stacks, is.Spec.ClusterSelector, is.Spec.Addons)
		}
	}
	return text.String()
}

func marked(value []byte) string { return fmt.Sprintf("%x", sha256.Sum256(value))[:6] }

// generatedIn returns the generated values that a record has.
func generatedIn(secret *corev1.Secret) map[string]string {
	unpacked, err := gzip.NewReader(bytes.NewReader(secret.Data["chandler"]))
	if err != nil {
		return nil
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		return nil
	}
	var is struct {
		Generated map[string]string `json:"generated"`
	}
	_ = json.Unmarshal(data, &is)
	return is.Generated
}
