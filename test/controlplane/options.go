// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"io"
	"os"
	"path/filepath"
)

// Options say what to start.
type Options struct {
	// Name of the cluster, in its kubeconfigs and in errors. Defaults to "controlplane".
	Name string
	// Version of Kubernetes, as in "v1.35.9", that the API server says it is, and whose minor it serves. Defaults to the
	// version of its code. The workers' programs are of that in any case.
	Version string
	// Workers adds kube-controller-manager, kube-scheduler and kwok with simulated nodes. Without them nothing acts on
	// objects: no ServiceAccount is made, no namespace goes away, no owner is garbage-collected.
	Workers bool
	// Nodes is the number of simulated nodes, by default one. It needs Workers.
	Nodes int
	// CRDPaths are files or folders of CustomResourceDefinitions to install.
	CRDPaths []string
	// AuditLog is the file to which the API server writes each request; see package audit.
	AuditLog string
	// AuditPolicy says, as YAML, what is recorded. Defaults to the metadata of all requests, once they have been answered.
	AuditPolicy string
	// LogDir keeps the components' logs. By default they go away with the control plane.
	LogDir string
	// ExtraAPIServerArgs follow the API server's own arguments, and override them.
	ExtraAPIServerArgs []string
	// Out receives the progress of a build of missing binaries, which takes minutes. Defaults to os.Stderr.
	Out io.Writer
}

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "controlplane"
	}
	if o.Nodes == 0 {
		o.Nodes = 1
	}
	if o.AuditPolicy == "" {
		o.AuditPolicy = auditPolicy
	}
	if o.Out == nil {
		o.Out = os.Stderr
	}
	if o.AuditLog == "" {
		return o, nil
	}
	// The API server has a working directory of its own.
	var err error
	o.AuditLog, err = filepath.Abs(o.AuditLog)
	return o, err
}
