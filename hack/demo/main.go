// SPDX-License-Identifier: Apache-2.0

// The demo starts a small fleet on this machine, real API servers with simulated nodes, and shows how Chandler outfits
// it. Three add-ons land on three workload clusters, one of the add-ons is upgraded, crashes and recovers. A rollout goes back
// by itself, and one cluster loses all of its add-ons.
//
//	go run ./hack/demo
//
// It needs Go and git, no containers and, once the modules are downloaded, no network. It waits for Ctrl-C at its end;
// with DEMO_EXIT=1 it ends by itself, with an exit code that says whether all was reached.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// patience is how long all steps may take together, after the builds.
const patience = 5 * time.Minute

func main() {
	// Client libraries return the important part of their logs as errors, too.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := (&demo{}).run(ctx); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted: everything is stopped and removed")
		}
		fmt.Fprintf(os.Stderr, "\nFAILED: %v\n", err)
		os.Exit(1)
	}
}

// run shows everything. Whatever was started ends with it, also in a panic.
func (d *demo) run(ctx context.Context) error {
	defer d.stop()
	if err := d.build(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %s", patience))
	defer cancel()
	for _, step := range []func(context.Context) error{d.startClusters, d.startChandler, d.install, d.upgrade, d.drift, d.crash, d.rollOut, d.remove} {
		if err := step(limited); err != nil {
			return err
		}
	}
	if os.Getenv("DEMO_EXIT") == "1" {
		fmt.Println("\nAll was reached.")
		return nil
	}
	d.showTheWay()
	select {
	case <-d.manager.Done():
		return d.manager.Ended()
	case <-ctx.Done():
		fmt.Println("\nStopping everything.")
		return nil
	}
}

// heading begins a part of the story.
func heading(format string, args ...any) { fmt.Printf("\n"+format+"\n", args...) }

// says returns what tells a message of the AddonStack, and how long it took.
func says(started time.Time, before string) func(string) {
	return func(message string) { done(started, "%sthe AddonStack says: %s", before, message) }
}

// done says what was done, and how long it took.
func done(started time.Time, format string, args ...any) {
	fmt.Printf("  %5.1f s  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
}
