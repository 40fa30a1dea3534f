// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"

	"github.com/cluster-chandler/chandler/test/docs"
)

// renovateManager is one of the preset. Renovate's regular expressions are RE2, as Go's.
type renovateManager struct {
	MatchStrings                               []string
	DatasourceTemplate, ExtractVersionTemplate string
}

// dependency is what Renovate looks for newer versions of.
type dependency struct{ datasource, registry, name, version, extract string }

// found returns the dependencies in a file, as Renovate's strategy "recursive" does: each expression looks at what the one
// before it found.
func (m renovateManager) found(text string, level int) (all []dependency) {
	pattern := regexp.MustCompile(m.MatchStrings[level])
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		if level+1 < len(m.MatchStrings) {
			all = append(all, m.found(match[0], level+1)...)
			continue
		}
		group := func(name string) string {
			if at := pattern.SubexpIndex(name); at >= 0 {
				return match[at]
			}
			return ""
		}
		all = append(all, dependency{m.DatasourceTemplate, group("registryUrl"), group("depName"), group("currentValue"),
			strings.ReplaceAll(m.ExtractVersionTemplate, "{{{tagPrefix}}}", group("tagPrefix"))})
	}
	return all
}

// dependenciesOf returns those that the preset is to find in a part of an object: exact versions without digests.
func dependenciesOf(tree any) (all []dependency) {
	switch t := tree.(type) {
	case map[string]any:
		version, _ := t["version"].(string)
		of := func(kind string) (url string, source map[string]any) {
			source, _ = t[kind].(map[string]any)
			url, _ = source["url"].(string)
			if source["digest"] != nil || !regexp.MustCompile(`^v?\d+\.\d+\.\d+\S*$`).MatchString(version) {
				url = ""
			}
			return url, source
		}
		if url, source := of("helm"); url != "" {
			all = append(all, dependency{"helm", url, source["chart"].(string), version, ""})
		}
		if url, _ := of("oci"); url != "" {
			all = append(all, dependency{"docker", "", strings.TrimPrefix(url, "oci://"), version, ""})
		}
		if url, source := of("github"); url != "" {
			parts, prefix := strings.SplitN(url, "/", 4), ""
			if source["tagPrefix"] != nil {
				prefix = source["tagPrefix"].(string)
			}
			all = append(all, dependency{"github-releases", parts[0] + "//" + parts[2], parts[3], version, "^" + prefix + "(?<version>.+)$"})
		}
		for _, child := range t {
			all = append(all, dependenciesOf(child)...)
		}
	case []any:
		for _, child := range t {
			all = append(all, dependenciesOf(child)...)
		}
	}
	return all
}

// styles are AddonStacks as people write them, which no sample shows.
const styles = `apiVersion: addons.cluster.x-k8s.io/v1beta1
kind: AddonStack
metadata: {name: styles}
spec:
  source:
    github: # a bundle
      url: https://git.example.org/team/bundle
      apiURL: https://git.example.org/api/v3
      tagPrefix: "stack-" # of its tags
      asset: bundle-*.tgz
    version: 1.0.0
  addons:
  - name: flow
    chart: {helm: {url: "https://charts.example.org/stable", chart: flow, secretRef: {name: token}}, version: "1.2.3+up1"}
  - name: comments
    chart:
      helm:
        # The mirror.
        url: https://charts.example.org/stable # as agreed
        chart: comments

        secretRef:
          name: token
      # Not newer: #42.
      version: v1.2.3-rc.1
  - name: registry
    chart: {oci: {url: oci://registry.example.org:5000/charts/registry, plainHTTP: true}, version: 1.2.3}
  - name: pinned
    chart:
      oci: {url: oci://registry.example.org/charts/pinned, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
      version: 1.2.3
  - name: range
    chart: {oci: {url: oci://registry.example.org/charts/range}, version: 1.2.x}
  - name: bounds
    chart: {oci: {url: oci://registry.example.org/charts/bounds}, version: 1.2.3 - 2.0.0}
  - name: release
    chart: {github: {url: https://github.com/cilium/cilium, asset: cilium-*.tgz}, version: 1.19.6}
`

// TestRenovatePreset compares what the preset finds with what is in AddonStacks of samples and pages.
func TestRenovatePreset(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile(filepath.Join(root, "renovate/addonstacks.json"))
	g.Expect(err).NotTo(HaveOccurred())
	preset := struct{ CustomManagers []renovateManager }{}
	g.Expect(json.Unmarshal(data, &preset)).To(Succeed())
	texts := map[string]string{"styles": styles, "of another tool": strings.NewReplacer("addons.cluster.x-k8s.io", "example.org").Replace(styles)}
	files, err := filepath.Glob(filepath.Join(root, "config/samples/*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		data, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		texts[file] = string(data)
	}
	pages, err := docs.Pages(root)
	g.Expect(err).NotTo(HaveOccurred())
	for _, page := range pages {
		blocks, err := page.Blocks("yaml")
		g.Expect(err).NotTo(HaveOccurred())
		for _, block := range blocks {
			if strings.Contains(block.Text, "kind: AddonStack\n") {
				texts[block.Where] = block.Text
			}
		}
	}
	total := map[string]int{}
	for where, text := range texts {
		objects, err := utilyaml.ToUnstructured([]byte(text))
		g.Expect(err).NotTo(HaveOccurred(), where)
		found, want := []dependency{}, []dependency{}
		for _, o := range objects {
			if o.GroupVersionKind().Group == "addons.cluster.x-k8s.io" {
				want = append(want, dependenciesOf(o.Object)...)
			}
		}
		for _, m := range preset.CustomManagers {
			found = append(found, m.found(text, 0)...)
		}
		g.Expect(found).To(ConsistOf(want), where)
		for _, d := range found {
			total[d.datasource]++
		}
	}
	g.Expect(total).To(And(HaveKeyWithValue("helm", BeNumerically(">=", 4)), HaveKeyWithValue("docker", BeNumerically(">=", 4)), HaveKeyWithValue("github-releases", BeNumerically(">=", 2))))
}
