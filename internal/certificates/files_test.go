// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// TestFilesAreReadAgain replaces the files of an expired certificate as a kubelet does,
// which is what cert-manager's renewals come down to.
func TestFilesAreReadAgain(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	publish := func(generation string, maxAge time.Duration) {
		certificate, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: "localhost", MaxAge: maxAge})
		g.Expect(err).NotTo(HaveOccurred())
		folder := filepath.Join(dir, generation)
		g.Expect(os.Mkdir(folder, 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, "tls.crt"), certificate, 0o600)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(folder, "tls.key"), key, 0o600)).To(Succeed())
		g.Expect(os.Symlink(generation, filepath.Join(dir, "..new"))).To(Succeed())
		g.Expect(os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data"))).To(Succeed())
	}
	publish("expired", -time.Minute)
	for _, name := range []string{"tls.crt", "tls.key"} {
		g.Expect(os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name))).To(Succeed())
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	port := listener.Addr().(*net.TCPAddr).Port
	g.Expect(listener.Close()).To(Succeed())
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: dir})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		g.Expect(<-done).To(Succeed())
	})

	shown := func() (*x509.Certificate, error) {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
	}
	g.Eventually(shown, patience).Should(HaveField("NotAfter", BeTemporally("<", time.Now())), "an expired certificate doesn't keep the process from starting")
	publish("fresh", 2*time.Hour) // it begins an hour ago
	g.Eventually(shown, patience).Should(HaveField("NotAfter", BeTemporally(">", time.Now())))
}
