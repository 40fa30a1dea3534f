// SPDX-License-Identifier: Apache-2.0

// The demo starts a small fleet on this machine, real API servers with simulated nodes, and shows how Chandler outfits
// it: three add-ons land on three workload clusters, one of them is upgraded, and an object is deleted by hand.
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

// patience is how long everything may take after the builds.
const patience = 5 * time.Minute

func main() {
	// What client libraries log would tear the output apart; what matters comes back as an error.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())

	out := newScreen(os.Stdout)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	d := &demo{out: out}
	err := d.run(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted:
		out.printf("\n%s\n", out.paint(yellow, "Interrupted: everything is stopped and removed."))
		os.Exit(1)
	default:
		out.printf("\n%s %v\n", out.paint(red, "✗"), err)
		os.Exit(1)
	}
}

// run shows everything. Whatever was started ends with it, also in a panic.
func (d *demo) run(ctx context.Context) error {
	defer d.stop()
	d.out.printf("\n%s\n\n", d.out.paint(bold, "Chandler: one management cluster and three workload clusters, all on this machine"))
	if err := d.build(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %s", patience))
	defer cancel()
	working, fail := context.WithCancelCause(limited)
	defer fail(nil)
	for _, step := range []func(context.Context) error{
		d.startClusters,
		func(ctx context.Context) error { return d.startManager(ctx, fail) },
		d.install,
		d.upgrade,
		d.drift,
	} {
		if err := step(working); err != nil {
			return errors.Join(err, d.evidence())
		}
	}
	if os.Getenv("DEMO_EXIT") == "1" {
		d.out.printf("\n%s All was reached.\n", d.out.paint(green, "✓"))
		return nil
	}
	return d.wait(ctx)
}

// wait leaves the clusters to the user.
func (d *demo) wait(ctx context.Context) error {
	if err := d.showTheWay(); err != nil {
		return err
	}
	select {
	case <-d.manager.done:
		return errors.Join(errors.New("the manager ended"), d.evidence())
	case <-ctx.Done():
		d.out.printf("\nStopping everything.\n")
		return nil
	}
}
