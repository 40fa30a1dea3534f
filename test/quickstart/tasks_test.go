// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// TestHowDoI runs the commands of docs/how-do-i.md on two clusters with the stack of the quick start. Parts of specs
// without add-ons are put into the stack before the commands behind them. Webhooks test all other YAML of the page.
func TestHowDoI(t *testing.T) {
	long.Test(t)
	page, err := docs.Read(root, "docs/how-do-i.md")
	must.Succeed(t, err)
	blocks, err := page.AllBlocks()
	must.Succeed(t, err)
	d := start(t, realdata.Path(t, "charts"), "prod-1", "prod-2")
	must.Succeed(t, gobuild.Build(t.Context(), root, filepath.Join(d.dir, "kubectl-chandler"), "./cmd/kubectl-chandler"))
	d.prepare()
	for _, block := range blocks {
		switch {
		case block.Untested:
		case block.Language == "console":
			for _, command := range block.Commands() {
				d.do(command)
			}
		case strings.HasPrefix(block.Text, "spec:") && !strings.Contains(block.Text, "addons:"):
			d.save("part.yaml", block.Text)
			d.run("kubectl patch addonstack platform --type merge --patch-file part.yaml")
		}
	}
	d.run("kubectl wait addonstack platform --for=condition=Ready --timeout=2m")
}

// prepare does what the quick start does, for each of the clusters, and edits the stack once, so that there is something to go
// back to.
func (d *desk) prepare() {
	d.t.Helper()
	d.install()
	for _, name := range []string{"prod-1", "prod-2"} {
		d.generate(name)
		d.run("kubectl apply -f " + name + ".yaml && kubectl label cluster " + name + " env=prod")
		d.provision(name)
	}
	page, err := docs.Read(root, "docs/quick-start.md")
	must.Succeed(d.t, err)
	blocks, err := page.Blocks("yaml")
	must.Succeed(d.t, err)
	at := slices.IndexFunc(blocks, func(b docs.Block) bool { return strings.HasPrefix(b.Text, "# platform.yaml") })
	d.write(blocks[at])
	d.run("kubectl create namespace team-a")
	d.run("kubectl apply --server-side -f platform.yaml && kubectl wait addonstack platform --for=condition=Ready --timeout=2m")
	d.run(`kubectl patch addonstack platform --type json -p '[{"op": "add", "path": "/spec/addons/1/values/replicas", "value": 2}]'`)
	d.run("kubectl wait addonstack platform --for=condition=Ready --timeout=2m")
}
