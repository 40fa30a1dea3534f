// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/targz"
)

// stub answers with a ConfigMap of that archive in any namespace. It is for what
// happens around requests; those to a real API server are in object_test.go.
type stub struct {
	client.Reader
	archive  []byte
	requests atomic.Int32
	fail     func(key client.ObjectKey) error
	block    chan struct{} // nil: answers at once
}

func (s *stub) Get(ctx context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.requests.Add(1)
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.fail != nil {
		if err := s.fail(key); err != nil {
			return err
		}
	}
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	object.SetUID(types.UID(key.String()))
	object.SetResourceVersion("1")
	if configMap, ok := object.(*corev1.ConfigMap); ok {
		configMap.BinaryData = map[string][]byte{"chart.tgz": s.archive}
	}
	return nil
}

func TestConcurrentFetchesShareOne(t *testing.T) {
	const callers = 50
	stub := &stub{archive: targz.Chart(t), block: make(chan struct{})}
	digest := artifact.Content{Archive: stub.archive}.Digest()
	sources := newSources(t, Options{Client: stub})
	artifacts := make(chan *Artifact, callers)
	var started, done sync.WaitGroup
	for i := range callers {
		started.Add(1)
		done.Go(func() {
			started.Done()
			artifact, err := sources.Fetch(t.Context(), inConfigMap(fmt.Sprintf("team-%d", i%2), "charts", ""), digest)
			if err != nil {
				t.Error(err)
			}
			artifacts <- artifact
		})
	}
	started.Wait()
	close(stub.block)
	done.Wait()
	close(artifacts)
	first := <-artifacts
	for artifact := range artifacts {
		if artifact != first {
			t.Fatal("two callers got different artifacts")
		}
	}
	// Those that came when the first had landed found the artifact in the cache.
	if got := stub.requests.Load(); got != 2 {
		t.Errorf("%d requests, want 2: each namespace has to have the chart", got)
	}
}

func TestFetchOutlivesTheCallerThatStartedIt(t *testing.T) {
	stub := &stub{archive: targz.Chart(t), block: make(chan struct{})}
	digest := artifact.Content{Archive: stub.archive}.Digest()
	sources := newSources(t, Options{Client: stub})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := sources.Fetch(ctx, inConfigMap("team-a", "charts", ""), digest)
		left <- err
	}()
	for stub.requests.Load() == 0 { // until the flight has started
		select {
		case err := <-left:
			t.Fatalf("ended at once: %v", err)
		default:
		}
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) || errors.As(err, new(*failure.Error)) {
		t.Errorf("the caller that left got %v, want the error of its context", err)
	}
	close(stub.block)
	if _, err := sources.Fetch(t.Context(), inConfigMap("team-a", "charts", ""), digest); err != nil {
		t.Error(err)
	}
	if got := stub.requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

func TestFailureOfAnotherReferenceIsNotOurs(t *testing.T) {
	stub := &stub{archive: targz.Chart(t), block: make(chan struct{}), fail: func(key client.ObjectKey) error {
		if key.Namespace == "team-a" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no"))
		}
		return nil
	}}
	digest := artifact.Content{Archive: stub.archive}.Digest()
	sources := newSources(t, Options{Client: stub})
	theirs, ours := make(chan error, 1), make(chan error, 1)
	fetch := func(namespace string, result chan<- error) {
		_, err := sources.Fetch(t.Context(), inConfigMap(namespace, "charts", ""), digest)
		result <- err
	}
	go fetch("team-a", theirs)
	for stub.requests.Load() == 0 {
		runtime.Gosched()
	}
	go fetch("team-b", ours)
	close(stub.block)
	if err := <-ours; err != nil {
		t.Errorf("the other's failure became ours: %v", err)
	}
	expectError(t, <-theirs, failure.SourceUnavailable,
		`chart.configMap: ConfigMap team-a/charts, key "chart.tgz": reading it: configmaps "charts" is forbidden: no`)
}

