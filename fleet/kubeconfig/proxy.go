// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// CheckProxy returns why a URL can't be one of a Policy's Proxies. It has a scheme (http, https or socks5), a host and
// a port. A kubeconfig may add a user name and a password to it.
func CheckProxy(proxy *url.URL) error {
	switch {
	case !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme):
		return errors.New("the scheme of a proxy is http, https or socks5")
	case proxy.Hostname() == "" || proxy.Port() == "":
		return errors.New("a proxy needs a host and a port, as in http://bastion:3128")
	case proxy.User != nil || proxy.Path != "" || proxy.RawQuery != "" || proxy.Fragment != "":
		return errors.New("a proxy has nothing but a scheme, a host and a port")
	}
	return nil
}

// allowsProxy reports whether a kubeconfig may name a proxy: none, or one of these.
func allowsProxy(named string, allowed []*url.URL) bool {
	if named == "" {
		return true
	}
	u, err := url.Parse(named)
	if err != nil || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return slices.ContainsFunc(allowed, func(a *url.URL) bool {
		return CheckProxy(a) == nil && a.Scheme == u.Scheme && strings.EqualFold(a.Host, u.Host)
	})
}
