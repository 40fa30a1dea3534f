// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// lookNowPause is the least time between two looks at once that somebody asks for. Many
// namespaces may share credentials, and with them what a host allows.
const lookNowPause = 5 * time.Second

// wishes are the values of the annotation look-now that were acted on last.
type wishes struct{ of sync.Map } // client.ObjectKey to a wish

type wish struct {
	value string
	since time.Time // zero if it was there from the start
}

// heed makes the stack show the value to act on, and returns how long a newer one has to
// wait, 0 if there is none.
func (w *wishes) heed(s *addonsv1.AddonStack, now time.Time) time.Duration {
	key, value := client.ObjectKeyFromObject(s), s.Annotations[addonsv1.LookNowAnnotation]
	was, known := w.of.Load(key)
	if !known {
		w.of.Store(key, wish{value: value})
		return 0
	}
	before := was.(wish)
	if before.value == value {
		return 0
	}
	if left := before.since.Add(lookNowPause).Sub(now); left > 0 {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[addonsv1.LookNowAnnotation] = before.value
		return left
	}
	w.of.Store(key, wish{value, now})
	return 0
}

func (w *wishes) forget(key client.ObjectKey) { w.of.Delete(key) }
