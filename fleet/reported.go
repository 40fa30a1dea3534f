// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"errors"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/cluster-chandler/chandler/fleet/kubeconfig"
)

// set takes what the source reports, and wakes run when it matters to it.
func (l *link) set(m Member) {
	digest := sha256.Sum256(m.Kubeconfig)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh = l.fresh || digest != l.seen || l.member.Config != m.Config || !l.member.Expires.Equal(m.Expires) ||
		l.member.Origin != m.Origin || l.member.Problem != m.Problem
	l.described = l.described || !sameDescription(l.member, m)
	l.member, l.seen = m, digest
	if !l.fresh {
		l.member.Kubeconfig = nil
	}
	if l.fresh || l.described {
		signal(l.changed)
	}
}

// digest returns that of the kubeconfig that was reported last.
func (l *link) digest() [sha256.Size]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// read tells the subscribers that the source describes the cluster otherwise, and the machine of the
// kubeconfig that the source reported last.
func (l *link) read(now time.Time) {
	l.mu.Lock()
	m, fresh, described := l.member, l.fresh, l.described
	l.member.Kubeconfig, l.fresh, l.described = nil, false, false
	l.mu.Unlock()
	if described {
		l.provider.notify(l.name)
	}
	if !fresh {
		return
	}
	l.machine.expire(now, m.Expires)
	var digest string
	var why kubeconfig.Refusal
	l.kubeconfig = nil
	if !m.empty() {
		k, err := m.credentials(l.provider.options)
		if err == nil {
			l.kubeconfig, digest = k, k.Digest()
		} else if !errors.As(err, &why) {
			why = "it names no server that can be connected to"
		}
	}
	l.machine.kubeconfigReported(now, m.Origin, m.Problem, string(why), digest)
}

// sameDescription reports whether two members differ in nothing that Describe shows to be selected by.
func sameDescription(a, b Member) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Properties, b.Properties) && a.Deleting == b.Deleting &&
		equality.Semantic.DeepEqual(a.Owner, b.Owner)
}

// empty reports whether a member has no credentials.
func (m Member) empty() bool { return len(m.Kubeconfig) == 0 && m.Config == nil }

// credentials returns what to connect with.
func (m Member) credentials(o Options) (*kubeconfig.Config, error) {
	if m.Config != nil {
		return kubeconfig.Trust(m.Config)
	}
	policy := kubeconfig.Policy{AllowInsecureTLS: o.AllowInsecureTLS, AllowLoopback: o.AllowLoopback, Proxies: o.Proxies}
	return kubeconfig.Parse(m.Kubeconfig, policy)
}
