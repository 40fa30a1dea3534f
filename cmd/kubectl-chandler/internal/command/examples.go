// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are one or several for each command, by its name.
var examples = map[string]string{
	"status":          "status -A\nstatus -l team=web -o wide\nstatus -w",
	"why":             "why prod-1\nwhy stack/platform\nwhy addon/ingress",
	"tree":            "tree platform",
	"events":          "events prod-1\nevents -A -w",
	"get":             "get values prod-1 ingress",
	"get values":      "get values prod-1 ingress -o json\nget values prod-1 ingress --origins",
	"get manifest":    "get manifest prod-1 ingress",
	"get notes":       "get notes prod-1 ingress",
	"history":         "history --since 12h\nhistory cluster/prod-1\nhistory platform",
	"undo":            "undo platform --dry-run\nundo platform --addon ingress\nundo platform --to-revision 3",
	"plan":            "plan platform\nplan -f stack.yaml\nplan platform --revision platform-3f9a2c1b55",
	"rollout":         "rollout status platform",
	"rollout status":  "rollout status platform -o wide\nrollout status platform -w",
	"rollout approve": "rollout approve platform production",
	"rollout promote": "rollout promote platform\nrollout promote platform --full",
	"rollout reject":  "rollout reject platform --reason 'ingress answers with 502'",
	"rollout retry":   "rollout retry platform",
	"rollout resume":  "rollout resume platform",
	"rollout hold":    "rollout hold platform prod-2\nrollout hold platform prod-2 --release",
	"migrate":         "migrate caaph\nmigrate helm default/web --repository web=https://charts.example.org --apply",
	"version":         "version --client",
	"ui":              "ui\nui -A --port 8080",
	"look":            "look platform\nlook cluster/prod-1",
	"pause":           "pause platform\npause cluster/prod-1\npause --all -A",
	"resume":          "resume platform\nresume --all -A",
	"confirm":         "confirm platform\nconfirm platform --yes",
}

// addExamples gives the commands below one theirs.
func addExamples(of *cobra.Command) {
	for _, cmd := range of.Commands() {
		_, name, _ := strings.Cut(cmd.CommandPath(), "chandler ")
		if lines := examples[name]; lines != "" {
			cmd.Example = "  kubectl chandler " + strings.ReplaceAll(lines, "\n", "\n  kubectl chandler ")
		}
		addExamples(cmd)
	}
}
