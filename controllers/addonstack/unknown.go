// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/version"
)

// unknownFields returns the error of a spec with fields which this program doesn't know: the CRDs are newer. Any of them
// may restrict the spec, so such a spec isn't taken up. The error names the fields, and the way out.
func unknownFields(fields []string) error {
	return failure.New(addonsv1.UnknownFieldsReason,
		"%s: version %s of the provider instance doesn't know this, and so can't tell what the stack asks for. Upgrade the instance, or take it out of the spec",
		message.List(fields, ", ", message.Few), version.Get())
}
