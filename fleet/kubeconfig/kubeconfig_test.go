// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

// sentinel would show in an error, a request or a file if it leaked.
const sentinel = "S3NTINEL"

// testKubeconfig is a valid one, with holes for the hostile cases.
func testKubeconfig(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: x
contexts:
- {name: x, context: {cluster: c, user: u}}
clusters:
- name: c
  cluster: {%s}
users:
- name: u
  user: {%s}
`, cluster, user)
}

const (
	goodCluster = "server: 'https://api.example.com:6443'"
	goodUser    = "token: " + sentinel
)

func TestHostileKubeconfigs(t *testing.T) {
	dir := t.TempDir()
	// A FIFO makes whoever opens it hang, so the test would notice.
	fifo := filepath.Join(dir, "token")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	ran := filepath.Join(dir, "ran")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	cert, key := newPair(t)
	_, otherKey := newPair(t)
	withCluster := func(s string) string { return testKubeconfig(s, goodUser) }
	withServer := func(s string) string { return withCluster(fmt.Sprintf("server: %q", s)) }
	withUser := func(s string) string { return testKubeconfig(goodCluster, s) }

	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		p := c - 1
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, p, p, p, p, p, p, p, p, p)
	}

	cases := map[string]string{
		"exec":                    withUser("exec: {apiVersion: client.authentication.k8s.io/v1, command: " + program + ", interactiveMode: Never}"),
		"exec beside a token":     withUser(goodUser + ", exec: {apiVersion: client.authentication.k8s.io/v1, command: " + program + ", interactiveMode: Never}"),
		"auth-provider":           withUser("auth-provider: {name: oidc, config: {a: b}}"),
		"auth-provider gcp":       withUser("auth-provider: {name: gcp, config: {cmd-path: " + program + "}}"),
		"tokenFile":               withUser("tokenFile: " + fifo),
		"tokenFile beside token":  withUser(goodUser + ", tokenFile: " + fifo),
		"client-certificate":      withUser("client-certificate: " + fifo + ", client-key: " + fifo),
		"client-key":              withUser(goodUser + ", client-key: " + fifo),
		"relative file":           withUser("client-certificate: ../../token"),
		"act-as":                  withUser(goodUser + ", as: admin"),
		"act-as groups":           withUser(goodUser + ", as-groups: ['system:masters']"),
		"act-as uid":              withUser(goodUser + ", as-uid: '1'"),
		"act-as extra":            withUser(goodUser + ", as-user-extra: {a: [b]}"),
		"no credentials":          withUser(""),
		"blank token":             withUser("token: '  '"),
		"token with a line break": withUser(`token: "` + sentinel + `\r\nX-Injected: yes"`),
		"token with a NUL":        withUser(`token: "` + sentinel + `\0"`),
		"colon in the user name":  withUser("username: 'a:b', password: " + sentinel),
		"certificate without key": withUser("client-certificate-data: " + b64(string(cert))),
		"key without certificate": withUser("client-key-data: " + b64(string(key))),
		"key of another pair":     withUser("client-certificate-data: " + b64(string(cert)) + ", client-key-data: " + b64(string(otherKey))),
		"key is not PEM":          withUser("client-certificate-data: " + b64(string(cert)) + ", client-key-data: " + b64(sentinel)),
		"key is not base64":       withUser("client-key-data: '" + sentinel + "%%'"),
		"huge key":                withUser("client-certificate-data: " + b64(string(cert)) + ", client-key-data: " + b64(strings.Repeat("x", maxKeySize+1))),
		"token is a map":          withUser("token: {a: " + sentinel + "}"),

		"next line (U+0085)":           withUser(goodUser) + "#\u0085",
		"line separator (U+2028)":      withUser(goodUser) + "#\u2028",
		"paragraph separator (U+2029)": withUser(goodUser) + strings.Repeat("#\u2029", 50_000),

		"certificate-authority":    withCluster(goodCluster + ", certificate-authority: " + fifo),
		"CA is not PEM":            withCluster(goodCluster + ", certificate-authority-data: " + b64(sentinel)),
		"insecure":                 withCluster(goodCluster + ", insecure-skip-tls-verify: true"),
		"proxy-url":                withCluster(goodCluster + ", proxy-url: 'http://proxy.example.com'"),
		"tls-server-name":          withCluster(goodCluster + ", tls-server-name: 'a b'"),
		"no server":                withCluster("server: ''"),
		"http":                     withServer("http://api.example.com"),
		"no scheme":                withServer("api.example.com:6443"),
		"scheme file":              withServer("file:///etc/passwd"),
		"scheme unix":              withServer("unix:///var/run/x.sock"),
		"scheme ftp":               withServer("ftp://api.example.com"),
		"no host":                  withServer("https:///path"),
		"port only":                withServer("https://:6443"),
		"password in the URL":      withServer("https://u:" + sentinel + "@api.example.com"),
		"query":                    withServer("https://api.example.com?x=" + sentinel),
		"empty query":              withServer("https://api.example.com?"),
		"fragment":                 withServer("https://api.example.com#" + sentinel),
		"line break in the URL":    withServer("https://api.example.com/\r\nX: y"),
		"space in the host":        withServer("https://api example.com"),
		"percent in the host":      withServer("https://api%0a.example.com"),
		"very long host":           withServer("https://" + strings.Repeat("a.", 600) + "com"),
		"loopback":                 withServer("https://127.0.0.1:6443"),
		"loopback 127.8":           withServer("https://127.8.9.1:6443"),
		"loopback IPv6":            withServer("https://[::1]:6443"),
		"loopback mapped":          withServer("https://[::ffff:127.0.0.1]:6443"),
		"localhost":                withServer("https://localhost:6443"),
		"localhost with a dot":     withServer("https://LOCALHOST.:6443"),
		"below localhost":          withServer("https://a.localhost:6443"),
		"metadata service":         withServer("https://169.254.169.254/"),
		"metadata service mapped":  withServer("https://[::ffff:169.254.169.254]/"),
		"metadata service AWS v6":  withServer("https://[fd00:ec2::254]/"),
		"metadata service Alibaba": withServer("https://100.100.100.200/"),
		"link-local IPv6":          withServer("https://[fe80::1]:6443"),
		"link-local with a zone":   withServer("https://[fe80::1%25eth0]:6443"),
		"unspecified":              withServer("https://0.0.0.0:6443"),
		"unspecified IPv6":         withServer("https://[::]:6443"),
		"network zero":             withServer("https://0.1.2.3:6443"),
		"multicast":                withServer("https://224.0.0.1:6443"),
		"broadcast":                withServer("https://255.255.255.255:6443"),
		"decimal loopback":         withServer("https://2130706433:6443"),
		"short loopback":           withServer("https://127.1:6443"),
		"octal loopback":           withServer("https://0177.0.0.1:6443"),
		"hexadecimal loopback":     withServer("https://0x7f000001:6443"),

		"empty":                     "",
		"not YAML":                  "\t{",
		"a list":                    "[" + sentinel + "]",
		"a string":                  sentinel,
		"another kind":              "apiVersion: v1\nkind: Secret\n",
		"no current context":        strings.Replace(withUser(goodUser), "current-context: x", "", 1),
		"unknown context":           strings.Replace(withUser(goodUser), "current-context: x", "current-context: y", 1),
		"context of no cluster":     strings.Replace(withUser(goodUser), "cluster: c,", "cluster: d,", 1),
		"context of no user":        strings.Replace(withUser(goodUser), "user: u}", "user: v}", 1),
		"empty context":             strings.Replace(withUser(goodUser), "context: {cluster: c, user: u}", "", 1),
		"two documents":             withUser(goodUser) + "---\n" + withUser(goodUser),
		"key twice":                 withUser(goodUser) + "current-context: x\n",
		"token twice":               withUser(goodUser + ", token: other"),
		"anchor and alias":          withUser("token: &t " + sentinel + ", password: *t"),
		"merge key":                 "d: &d {token: x}\n" + withUser("<<: *d"),
		"alias bomb":                bomb + withUser(goodUser),
		"recursive alias":           "a: &a [*a]\n" + withUser(goodUser),
		"100 000 deep":              strings.Repeat("[", 100_000),
		"100 000 deep in a mapping": "a: " + strings.Repeat("{a: ", 60_000),
		"100 000 deep in a list":    strings.Repeat("- ", 100_000) + "x",
		"100 000 deep in a key":     strings.Repeat("? ", 100_000) + "x",
		"deep by indentation":       deepByIndentation(700),
		"100 000 list entries":      "a: [" + strings.Repeat("x,", 100_000) + "]",
		"100 000 lists":             "a: [" + strings.Repeat("[],", 80_000) + "]",
		"30 000 keys":               manyKeys(30_000),
		"too large":                 withUser(goodUser) + "#" + strings.Repeat("x", maxSize),
		"2 MiB":                     strings.Repeat("x: y\n", 400_000),
	}
	if len(cases) < 40 {
		t.Fatalf("only %d cases", len(cases))
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			k, err := Parse([]byte(data), Policy{})
			took := time.Since(start)
			if _, refused := errors.AsType[Refusal](err); k != nil || !refused {
				t.Fatalf("got %v, %v", k, err)
			}
			if strings.Contains(err.Error(), sentinel) {
				t.Errorf("the error quotes a credential: %v", err)
			}
			if again := func() error { _, err := Parse([]byte(data), Policy{}); return err }(); again.Error() != err.Error() {
				t.Errorf("not deterministic: %v, %v", err, again)
			}
			t.Logf("%s in %s", err, took)
		})
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program was run")
	}
}

func deepByIndentation(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: x\n", i)
	}
	return b.String()
}

// newPair returns a certificate and its key, in PEM.
func newPair(t *testing.T) (pair, key []byte) {
	t.Helper()
	pair, key, err := cert.GenerateSelfSignedCertKey("me", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair, key
}

func TestAcceptedKubeconfigs(t *testing.T) {
	cert, key := newPair(t)
	b64 := base64.StdEncoding.EncodeToString
	pair := "client-certificate-data: " + b64(cert) + ", client-key-data: " + b64(key)
	for name, tc := range map[string]struct {
		data   string
		policy Policy
	}{
		"token":                 {data: testKubeconfig(goodCluster, goodUser)},
		"client certificate":    {data: testKubeconfig(goodCluster, pair)},
		"both":                  {data: testKubeconfig(goodCluster, goodUser+", "+pair)},
		"password":              {data: testKubeconfig(goodCluster, "username: u, password: p")},
		"path":                  {data: testKubeconfig("server: 'https://rancher.example.com/k8s/clusters/c-1/'", goodUser)},
		"private address":       {data: testKubeconfig("server: 'https://10.0.0.1:6443'", goodUser)},
		"IPv6":                  {data: testKubeconfig("server: 'https://[2001:db8::1]:6443'", goodUser)},
		"in-cluster":            {data: testKubeconfig("server: 'https://kubernetes.default.svc'", goodUser)},
		"tls-server-name":       {data: testKubeconfig(goodCluster+", tls-server-name: api.example.com", goodUser)},
		"CA":                    {data: testKubeconfig(goodCluster+", certificate-authority-data: "+b64(cert), goodUser)},
		"loopback, allowed":     {data: testKubeconfig("server: 'https://127.0.0.1:1'", goodUser), policy: Policy{AllowLoopback: true}},
		"localhost, allowed":    {data: testKubeconfig("server: 'https://localhost:1'", goodUser), policy: Policy{AllowLoopback: true}},
		"http, allowed":         {data: testKubeconfig("server: 'http://api.example.com'", goodUser), policy: Policy{AllowInsecureTLS: true}},
		"insecure, allowed":     {data: testKubeconfig(goodCluster+", insecure-skip-tls-verify: true", goodUser), policy: Policy{AllowInsecureTLS: true}},
		"hostile other context": {data: strings.Replace(testKubeconfig(goodCluster, goodUser), "users:\n", "users:\n- {name: v, user: {tokenFile: /etc/passwd}}\n", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := Parse([]byte(tc.data), tc.policy)
			if err != nil {
				t.Fatal(err)
			}
			if len(k.digest) != 64 || k.Host() == "" {
				t.Errorf("digest %q, host %q", k.digest, k.Host())
			}
		})
	}
}

// TestDigest tells kubeconfigs apart by what matters only.
func TestDigest(t *testing.T) {
	digest := func(data string) string {
		k, err := Parse([]byte(data), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		return k.digest
	}
	first := digest(testKubeconfig(goodCluster, goodUser))
	for data, same := range map[string]bool{
		"# a comment\n" + testKubeconfig(goodCluster, goodUser):         true,
		testKubeconfig(goodCluster, "token: other"):                     false,
		testKubeconfig("server: 'https://other.example.com'", goodUser): false,
	} {
		if (digest(data) == first) != same {
			t.Errorf("the same digest: %t\n%s", !same, data)
		}
	}
}
