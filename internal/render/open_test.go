// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"errors"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/rendering"
	"github.com/cluster-chandler/chandler/test/yamlbombs"
)

// YAML that grows ends in a worker, and the next one gets on.
func TestFilesThatGrowWhenTheyAreOpened(t *testing.T) {
	long.Test(t)
	r := rendering.NewRenderer(t)
	asJSON := func(text string) ([]byte, error) {
		opened, err := r.Open(t.Context(), &opener.Job{YAML: &opener.YAML{Data: []byte(text)}})
		if err != nil {
			return nil, err
		}
		return opened.JSON, nil
	}
	yamlbombs.AreRefused(t, func(text string) error {
		_, err := asJSON("a: 1\n" + text)
		if failed, ok := errors.AsType[*failure.Error](err); err != nil && (!ok || !failed.OfContent()) {
			t.Errorf("got %v, want an error about the content", err)
		}
		return err
	})
	if got, err := asJSON("a: [1, b]\n"); err != nil || string(got) != `{"a":[1,"b"]}` {
		t.Errorf("got %s, %v", got, err)
	}
}
