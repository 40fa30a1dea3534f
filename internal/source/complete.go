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
	for todo := []string{at}; len(todo) > 0 && len(charts) <= opener.MaxNeighbours; todo = todo[1:] {
		if _, known := charts[todo[0]]; known {
			continue
		}
		files, err := read(todo[0])
		if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == failure.ArtifactNotFound && todo[0] != at {
			continue // it may be in charts/; if it isn't, the worker says so
		}
		if err != nil {
			return nil, err
		}
		charts[todo[0]] = files
		if !opener.MayHaveNeighbours(files) {
			continue
		}
		opened, err := s.Opener.Open(ctx, &opener.Job{Neighbours: &opener.Neighbours{At: todo[0], Files: files}})
		if err != nil {
			return nil, err
		}
		todo = append(todo, opened.Paths...)
	}
	opened, err := s.Opener.Open(ctx, &opener.Job{Complete: &opener.Complete{At: at, Charts: charts, Limits: s.Limits}})
	if err != nil {
		return nil, err
	}
	return opened.Files, nil
}
