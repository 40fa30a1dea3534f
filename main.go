// SPDX-License-Identifier: Apache-2.0

// Chandler is a Cluster API add-on provider: it installs, upgrades and removes
// add-ons on every workload cluster of a fleet.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/version"
)

// Exit codes, as of most command line tools.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() {
	render.RunWorkerIfAsked() // doesn't return in a process that renders charts

	o, fs, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Printf("Usage of chandler:\n%s", fs.FlagUsages())
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "chandler: %v (see --help)\n", err)
		os.Exit(exitUsage)
	case o.version:
		fmt.Println("chandler", version.String())
		return
	}
	if err := run(o); err != nil {
		fmt.Fprintf(os.Stderr, "chandler: %v\n", err)
		os.Exit(exitFailure)
	}
}

// gcPercent lets garbage grow to half of what is live before it is collected, not to
// as much again: many instances share a management cluster, and most of them rest.
const gcPercent = 50

// run works until a signal ends it.
func run(o *options) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	go shrink()
	if err := setupLogging(o); err != nil {
		return err
	}
	ctrl.SetLogger(klog.Background())
	log := ctrl.Log.WithName("setup")
	log.Info("Starting Chandler", "version", version.String(), "namespaces", o.namespaces, "watchFilter", o.watchFilter)

	if err := render.ProtectMemory(); err != nil {
		log.Error(err, "Render workers could read this process, if they had a fault")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the management cluster: %w", err)
	}
	renderer := newRenderer(o)
	defer renderer.Close()
	ctx := ctrl.SetupSignalHandler()
	mgr, err := newManager(ctx, config, o, renderer)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
