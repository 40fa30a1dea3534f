// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/kustomization"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestCommands finds commands of the pages that can't be run: targets that the Makefile doesn't have, and folders that
// kustomize can't build. A block with another program is marked with "no-test" after its language. Package quickstart has
// kubectl parse its command lines, and the plugin's own tests have it parse its.
func TestCommands(t *testing.T) {
	found := 0
	EachProgram(t, root, func(page string, shown Command, words []string) {
		found++
		if err := check(page, words); err != nil {
			t.Errorf("%s: %s: %v", shown.Where, strings.TrimSpace(shown.Text), err)
		}
	})
	if found < 80 {
		t.Errorf("found %d commands only", found)
	}
}

// elsewhere are programs of pages whose commands other packages of tests know: quickstart, and clusterctl.
var elsewhere = map[string][]string{"docs/quick-start.md": {"kind", "clusterctl"}, "docs/clusterctl.md": {"clusterctl", "curl"}}

func check(page string, words []string) error {
	switch program := words[0]; {
	case program == "kubectl":
		if at := slices.IndexFunc(words, func(word string) bool { return word == "-k" || word == "kustomize" }); at > 0 {
			return checkFolder(words[at+1])
		}
		return nil
	case program == "make":
		return checkTargets(words[1:])
	case program == "kustomize" && len(words) == 3 && words[1] == "build":
		return checkFolder(words[2])
	case slices.Contains(elsewhere[page], program):
		return nil
	default:
		return fmt.Errorf("no test can run %s: mark the block with no-test", program)
	}
}

var target = regexp.MustCompile(`(?m)^([a-z-]+(?: [a-z-]+)*):`)

func checkTargets(words []string) error {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return err
	}
	var targets []string
	for _, line := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, strings.Fields(line[1])...)
	}
	for _, word := range words {
		if !isAssignment(word) && !slices.Contains(targets, word) {
			return fmt.Errorf("the Makefile has no target %s", word)
		}
	}
	return nil
}

// checkFolder builds a folder of the checkout. Folders in instances/ are the reader's own: test/manifests builds those.
func checkFolder(folder string) error {
	if strings.HasPrefix(folder, "instances/") {
		return nil
	}
	_, err := kustomization.Build(filepath.Join(root, folder))
	return err
}

// TestUntestedYAML reads blocks of YAML that no API server of the tests knows.
func TestUntestedYAML(t *testing.T) {
	pages, err := Pages(root)
	must.Succeed(t, err)
	for _, page := range pages {
		blocks, err := page.AllBlocks()
		must.Succeed(t, err)
		for _, block := range blocks {
			if block.Language == "yaml" {
				if _, err := block.documents(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestCommandLines(t *testing.T) {
	block := Block{Text: "$ A=b kubectl get x \\\n    -n 'a b' | base64 -d >file  # why\nout\n$ curl -L https://x |\n    kubectl apply -f - && ls \"$(date +%s)\"\n"}
	var got []string
	for _, command := range block.Commands() {
		got = append(got, fmt.Sprintf("%q %q", command.Programs(), command.Output))
	}
	want := []string{
		`[["kubectl" "get" "x" "-n" "a b"] ["base64" "-d"]] "out\n"`,
		`[["curl" "-L" "https://x"] ["kubectl" "apply" "-f" "-"] ["ls" "$(date +%s)"]] ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}
