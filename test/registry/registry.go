// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/cluster-chandler/chandler/test/must"
)

// Options of Start.
type Options struct {
	// Users and their passwords. Without any, everyone may read and write.
	Users map[string]string
	// Address to listen on. Defaults to a free port of 127.0.0.1.
	Address string
	// PlainHTTP serves without TLS.
	PlainHTTP bool
}

// Registry is a registry that runs until the test ends. Its content is in memory.
type Registry struct {
	// Host is its address, as in "127.0.0.1:35000".
	Host string
	// CA is the certificate, in PEM, that its own is signed by. None with PlainHTTP.
	CA []byte

	options  Options
	htpasswd string
	process  *exec.Cmd
	stdin    io.Closer
	lines    chan string // of its log; closed when it has ended
	marks    int
}

// Start starts a registry.
func Start(t testing.TB, options Options) *Registry {
	t.Helper()
	path, err := binary(t.Context())
	must.Succeed(t, err)
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	dir := t.TempDir()
	r := &Registry{options: options, lines: make(chan string, 10_000)}
	args := []string{"-address", options.Address}
	if !options.PlainHTTP {
		authority := NewAuthority(t)
		certificate, key := authority.Issue(t)
		r.CA = authority.PEM
		args = append(args, "-tls-cert", write(t, dir, "tls.crt", certificate), "-tls-key", write(t, dir, "tls.key", key))
	}
	if options.Users != nil {
		r.htpasswd = write(t, dir, "htpasswd", nil)
		r.SetUsers(t, options.Users)
		args = append(args, "-htpasswd", r.htpasswd)
	}
	r.process = exec.Command(path, args...) // it ends with its standard input
	r.process.Stderr = os.Stderr
	if r.stdin, err = r.process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := r.process.StdoutPipe()
	must.Succeed(t, err)
	must.Succeed(t, r.process.Start())
	t.Cleanup(r.Stop)
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatalf("the registry ended before it listened: %v", lines.Err())
	}
	r.Host = lines.Text()
	go func() {
		defer close(r.lines)
		for lines.Scan() {
			r.lines <- lines.Text()
		}
	}()
	return r
}

// Stop ends the registry. Its content is lost.
func (r *Registry) Stop() {
	_ = r.stdin.Close() // it is closed already, if the registry was stopped before
	for ended := false; !ended; {
		_, more := <-r.lines
		ended = !more
	}
	_ = r.process.Wait()
}

// SetUsers replaces all users, while the registry runs.
func (r *Registry) SetUsers(t testing.TB, users map[string]string) {
	t.Helper()
	var lines strings.Builder
	for user, password := range users {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		must.Succeed(t, err)
		lines.WriteString(user + ":" + string(hash) + "\n")
	}
	// Renamed into place: the registry reads the file when its time has changed.
	dir := filepath.Dir(r.htpasswd)
	must.Succeed(t, os.Rename(write(t, dir, "htpasswd.new", []byte(lines.String())), r.htpasswd))
}

// Requests are those answered since the last call, as "GET /v2/... 200".
func (r *Registry) Requests(t testing.TB) []string {
	t.Helper()
	// The lines of all requests that were answered are in the pipe in front of this one's.
	r.marks++
	mark := fmt.Sprintf("/mark-%d", r.marks)
	scheme := "https://"
	if r.options.PlainHTTP {
		scheme = "http://"
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+r.Host+mark, nil)
	must.Succeed(t, err)
	response, err := r.client(t).Do(request)
	must.Succeed(t, err)
	_ = response.Body.Close() // nothing is read from it
	var requests []string
	for line := range r.lines {
		if strings.Contains(line, mark+" ") {
			break
		}
		requests = append(requests, line)
	}
	return requests
}

// URL of a repository, as in chart.oci.url.
func (r *Registry) URL(repository string) string { return "oci://" + r.Host + "/" + repository }

// client that trusts the registry.
func (r *Registry) client(t testing.TB) *http.Client {
	t.Helper()
	return &http.Client{Transport: &http.Transport{TLSClientConfig: trust(t, r.CA)}}
}

func write(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Succeed(t, os.WriteFile(path, data, 0o600))
	return path
}
