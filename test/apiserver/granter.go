// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/providerinstance"
	"github.com/cluster-chandler/chandler/internal/instance"
	"github.com/cluster-chandler/chandler/internal/instance/grant"
)

// GrantScopes grants scopes to instances until the context ends, as the deployment does that they share.
func (s *Server) GrantScopes(ctx context.Context) error {
	user, err := s.AddUser("granter", "system:masters")
	if err != nil {
		return err
	}
	mgr, err := manager.New(user.Config, manager.Options{
		Scheme: Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", MapperProvider: instance.NewMapper,
		Controller: config.Controller{
			SkipNameValidation: ptr.To(true), // a process may have several
			CacheSyncTimeout:   time.Hour,    // the CRDs may come later
		},
	})
	if err != nil {
		return err
	}
	granter := &providerinstance.Granter{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Memory: grant.NewMemory(clock.RealClock{}), Clock: clock.RealClock{},
	}
	if err := granter.SetupWithManager(mgr); err != nil {
		return err
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "granting scopes:", err)
		}
	}()
	return nil
}

// FreeScopes takes the scopes from instances of a namespace whose processes were killed, and deletes their objects, as an
// administrator may who knows that they are dead. Otherwise the next one waits until they have expired.
func (s *Server) FreeScopes(ctx context.Context, namespace string) error {
	all := &addonsv1.ProviderInstanceList{}
	if err := s.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		pi := &all.Items[i]
		waiting := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"claim":"Waiting"}}`))
		if err := errors.Join(s.Patch(ctx, pi, waiting), s.Delete(ctx, pi)); err != nil {
			return err
		}
	}
	return nil
}
