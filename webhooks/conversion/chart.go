// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"strings"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

const ociScheme = "oci://"

// chartToSpoke takes the last part of an OCI repository's path for the chart's
// name, as the Helm add-on provider has it. Two sources, which no version allows,
// are shown both: so admission can refuse them.
func chartToSpoke(hub *addonsv1.ChartSource) addonsv1alpha1.ChartLocation {
	spoke := addonsv1alpha1.ChartLocation{Version: hub.Version}
	if hub.Path != "" || hub.ConfigMap != nil || hub.Secret != nil {
		spoke.ChartFrom = &addonsv1alpha1.ChartSource{
			Path:      hub.Path,
			ConfigMap: (*addonsv1alpha1.ArtifactReference)(hub.ConfigMap),
			Secret:    (*addonsv1alpha1.ArtifactReference)(hub.Secret),
		}
	}
	switch {
	case hub.OCI != nil:
		spoke.RepoURL, spoke.ChartName = splitURL(hub.OCI.URL)
		spoke.Digest = hub.OCI.Digest
		spoke.Credentials = credentialsToSpoke(hub.OCI.SecretRef)
		spoke.PlainHTTP = hub.OCI.PlainHTTP
	case hub.Helm != nil:
		spoke.RepoURL, spoke.ChartName = hub.Helm.URL, hub.Helm.Chart
		spoke.Digest = hub.Helm.Digest
		spoke.Credentials = credentialsToSpoke(hub.Helm.SecretRef)
		spoke.PlainHTTP = hub.Helm.PlainHTTP
	}
	return spoke
}

func chartToHub(spoke *addonsv1alpha1.ChartLocation) addonsv1.ChartSource {
	hub := addonsv1.ChartSource{Version: spoke.Version}
	if from := spoke.ChartFrom; from != nil {
		hub.Path = from.Path
		hub.ConfigMap = (*addonsv1.ArtifactReference)(from.ConfigMap)
		hub.Secret = (*addonsv1.ArtifactReference)(from.Secret)
	}
	if strings.HasPrefix(spoke.RepoURL, ociScheme) {
		hub.OCI = &addonsv1.OCISource{
			URL:       joinURL(spoke.RepoURL, spoke.ChartName),
			Digest:    spoke.Digest,
			SecretRef: credentialsToHub(spoke.Credentials),
			PlainHTTP: spoke.PlainHTTP,
		}
		return hub
	}
	helm := addonsv1.HelmSource{
		URL:       spoke.RepoURL,
		Chart:     spoke.ChartName,
		Digest:    spoke.Digest,
		SecretRef: credentialsToHub(spoke.Credentials),
		PlainHTTP: spoke.PlainHTTP,
	}
	if helm != (addonsv1.HelmSource{}) {
		hub.Helm = &helm
	}
	return hub
}

func joinURL(repository, chart string) string {
	return strings.TrimRight(repository, "/") + "/" + chart
}

// splitURL leaves an URL whole that has no path.
func splitURL(url string) (repository, chart string) {
	i := strings.LastIndexByte(url, '/')
	if i < len(ociScheme) {
		return url, ""
	}
	return url[:i], url[i+1:]
}

func credentialsToSpoke(reference *addonsv1.CredentialsReference) *addonsv1alpha1.Credentials {
	if reference == nil {
		return nil
	}
	return &addonsv1alpha1.Credentials{Secret: addonsv1alpha1.SecretReference{Name: reference.Name}}
}

func credentialsToHub(credentials *addonsv1alpha1.Credentials) *addonsv1.CredentialsReference {
	if credentials == nil {
		return nil
	}
	return &addonsv1.CredentialsReference{Name: credentials.Secret.Name}
}
