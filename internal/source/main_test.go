// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"io"
	"log"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/render/worker"
)

var (
	// workers open what all tests fetch.
	workers *render.Renderer
	// quiet is for servers whose errors a test expects.
	quiet = log.New(io.Discard, "", 0)
)

func TestMain(m *testing.M) {
	worker.RunIfAsked()
	ctrl.SetLogger(logr.Discard()) // or controller-runtime complains that there is none
	workers = render.New(render.Options{})
	code := m.Run()
	workers.Close()
	os.Exit(code)
}
