// SPDX-License-Identifier: Apache-2.0

// Package suites runs multicluster-runtime's own tests of its providers against the sources of module fleet. Each folder
// has what those tests call, made of the library. The tests themselves are those of the released module.
package suites

// The tests import these, which keeps them in go.mod.
import (
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "golang.org/x/sync/errgroup"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/controller-runtime/pkg/log/zap"
	_ "sigs.k8s.io/randfill"
)
