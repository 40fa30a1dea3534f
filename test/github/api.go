// SPDX-License-Identifier: Apache-2.0

package github

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxPageSize is GitHub's; a page has 30 releases if nothing else is asked for.
const (
	maxPageSize     = 100
	defaultPageSize = 30
)

// api answers what is below /api/v3 and /.
func (s *Server) api() http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"/api/v3", ""} {
		at := "GET " + prefix + "/repos/{owner}/{name}/releases"
		mux.HandleFunc(at, s.list)
		mux.HandleFunc(at+"/tags/{tag...}", s.byTag)
		mux.HandleFunc(at+"/assets/{id}", s.asset)
	}
	mux.HandleFunc("/", notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &recorder{ResponseWriter: w, note: func(status int) {
			s.record(r.Method + " " + r.URL.EscapedPath() + query(r) + " " + strconv.Itoa(status))
		}}
		s.mu.Lock()
		intercept := s.intercept
		s.mu.Unlock()
		answer.Header().Set("Date", s.options.Now().UTC().Format(http.TimeFormat))
		if intercept != nil && intercept(answer, r) || s.refuse(answer) {
			return
		}
		if shown := r.Header.Get("Authorization"); shown != "" && s.options.Token != "" && !s.knows(shown) {
			s.spend(answer, 1)
			say(answer, http.StatusUnauthorized, "Bad credentials", "https://docs.github.com/rest")
			return
		}
		if s.options.Token != "" && r.Header.Get("Authorization") == "" {
			s.spend(answer, 1)
			notFound(answer, r) // a private repository isn't there for others
			return
		}
		mux.ServeHTTP(answer, r)
	})
}

func query(r *http.Request) string {
	if page := r.URL.Query().Get("page"); page != "" {
		return "?page=" + page
	}
	return ""
}

// knows tells whether credentials are the right ones: GitHub takes tokens as such, and as passwords.
func (s *Server) knows(shown string) bool {
	basic := &http.Request{Header: http.Header{"Authorization": {shown}}}
	_, password, _ := basic.BasicAuth()
	return shown == "Bearer "+s.options.Token || shown == "token "+s.options.Token || password == s.options.Token
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	repository := r.PathValue("owner") + "/" + r.PathValue("name")
	s.mu.Lock()
	releases, known := s.repositories[repository]
	all := make([]releaseJSON, 0, len(releases))
	for _, release := range releases {
		all = append(all, s.render(repository, release))
	}
	s.mu.Unlock()
	if !known {
		s.spend(w, 1)
		notFound(w, r)
		return
	}
	size := min(number(r, "per_page", defaultPageSize), s.options.PageSize)
	page := number(r, "page", 1)
	first, last := min((page-1)*size, len(all)), min(page*size, len(all))
	if last < len(all) {
		w.Header().Add("Link", fmt.Sprintf("<%s>; rel=\"next\", <%s>; rel=\"last\"", s.page(r, page+1), s.page(r, (len(all)+size-1)/size)))
	}
	s.send(w, r, all[first:last])
}

func (s *Server) page(r *http.Request, page int) string {
	at := url.URL{Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	query := at.Query()
	query.Set("page", strconv.Itoa(page))
	at.RawQuery = query.Encode()
	return s.API() + at.String()
}

func number(r *http.Request, name string, fallback int) int {
	value, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || value < 1 {
		return fallback
	}
	return value
}

func (s *Server) byTag(w http.ResponseWriter, r *http.Request) {
	repository := r.PathValue("owner") + "/" + r.PathValue("name")
	s.mu.Lock()
	var found *releaseJSON
	for _, release := range s.repositories[repository] {
		if release.Tag == r.PathValue("tag") && !release.Draft {
			rendered := s.render(repository, release)
			found = &rendered
		}
	}
	s.mu.Unlock()
	if found == nil {
		s.spend(w, 1)
		notFound(w, r)
		return
	}
	s.send(w, r, found)
}

// asset tells about a file, or redirects to its content.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	repository := r.PathValue("owner") + "/" + r.PathValue("name")
	s.spend(w, 1)
	file := s.file(repository, r.PathValue("id"))
	switch {
	case file == nil:
		notFound(w, r)
	case r.Header.Get("Accept") != "application/octet-stream":
		say(w, http.StatusUnsupportedMediaType, "this server tells about files as part of releases only", "")
	default:
		// The query of a signed URL is as good as a password.
		http.Redirect(w, r, s.scheme()+s.Storage+"/"+repository+"/"+r.PathValue("id")+"?sig="+signature, http.StatusFound)
	}
}

// signature is what a signed URL has. It is a secret.
const signature = "sentinel-signature"

func (s *Server) file(repository, id string) *File {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, release := range s.repositories[repository] {
		for i := range release.Files {
			if strconv.FormatInt(release.Files[i].id, 10) == id {
				return &release.Files[i]
			}
		}
	}
	return nil
}

// storage serves the content of files to whoever has the signed URL. As the real one
// does, it refuses who shows other credentials, too.
func (s *Server) storage(w http.ResponseWriter, r *http.Request) {
	answer := &recorder{ResponseWriter: w, note: func(status int) {
		s.record(r.Method + " storage" + r.URL.Path + " " + strconv.Itoa(status))
	}}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var file *File
	if len(parts) == 3 && r.URL.Query().Get("sig") == signature {
		file = s.file(parts[0]+"/"+parts[1], parts[2])
	}
	shown := r.Header.Get("Authorization")
	switch {
	case shown != "":
		s.mu.Lock()
		s.leaked = append(s.leaked, shown)
		s.mu.Unlock()
		http.Error(answer, "only one auth mechanism allowed", http.StatusBadRequest)
	case file == nil:
		http.NotFound(answer, r)
	default:
		answer.Header().Set("Content-Length", strconv.Itoa(len(file.Data)))
		_, _ = answer.Write(file.Data) // who asked may be gone
	}
}

// send answers with JSON, or that it is what is known already.
func (s *Server) send(w http.ResponseWriter, r *http.Request, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // it is made of text and numbers
	}
	sum := sha256.Sum256(body)
	etag := `W/"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if r.Header.Get("If-None-Match") == etag {
		s.spend(w, 0)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.spend(w, 1)
	_, _ = w.Write(body) // who asked may be gone
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	say(w, http.StatusNotFound, "Not Found", "https://docs.github.com/rest")
}

// say answers with an error as the API words it.
func say(w http.ResponseWriter, status int, message, documentation string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message, "documentation_url": documentation}) // who asked may be gone
}

// recorder notes the status of an answer before any of it is sent.
type recorder struct {
	http.ResponseWriter
	note  func(status int)
	noted bool
}

func (r *recorder) WriteHeader(status int) {
	if !r.noted {
		r.noted = true
		r.note(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	if !r.noted {
		r.WriteHeader(http.StatusOK)
	}
	return r.ResponseWriter.Write(data)
}

func (s *Server) record(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, line)
}
