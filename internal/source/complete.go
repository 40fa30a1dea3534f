// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
)

// complete returns the files of a chart's directory as `helm package` packs them, with the
// charts beside it that it depends on (file://).
func (s *Sources) complete(ctx context.Context, at string, read func(path string) ([]artifact.File, error)) ([]artifact.File, error) {
	charts := map[string][]artifact.File{}
	for missing := []string{at}; len(missing) > 0; {
		for _, path := range missing {
			files, err := read(path)
			if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == failure.ArtifactNotFound && path != at {
				files, err = nil, nil // the worker says so
			}
			if err != nil {
				return nil, err
			}
			charts[path] = files
		}
		opened, err := s.Opener.Open(ctx, &opener.Job{Complete: &opener.Complete{At: at, Charts: charts, Limits: s.Limits}})
		if err != nil {
			return nil, err
		}
		if missing = opened.Missing; len(missing) == 0 {
			return opened.Files, nil
		}
	}
	return nil, nil
}
