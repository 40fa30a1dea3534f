// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/gitserver"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestSignedCommits requires commits to be signed: by the object's keyring, and by the instance's own keys.
func TestSignedCommits(t *testing.T) {
	long.InCI(t)
	w := startSigned(t)
	server := gitserver.Start(t, true)
	server.Password = sentinelPassword
	repository := server.Repository(t, "charts.git")
	files := chartFiles("charts/demo", "1.0.0")
	files["install.yaml"] = installYAML
	unsigned := repository.Commit(files)
	text := repository.Git("cat-file", "commit", "HEAD") + "\n"
	good := w.openpgp.Commit(t, text)
	repository.Git("rm", "-rq", "charts/demo/values.yaml")
	repository.Git("commit", "-qm", "another")
	other, _, _ := strings.Cut(repository.Git("cat-file", "commit", "HEAD"), "\n")
	first, rest, _ := strings.Cut(good, "\n")
	keys := t.TempDir()
	write(t, filepath.Join(keys, "a.gpg"), string(w.openpgp.Public))

	for name, tc := range map[string]struct{ text, reason string }{
		"signed":                 {good, ""},
		"with a long message":    {w.openpgp.Commit(t, text+strings.Repeat("x", 60<<10)), ""},
		"unsigned":               {"", failure.SignatureMissing},
		"too large":              {w.openpgp.Commit(t, text+strings.Repeat("x", 64<<10)), failure.SignatureMissing},
		"by another":             {signing.NewOpenPGPKey(t, 0).Commit(t, text), failure.SignatureInvalid},
		"by a key that expired":  {signing.NewOpenPGPKey(t, time.Nanosecond).Commit(t, text), failure.SignatureInvalid},
		"of another message":     {strings.Replace(good, "a change", "a charge", 1), failure.SignatureInvalid},
		"of another tree":        {other + "\n" + rest, failure.SignatureInvalid},
		"a second tree":          {other + "\n" + first + "\n" + rest, failure.SignatureInvalid},
		"a tree behind":          {first + "\n" + other + "\n" + rest, failure.SignatureInvalid},
		"signed twice":           {strings.Replace(good, "gpgsig ", "gpgsig x\ngpgsig ", 1), failure.SignatureMissing},
		"signed in its message":  {text + good[strings.Index(good, "gpgsig"):], failure.SignatureMissing},
		"not by OpenPGP":         {strings.ReplaceAll(good, "PGP", "SSH"), failure.SignatureInvalid},
		"a signature of nothing": {strings.Replace(text, "\n\n", "\ngpgsig \n\n", 1), failure.SignatureInvalid},
	} {
		commit := unsigned
		if tc.text != "" {
			commit = repository.CommitText(tc.text)
		}
		for kind, ref := range map[string]reference.Reference{
			"chart":     inGit(repository.URL, commit, "charts/demo"),
			"manifests": as(artifact.KindManifests, inGit(repository.URL, commit, "install.yaml")),
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				options := source.Options{Client: w.cluster, Metadata: w.metadata(), CredentialsDir: gitAccess(t, server)}
				sources, _ := remoteSources(t, options)
				verified := ref
				verified.Chart.Verify = byKeyring("")
				expectRefused(t, get(t, sources, verified), tc.reason)
				verified.Chart.Verify = &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{inTrust("cosign.pub")}}}
				expectRefused(t, get(t, sources, verified), failure.VerificationPolicyInvalid)
				options.RequireSignaturesBy = keys
				sources, _ = remoteSources(t, options)
				expectRefused(t, get(t, sources, ref), tc.reason)
			})
		}
	}
}

// TestSignedCommitOfOtherContent names the content of a commit without a signature beside one that has one.
func TestSignedCommitOfOtherContent(t *testing.T) {
	w := startSigned(t)
	server := gitserver.Start(t, true)
	server.Password = sentinelPassword
	repository := server.Repository(t, "charts.git")
	repository.Commit(chartFiles("demo", "1.0.0"))
	signed := repository.CommitText(w.openpgp.Commit(t, repository.Git("cat-file", "commit", "HEAD")+"\n"))
	unsigned := repository.Commit(chartFiles("demo", "1.1.0"))
	sources, _ := remoteSources(t, source.Options{Client: w.cluster, Metadata: w.metadata(), CredentialsDir: gitAccess(t, server), Store: storeAt(t.TempDir())})
	ref := inGit(repository.URL, unsigned, "demo")
	digest := expectFetched(t, sources, ref).Digest
	ref.Chart.Git.Commit, ref.Chart.Git.Digest, ref.Chart.Verify = signed, digest, byKeyring("")
	_, err := sources.Fetch(t.Context(), ref, digest)
	expectRefused(t, err, failure.DigestMismatch)
}
