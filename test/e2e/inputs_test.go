// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// updateInputs names the variable for a regular expression: TestWhatIsWrongIsOnTheStack writes the files of inputs with such
// names instead of comparing with them. Read each of them then: does the line alone name the cause and the clusters?
const updateInputs = "CHANDLER_UPDATE_INPUTS"

// input is something wrong in a stack of its own. The stack's name, and its add-on's, is that of the file
// testdata/inputs/<name>.txt, which has what "kubectl get addonstacks" prints.
type input struct {
	*tenant
	name string
	// elsewhere is another namespace that the manager works in. It has no Cluster.
	elsewhere string
	tokyo     *proxy // in front of the Cluster tokyo
}

// everywhere selects three Clusters, with which nothing is wrong.
var everywhere = labels("fleet=all")

// inputClusters are the Clusters of everywhere, on the workload servers of these numbers.
var inputClusters = []string{"bergen", "genoa", "osaka"}

// TestWhatIsWrongIsOnTheStack does what people do wrong, each in a stack of its own. It sees what "kubectl get addonstacks"
// says of it, and that nothing is left of it once it is put right. The log has how long each took.
func TestWhatIsWrongIsOnTheStack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	i := &input{tenant: newTenant(t)}
	i.elsewhere = i.namespace + "-elsewhere"
	world.hub.createNamespace(t, i.elsewhere)
	i.allowIn(i.elsewhere)
	for number, name := range inputClusters {
		s := workloadServer(t, number)
		s.createNamespace(t, i.namespace)
		i.makeCluster(name, s, labels("fleet=all", "name="+name))
	}
	i.makeBadClusters()
	charts := i.writeInputCharts()
	i.launch("--namespace=" + i.namespace + "," + i.elsewhere)
	for name, run := range inputs(charts) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := *i
			row.tenant, row.name = i.in(t), name
			run(&row)
		})
	}
}

// says returns once the stack's line is as in the file, after something was done that is wrong.
func (i *input) says(wrong func()) {
	i.t.Helper()
	i.saysIn(i.namespace, wrong)
}

func (i *input) saysIn(namespace string, wrong func()) {
	i.t.Helper()
	before, start := i.printed(namespace), time.Now()
	wrong()
	file := filepath.Join("testdata", "inputs", i.name+".txt")
	if names := os.Getenv(updateInputs); names != "" && regexp.MustCompile(names).MatchString(i.name) {
		printed, since := "", start
		poll(i.t, patience, "it says the same for a while", func() error {
			if now := i.printed(namespace); now != printed {
				printed, since = now, time.Now()
			}
			if left := 10*time.Second - time.Since(since); left > 0 || printed == before {
				return fmt.Errorf("another %s", left)
			}
			return nil
		})
		must.Succeed(i.t, os.WriteFile(file, []byte(printed), 0o644))
		i.t.Logf("told after %s\n%s", since.Sub(start).Round(10*time.Millisecond), printed)
		return
	}
	want, err := os.ReadFile(file)
	must.Succeed(i.t, err)
	poll(i.t, patience, "the stack's line is as in "+file, func() error {
		if printed := i.printed(namespace); printed != string(want) {
			return fmt.Errorf("it is\n%s\ninstead of\n%s", printed, want)
		}
		return nil
	})
	i.t.Logf("told after %s", time.Since(start).Round(10*time.Millisecond))
}

// fixed returns once the stack is Ready on all clusters that it selects, after something was put right.
func (i *input) fixed(right func()) {
	i.t.Helper()
	start := time.Now()
	right()
	poll(i.t, patience, "it was put right", func() error {
		if printed := i.printed(i.namespace); !cleanLine.MatchString(printed) {
			return fmt.Errorf("something of it is left:\n%s", printed)
		}
		return nil
	})
	i.t.Logf("ready after %s", time.Since(start).Round(10*time.Millisecond))
	i.awaitReady(i.name, "and it is so of the newest spec")
}

// cleanLine is that of a stack with which nothing is wrong.
var cleanLine = regexp.MustCompile(`(?m)^\S+ +([23]) +([23]) +0 +True +5s +([23] of [23] clusters are ready)?$`)

// unlike replaces what is different in each run.
var unlike = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`whatiswrongisonthestack-[a-z0-9]{4}`), "team"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`), "$1:PORT"},
	{regexp.MustCompile(`-[0-9a-f]{8,10}-[a-z0-9]{5}\b`), "-HASH-POD"},
	{regexp.MustCompile(`used: configmaps=\d`), "used: configmaps=N"},
	{regexp.MustCompile(`confirm-removal=[^;]+`), "confirm-removal=VALUE"},
}

// printed returns what kubectl prints of the stack, "" if there is none: the API server makes the table, and kubectl's own
// printer its text.
func (i *input) printed(namespace string) string {
	i.t.Helper()
	data, err := world.hub.clientset.RESTClient().Get().
		AbsPath("/apis", addonsv1.GroupVersion.Group, addonsv1.GroupVersion.Version, "namespaces", namespace, "addonstacks", i.name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(i.t.Context())
	if apierrors.IsNotFound(err) {
		return ""
	}
	must.Succeed(i.t, err)
	table := &metav1.Table{}
	must.Succeed(i.t, json.Unmarshal(data, table))
	for at, column := range table.ColumnDefinitions {
		for _, row := range table.Rows {
			text, is := row.Cells[at].(string)
			switch {
			case column.Name == "Age":
				row.Cells[at] = "5s"
			case is:
				for _, u := range unlike {
					text = u.pattern.ReplaceAllString(text, u.by)
				}
				row.Cells[at] = text
			}
		}
	}
	var printed bytes.Buffer
	must.Succeed(i.t, printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, &printed))
	return printed.String()
}
