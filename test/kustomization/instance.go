// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Instance is what a user chooses for an instance.
type Instance struct {
	Name       string
	Namespaces []string // none is all
	Filter     string   // "" for none
}

// Write writes the overlay of the instance as docs/instances.md says, and returns its folder, which is below dir.
func (i Instance) Write(root, dir string) (string, error) {
	const header = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	folder := "instances/" + i.Name
	files := map[string]string{}
	rights := "../../config/instance/rights-everywhere"
	switch len(i.Namespaces) {
	case 0:
	case 1:
		rights = "../../config/instance/rights-in-one"
	default:
		rights = `"` + strings.Join(i.Namespaces, `", "`) + `"`
		for _, namespace := range i.Namespaces {
			files[folder+"/"+namespace+"/kustomization.yaml"] = fmt.Sprintf("%snamespace: %q\nresources: [../../../config/instance/rights]\n", header, namespace)
		}
	}
	files[folder+"/kustomization.yaml"] = fmt.Sprintf(`%sconfigMapGenerator:
- name: instance
  literals: [NAME=%s, "NAMESPACES=%s", WATCH_FILTER=%s]
resources: [%s]
components: [../../config/instance/component]
`, header, i.Name, strings.Join(i.Namespaces, ","), i.Filter, rights)
	return filepath.Join(dir, folder), WriteFiles(root, dir, files)
}

// WriteFiles writes files below a folder as in a checkout: config is that of the checkout at root.
func WriteFiles(root, dir string, files map[string]string) error {
	config, err := filepath.Abs(filepath.Join(root, "config"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(config, filepath.Join(dir, "config")); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
