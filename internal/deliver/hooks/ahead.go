// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
)

// answer is the API server's to a hook's object that was applied ahead.
type answer struct {
	result *unstructured.Unstructured
	err    error // nil, or [apply.IsThere]
}

// applyAhead applies the objects of hooks that weren't tried before beside each other. What is refused may need another one of them: it
// comes once more in its turn.
func (r *Runner) applyAhead(ctx context.Context, hooks []Hook) {
	hooks = slices.DeleteFunc(slices.Clone(hooks), func(h Hook) bool { return r.progressOf(h) != nil || r.Progress.hooks[h.key] != nil })
	objects, answers := make([]*unstructured.Unstructured, len(hooks)), make([]answer, len(hooks))
	for i, h := range hooks {
		objects[i], answers[i].err = r.ofAttempt(h, 1)
	}
	object.InParallel(len(hooks), func(i int) *object.Failure {
		if answers[i].err == nil {
			answers[i].result, answers[i].err = r.Applier.ApplyNew(ctx, objects[i])
		}
		return nil // it is told in its turn
	})
	for i, h := range hooks {
		if answers[i].err == nil || apply.IsThere(answers[i].err) {
			r.ahead[h.key] = answers[i]
		}
	}
}

// alike returns the first hooks that have one weight and run nothing.
func alike(hooks []Hook) []Hook {
	n := slices.IndexFunc(hooks, func(h Hook) bool { return !areAlike(hooks[0], h) })
	if n < 0 {
		n = len(hooks)
	}
	return hooks[:n]
}

func areAlike(a, b Hook) bool { return a.Weight == b.Weight && !runs(a) && !runs(b) }

// runs reports whether a hook is done once its object has run to its end.
func runs(h Hook) bool { return h.Kind == "Job" || h.Kind == "Pod" }
