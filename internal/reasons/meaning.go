// SPDX-License-Identifier: Apache-2.0

package reasons

import (
	"regexp"
	"strings"
)

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Meaning returns what a reason means, with the way out, as the [Table] has it but without Markdown; "" for a reason that
// isn't there.
func Meaning(name string) string {
	return strings.ReplaceAll(link.ReplaceAllString(byName[name].Meaning, "$1"), "`", "")
}
