// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/must"
)

var update = flag.Bool("update", false, "write generated tables into their pages")

// TestAddonReasons compares the table of reasons with the constants of all packages that give add-ons
// reasons, and with the page, which is generated from it.
func TestAddonReasons(t *testing.T) {
	var rows, exist []string
	for _, row := range reasons.Table {
		rows = append(rows, row.Name)
	}
	for _, group := range slices.Concat(
		constantsOf(t, "internal/failure", exported), constantsOf(t, "internal/render/job", isReason),
		constantsOf(t, "internal/deliver", isReason), constantsOf(t, "internal/deliver/outcome", isReason),
		constantsOf(t, "internal/deliver/revision", isReason), constantsOf(t, "internal/deliver/memory", isReason), constantsOf(t, "internal/deliver/object", isReason), constantsOf(t, "internal/reasons", exported), constantsOf(t, "internal/health", isReason)) {
		exist = append(exist, group.reasons...)
	}
	exist = slices.DeleteFunc(exist, func(reason string) bool { return reason == "Ready" }) // it isn't shown
	compareReasons(t, "reasons of add-ons", rows, exist)

	path, end := filepath.Join(root, "docs/reference/reasons.md"), "<!-- Generated from internal/reasons by make generate. -->\n"
	page, err := os.ReadFile(path)
	must.Succeed(t, err)
	before, _, _ := strings.Cut(string(page), end)
	generated := before + end + tablesOfReasons()
	switch {
	case generated == string(page):
	case *update:
		must.Succeed(t, os.WriteFile(path, []byte(generated), 0o644))
	default:
		t.Errorf("%s isn't what internal/reasons says; run make generate", path)
	}
}

// TestTroubleshooting compares the reasons that docs/troubleshooting.md sorts by place with those that there are.
func TestTroubleshooting(t *testing.T) {
	var sorted, all []string
	for _, row := range mustSection(t, "docs/troubleshooting.md", "## By reason").Rows("look at") {
		sorted = append(sorted, row.Code(1)...)
	}
	for _, row := range reasons.Table {
		all = append(all, row.Name)
	}
	compareReasons(t, "reasons by where to look", sorted, all)

	var connection, reachable []string
	for _, row := range mustSection(t, "docs/troubleshooting.md", "## The connection to a cluster").Rows("reason of `ClusterReachable`") {
		connection = append(connection, row.Code(0)...)
	}
	for _, row := range mustSection(t, "docs/reference/clusteraddon.md", "## Conditions").Rows("condition") {
		if row.Code(0)[0] == "ClusterReachable" {
			reachable = slices.DeleteFunc(row.Code(1), func(reason string) bool { return reason == "Connected" })
		}
	}
	compareReasons(t, "reasons of the connection", connection, reachable)
}

// TestSourceReasons does so with the table of those that are about sources.
func TestSourceReasons(t *testing.T) {
	section := mustSection(t, "docs/sources/README.md", "## When something is wrong")
	var documented, exist []string
	for _, row := range section.Rows("reason") {
		documented = append(documented, row.Code(0)...)
	}
	for _, group := range constantsOf(t, "internal/failure", exported) {
		exist = append(exist, group.reasons...)
	}
	compareReasons(t, "reasons of sources", documented, exist)
}

