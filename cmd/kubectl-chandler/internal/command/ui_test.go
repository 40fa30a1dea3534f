// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/cluster-chandler/chandler/cmd/kubectl-chandler/internal/command"
	"github.com/cluster-chandler/chandler/test/docs"
)

// interrupted calls a function with what is written first.
type interrupted struct {
	bytes.Buffer
	interrupt func()
}

func (w *interrupted) Write(p []byte) (int, error) {
	defer w.interrupt()
	return w.Buffer.Write(p)
}

// TestAddressOfThePage interrupts the command once it has printed where the page is.
func TestAddressOfThePage(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interrupted{interrupt: cancel}
	command.Run(ctx, genericiooptions.IOStreams{Out: out, ErrOut: out}, []string{"ui", "-A", "--server", "http://127.0.0.1:1"})
	docs.Sample(t, "../../../..", "docs/kubectl-chandler.md: kubectl chandler ui -A").Compare(t, out.String())
}
