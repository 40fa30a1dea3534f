// SPDX-License-Identifier: Apache-2.0

package assignment

import (
	"encoding/json"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// removalWindow is how long a removal counts towards spec.removalLimit.
const removalWindow = 10 * time.Minute

// removal is that of add-ons of a stack from a cluster. The process remembers it for what its cache doesn't show
// yet, and the ClusterAddon for the next process.
type removal struct {
	stack   client.ObjectKey
	cluster string
}

// lastRemovals returns when add-ons were taken away from a cluster, by their stack.
func lastRemovals(ca *addonsv1.ClusterAddon) map[string]time.Time {
	var at map[string]time.Time
	if err := json.Unmarshal([]byte(ca.Annotations[addonsv1.LastRemovalsAnnotation]), &at); err != nil {
		return nil // nobody has written it, or a person did
	}
	return at
}

// noteRemovals notes in a ClusterAddon that add-ons of these stacks go now. Earlier ones are dropped once they
// don't count any more.
func noteRemovals(ca *addonsv1.ClusterAddon, stacks []string, now time.Time) {
	if len(stacks) == 0 {
		return
	}
	at := map[string]time.Time{}
	maps.Copy(at, lastRemovals(ca))
	maps.DeleteFunc(at, func(_ string, t time.Time) bool { return now.Sub(t) > removalWindow })
	for _, name := range stacks {
		at[name] = now.UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(at)
	if err != nil {
		return // of a year beyond 9999
	}
	metav1.SetMetaDataAnnotation(&ca.ObjectMeta, addonsv1.LastRemovalsAnnotation, string(text))
}
