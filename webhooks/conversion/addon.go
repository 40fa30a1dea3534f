// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1alpha1 "github.com/cluster-chandler/chandler/api/v1alpha1"
	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// showAddon writes an add-on into a v1alpha1 spec.
func showAddon(spoke *addonsv1alpha1.AddonStackSpec, addon *addonsv1.Addon) {
	spoke.ReleaseName = addon.Name
	spoke.ReleaseNamespace = addon.Namespace
	spoke.ChartLocation = chartToSpoke(&addon.Chart)
	spoke.ValuesTemplate = addon.ValuesTemplate
	spoke.ValuesTemplateMode = modeToSpoke(addon.ValuesTemplate, addon.ValuesTemplateMode)
	spoke.Options.Timeout = timeoutToSpoke(addon.ProgressDeadlineSeconds)
	spoke.Options.TakeOwnership = ownershipToSpoke(addon.AdoptionPolicy)
	spoke.Options.Install.CreateNamespace = addon.CreateNamespace
}

// editAddon writes a v1alpha1 spec into an add-on. Where several things of the hub
// look the same in v1alpha1, the add-on's stays unless v1alpha1 says another.
func editAddon(addon *addonsv1.Addon, spoke *addonsv1alpha1.AddonStackSpec) {
	addon.Namespace = spoke.ReleaseNamespace
	addon.CreateNamespace = spoke.Options.Install.CreateNamespace
	addon.ProgressDeadlineSeconds = timeoutToHub(spoke.Options.Timeout)
	addon.ValuesTemplate = spoke.ValuesTemplate
	if modeToSpoke(addon.ValuesTemplate, addon.ValuesTemplateMode) != shownMode(spoke.ValuesTemplateMode) {
		addon.ValuesTemplateMode = modeToHub(spoke.ValuesTemplate, spoke.ValuesTemplateMode)
	}
	if !equality.Semantic.DeepEqual(ownershipToSpoke(addon.AdoptionPolicy), spoke.Options.TakeOwnership) {
		addon.AdoptionPolicy = ownershipToHub(spoke.Options.TakeOwnership)
	}
	if !equality.Semantic.DeepEqual(chartToSpoke(&addon.Chart), spoke.ChartLocation) {
		verify := addon.Chart.Verify // v1alpha1 doesn't show it, so it can't mean to take it away
		addon.Chart = chartToHub(&spoke.ChartLocation)
		addon.Chart.Verify = verify
	}
}

// The versions differ in what a template's mode is by default: v1beta1 is strict,
// v1alpha1 lenient. Each shows nothing for its own default. Without a template
// nothing is at stake, and nothing is written into the hub for a default.

func modeToSpoke(template string, mode addonsv1.ValuesTemplateMode) addonsv1alpha1.ValuesTemplateMode {
	switch {
	case mode == addonsv1.ValuesTemplateModeLenient:
		return ""
	case mode == "" && template != "":
		return addonsv1alpha1.ValuesTemplateModeStrict
	default:
		return addonsv1alpha1.ValuesTemplateMode(mode)
	}
}

func modeToHub(template string, mode addonsv1alpha1.ValuesTemplateMode) addonsv1.ValuesTemplateMode {
	switch {
	case shownMode(mode) == "" && template != "":
		return addonsv1.ValuesTemplateModeLenient
	case shownMode(mode) == "", mode == addonsv1alpha1.ValuesTemplateModeStrict && template != "":
		return ""
	default:
		return addonsv1.ValuesTemplateMode(mode)
	}
}

// shownMode is the mode as v1alpha1 shows it: the default is left out.
func shownMode(mode addonsv1alpha1.ValuesTemplateMode) addonsv1alpha1.ValuesTemplateMode {
	if mode == addonsv1alpha1.ValuesTemplateModeLenient {
		return ""
	}
	return mode
}

func timeoutToSpoke(seconds *int32) *metav1.Duration {
	if seconds == nil {
		return nil
	}
	return &metav1.Duration{Duration: time.Duration(*seconds) * time.Second}
}

func timeoutToHub(timeout *metav1.Duration) *int32 {
	if timeout == nil {
		return nil
	}
	seconds := int64(timeout.Duration / time.Second)
	return ptr.To(int32(min(max(seconds, math.MinInt32), math.MaxInt32)))
}

// ownershipToSpoke shows AdoptIfEqual, which v1alpha1 doesn't have, as nothing.
func ownershipToSpoke(policy addonsv1.AdoptionPolicy) *bool {
	switch policy {
	case addonsv1.AdoptionPolicyAdopt:
		return ptr.To(true)
	case addonsv1.AdoptionPolicyFail:
		return ptr.To(false)
	default:
		return nil
	}
}

func ownershipToHub(take *bool) addonsv1.AdoptionPolicy {
	switch {
	case take == nil:
		return ""
	case *take:
		return addonsv1.AdoptionPolicyAdopt
	default:
		return addonsv1.AdoptionPolicyFail
	}
}

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
