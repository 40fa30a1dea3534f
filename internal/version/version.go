// SPDX-License-Identifier: Apache-2.0

// Package version says which version of Chandler this is.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Set at link time with -ldflags "-X ...".
var (
	gitVersion string // as in v0.1.0
	gitCommit  string
)

// String returns "version (commit, Go version)". A build without link-time values
// takes them from the module's build information.
func String() string {
	return Get() + " (" + cmp.Or(gitCommit, fromBuild("vcs.revision"), "unknown commit") + ", " + runtime.Version() + ")"
}

// Get returns the version alone, as in v0.1.0; "devel" if it isn't known.
func Get() string {
	if gitVersion != "" {
		return gitVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

func fromBuild(key string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == key {
			return setting.Value
		}
	}
	return ""
}
