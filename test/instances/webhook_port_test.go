// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/pki"
	running "github.com/cluster-chandler/chandler/test/process"
)

// webhookPaths are all that the webhooks serve.
var webhookPaths = []string{
	"/convert",
	"/validate-addons-cluster-x-k8s-io-v1beta1-addonstack",
	"/validate-addons-cluster-x-k8s-io-v1beta1-providerinstance",
}

// Whoever reaches the port can't fill the webhooks' memory.
func TestWebhooksRefuseWhatIsTooLarge(t *testing.T) {
	long.Test(t)
	t.Parallel()
	w := newWorld(t, usual)
	webhooks := (*w.webhooks)[0]
	for _, path := range webhookPaths {
		for name, tell := range map[string]bool{"a length that is told": true, "a length that isn't told": false} {
			before := webhooks.peak(t)
			status := webhooks.send(t, path, 700<<20, tell)
			if status < 400 || status >= 500 {
				t.Errorf("%s, %s: 700 MiB are answered with %d; want a refusal", path, name, status)
			}
			if grown := webhooks.peak(t) - before; grown > 64 {
				t.Errorf("%s, %s: 700 MiB take %.0f MiB of memory", path, name, grown)
			}
		}
	}
	if err := webhooks.ready(); err != nil {
		t.Error(err)
	}
}

// With --webhook-client-ca-file the API server alone is answered by admission, while
// conversion works without a certificate.
func TestAdmissionAnswersTheAPIServerAlone(t *testing.T) {
	long.Test(t)
	t.Parallel()
	ca, err := pki.NewAuthority("api-servers")
	must.Succeed(t, err)
	dir := t.TempDir()
	o := worldOptions{apiServerArgs: []string{"--admission-control-config-file=" + admissionConfiguration(t, dir, ca)}}
	w := newWorld(t, o)
	authorities := filepath.Join(dir, "ca.crt")
	must.Succeed(t, os.WriteFile(authorities, ca.Certificate, 0o600))
	w.installShared("config/shared", "--webhook-client-ca-file="+authorities)

	stack := &addonsv1alpha1.AddonStack{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	stack.Spec.ClusterSelector = &metav1.LabelSelector{}
	stack.Spec.Addons = []addonsv1.Addon{{Name: "settings", Chart: addonsv1.ChartSource{Path: "settings"}}}
	if err := w.Create(t.Context(), stack); err != nil {
		t.Errorf("the API server isn't answered: %v", err)
	}
	webhooks := (*w.webhooks)[0]
	for _, path := range webhookPaths[1:] {
		if status := webhooks.send(t, path, 100, true); status != http.StatusUnauthorized {
			t.Errorf("%s answers %d to a stranger; want 401", path, status)
		}
	}
	if err := webhooks.ready(); err != nil {
		t.Error(err)
	}
}

// admissionConfiguration has the API server show a certificate to admission webhooks, as
// docs/security.md says.
func admissionConfiguration(t *testing.T, dir string, ca *pki.Authority) string {
	t.Helper()
	pair, err := ca.Client("kube-apiserver")
	must.Succeed(t, err)
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
users:
- name: chandler-webhook-service.chandler-webhooks.svc
  user:
    client-certificate-data: %s
    client-key-data: %s
`, base64.StdEncoding.EncodeToString(pair.Certificate), base64.StdEncoding.EncodeToString(pair.Key))
	configuration := fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %s
`, filepath.Join(dir, "webhooks.kubeconfig"))
	file := filepath.Join(dir, "admission.yaml")
	for name, content := range map[string]string{"webhooks.kubeconfig": kubeconfig, "admission.yaml": configuration} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return file
}

// send posts so many bytes, as anybody can, and returns the status of the answer.
func (m *process) send(t *testing.T, path string, size int64, tellLength bool) int {
	t.Helper()
	const begin, end = `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"`, `"}}`
	body := io.MultiReader(strings.NewReader(begin), io.LimitReader(letters{}, size), strings.NewReader(end))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+m.serves+path, io.NopCloser(body))
	must.Succeed(t, err)
	request.Header.Set("Content-Type", "application/json")
	if tellLength {
		request.ContentLength = int64(len(begin)) + size + int64(len(end))
	}
	anybody := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	defer anybody.CloseIdleConnections()
	response, err := anybody.Do(request)
	must.Succeed(t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// peak is the most memory that the process had at a time, in MiB.
func (m *process) peak(t *testing.T) float64 {
	t.Helper()
	most, err := running.Memory(m.PID(), running.PeakResident)
	if err != nil {
		t.Skip("this system doesn't tell a process's peak of memory:", err)
	}
	return most
}
