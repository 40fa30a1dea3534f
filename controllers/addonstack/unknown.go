// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"fmt"

	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/version"
)

// unknownFieldsError says that a spec has fields which this program doesn't know: the CRDs are newer. Any of them may
// restrict what the spec asks for, so such a spec isn't taken up.
type unknownFieldsError struct{ fields []string }

// Error names the fields, and the way out.
func (e *unknownFieldsError) Error() string {
	return fmt.Sprintf("%s: version %s of the provider instance doesn't know this, and so can't tell what the stack asks for. Upgrade the instance, or take it out of the spec",
		message.List(e.fields, ", ", shownProblems), version.Get())
}
