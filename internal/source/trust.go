// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"

	"github.com/cluster-chandler/chandler/internal/source/failure"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// trustCache is how much of keys and trust roots is kept in memory.
const trustCache = 8 << 20 // bytes

// trust reads policies from the ConfigMaps and Secrets of the object's own
// namespace. What a version of an object holds is kept, so that nobody is asked
// while the object is unchanged.
type trust struct {
	objects *objects // nil: no object can be read
	known   *lru.Cache[objectKey, kept]
	flights singleflight.Group
}

// kept is what an object held at a version.
type kept struct {
	version string
	data    []byte
}

func newTrust(options Options) *trust {
	t := &trust{known: lru.New[objectKey](trustCache, func(k kept) int64 { return int64(len(k.data)) + 256 })}
	if options.Client != nil {
		t.objects = newObjects(options.Client, options.Metadata)
	}
	return t
}

// data is what the object holds at the key.
func (t *trust) data(ctx context.Context, object objectKey) ([]byte, error) {
	if t.objects == nil {
		return nil, failure.New(failure.SourceDisabled, "this provider reads no ConfigMaps and Secrets; take the reference out")
	}
	version := t.objects.version(ctx, object)
	if known, found := t.known.Get(object); found && version != "" && known.version == version {
		return known.data, nil
	}
	if version == "" {
		// A read that others began earlier may have missed the change that this call is about.
		read, err := t.read(ctx, object)
		return read.data, err
	}
	result, err, _ := t.flights.Do(object.String()+" "+version, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		read, err := t.read(ctx, object)
		if err == nil {
			t.known.Put(object, read)
		}
		return read, err
	})
	if err != nil {
		return nil, err
	}
	return result.(kept).data, nil
}

func (t *trust) read(ctx context.Context, object objectKey) (kept, error) {
	if object.kind == kindSecret {
		var secret corev1.Secret
		if err := t.objects.get(ctx, object, &secret); err != nil {
			return kept{}, err
		}
		data, found := secret.Data[object.key]
		return kept{versionOf(&secret), data}, object.missing(found, "data")
	}
	var configMap corev1.ConfigMap
	if err := t.objects.get(ctx, object, &configMap); err != nil {
		return kept{}, err
	}
	if data, found := configMap.BinaryData[object.key]; found {
		return kept{versionOf(&configMap), data}, nil
	}
	text, found := configMap.Data[object.key]
	return kept{versionOf(&configMap), []byte(text)}, object.missing(found, "data")
}
