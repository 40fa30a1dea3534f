// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts the control planes that the tests of a package share, and talks to them as an admin.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
)

// Server is a running API server, and how an admin talks to it.
type Server struct {
	*controlplane.ControlPlane
	client.WithWatch
	Clientset *kubernetes.Clientset
	Audit     *audit.Log
}

// running is every server that was started, for StopAll.
var running struct {
	sync.Mutex
	servers []*Server
}

// Start starts a control plane whose audit log is kept below dir.
func Start(ctx context.Context, dir string, o controlplane.Options) (*Server, error) {
	logs, err := os.MkdirTemp(dir, o.Name+"-")
	if err != nil {
		return nil, err
	}
	o.AuditLog = filepath.Join(logs, "audit.log")
	s := &Server{}
	if s.ControlPlane, err = controlplane.Start(ctx, o); err != nil {
		return nil, err
	}
	running.Lock()
	running.servers = append(running.servers, s)
	running.Unlock()
	if s.WithWatch, err = client.NewWithWatch(s.Config(), client.Options{Scheme: Scheme()}); err != nil {
		return nil, err
	}
	if s.Clientset, err = kubernetes.NewForConfig(s.Config()); err != nil {
		return nil, err
	}
	s.Audit = audit.Of(s.Clientset, o.AuditLog)
	return s, nil
}

// StopAll stops all servers that were started.
func StopAll() {
	running.Lock()
	defer running.Unlock()
	for _, s := range running.servers {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping", s.Name()+":", err)
		}
	}
}
