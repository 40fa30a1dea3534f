// SPDX-License-Identifier: Apache-2.0

package opener

import (
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// index is index.yaml of a Helm repository, as far as it is of use:
// https://helm.sh/docs/topics/chart_repository/#the-index-file
type index struct {
	Entries map[string][]*struct {
		Version string   `json:"version"`
		Digest  string   `json:"digest"`
		URLs    []string `json:"urls"`
	} `json:"entries"`
}

// readIndex reads an index as Helm does, and leaves out what Helm skips. It doesn't mind
// fields that Helm doesn't know.
func readIndex(data []byte) (map[string][]ChartVersion, error) {
	var read index
	parse := func(data []byte, into any) error { return yaml.Unmarshal(data, into) }
	if json.Valid(data) { // it takes a tenth of the time and memory
		parse = json.Unmarshal
	}
	if err := parse(data, &read); err != nil || read.Entries == nil {
		return nil, failure.New(failure.ArtifactInvalid, "the repository's index.yaml isn't an index that Helm can read; correct helm.url, or have the index made anew with `helm repo index`")
	}
	charts := make(map[string][]ChartVersion, len(read.Entries))
	for name, entries := range read.Entries {
		for _, entry := range entries {
			if entry == nil || entry.Version == "" || len(entry.URLs) == 0 {
				continue
			}
			charts[name] = append(charts[name], ChartVersion{Version: entry.Version, URL: entry.URLs[0], Digest: entry.Digest})
		}
	}
	return charts, nil
}
