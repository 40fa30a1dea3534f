// SPDX-License-Identifier: Apache-2.0

// Package hooks answers Cluster API's runtime hooks: whether an upgrade of a Cluster's Kubernetes may go
// on. The answer is in the status of the ClusterAddon, so a call starts nothing.
package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/upgrade"
)

// Server answers runtime hooks.
type Server struct {
	// Client reads from the API server: an answer isn't to be older than the question.
	Client client.Client
	// Instances reads ProviderInstances of all namespaces. It may cache.
	Instances client.Reader
	// RESTClient reads which hooks Cluster API has.
	RESTClient rest.Interface
	// FailurePolicy is that of the hooks before a control plane is upgraded, or a Cluster deleted.
	FailurePolicy hooksv1.FailurePolicy
	Clock         clock.PassiveClock
}

// Register adds all hooks to a server.
func (s *Server) Register(server webhook.Server) {
	server.Register(runtimecatalog.GVHToPath(versioned(hooksv1.Discovery), ""), http.HandlerFunc(s.discover))
	for i := range all {
		h := &all[i]
		serve := func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, h) }
		server.Register(runtimecatalog.GVHToPath(versioned(h.hook), h.name), http.HandlerFunc(serve))
	}
}

// versioned returns the name of a hook with its group and version.
func versioned(hook runtimecatalog.Hook) runtimecatalog.GroupVersionHook {
	of := hooksv1.GroupVersion
	return runtimecatalog.GroupVersionHook{Group: of.Group, Version: of.Version, Hook: runtimecatalog.HookName(hook)}
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, h *hook) {
	asked := &request{}
	if err := json.NewDecoder(r.Body).Decode(asked); err != nil {
		http.Error(w, "the request is no JSON", http.StatusBadRequest)
		return
	}
	key := client.ObjectKey{Namespace: asked.Cluster.Metadata.Namespace, Name: asked.Cluster.Metadata.Name}
	response := &hooksv1.BeforeClusterUpgradeResponse{} // all hooks that may be held have the same fields
	response.SetStatus(hooksv1.ResponseStatusSuccess)
	answer, err := s.answer(r.Context(), key, h, asked)
	if err != nil {
		logf.FromContext(r.Context()).Error(err, "Could not answer a hook", "hook", h.name, "Cluster", key)
		response.SetStatus(hooksv1.ResponseStatusFailure)
		answer.Message = "the status of ClusterAddon " + key.Name + " can't be read from the API server"
	}
	response.SetRetryAfterSeconds(int32(answer.RetryAfter / time.Second))
	response.SetMessage(answer.Message)
	reply(w, r, response)
}

// answer returns what is to be said of a Cluster. Nothing holds one that no instance manages.
func (s *Server) answer(ctx context.Context, key client.ObjectKey, h *hook, asked *request) (upgrade.Answer, error) {
	ca := &addonsv1.ClusterAddon{}
	if err := s.Client.Get(ctx, key, ca); apierrors.IsNotFound(err) {
		return upgrade.Answer{}, nil
	} else if err != nil {
		return upgrade.Answer{}, fmt.Errorf("reading ClusterAddon %s: %w", key, err)
	}
	if annotations.HasPaused(ca) || !ca.DeletionTimestamp.IsZero() {
		return upgrade.Answer{}, nil
	}
	instances := &addonsv1.ProviderInstanceList{}
	if err := s.Instances.List(ctx, instances); err != nil {
		return upgrade.Answer{}, fmt.Errorf("listing ProviderInstances: %w", err)
	}
	held, lost := HolderOf(ca, instances.Items)
	if !held {
		return upgrade.Answer{}, nil
	}
	return h.answer(asked, ca, lost, s.Clock.Now()), nil
}

func reply(w http.ResponseWriter, r *http.Request, response hooksv1.ResponseObject) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(response); err != nil {
		logf.FromContext(r.Context()).Error(err, "Could not send the answer of a hook")
	}
}
