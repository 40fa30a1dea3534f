// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/message"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// Workload returns the configuration that the kubeconfig Secret of a cluster has. Its user has to be allowed to read it.
func Workload(ctx context.Context, c client.Reader, ca *addonsv1.ClusterAddon) (*rest.Config, error) {
	if ref := ca.Spec.ClusterRef; ref != nil && ref.Kind != addonsv1.KindSecret {
		return nil, fmt.Errorf("the kubeconfig of a %s is nowhere to be read: name it with --workload-kubeconfig", ref.Kind)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: ca.Namespace, Name: ca.Spec.ClusterName + "-kubeconfig"}
	if ca.Spec.ClusterRef != nil {
		key.Name = ca.Spec.ClusterName
	}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", ca.Name, err)
	}
	data := secret.Data["value"] // Cluster API's key
	if data == nil {
		data = secret.Data["kubeconfig"]
	}
	k, err := kubeconfig.Parse(data, kubeconfig.Policy{AllowInsecureTLS: true, AllowLoopback: true})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return &rest.Config{
		Host: k.Endpoint.Server, BearerToken: k.Credentials.Token, Username: k.Credentials.Username, Password: k.Credentials.Password,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: k.Endpoint.ServerName, Insecure: k.Endpoint.Insecure, CAData: []byte(k.Endpoint.CA),
			CertData: []byte(k.Credentials.Cert), KeyData: []byte(k.Credentials.Key),
		},
	}, nil
}

// Release is the newest record of an add-on in its workload cluster.
type Release struct{ record *record.Record }

// ReadRelease reads it.
func ReadRelease(ctx context.Context, c client.Client, namespace, name string) (*Release, error) {
	store := record.Store{Client: c, Release: record.Release{Namespace: namespace, Name: name}}
	r, err := store.Newest(ctx)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fmt.Errorf("the cluster has no release %s that Chandler wrote", store.Release)
	}
	return &Release{r}, nil
}

// Values returns the values as YAML. Strings that came from Secrets are hidden.
func (r *Release) Values() (string, error) {
	values, err := yaml.Marshal(r.record.Helm.Config)
	return message.Redact(string(values), r.secrets()), err
}

// Manifest returns the objects, hooks last, as YAML. The contents of Secrets are hidden, wherever they are.
func (r *Release) Manifest() (string, error) {
	objects, err := r.record.Manifest()
	if err != nil {
		return "", err
	}
	for _, hook := range r.record.Helm.Hooks {
		more, err := record.ParseManifest(hook.Manifest)
		if err != nil {
			return "", fmt.Errorf("hook %s: %w", hook.Path, err)
		}
		objects = append(objects, more...)
	}
	for _, o := range objects {
		if o.GetKind() == "Secret" {
			hideFields(o)
		}
	}
	text, err := record.FormatManifest(objects)
	return message.Redact(text, r.secrets()), err
}

// Notes returns the notes of the chart, without strings that came from Secrets.
func (r *Release) Notes() (string, error) {
	return message.Redact(r.record.Helm.Info.Notes, r.secrets()), nil
}

// hideFields replaces the contents of a Secret. Their keys stay.
func hideFields(secret *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		entries, _, _ := unstructured.NestedMap(secret.Object, field)
		for key := range entries {
			_ = unstructured.SetNestedField(secret.Object, message.Redacted, field, key) // it is a map
		}
	}
}

// secrets returns the strings that came from Secrets, or are in Secrets of the manifest, and those that the chart generated.
func (r *Release) secrets() []string {
	all := slices.Concat(r.record.State.Sensitive, r.record.State.PreviousSensitive, job.Generated(r.record.State.Generated).Secrets())
	for _, o := range r.record.Secrets() {
		all = append(all, job.SecretsIn(o.Object)...)
	}
	return all
}
