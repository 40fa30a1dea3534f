// SPDX-License-Identifier: Apache-2.0

package clusterstack_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// Releases as they were published.
func TestRealReleases(t *testing.T) {
	directories, err := filepath.Glob(filepath.Join(realdata.Path(t, "cluster-stacks"), "*"))
	if err != nil || len(directories) == 0 {
		t.Fatalf("no releases: %v", err)
	}
	for _, directory := range directories {
		tag, err := clusterstack.ParseTag(filepath.Base(directory))
		must.Succeed(t, err)
		read := func(name string) []byte {
			data, err := os.ReadFile(filepath.Join(directory, name))
			must.Succeed(t, err)
			return data
		}
		m, err := clusterstack.ParseMetadata(read(clusterstack.MetadataFile))
		if err != nil || m.ClusterStack != tag.Version || len(m.Unknown) > 0 {
			t.Errorf("%s: %+v, %v", tag, m, err)
		}
		read(tag.Stack + "-cluster-addon-" + m.ClusterAddon + ".tgz")
		s, err := clusterstack.ParseStages(read(clusterstack.StagesFile))
		if err != nil || len(s.Hooks[clusterstack.AfterControlPlaneInitialized]) != 2 || len(s.Unknown) > 0 {
			t.Errorf("%s: %+v, %v", tag, s, err)
		}
	}
}
