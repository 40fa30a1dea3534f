// SPDX-License-Identifier: Apache-2.0

// Command chart writes Chandler's Helm chart: what kustomize builds of the overlays, with values in the place of what
// people set. Run it in the root of the checkout:
//
//	go run ./hack/chart v0.1.0 out/charts/chandler
package main

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cluster-chandler/chandler/test/kustomization"
)

// files are those that aren't made of overlays. The one that says which chart it is has the version, too.
var (
	//go:embed files
	files embed.FS
	//go:embed Chart.yaml
	chart string
)

// mode is a value of the chart's mode, with the overlay that it installs, and the namespace that the overlay is in.
type mode struct{ name, overlay, namespace string }

// anyName is the name of the instance that is built for the chart: each release has its own in its place.
const anyName = "release-name"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: chart VERSION FOLDER")
		os.Exit(2)
	}
	if err := write(strings.TrimPrefix(os.Args[1], "v"), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// write writes the chart of a version into a folder.
func write(version, folder string) error {
	staged, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staged)
	instance, err := kustomization.Instance{Name: anyName}.Write(".", staged)
	if err != nil {
		return err
	}
	fixed, err := fs.Sub(files, "files")
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, fixed); err != nil {
		return err
	}
	for _, m := range []mode{
		{"all", "config/default", "chandler-system"}, {"shared", "config/shared", "chandler-webhooks"}, {"instance", instance, "chandler-" + anyName},
	} {
		text, err := templateOf(m)
		if err != nil {
			return fmt.Errorf("mode %s: %w", m.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, "templates", m.name+".yaml"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte(strings.ReplaceAll(chart, "VERSION", version)), 0o644)
}
