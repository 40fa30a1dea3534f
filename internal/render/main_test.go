// SPDX-License-Identifier: Apache-2.0

package render

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/realdata"
)

func TestMain(m *testing.M) {
	RunWorkerIfAsked()
	runOrphanIfAsked()
	runEscapesIfAsked()
	os.Exit(m.Run())
}

// newRenderer returns a pool with limits that tests reach soon; change may adapt them.
func newRenderer(t testing.TB, change ...func(*Options)) *Renderer {
	t.Helper()
	opts := Options{Workers: 2, Timeout: 30 * time.Second, MemoryBytes: 256 << 20}
	for _, c := range change {
		c(&opts)
	}
	r := New(opts)
	t.Cleanup(r.Close)
	return r
}

// realChart unpacks a chart of the test data.
func realChart(t testing.TB, archive string) []artifact.File {
	t.Helper()
	return unpack(t, realdata.Read(t, "charts", archive))
}

func unpack(t testing.TB, data []byte) []artifact.File {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var files []artifact.File
	for archive := tar.NewReader(unzipped); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if head.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(head.Name, "/")
		files = append(files, artifact.File{Name: name, Data: content})
	}
}

// chartOf makes a chart of templates and other files; Chart.yaml is added if it is not among them.
func chartOf(files map[string]string) []artifact.File {
	all := []artifact.File{}
	if _, ok := files["Chart.yaml"]; !ok {
		all = append(all, artifact.File{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: v9\n")})
	}
	for name, text := range files {
		all = append(all, artifact.File{Name: name, Data: []byte(text)})
	}
	return all
}

// template is a chart of one template.
func template1(text string) []artifact.File {
	return chartOf(map[string]string{"templates/a.yaml": text})
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// defaultLimits are those of Options without any.
var defaultLimits = limits{OutputBytes: 16 << 20, MaxObjects: 5000, GeneratedBytes: 256 << 10}

var facts = Facts{
	KubeVersion: "v1.36.3",
	APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment", "policy/v1", "batch/v1", "networking.k8s.io/v1"},
}

func requestFor(files []artifact.File) ChartRequest {
	return ChartRequest{Files: files, Release: Release{Name: "demo", Namespace: "kube-system", Revision: 1}, Facts: facts}
}

func wantReason(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) {
		t.Fatalf("got error %v, want an Error with reason %s", err, reason)
	}
	if failure.Reason != reason {
		t.Fatalf("got reason %s (%v), want %s", failure.Reason, err, reason)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not mention %q", err, part)
		}
	}
}
