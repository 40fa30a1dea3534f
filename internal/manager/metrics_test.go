// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cluster-chandler/chandler/controllers/addonstack/gauges"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/internal/manager" // all that has metrics is put together there
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/must"
)

const repository = "../.."

// TestMetrics compares the tables of docs/reference/metrics.md with the metrics that are registered.
func TestMetrics(t *testing.T) {
	page, err := docs.Read(repository, "docs/reference/metrics.md")
	must.Succeed(t, err)
	documented := map[string]string{} // to type and labels
	for _, row := range page.Rows("metric") {
		documented[row.Code(0)[0]] = row.Text(1)
	}
	fleet.NewProvider(fleet.Options{})
	metrics.Registry.MustRegister(append(manager.MemoryMetrics(nil), gauges.Series{})...) // as the manager and its controllers do
	registered, types := registeredLabels(t), typesInSource(t)
	for name, labels := range registered {
		text, is := documented[name]
		if !is {
			t.Errorf("%s has no row for %s", page.Path, name)
			continue
		}
		kind, rest, _ := strings.Cut(text, ";")
		if types[name] != "" && kind != types[name] {
			t.Errorf("%s: %s is a %s, not a %s", page.Path, name, types[name], kind)
		}
		if got := inBackquotes.FindAllString(rest, -1); !slices.Equal(got, labels) {
			t.Errorf("%s: %s has the labels %v, not %v", page.Path, name, labels, got)
		}
	}
	for name := range documented {
		if _, is := registered[name]; !is {
			t.Errorf("%s: there is no %s", page.Path, name)
		}
	}
	for name := range types {
		if _, is := registered[name]; !is {
			t.Errorf("%s isn't registered", name)
		}
	}
	if len(types) < 20 || len(registered) < len(types) {
		t.Errorf("%d metrics are registered, %d are in the source", len(registered), len(types))
	}
}

var (
	inBackquotes = regexp.MustCompile("`[a-z]+`")
	described    = regexp.MustCompile(`^Desc\{fqName: "((?:chandler|fleet)_\w+)", .*, variableLabels: \{([a-z,]*)\}\}$`)
)

// registeredLabels returns the labels of all metrics of the product, in backquotes.
func registeredLabels(t *testing.T) map[string][]string {
	t.Helper()
	all, is := metrics.Registry.(prometheus.Collector)
	if !is {
		t.Fatal("the registry doesn't say what it has")
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		all.Describe(descs)
		close(descs)
	}()
	found := map[string][]string{}
	for desc := range descs {
		parts := described.FindStringSubmatch(desc.String())
		if parts == nil {
			continue
		}
		found[parts[1]] = nil
		for label := range strings.SplitSeq(parts[2], ",") {
			if label != "" {
				found[parts[1]] = append(found[parts[1]], "`"+label+"`")
			}
		}
	}
	return found
}

// typesInSource returns the types of metrics by name, as "counter". It leaves out those of collectors.
func typesInSource(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*/metrics.go", "*/*/metrics.go", "*/*/*/metrics.go"} {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		must.Succeed(t, err)
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			must.Succeed(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if options, is := n.(*ast.CompositeLit); is {
					maps.Copy(found, typeIn(t, options))
				}
				return true
			})
		}
	}
	return found
}

// typeIn returns the type and the name of the metric that has the options, none if they are of something else.
func typeIn(t *testing.T, options *ast.CompositeLit) map[string]string {
	t.Helper()
	of, is := options.Type.(*ast.SelectorExpr)
	if !is || !strings.HasSuffix(of.Sel.Name, "Opts") {
		return nil
	}
	for _, element := range options.Elts {
		field := element.(*ast.KeyValueExpr)
		if field.Key.(*ast.Ident).Name == "Name" {
			name, err := strconv.Unquote(field.Value.(*ast.BasicLit).Value)
			must.Succeed(t, err)
			return map[string]string{name: strings.ToLower(strings.TrimSuffix(of.Sel.Name, "Opts"))}
		}
	}
	return nil
}
