// SPDX-License-Identifier: Apache-2.0

package deliver

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// conceal takes what comes from Secrets out of an answer of the API server, which
// quotes what it refuses. It does so before the words are shortened. Of the many objects of
// one call the later ones get no words at all if it takes too much work.
func (r *run) conceal(err error) error {
	status, answered := answerOf(err)
	if r.want == nil || len(r.want.Sensitive) == 0 || !answered {
		return err
	}
	status.Message = r.secrets().Redact(status.Message)
	for i := range status.Details.Causes {
		cause := &status.Details.Causes[i]
		cause.Message = r.secrets().Redact(cause.Message)
	}
	return &apierrors.StatusError{ErrStatus: status}
}
