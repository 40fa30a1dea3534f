// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"encoding/json"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// Window is how long a removal counts towards spec.removalLimit.
const Window = 10 * time.Minute

// removals remembers which clusters lost add-ons of which stack lately, until the cache shows that.
//
// Key: the AddonStack and the name of the ClusterAddon.
// Bound: Window.
// Lost with it: nothing, as the ClusterAddon says it, too.
type removals struct{ known *cache.Expiring }

type removal struct {
	stack   client.ObjectKey
	cluster string
}

// add notes that a cluster loses add-ons of a stack now.
func (r removals) add(stack client.ObjectKey, cluster string) {
	r.known.Set(removal{stack, cluster}, nil, Window)
}

// includes reports whether a cluster lost add-ons of a stack lately.
func (r removals) includes(stack client.ObjectKey, cluster string) bool {
	_, known := r.known.Get(removal{stack, cluster})
	return known
}

// Last returns when add-ons were taken away from a cluster, by their stack.
func Last(ca *addonsv1.ClusterAddon) map[string]time.Time {
	var at map[string]time.Time
	if err := json.Unmarshal([]byte(ca.Annotations[addonsv1.LastRemovalsAnnotation]), &at); err != nil {
		return nil // nobody has written it, or a person did
	}
	return at
}

// Note notes in a ClusterAddon that add-ons of these stacks go now. Earlier ones are dropped once they
// don't count any more.
func Note(ca *addonsv1.ClusterAddon, stacks []string, now time.Time) {
	if len(stacks) == 0 {
		return
	}
	at := map[string]time.Time{}
	maps.Copy(at, Last(ca))
	maps.DeleteFunc(at, func(_ string, t time.Time) bool { return now.Sub(t) > Window })
	for _, name := range stacks {
		at[name] = now.UTC().Truncate(time.Second)
	}
	text, err := json.Marshal(at)
	if err != nil {
		return // of a year beyond 9999
	}
	metav1.SetMetaDataAnnotation(&ca.ObjectMeta, addonsv1.LastRemovalsAnnotation, string(text))
}
