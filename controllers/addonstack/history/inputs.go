// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// A revision of a stack with a rollout pins the values of ConfigMaps and Secrets by digest. So other values are another
// revision, which has its own rollout.

// digester returns the digest of values.
type digester func(ctx context.Context, namespace string, ref addonsv1.ValuesReference) (string, error)

// inputsOf returns the digests of the values that the stack's next revision pins, none without a rollout.
func inputsOf(ctx context.Context, s *addonsv1.AddonStack, digest digester) (stack.Inputs, error) {
	inputs := stack.Inputs{}
	for name, ref := range stack.StagedSources(&s.Spec) {
		var err error
		if inputs[name], err = digest(ctx, s.Namespace, ref); err != nil {
			return nil, err
		}
	}
	return inputs, nil
}
