// SPDX-License-Identifier: Apache-2.0

// Package abridge keeps lists in messages short.
package abridge

import (
	"fmt"
	"strings"
)

// Join joins texts as [strings.Join] does, but names at most so many of them, as in "a; b; and 3 more".
func Join(texts []string, separator string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator), separator, len(texts)-most)
}
