// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

func TestBinDirTakesPrebuiltBinaries(t *testing.T) {
	g := NewWithT(t)
	assets := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", assets)
	for _, name := range []string{"etcd", "kube-apiserver"} {
		g.Expect(os.WriteFile(filepath.Join(assets, name), nil, 0o600)).To(Succeed())
	}
	g.Expect(controlplane.BinDir(t.Context(), os.Stderr, "etcd", "kube-apiserver")).To(Equal(assets))

	// Without kwok there it turns to the builder, which the ended context stops.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := controlplane.BinDir(ctx, os.Stderr, "etcd", "kwok")
	g.Expect(err).To(MatchError(context.Canceled))
}
