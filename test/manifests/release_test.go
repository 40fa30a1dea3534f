// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/manager"
)

// makeRelease runs a target that makes files of a release, in dir.
func makeRelease(t *testing.T, dir, target string, variables ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{target, "OUT=" + dir, "VERSION=v9.8.7"}, variables...)...)
	cmd.Dir = root
	return cmd.CombinedOutput()
}

// released is the version that the pages name.
const released = "v0.1.0"

// A release names its image by digest, lists what is linked, and has the checksum of each file.
func TestRelease(t *testing.T) {
	long.InCI(t)
	g := NewWithT(t)
	dir, digest := t.TempDir(), "sha256:"+strings.Repeat("0123456789abcdef", 4)
	program, err := manager.Build(t.Context(), root, t.TempDir(), released) // as other tests do, so that it is only linked
	g.Expect(err).NotTo(HaveOccurred())
	out, err := makeRelease(t, dir, "release", "VERSION="+released, "DIGEST="+digest, "BINARY="+program, "PLATFORMS=linux/amd64", "IMAGE_PLATFORMS=linux/amd64")
	g.Expect(err).NotTo(HaveOccurred(), string(out))

	t.Run("checksums", func(t *testing.T) {
		g := NewWithT(t)
		data, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
		g.Expect(err).NotTo(HaveOccurred())
		sums := map[string]string{"checksums.txt": ""}
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			content, err := os.ReadFile(filepath.Join(dir, fields[1]))
			g.Expect(err).NotTo(HaveOccurred())
			sum := sha256.Sum256(content)
			g.Expect(fields[0]).To(Equal(hex.EncodeToString(sum[:])), fields[1])
			sums[fields[1]] = fields[0]
		}
		files, err := os.ReadDir(dir)
		g.Expect(err).NotTo(HaveOccurred())
		files = slices.DeleteFunc(files, os.DirEntry.IsDir) // the chart's, which is packed
		g.Expect(files).To(HaveLen(len(sums)))
		for _, file := range files {
			g.Expect(sums).To(HaveKey(file.Name()))
		}
	})

	t.Run("plugin", func(t *testing.T) {
		g := NewWithT(t)
		manifest, err := os.ReadFile(filepath.Join(dir, "chandler.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		var krew struct {
			Spec struct {
				Version   string
				Platforms []struct{ URI, SHA256, Bin string }
			}
		}
		g.Expect(yaml.Unmarshal(manifest, &krew)).To(Succeed())
		g.Expect(krew.Spec.Version).To(Equal(released))
		g.Expect(krew.Spec.Platforms).To(HaveLen(1))
		is := krew.Spec.Platforms[0]
		archive, err := os.ReadFile(filepath.Join(dir, filepath.Base(is.URI)))
		g.Expect(err).NotTo(HaveOccurred())
		sum := sha256.Sum256(archive)
		g.Expect(is.SHA256).To(Equal(hex.EncodeToString(sum[:])))
		unpacked := t.TempDir()
		out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(dir, filepath.Base(is.URI)), "-C", unpacked).CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		help, err := exec.CommandContext(t.Context(), filepath.Join(unpacked, is.Bin), "--help").CombinedOutput()
		g.Expect(err).NotTo(HaveOccurred(), string(help))
		g.Expect(filepath.Join(unpacked, "kubectl_complete-chandler")).To(BeAnExistingFile())
	})

	t.Run("image", func(t *testing.T) {
		g := NewWithT(t)
		for _, overlay := range []string{"addon", "shared"} {
			data, err := os.ReadFile(filepath.Join(dir, overlay+"-components.yaml"))
			g.Expect(err).NotTo(HaveOccurred())
			images := regexp.MustCompile(`(?m)^ *image: (.*)$`).FindAllSubmatch(data, -1)
			g.Expect(images).To(HaveLen(1), overlay)
			g.Expect(string(images[0][1])).To(Equal("ghcr.io/cluster-chandler/chandler:"+released+"@"+digest), overlay)
		}
	})

	t.Run("SBOM", func(t *testing.T) {
		g := NewWithT(t)
		data, err := os.ReadFile(filepath.Join(dir, "sbom.cdx.json"))
		g.Expect(err).NotTo(HaveOccurred())
		type component struct{ Name, Version string }
		bom := struct {
			BOMFormat  string `json:"bomFormat"`
			Metadata   struct{ Component component }
			Components []component
		}{}
		g.Expect(json.Unmarshal(data, &bom)).To(Succeed())
		g.Expect(bom.BOMFormat).To(Equal("CycloneDX"))
		g.Expect(bom.Metadata.Component).To(Equal(component{"github.com/cluster-chandler/chandler", released}))
		required := map[string]string{}
		for _, r := range module(t, "go.mod").Require {
			required[r.Mod.Path] = r.Mod.Version
		}
		for _, name := range []string{"helm.sh/helm/v4", "k8s.io/client-go"} {
			g.Expect(bom.Components).To(ContainElement(component{name, required[name]}))
		}
		g.Expect(bom.Components).To(ContainElement(HaveField("Name", "std")))
	})
}

