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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/audit"
)

// lag is how long Chandler may not know of a change yet, on a busy machine. It ends early when Chandler was seen at rest.
const lag = 40 * time.Second

// moment is a change of what is wanted. The API servers have it at some time between begin and end.
type moment struct {
	begin, end time.Time
	isRemade   bool // objects were deleted and made again meanwhile
	*model
}

// history keeps the models of all times, and the times at which Chandler knew the newest.
type history struct {
	moments []moment
	known   []time.Time
	rests   []time.Time // when Chandler had nothing to do
	actions []string
}

// now returns the newest model.
func (h *history) now() *model { return h.moments[len(h.moments)-1].model }

// record keeps what is wanted from now on, and calls write to bring it about.
func (h *history) record(m *model, write func()) {
	begin := time.Now()
	m.follow(begin, h.now())
	h.moments = append(h.moments, moment{begin: begin, model: m})
	write()
	h.moments[len(h.moments)-1].end = time.Now()
}

// change derives a model from the newest one, and records it.
func (h *history) change(mutate func(*model), write func()) {
	m := h.now().clone()
	mutate(m)
	h.record(m, write)
}

// know notes that Chandler has nothing to do any more, or starts without any memory.
func (h *history) know() { h.known = append(h.known, time.Now()) }

// believable returns the models that Chandler may have acted by at a time. Since says that an earlier one than usual counts.
func (h *history) believable(at, since time.Time) []*model {
	from := sinceLast(h.known, at, lag)
	if !since.IsZero() && since.Before(from) {
		from = since
	}
	var all []*model
	for _, m := range h.during(from, at) {
		all = append(all, m.model)
	}
	return all
}

// assigned returns the models of revisions that Chandler may deliver at a time: another process than the present one may have assigned
// them.
func (h *history) assigned(at time.Time) []moment {
	return h.during(sinceLast(h.rests, at, lag), at)
}

// sinceLast returns the last of these times before another one, or the time that is so long before it if that is later.
func sinceLast(times []time.Time, at time.Time, most time.Duration) time.Time {
	from := at.Add(-most)
	for _, one := range times {
		if one.Before(at) && one.After(from) {
			from = one
		}
	}
	return from
}

// during returns the moments that lasted at any time between two.
func (h *history) during(from, to time.Time) (all []moment) {
	for i, m := range h.moments {
		last := i == len(h.moments)-1
		if m.begin.Before(to) && (last || !h.moments[i+1].end.Before(from)) {
			all = append(all, m)
		}
	}
	return all
}

// remade notes that objects were deleted and made again in the last moment.
func (h *history) remade() { h.moments[len(h.moments)-1].isRemade = true }

// knows reports whether Chandler was at rest at some time since something is so.
func (h *history) knows(is func(*model) bool) bool {
	for i := len(h.moments) - 1; i >= 0 && is(h.moments[i].model); i-- {
		if len(h.rests) > 0 && h.rests[len(h.rests)-1].After(h.moments[i].end) {
			return true
		}
	}
	return false
}

// act notes what the operator does.
func (h *history) act(format string, arguments ...any) {
	h.actions = append(h.actions, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, arguments...))
}

func (h *history) String() string { return strings.Join(h.actions, "\n") }

// trail returns all writes to a component's objects, and to the records of its releases, with their owner and a mark of
// each password that is in them. It is for people who look for the cause of a failure.
func (j *evaluate) trail(k int) string {
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
func (j *evaluate) plans() string {
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
