// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// infrastructureVersion is that of the infrastructure provider in testdata.
const infrastructureVersion = "v0.1.0"

var (
	//go:embed testdata/infrastructure-components.yaml
	infrastructureComponents []byte
	//go:embed testdata/infrastructure-metadata.yaml
	infrastructureMetadata []byte
)

// makeRepositories writes one folder for each version of each provider, and clusterctl's configuration that leads to
// them. It returns the configuration's path.
func makeRepositories(ctx context.Context) (string, error) {
	for _, version := range []string{olderVersion, newerVersion} {
		if err := makeRelease(ctx, repository("addon-chandler", version), version); err != nil {
			return "", err
		}
	}
	core, err := makeCore(ctx)
	if err != nil {
		return "", fmt.Errorf("making a repository of Cluster API: %w", err)
	}
	infrastructure := repository("infrastructure-test", infrastructureVersion)
	if err := write(infrastructure, map[string][]byte{
		"infrastructure-components.yaml": infrastructureComponents, "metadata.yaml": infrastructureMetadata,
	}); err != nil {
		return "", err
	}
	return writeConfig(map[string]any{
		"providers": []map[string]string{
			{"name": "chandler", "type": "AddonProvider", "url": fileURL(repository("addon-chandler", olderVersion), "addon-components.yaml")},
			{"name": "cluster-api", "type": "CoreProvider", "url": fileURL(core, "core-components.yaml")},
			{"name": "test", "type": "InfrastructureProvider", "url": fileURL(infrastructure, "infrastructure-components.yaml")},
		},
		"cert-manager": map[string]any{"externallyProvisioned": true, "timeout": "10s"},
		// By default this would be in the developer's home directory.
		"overridesFolder": filepath.Join(world.dir, "overrides"),
	})
}

// repository is the folder of a provider's version, as clusterctl's local repositories have it.
func repository(provider, version string) string {
	return filepath.Join(world.dir, "repositories", provider, version)
}

func fileURL(dir, file string) string { return "file://" + filepath.Join(dir, file) }

// makeRelease makes the manifests of a release, as for a version.
func makeRelease(ctx context.Context, dir, version string) error {
	cmd := exec.CommandContext(ctx, "make", "release-manifests", "VERSION="+version, "OUT="+dir)
	cmd.Dir = world.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make release-manifests: %w\n%s", err, out)
	}
	return nil
}

// makeCore makes a repository of Cluster API's core provider from its source.
func makeCore(ctx context.Context) (string, error) {
	source, err := goTool(ctx, "list", "-m", "-f", "{{.Dir}}", clusterAPIModule)
	if err != nil {
		return "", err
	}
	version, err := clusterAPIVersion(ctx)
	if err != nil {
		return "", err
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(source, "core/config/default"))
	if err != nil {
		return "", err
	}
	components, err := resources.AsYaml()
	if err != nil {
		return "", err
	}
	metadata, err := os.ReadFile(filepath.Join(source, "metadata.yaml"))
	if err != nil {
		return "", err
	}
	dir := repository("cluster-api", version)
	return dir, write(dir, map[string][]byte{"core-components.yaml": components, "metadata.yaml": metadata})
}

func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func writeConfig(config map[string]any) (string, error) {
	data, err := yaml.Marshal(config)
	if err != nil {
		return "", err
	}
	return filepath.Join(world.dir, "clusterctl.yaml"), write(world.dir, map[string][]byte{"clusterctl.yaml": data})
}