// A release has one version: that of its pages and overlays, of a series of metadata.yaml.
func TestReleaseHasOneVersion(t *testing.T) {
	for at, says := range map[string][]string{
		released: nil, "v9.8.7": {"metadata.yaml"}, "v0.10.0": {"metadata.yaml"}, "devel": {"metadata.yaml"},
		"v0.1.9":      {"README.md", "docs/helm-chart.md", "chandler-0.1.0.tgz", "config/manager/manager.yaml", "config/shared/base/deployment.yaml"},
		"v0.1.0-rc.1": {"docs/clusterctl.md"},
	} {
		out, err := makeRelease(t, t.TempDir(), "release-version", "VERSION="+at)
		if (err != nil) != (says != nil) {
			t.Errorf("%s: %v: %s", at, err, out)
		}
		for _, text := range says {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s: nothing is said of %s: %s", at, text, out)
			}
		}
	}
	list := &clusterctlv1.Metadata{}
	data, err := os.ReadFile(filepath.Join(root, "metadata.yaml"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(data, list)).To(Succeed())
	g.Expect(list.GetReleaseSeriesForVersion(version.MustParseSemantic(released))).To(HaveValue(HaveField("Contract", clusterv1.GroupVersion.Version)),
		"clusterctl finds the contract of the version")
}

// A digest that can't be one is refused. Without any, the tag is all that there is.
func TestReleaseWithoutADigest(t *testing.T) {
	g := NewWithT(t)
	out, err := makeRelease(t, t.TempDir(), "release-manifests", "DIGEST=sha256:abc")
	g.Expect(err).To(HaveOccurred())
	g.Expect(string(out)).To(ContainSubstring("DIGEST"))
	dir := t.TempDir()
	out, err = makeRelease(t, dir, "release-manifests")
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	data, err := os.ReadFile(filepath.Join(dir, "addon-components.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Contains(data, []byte("image: ghcr.io/cluster-chandler/chandler:v9.8.7\n"))).To(BeTrue())
}

// Images that the product is built from are named by digest, and the toolchain is the same there and in all modules.
func TestBaseImages(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	g.Expect(err).NotTo(HaveOccurred())
	froms := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).FindAllStringSubmatch(string(data), -1)
	g.Expect(froms).To(HaveLen(2))
	for _, from := range froms {
		g.Expect(from[1]).To(MatchRegexp(`^\S+:\S+@sha256:[0-9a-f]{64}$`))
	}
	toolchain := strings.TrimPrefix(module(t, "go.mod").Toolchain.Name, "go")
	g.Expect(froms[0][1]).To(HavePrefix("golang:" + toolchain + "@"))
	for _, path := range []string{"fleet", "examples", "hack/tools", "hack/tools/lint", "hack/tools/sbom"} {
		g.Expect(module(t, path+"/go.mod").Toolchain).To(HaveValue(HaveField("Name", "go"+toolchain)), path)
	}
}

// Renovate leaves alone what go.mod calls indirect. So each tool is named in its configuration.
func TestRenovateKnowsTheTools(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile(filepath.Join(root, "renovate.json"))
	g.Expect(err).NotTo(HaveOccurred())
	config := struct {
		PackageRules []struct{ MatchDepTypes, MatchPackageNames []string }
	}{}
	g.Expect(json.Unmarshal(data, &config)).To(Succeed())
	named := map[string]bool{}
	for _, rule := range config.PackageRules {
		for _, name := range rule.MatchPackageNames {
			named[name] = named[name] || slices.Contains(rule.MatchDepTypes, "indirect")
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "hack/tools/*/go.mod"))
	g.Expect(err).NotTo(HaveOccurred())
	pinned := map[string]bool{}
	for _, file := range append(files, filepath.Join(root, "hack/tools/go.mod")) {
		relative, err := filepath.Rel(root, file)
		g.Expect(err).NotTo(HaveOccurred())
		parsed := module(t, relative)
		for _, tool := range parsed.Tool {
			longest := ""
			for _, r := range parsed.Require {
				if strings.HasPrefix(tool.Path+"/", r.Mod.Path+"/") && len(r.Mod.Path) > len(longest) {
					longest = r.Mod.Path
				}
			}
			pinned[longest] = true
		}
	}
	g.Expect(pinned).NotTo(BeEmpty())
	for name := range maps.Keys(pinned) {
		g.Expect(named).To(HaveKeyWithValue(name, true))
	}
}

func module(t *testing.T, path string) *modfile.File {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	parsed, err := modfile.Parse(path, data, nil)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return parsed
}
