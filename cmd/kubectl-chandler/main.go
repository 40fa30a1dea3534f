// SPDX-License-Identifier: Apache-2.0

// Command kubectl-chandler is a plugin of kubectl: it shows how AddonStacks and clusters are, and does by name what
// annotations ask of Chandler.
package main

import (
	"os"
	"runtime/debug"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/command"
)

// garbage is how much more than what is in use may be garbage, in percent: memory counts for more here than time.
const garbage = 50

func main() {
	debug.SetGCPercent(garbage)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(command.Run(signals.SetupSignalHandler(), streams, os.Args[1:]))
}
