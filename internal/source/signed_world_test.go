// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"path"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	orasremote "oras.land/oras-go/v2/registry/remote"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

const (
	workflow = "https://github.com/demo/charts/.github/workflows/release.yaml@refs/tags/v1"
	actions  = "https://token.actions.githubusercontent.com"
)

// signedWorld is a registry, and a cluster with what is trusted.
type signedWorld struct {
	*cluster
	server    *registry.Registry
	key       signing.Key
	authority *signing.Authority
	openpgp   signing.OpenPGPKey
}

func startSigned(t *testing.T) *signedWorld {
	t.Helper()
	w := &signedWorld{
		cluster: newCluster(t), server: registry.Start(t, registry.Options{PlainHTTP: true}),
		key: signing.NewKey(t), authority: signing.NewAuthority(t), openpgp: signing.NewOpenPGPKey(t, 0),
	}
	w.set(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "trust"},
		Data: map[string]string{
			"cosign.pub": string(w.key.Public), "other.pub": string(signing.NewKey(t).Public),
			"trusted_root.json": string(w.authority.TrustRoot(t, signing.Trust{Log: true, Timestamps: true})),
			"armored.asc":       string(w.openpgp.Armored), "garbage": "x",
		},
		BinaryData: map[string][]byte{"pubring.gpg": w.openpgp.Public},
	})
	return w
}

// sources of its own, that know nothing yet.
func (w *signedWorld) sources(t *testing.T) *source.Sources {
	t.Helper()
	sources, _ := remoteSources(t, source.Options{Client: w.cluster, Metadata: w.metadata()})
	return sources
}

func (w *signedWorld) repository(t *testing.T, name string) *orasremote.Repository {
	t.Helper()
	return signing.Repository(t, w.server, name)
}

// push publishes version 1.0.0, and returns the manifest's digest.
func (w *signedWorld) push(t *testing.T, name string) string {
	t.Helper()
	return w.server.Push(t, targz.Of(t, chartEntry(name)), name, "1.0.0")
}

// chartEntry makes a chart of its own for each name.
func chartEntry(name string) targz.Entry {
	return targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: " + path.Base(name) + "\nversion: 1.0.0\ndescription: " + name + "\n"}
}

func (w *signedWorld) ref(name string, verify *addonsv1.Verification) reference.Reference {
	ref := inRegistry(w.server.URL(name), "1.0.0")
	ref.Chart.OCI.PlainHTTP, ref.Chart.Verify = ptr.To(true), verify
	return ref
}

func inTrust(key string) addonsv1.TrustReference {
	return addonsv1.TrustReference{Kind: reference.KindConfigMap, Name: "trust", Key: key}
}

func byKeys(keys ...string) *addonsv1.Verification {
	cosign := &addonsv1.CosignVerification{}
	for _, key := range keys {
		cosign.PublicKeys = append(cosign.PublicKeys, inTrust(key))
	}
	return &addonsv1.Verification{Cosign: cosign}
}

func byIdentity(issuer, subject string) *addonsv1.Verification {
	return &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{Keyless: &addonsv1.KeylessVerification{
		Identities: []addonsv1.CertificateIdentity{{Issuer: issuer, Subject: subject}}, TrustRoot: inTrust(""),
	}}}
}

func byKeyring(key string) *addonsv1.Verification {
	return &addonsv1.Verification{Provenance: &addonsv1.ProvenanceVerification{Keyring: inTrust(key)}}
}
