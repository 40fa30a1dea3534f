// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

const (
	// maxDocuments is how much the documents of a discovery may have in all, in bytes. All of them are kept.
	maxDocuments = 32 << 20
	// minDocument is what each counts at least.
	minDocument = 4 << 10
)

// documents are the sizes of what a client has read of a cluster's APIs.
//
// Key: the path of a document.
// Bound: maxDocuments, in which each counts minDocument at least.
// Lost with it: the documents of the next client count from zero.
type documents struct {
	mu    sync.Mutex
	sizes map[string]int
	total int
}

func newDocuments() *documents { return &documents{sizes: map[string]int{}} }

// isDocument reports whether a path is of a document of the discovery.
func isDocument(path string) bool {
	return path == "/api" || path == apisPath || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, apisPath+"/")
}

// add takes in a document. It returns an error if it isn't JSON, or if all are more than may be kept.
func (d *documents) add(request *http.Request, document []byte) error {
	path := request.URL.Path
	if !bytes.HasPrefix(bytes.TrimSpace(document), []byte("{")) {
		return fmt.Errorf("%s is no JSON", path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	size := max(answer.SizeOf(document), minDocument)
	if d.total+size-d.sizes[path] > maxDocuments {
		return &limits.Error{
			Reason:    limits.ResponseTooLarge,
			Message:   fmt.Sprintf("GET %s was answered with a document that makes the discovery larger than %d KiB", path, maxDocuments>>10),
			Discovery: true,
		}
	}
	d.total += size - d.sizes[path]
	d.sizes[path] = size
	return nil
}
