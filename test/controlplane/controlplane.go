// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/cluster-chandler/chandler/test/pki"
	"github.com/cluster-chandler/chandler/test/process"
)

// startTimeout is generous, as many control planes may be starting on few cores.
const startTimeout = 3 * time.Minute

var errStopped = errors.New("the control plane is stopped")

// ControlPlane is a running cluster. Its methods may be called concurrently.
type ControlPlane struct {
	options  Options
	binDir   string
	dir      string // certificates, kubeconfigs, etcd's data, logs
	port     *port
	ca       *pki.Authority
	admin    pki.Pair
	watchdog *watchdog

	mu        sync.Mutex         // guards what follows, and that processes start and stop one at a time
	group     int                // process group of every component; 0 before the first
	processes []*process.Process // in the order they were started
	apiserver *process.Process
	etcd      *process.Process
	stopped   bool
}

// Start returns when the cluster serves, its CRDs are established and its nodes, if any, are ready. A Start that fails
// leaves nothing behind. The context bounds only the start.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{options: o}
	if err := c.start(ctx); err != nil {
		return nil, fmt.Errorf("starting control plane %q: %w", o.Name, errors.Join(err, c.Stop()))
	}
	return c, nil
}

// StartAll starts several control planes at once and returns them in the order of the options. If one fails, none is
// left.
func StartAll(ctx context.Context, options ...Options) ([]*ControlPlane, error) {
	planes := make([]*ControlPlane, len(options))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4) // more would only wait for one another's CPU time
	for i, o := range options {
		g.Go(func() (err error) {
			planes[i], err = Start(ctx, o)
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		return planes, nil
	}
	for _, c := range planes {
		if c != nil {
			err = errors.Join(err, c.Stop())
		}
	}
	return nil, err
}

func (c *ControlPlane) start(ctx context.Context) error {
	var err error
	if c.binDir, err = BinDir(ctx, c.options.Out, c.options.binaries()...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if c.dir, err = os.MkdirTemp("", "chandler-controlplane-"); err != nil {
		return err
	}
	if c.watchdog, err = startWatchdog(c.dir); err != nil {
		return err
	}
	if c.port, err = reservePort(); err != nil {
		return err
	}
	if err := c.createIdentities(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if len(c.options.CRDPaths) > 0 {
		crds := envtest.CRDInstallOptions{Paths: c.options.CRDPaths, ErrorIfPathMissing: true, MaxTime: startTimeout} // by default 10 s, which a busy machine takes
		if _, err := envtest.InstallCRDs(c.Config(), crds); err != nil {
			return fmt.Errorf("installing CRDs: %w", err)
		}
	}
	if c.options.Workers {
		return c.startWorkers(ctx)
	}
	return nil
}

// Stop kills every component and removes what they stored; nobody will read it, so nobody waits for it to be flushed.
// It may be called more than once.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	for _, p := range c.processes {
		p.Kill()
	}
	var err error
	if c.dir != "" {
		err = os.RemoveAll(c.dir)
	}
	c.watchdog.stop()
	c.port.release()
	return err
}

// client is for the control plane's own checks.
func (c *ControlPlane) client() (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(c.Config())
}

// run starts a component in the group that the watchdog kills.
func (c *ControlPlane) run(name string, args ...string) (*process.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runLocked(name, args...)
}

func (c *ControlPlane) runLocked(name string, args ...string) (*process.Process, error) {
	if c.stopped {
		return nil, errStopped
	}
	logDir := c.dir
	if c.options.LogDir != "" {
		logDir = filepath.Join(c.options.LogDir, c.options.Name)
	}
	p, err := process.Start(process.Options{
		Name: name, Binary: filepath.Join(c.binDir, name), Args: args, Home: c.dir, LogFile: filepath.Join(logDir, name+".log"), Group: c.group,
	})
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	if c.group == 0 {
		c.group = p.PID()
		return p, c.watchdog.guard(c.group)
	}
	return p, nil
}

// wait polls until ready returns nil. It gives up when the context ends or when a component that has to run does not.
func (c *ControlPlane) wait(ctx context.Context, what string, ready func(context.Context) error) error {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if exited := c.exited(); exited != nil {
			return exited
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// exited returns why a component ended by itself, if one did.
func (c *ControlPlane) exited() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errStopped
	}
	for _, p := range c.processes {
		if err := p.EndedByItself(); err != nil {
			return err
		}
	}
	return nil
}
