// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/lru"
	"github.com/cluster-chandler/chandler/internal/source/object"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// readTimeout ends the reading of an object.
const readTimeout = time.Minute

// trustCache is how much of keys and trust roots is kept in memory.
const trustCache = 8 << 20 // bytes

// Reader reads policies from the ConfigMaps and Secrets of the object's own
// namespace. What a version of an object holds is kept, so that nobody is asked
// while the object is unchanged.
type Reader struct {
	objects *object.Reader // nil: no object can be read
	known   *lru.Cache[reference.Object, object.Content]
	flights singleflight.Group
}

// NewReader reads with objects; nil if no object can be read.
func NewReader(objects *object.Reader) *Reader {
	return &Reader{objects: objects, known: lru.New[reference.Object](trustCache, func(k object.Content) int64 { return int64(len(k.Data)) + 256 })}
}

// data is what the object holds at the key.
func (r *Reader) data(ctx context.Context, key reference.Object) ([]byte, error) {
	if r.objects == nil {
		return nil, failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; take the reference out")
	}
	version := r.objects.Version(ctx, key)
	if known, found := r.known.Get(key); found && version != "" && known.Version == version {
		return known.Data, nil
	}
	if version == "" {
		// A read that others began earlier may have missed the change that this call is about.
		read, err := r.read(ctx, key)
		return read.Data, err
	}
	result, err, _ := r.flights.Do(key.String()+" "+version, func() (any, error) {
		if known, found := r.known.Get(key); found && known.Version == version { // by a read that ended just before
			return known, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		read, err := r.read(ctx, key)
		if err == nil {
			r.known.Put(key, read)
		}
		return read, err
	})
	if err != nil {
		return nil, err
	}
	return result.(object.Content).Data, nil
}

func (r *Reader) read(ctx context.Context, key reference.Object) (object.Content, error) {
	read, err := r.objects.Read(ctx, key)
	if err == nil && read.Missing {
		err = object.MissingKey("data")
	}
	return read, err
}
