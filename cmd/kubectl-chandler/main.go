// SPDX-License-Identifier: Apache-2.0

// Command kubectl-chandler is a plugin of kubectl: it shows how AddonStacks and clusters are, and does by name what
// annotations ask of Chandler.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/command"
)

// garbage is how much more than what is in use may be garbage, in percent: memory counts for more here than time.
const garbage = 50

func main() {
	debug.SetGCPercent(garbage)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := command.Run(ctx, streams, os.Args[1:])
	stop()
	os.Exit(code)
}
