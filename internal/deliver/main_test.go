// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/cluster-chandler/chandler/test/controlplane"
)

// config is that of the workload cluster of all tests. It has a controller
// manager, a scheduler and a simulated node, so Deployments and Jobs come to an end.
var config *rest.Config

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait for simulated Jobs and Pods most of the time.
	if f := flag.Lookup("test.parallel"); f != nil {
		_ = f.Value.Set("8")
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		return m.Run()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	cluster, err := controlplane.Start(ctx, controlplane.Options{Name: "deliver", Workers: true, Nodes: 2})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = cluster.Stop() }()
	config = cluster.Config()
	config.QPS = -1
	return m.Run()
}
