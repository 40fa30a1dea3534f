// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"regexp"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// What addresses in Chart.yaml have to look like: as those in the API.
var (
	dependencyName    = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z._-]{0,251}[0-9A-Za-z])?$`)
	dependencyVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]{0,127}$`)
	helmRepository    = regexp.MustCompile(`^https?://([0-9A-Za-z._-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[^?#[:space:]]*)?$`)
	ociRepository     = regexp.MustCompile(`^oci://([0-9A-Za-z.-]+|[[][0-9A-Fa-f:.]+[]])(:[0-9]+)?(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)+$`)
)

// maxAddress is the length of a repository's URL.
const maxAddress = 1024 // bytes

// OrVendor is the way out that is always there.
const OrVendor = "or package the chart with its dependencies (`helm package --dependency-update`)"

// Fit checks what Chart.yaml says, which may be anything.
func (w Want) Fit(plainHTTP bool) error {
	scheme, _, hasScheme := strings.Cut(w.Repository, "://")
	switch {
	case isName(w.Repository):
		return failure.New(failure.ArtifactInvalid, "its repository is a name that only the chart's author has an address for; set it to the repository's URL, "+OrVendor)
	case scheme == "file":
		return failure.New(failure.ArtifactInvalid, "its repository is a path, and only a chart in a directory has others beside it; put the chart there as one, "+OrVendor)
	case !hasScheme || scheme != "https" && scheme != "http" && scheme != "oci":
		return failure.New(failure.ArtifactInvalid, "its repository is no URL with https:// or oci://; correct it, "+OrVendor)
	case scheme == "http" && !plainHTTP:
		return failure.New(failure.ArtifactRefused, "its repository has no TLS, which only a chart whose own source has plainHTTP may refer to; use https://, "+OrVendor)
	case len(w.Repository) > maxAddress:
		return failure.New(failure.ArtifactInvalid, "its repository's URL is longer than %d bytes; correct it", maxAddress)
	}
	return w.wellFormed(scheme)
}

// wellFormed checks that the name, the version and the address are as the API would have them.
func (w Want) wellFormed(scheme string) error {
	switch {
	case !dependencyName.MatchString(w.Name) || strings.HasSuffix(w.Name, ".tgz"):
		return failure.New(failure.ArtifactInvalid, "its name can't be that of a chart; correct it")
	case !dependencyVersion.MatchString(w.Version) || strings.HasSuffix(w.Version, ".tgz"):
		return failure.New(failure.ArtifactInvalid, "its version %s can't be that of a chart; correct it", failure.Quote(w.Version))
	case scheme == "oci" && !ociRepository.MatchString(w.InRegistry()):
		return failure.New(failure.ArtifactInvalid, "its repository and name make no address in a registry: oci://registry/path/chart, in lower case; correct it, "+OrVendor)
	case scheme != "oci" && !helmRepository.MatchString(w.Repository):
		return failure.New(failure.ArtifactInvalid, "its repository's URL isn't https://host/path without user, query and fragment; correct it, "+OrVendor)
	}
	return nil
}

// InRegistry is the address of the dependency's repository in a registry.
func (w Want) InRegistry() string { return strings.TrimSuffix(w.Repository, "/") + "/" + w.Name }

// IsOCIRepository tells whether an address is that of a chart in a registry.
func IsOCIRepository(address string) bool { return ociRepository.MatchString(address) }
