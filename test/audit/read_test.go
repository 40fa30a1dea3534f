// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestRead(t *testing.T) {
	const first, second = `{"verb": "get"}` + "\n", `{"verb": "list"}` + "\n"
	for name, test := range map[string]struct {
		log   string
		begin int
		want  string
		fails bool
	}{
		"all":                     {log: first + second, want: "get list"},
		"behind an offset":        {log: first + second, begin: len(first), want: "list"},
		"in the midst of a line":  {log: first + second, begin: 3, want: "list"},
		"a line that is written":  {log: first + second[:5], want: "get"},
		"a line that is no event": {log: first + "what?\n" + second, want: "get", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "audit.log")
			g.Expect(os.WriteFile(file, []byte(test.log), 0o600)).To(Succeed())
			var verbs []string
			err := read(file, int64(test.begin), func(e *Event, _ int64) bool {
				verbs = append(verbs, e.Verb)
				return true
			})
			g.Expect(err != nil).To(Equal(test.fails), "%v", err)
			g.Expect(strings.Join(verbs, " ")).To(Equal(test.want))
		})
	}
}
