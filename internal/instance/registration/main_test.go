// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"testing"

	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
)

const crds = "../../../config/crd/bases"

// server is a management cluster, and an admin's client of it.
type server = apiserver.Server

// clusterCRD is the file of Cluster API's Clusters.
var clusterCRD string

// shared is for tests that don't disturb others.
var shared *server

func TestMain(m *testing.M) {
	suite.Suite{Name: "registration", Parallel: 6, Prepare: prepare}.Run(m)
}

func prepare(ctx context.Context, _, dir string) error {
	clusters, err := apiserver.ClusterAPICRDs(ctx, "clusters")
	if err != nil {
		return err
	}
	clusterCRD = clusters[0]
	if shared, err = apiserver.Start(ctx, dir, controlplane.Options{Name: "shared", CRDPaths: []string{crds, clusterCRD}}); err != nil {
		return err
	}
	return shared.GrantScopes(ctx)
}

// ownServer is for a test that breaks it. It has what the shared deployment does for instances.
func ownServer(t *testing.T, crdPaths ...string) *server {
	t.Helper()
	s := apiserver.Own(t, controlplane.Options{Name: "own", CRDPaths: crdPaths})
	must.Succeed(t, s.GrantScopes(t.Context()))
	return s
}
