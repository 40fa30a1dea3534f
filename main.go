// SPDX-License-Identifier: Apache-2.0

// Chandler is a Cluster API add-on provider: it installs, upgrades and removes
// add-ons on every workload cluster of a fleet.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-chandler/chandler/internal/manager"
	"github.com/cluster-chandler/chandler/internal/render/worker"
	"github.com/cluster-chandler/chandler/internal/version"
)

// exitUsage is the exit code for flags that can't be used, as with most command line tools.
const exitUsage = 2

// moreArgs is the variable of the environment with more arguments, spaces between: clusterctl sets it.
const moreArgs = "CHANDLER_ARGS"

func main() {
	worker.RunIfAsked() // doesn't return in a process that renders charts

	o, fs, err := manager.Parse(append(os.Args[1:], strings.Fields(os.Getenv(moreArgs))...))
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Printf("Usage of chandler:\n%s", fs.FlagUsages())
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "chandler: %v (see --help)\n", err)
		os.Exit(exitUsage)
	case o.Version:
		fmt.Println("chandler", version.String())
		return
	}
	if err := manager.Run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintf(os.Stderr, "chandler: %v\n", err)
		os.Exit(manager.ExitFailure)
	}
}
