// SPDX-License-Identifier: Apache-2.0

package keptvalues

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"time"

	"github.com/cluster-chandler/chandler/internal/render/job"
)

// RenewAt is the time from which a rendering replaces the first of the certificates: after two
// thirds of its life. It is zero if there are none. Whoever keeps Generated has to render again then.
func RenewAt(values job.Generated) time.Time {
	var first time.Time
	for key, text := range values {
		if known, ok := parsePrevious(key, text); ok && known.unused > 0 {
			continue
		}
		if at := renewAt(text); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// minRenewal is the least time between two renewals, each of which is an upgrade.
const minRenewal = time.Hour

// renewAt returns when a certificate of sprig's functions is renewed. It returns zero for other values, and for
// certificates that aren't renewed.
func renewAt(text string) time.Time {
	var pair struct{ Cert string }
	if json.Unmarshal([]byte(text), &pair) != nil {
		return time.Time{}
	}
	block, _ := pem.Decode([]byte(pair.Cert))
	if block == nil {
		return time.Time{}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	life := cert.NotAfter.Sub(cert.NotBefore)
	if life <= minRenewal {
		return time.Time{} // it is over before the next renewal, however often it is renewed
	}
	return cert.NotBefore.Add(max(life/3*2, minRenewal))
}
