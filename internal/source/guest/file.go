// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"net/http"
	"net/url"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/room"
	"github.com/cluster-chandler/chandler/internal/source/webpage"
)

// File is what a host that is no registry sent when it was asked for a file.
type File struct {
	Data []byte
	Host string // that sent it: the request may have been redirected
	page bool   // it looks like a web page
}

// OrPage is the error of content that isn't what was asked for. A web page in its place
// is told as such, as it won't be there for long; what has the promised digest isn't in
// its place. Nothing may be promised.
func (f *File) OrPage(promised string, otherwise *failure.Error) *failure.Error {
	if f.page && (artifact.Content{Archive: f.Data}).Digest() != promised {
		return webpage.Error(f.Host)
	}
	return otherwise
}

// Archive gets an archive; nil if there is none.
func (g *Guest) Archive(ctx context.Context, at *url.URL) (*File, error) {
	return g.File(ctx, at, http.Header{}, "the archive", g.Limits.ArchiveBytes)
}

// File gets a file; nil if there is none.
func (g *Guest) File(ctx context.Context, at *url.URL, header http.Header, what string, most int64) (*File, error) {
	// Transport compression is refused: it would make other bytes of the same file.
	header.Set("Accept-Encoding", "identity")
	response, err := g.Get(ctx, at, header)
	if err != nil {
		return nil, err
	}
	defer Release(response.Body)
	if response.StatusCode != http.StatusOK {
		return nil, nil
	}
	if response.ContentLength > most {
		return nil, failure.TooLarge(what, most)
	}
	sent := &File{Host: response.Request.URL.Host, page: webpage.LooksLike(response)}
	sent.Data, err = room.Read(ctx, response.Body, response.ContentLength, what, most)
	return sent, err
}
