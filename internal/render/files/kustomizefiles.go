// SPDX-License-Identifier: Apache-2.0

package files

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/render/manifest"
	"github.com/cluster-chandler/chandler/internal/render/strictyaml"
)

// artifactRoot is where kustomize finds the artifact. There is nothing beside it, so that paths which
// leave the artifact lead nowhere.
const artifactRoot = "/artifact"

// maxKustomizations that one build reads, the same one several times: more than anyone has.
const maxKustomizations = 1000

// kustomizeFiles are the files of an artifact, in memory. They look at each kustomization before
// kustomize does, which would follow addresses.
type kustomizeFiles struct {
	filesys.FileSystem
	refused *failure.Error  // is kept here, as kustomize drops it: what can't be read is no kustomization for it
	left    []string        // are files whose names kustomize can't read
	schema  bool            // says that one brings a schema of its own
	secrets map[string]bool // are texts that kustomize would repeat in its messages

	kustomizations, objects, maxObjects int // read so far: kustomize builds a base again for each way to it
}

func newKustomizeFiles(files []artifact.File, maxObjects int) *kustomizeFiles {
	all := &kustomizeFiles{FileSystem: filesys.MakeFsInMemory(), secrets: map[string]bool{}, maxObjects: maxObjects}
	for _, file := range files {
		name := path.Join(artifactRoot, file.Name)
		if err := all.WriteFile(name, file.Data); err != nil {
			all.left = append(all.left, name) // as "read me.md": nobody minds until a kustomization names it
		}
	}
	return all
}

// isLeft reports whether a file, or something in a directory, has a name that kustomize's file system can't have.
func (f *kustomizeFiles) isLeft(name string) bool {
	return slices.ContainsFunc(f.left, func(left string) bool { return left == name || strings.HasPrefix(left, name+"/") && !f.Exists(name) })
}

// ReadFile reads a file for kustomize.
func (f *kustomizeFiles) ReadFile(name string) ([]byte, error) {
	data, err := f.FileSystem.ReadFile(name)
	if err != nil || !isKustomization(name) {
		return data, err
	}
	if err := f.check(name, data); err != nil {
		file := strings.TrimPrefix(name, artifactRoot+"/")
		f.refused = failure.New(job.ReasonKustomizationInvalid, "%s: %w", file, err)
		if f.objects > f.maxObjects {
			f.refused.Reason = job.ReasonOutputTooLarge
		}
		return nil, f.refused
	}
	return data, nil
}

// check refuses a kustomization that asks for more than the artifact has, takes too much work, or would
// lose objects without a word.
func (f *kustomizeFiles) check(name string, data []byte) error {
	if err := strictyaml.CheckSingle(data); err != nil {
		return err
	}
	k := &types.Kustomization{}
	if err := k.Unmarshal(data); err != nil {
		return err
	}
	f.schema = f.schema || len(k.OpenAPI) > 0
	for _, ref := range f.references(k) {
		if isAddress(ref.to) {
			return fmt.Errorf("%s: there is an address, and nothing is read from outside of the artifact; put it into the artifact", ref.field)
		}
		if f.isLeft(path.Join(path.Dir(name), ref.to)) {
			return fmt.Errorf("%s: %s has a name with other characters than letters, digits, and -_.:, which kustomize can't read here; rename it", ref.field, ref.to)
		}
		if !ref.yaml {
			continue
		}
		content, what := []byte(ref.to), ref.field
		if !isContent(ref.to) {
			content, _ = f.FileSystem.ReadFile(path.Join(path.Dir(name), ref.to)) // kustomize says what is wrong
			what += ": " + ref.to
		}
		if err := strictyaml.CheckSingles(content); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if ref.field == "resources" {
			f.objects += len(manifest.SplitManifests(string(content)))
		}
	}
	f.kustomizations++
	if f.kustomizations > maxKustomizations || f.objects > f.maxObjects {
		return fmt.Errorf("it takes more than %d kustomizations, or %d objects, to build it; split it", maxKustomizations, f.maxObjects)
	}
	return nil
}

// reference is a place of a kustomization that names a file or a directory.
type reference struct {
	field, to string
	yaml      bool // says that kustomize reads all documents of the file
}

// references are all places where a kustomization names something. It keeps the secrets among them.
func (f *kustomizeFiles) references(k *types.Kustomization) []reference {
	var all []reference
	add := func(field string, yaml bool, names ...string) {
		for _, name := range names {
			all = append(all, reference{field, name, yaml})
			if isContent(name) {
				f.secrets[name] = true
			}
		}
	}
	add("resources", true, k.Resources...)
	add("bases", true, k.Bases...)
	add("components", true, k.Components...)
	add("configurations", true, k.Configurations...)
	add("generators", true, k.Generators...)
	add("transformers", true, k.Transformers...)
	add("validators", true, k.Validators...)
	add("crds", false, k.Crds...)
	add("openapi.path", false, k.OpenAPI["path"])
	for _, patch := range slices.Concat(k.Patches, k.PatchesJson6902) {
		add("patches", true, patch.Path)
		f.secrets[patch.Patch] = true
	}
	for _, patch := range k.PatchesStrategicMerge {
		add("patchesStrategicMerge", true, string(patch))
	}
	for _, replacement := range k.Replacements {
		add("replacements", true, replacement.Path)
	}
	for _, args := range k.ConfigMapGenerator {
		add("configMapGenerator", false, sourcesOf(args.KvPairSources)...)
	}
	for _, args := range k.SecretGenerator {
		add("secretGenerator", false, sourcesOf(args.KvPairSources)...)
		for _, literal := range args.LiteralSources {
			f.secrets[literal] = true
		}
	}
	return all
}

// isContent reports whether a text is the content of a file in place of its name.
func isContent(name string) bool { return strings.Contains(name, "\n") }

// sourcesOf are the files that a ConfigMap or Secret is made of, without the keys for them.
func sourcesOf(sources types.KvPairSources) []string {
	all := slices.Concat(sources.FileSources, sources.EnvSources, []string{sources.EnvSource})
	for i, name := range all {
		if _, file, hasKey := strings.Cut(name, "="); hasKey && !isAddress(name) {
			all[i] = file
		}
	}
	return all
}

// account is how kustomize recognizes the user in an address without a scheme.
var account = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// isAddress tells whether kustomize would take a name for an address: of a file, or
// of a git repository.
func isAddress(name string) bool {
	lower := strings.ToLower(name)
	for _, prefix := range []string{"git::", "github.com/", "github.com:", "http:", "https:"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	scheme, _, hasScheme := strings.Cut(lower, "://")
	return hasScheme && !strings.ContainsAny(scheme, "/ \n\"'{") || account.MatchString(name)
}

func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}