func TestRefusalsAreRemembered(t *testing.T) {
	stub := &stub{archive: []byte("no archive")}
	digest := artifact.Content{Archive: stub.archive}.Digest()
	sources := newSources(t, Options{Client: stub})
	for _, namespace := range []string{"team-a", "team-b"} {
		_, err := sources.Fetch(t.Context(), inConfigMap(namespace, "charts", ""), digest)
		expectError(t, err, failure.ArtifactInvalid,
			"chart.configMap: ConfigMap "+namespace+`/charts, key "chart.tgz": it isn't a gzip-compressed tar archive: gzip: invalid header; make one, as with `+"`helm package` or `tar -czf`")
	}
	for range 3 {
		if _, err := sources.Fetch(t.Context(), inConfigMap("team-a", "charts", ""), digest); err == nil {
			t.Error("it was accepted")
		}
	}
	if got := stub.requests.Load(); got != 2 {
		t.Errorf("%d requests, want 2: one for each object", got)
	}
}

func TestDigestIsVerifiedBeforeTheContentIsRead(t *testing.T) {
	sources := newSources(t, Options{Client: &stub{archive: []byte("neither an archive nor what was resolved")}})
	_, err := sources.Fetch(t.Context(), inConfigMap("team-a", "charts", ""), artifact.Content{Archive: targz.Chart(t)}.Digest())
	expectError(t, err, failure.ArtifactChanged,
		`chart.configMap: ConfigMap team-a/charts, key "chart.tgz": the content changed while it was read; it will be read again`)
}

func TestReferencesThatCantBeUsed(t *testing.T) {
	everything := newSources(t, Options{Client: &stub{}, ArtifactRoot: t.TempDir()})
	both := inSecret("team-a", "charts", "")
	both.Chart.Path = "demo.tgz"
	tests := map[string]struct {
		sources *Sources
		ref     reference.Reference
		reason  string
		text    string
	}{
		"no source": {everything, reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{}}, failure.ArtifactInvalid,
			"chart: set exactly one of path, configMap, secret, oci, helm, http and github"},
		"two sources": {everything, both, failure.ArtifactInvalid,
			`chart.secret: Secret team-a/charts, key "chart.tgz": set exactly one of path, configMap, secret, oci, helm, http and github`},
		"no namespace": {everything, inSecret("", "charts", ""), failure.ArtifactInvalid,
			`chart.secret: Secret /charts, key "chart.tgz": the object that refers to it has no namespace; use path`},
		"no client": {newSources(t, Options{}), inSecret("team-a", "charts", "x"), failure.SourceDisabled,
			`chart.secret: Secret team-a/charts, key "x": this provider reads no ConfigMaps and Secrets; use another source`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.sources.Resolve(t.Context(), test.ref)
			expectError(t, err, test.reason, test.text)
			_, err = test.sources.Fetch(t.Context(), test.ref, "sha256:x")
			expectError(t, err, test.reason, test.text)
		})
	}
}

func TestConcurrentResolvesShareOneRead(t *testing.T) {
	stub := &stub{archive: targz.Chart(t), block: make(chan struct{})}
	sources := newSources(t, Options{Client: stub, Metadata: fixedMetadata{}})
	var started, done sync.WaitGroup
	for range 50 {
		started.Add(1)
		done.Go(func() {
			started.Done()
			if _, err := sources.Resolve(t.Context(), inConfigMap("team-a", "charts", "")); err != nil {
				t.Error(err)
			}
		})
	}
	started.Wait()
	close(stub.block)
	done.Wait()
	if got := stub.requests.Load(); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

// fixedMetadata knows each object in the version that stub has.
type fixedMetadata struct{ client.Reader }

func (fixedMetadata) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	metadata := object.(*metav1.PartialObjectMetadata)
	metadata.UID, metadata.ResourceVersion = types.UID(key.String()), "1"
	return nil
}
