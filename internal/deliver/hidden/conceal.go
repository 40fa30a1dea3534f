// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// ConcealAll takes the secrets out of an error that is returned, and out of the answer that it wraps.
func (h *Secrets) ConcealAll(err error) error {
	if err == nil {
		return nil
	}
	if words := h.In(err.Error()); words != err.Error() {
		return &concealed{words: words, err: h.Conceal(err)}
	}
	return err
}

// concealed is an error with other words.
type concealed struct {
	words string
	err   error
}

func (c *concealed) Error() string { return c.words }

// Unwrap returns what tells the meaning of the error.
func (c *concealed) Unwrap() error { return c.err }

// Conceal takes the secrets out of an answer of the API server, which quotes what it refuses.
func (h *Secrets) Conceal(err error) error {
	status, answered := object.AnswerOf(err)
	if !answered {
		return err
	}
	status.Message = h.InWords(status.Message)
	for i := range status.Details.Causes {
		cause := &status.Details.Causes[i]
		cause.Message = h.InWords(cause.Message)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// FailureOf returns what an error about an object means, nil for none. It tells nothing that comes
// from Secrets.
func (h *Secrets) FailureOf(key record.ObjectKey, err error) *object.Failure {
	if f, ok := errors.AsType[*object.Failure](err); ok || err == nil {
		return f
	}
	return object.Classify(h.Conceal(err), key, h.scope.Defines(schema.GroupKind{Group: key.Group, Kind: key.Kind}))
}
