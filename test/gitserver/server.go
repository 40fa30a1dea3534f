// SPDX-License-Identifier: Apache-2.0

// Package gitserver serves Git repositories on this host, by HTTP, HTTPS and SSH, with Git's own programs.
package gitserver

import (
	"encoding/pem"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// Server serves the repositories below a directory.
type Server struct {
	*httptest.Server
	// Looks are the requests for names, and Fetches those for commits.
	Looks, Fetches atomic.Int32
	// Password of user "git", "" for none.
	Password string
	// Old has it speak version 0 of the protocol.
	Old bool

	root string
}

// Start starts a server by HTTPS, or by HTTP.
func Start(t testing.TB, tls bool) *Server {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	s := &Server{root: t.TempDir()}
	programs, err := exec.Command("git", "--exec-path").Output()
	must.Succeed(t, err)
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(programs)), "git-http-backend"), Root: "/", Stderr: discard{}, Logger: log.New(discard{}, "", 0),
		Env: []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"},
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != s.Password {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler := *backend
		if !s.Old {
			handler.Env = append(handler.Env, "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
		}
		r.Header.Del("Git-Protocol")
		if r.Method == http.MethodPost {
			body := &strings.Builder{}
			if _, err := copyTo(body, r); err != nil {
				return
			}
			s.count(body.String())
		}
		handler.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(discard{}, "", 0)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// count counts a request by its text.
func (s *Server) count(text string) {
	switch {
	case strings.Contains(text, "command=ls-refs"):
		s.Looks.Add(1)
	case strings.Contains(text, "want "):
		s.Fetches.Add(1)
	}
}

// CA returns the server's certificate in PEM.
func (s *Server) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// Repository is a repository of a server.
type Repository struct {
	t testing.TB
	// URL by HTTP, and Directory on this host.
	URL, Directory string
}

// Repository makes a repository with a branch main, which has no commits yet.
func (s *Server) Repository(t testing.TB, name string) *Repository {
	t.Helper()
	r := &Repository{t, s.URL + "/" + name, filepath.Join(s.root, name)}
	must.Succeed(t, os.MkdirAll(r.Directory, 0o755))
	r.Git("init", "-q", "-b", "main")
	return r
}

// Git runs git in the repository, and returns what it prints.
func (r *Repository) Git(arguments ...string) string {
	r.t.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = r.Directory
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	printed, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(arguments, " "), err, printed)
	}
	return strings.TrimSpace(string(printed))
}

// CommitText has the branch point to a commit with this text, and returns it.
func (r *Repository) CommitText(text string) string {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "commit")
	must.Succeed(r.t, os.WriteFile(file, []byte(text), 0o600))
	made := r.Git("hash-object", "-t", "commit", "-w", "--literally", file)
	r.Git("update-ref", "refs/heads/main", made)
	return made
}

// Commit writes files, commits all that is in the directory, and returns the commit.
func (r *Repository) Commit(files map[string]string) string {
	r.t.Helper()
	for name, data := range files {
		path := filepath.Join(r.Directory, name)
		must.Succeed(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Succeed(r.t, os.WriteFile(path, []byte(data), 0o644))
	}
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", "a change")
	return r.Git("rev-parse", "HEAD")
}
