// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strings"
)

// List joins texts as [strings.Join] does, but names at most so many of them, as in "a; b; and 3 more".
func List(texts []string, separator string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}
