// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// filesOf makes an artifact of texts by their names.
func filesOf(texts map[string]string) []artifact.File {
	var files []artifact.File
	for name, text := range texts {
		files = append(files, artifact.File{Name: name, Data: []byte(text)})
	}
	slices.SortFunc(files, func(a, b artifact.File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// FilesJob makes objects of files in a directory.
func FilesJob(directory string, texts map[string]string, patches ...addonsv1.Patch) job.Files {
	return job.Files{
		Files: filesOf(texts), Directory: directory, Edits: job.Edits{Patches: patches},
		Release: job.Release{Name: "web", Namespace: "apps"}, Version: "sha256-0123456789ab",
	}
}

// KustomizationJob makes objects of the kustomization in a directory.
func KustomizationJob(directory string, texts map[string]string) job.Files {
	made := FilesJob(directory, texts)
	made.Kustomization = true
	return made
}

// Named shows objects as "Kind namespace/name", in their order.
func Named(result *job.Result) []string {
	var names []string
	for _, object := range result.Objects {
		names = append(names, fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName()))
	}
	return names
}

// Deployment is the text of an object with two containers.
const Deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1.27", env: [{name: A, value: "yes"}]}
      - {name: side, image: busybox}
`

// WebService is the text of the Deployment's Service.
const WebService = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
