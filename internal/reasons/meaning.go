// SPDX-License-Identifier: Apache-2.0

package reasons

import (
	"regexp"
	"slices"
	"strings"
)

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Meaning returns what a reason means, with the way out, as the [Table] has it but without Markdown; "" for a reason that
// isn't there.
func Meaning(name string) string {
	at := slices.IndexFunc(Table, func(row Reason) bool { return row.Name == name })
	for at > 0 && Table[at].Meaning == "" {
		at-- // it has that of the row before
	}
	if at < 0 {
		return ""
	}
	return strings.ReplaceAll(link.ReplaceAllString(Table[at].Meaning, "$1"), "`", "")
}
