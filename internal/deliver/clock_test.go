// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	realClock   = clock.RealClock
	inNamespace = client.InNamespace
)
