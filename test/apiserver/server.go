// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts the control planes that the tests of a package share, and talks to them as an admin.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/audit"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/must"
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

// Own starts a control plane for one test, which ends with it.
func Own(t *testing.T, o controlplane.Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), t.TempDir(), o)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// Allow adds a user with some rights in all namespaces, and returns its config.
func (s *Server) Allow(t *testing.T, user string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	role, binding := &rbacv1.ClusterRole{Rules: rules}, &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	role.Name, binding.Name = user, user
	added, err := s.AddUser(user)
	must.Succeed(t, errors.Join(err, s.Create(t.Context(), role), s.Create(t.Context(), binding)))
	return added.Config
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