// TestConditionReasons compares the tables of conditions with the constants. A table may leave out reasons
// that are named as their condition: these are good.
func TestConditionReasons(t *testing.T) {
	known := constantsOf(t, "api/v1beta1", isReason)
	connection := slices.Concat(constantsOf(t, "fleet", isReason), constantsOf(t, "fleet/internal/transport", exported), constantsOf(t, "fleet/limits", regexp.MustCompile("^ResponseTooLarge$")))
	for _, group := range connection {
		known = append(known, reasonGroup{condition: "ClusterReachable", reasons: group.reasons})
	}
	var all, good []string
	for _, group := range known {
		all = append(all, group.reasons...)
	}
	for _, group := range constantsOf(t, "api/v1beta1", isCondition) {
		good = append(good, group.reasons...)
	}
	for page, heading := range map[string]string{
		"docs/reference/addonstack.md":       "## Status",
		"docs/reference/clusteraddon.md":     "## Conditions",
		"docs/reference/providerinstance.md": "## Conditions",
		"docs/reference/addonplan.md":        "## Conditions",
	} {
		documented := map[string][]string{}
		for _, row := range mustSection(t, page, heading).Rows("condition") {
			condition := row.Code(0)[0]
			documented[condition] = append(documented[condition], row.Code(1)...)
		}
		if len(documented) < 2 {
			t.Errorf("%s has %d conditions", page, len(documented))
		}
		for condition, reasons := range documented {
			for _, reason := range reasons {
				if !slices.Contains(all, reason) {
					t.Errorf("%s: condition %s has no reason %s", page, condition, reason)
				}
			}
			for _, group := range known {
				if group.condition != condition {
					continue
				}
				for _, reason := range group.reasons {
					if !slices.Contains(good, reason) && !slices.Contains(reasons, reason) {
						t.Errorf("%s: condition %s has the reason %s, too", page, condition, reason)
					}
				}
			}
		}
	}
}

func compareReasons(t *testing.T, what string, documented, exist []string) {
	t.Helper()
	if len(documented) == 0 || len(exist) == 0 {
		t.Fatalf("%s: %d are documented, and there are %d", what, len(documented), len(exist))
	}
	for _, reason := range exist {
		if !slices.Contains(documented, reason) {
			t.Errorf("%s: %s isn't documented", what, reason)
		}
	}
	for i, reason := range documented {
		if !slices.Contains(exist, reason) {
			t.Errorf("%s: there is no %s", what, reason)
		}
		if slices.Contains(documented[:i], reason) {
			t.Errorf("%s: %s is there twice", what, reason)
		}
	}
}

// reasonGroup are the reasons of one declaration.
type reasonGroup struct {
	condition string // that the declaration's comment names
	reasons   []string
}

var (
	isReason    = regexp.MustCompile(`^Reason[A-Z]|^[A-Z].*Reason$|^Rollout(Progressing|Soaking|WaitingFor.*|Paused|Halted|RollingBack|RolledBack|Completed)$`)
	isCondition = regexp.MustCompile(`^[A-Z].*Condition$`)
	exported    = regexp.MustCompile(`^[A-Z]`) // of packages whose other constants are no names
	isName      = regexp.MustCompile(`^[A-Za-z]+$`)
	ofOne       = regexp.MustCompile(`^Reasons of the (\w+) condition\.`)
)

// constantsOf are the values of a package's constants with such names.
func constantsOf(t *testing.T, dir string, names *regexp.Regexp) []reasonGroup {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	must.Succeed(t, err)
	var groups []reasonGroup
	for _, file := range files {
		if ok, _ := filepath.Match("*_test.go", filepath.Base(file)); ok {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		must.Succeed(t, err)
		for _, declaration := range parsed.Decls {
			constants, ok := declaration.(*ast.GenDecl)
			if !ok || constants.Tok != token.CONST {
				continue
			}
			var group reasonGroup
			if named := ofOne.FindStringSubmatch(constants.Doc.Text()); named != nil {
				group.condition = named[1]
			}
			for _, spec := range constants.Specs {
				constant := spec.(*ast.ValueSpec)
				name := constant.Names[0]
				if !names.MatchString(name.Name) {
					continue
				}
				for _, value := range constant.Values {
					literal, ok := value.(*ast.BasicLit)
					if !ok || literal.Kind != token.STRING {
						continue
					}
					reason, err := strconv.Unquote(literal.Value)
					must.Succeed(t, err)
					if isName.MatchString(reason) {
						group.reasons = append(group.reasons, reason)
					}
				}
			}
			groups = append(groups, group)
		}
	}
	return groups
}

func mustSection(t *testing.T, path, heading string) Page {
	t.Helper()
	page, err := Read(root, path)
	must.Succeed(t, err)
	section, err := page.Section(heading)
	must.Succeed(t, err)
	return section
}
