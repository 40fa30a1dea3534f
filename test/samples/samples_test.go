// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/cluster-chandler/chandler/test/admission"
	"github.com/cluster-chandler/chandler/test/apiserver"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/docs"
	"github.com/cluster-chandler/chandler/test/gobuild"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/suite"
	"github.com/cluster-chandler/chandler/test/wait"
	"github.com/cluster-chandler/chandler/webhooks"
)

const root = "../.."

var (
	server *apiserver.Server
	path   string // of kubectl and its plugin
)

func TestMain(m *testing.M) {
	suite.Suite{Name: "samples", Parallel: 1, Prepare: func(ctx context.Context, root, dir string) error {
		crds, err := apiserver.ClusterAPICRDs(ctx, "clusters")
		if err != nil {
			return err
		}
		crds = append(crds, filepath.Join(root, "config/crd/bases"), filepath.Join(root, "test/samples/testdata/crds"))
		if server, err = apiserver.Start(ctx, dir, controlplane.Options{Name: "management", CRDPaths: crds}); err != nil {
			return err
		}
		kubectl, err := controlplane.BinDir(ctx, os.Stderr, "kubectl")
		path = strings.Join([]string{dir, kubectl, os.Getenv("PATH")}, string(os.PathListSeparator))
		return errors.Join(err, gobuild.Build(ctx, root, filepath.Join(dir, "kubectl-chandler"), "./cmd/kubectl-chandler"))
	}}.Run(m)
}

// TestSamples runs the commands that the files of testdata/ name.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	must.Succeed(t, err)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			d := newDesk(t, file)
			for _, name := range d.samples {
				sample := docs.Sample(t, root, name)
				sample.Compare(t, d.run(sample.Text))
			}
		})
	}
}

// TestRefusedVersion has the webhook of Clusters refuse a version, as docs/kubernetes-versions.md shows it.
func TestRefusedVersion(t *testing.T) {
	d := newDesk(t, "testdata/kubernetes-versions.yaml")
	authority, dir := admission.Certificate(t)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	must.Succeed(t, err)
	hook := httptest.NewUnstartedServer(ctrladmission.WithValidator(server.Scheme(), &webhooks.Cluster{Reader: server}))
	hook.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	hook.StartTLS()
	t.Cleanup(hook.Close)
	d.create(admission.Configuration(t, root, hook.URL, authority, "validation.cluster.addons.cluster.x-k8s.io"))
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = "fleet", "prod"
	to := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"topology":{"version":"v1.37.0"}}}`))
	wait.Until(t, time.Minute, "the API server asks the webhook", func() error {
		if err := server.Patch(t.Context(), cluster.DeepCopy(), to, client.DryRunAll); !apierrors.IsInvalid(err) {
			return cmp.Or(err, errors.New("it lets the version through"))
		}
		return nil
	})
	sample := docs.Sample(t, root, `docs/kubernetes-versions.md: kubectl patch cluster -n fleet prod --type merge -p '{"spec":{"topology":{"version":"v1.37.0"}}}'`)
	sample.Compare(t, d.run(sample.Text))
}

// run runs a line in a shell, and returns what it prints: its errors, if there is nothing else.
func (d *desk) run(line string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "PATH="+path, "KUBECONFIG="+filepath.Join(d.dir, "kubeconfig"))
	out, problems := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, problems
	exit := &exec.ExitError{} // an exit code says how things are, too
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return cmp.Or(out.String(), problems.String())
}
