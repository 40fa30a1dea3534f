// SPDX-License-Identifier: Apache-2.0

package fleetwatch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cluster-chandler/chandler/internal/deliver"
)

// forged returns the sums of as many kinds that nobody has.
func forged(number int) string {
	var text strings.Builder
	for i := range number {
		fmt.Fprintf(&text, ",Forged%05d=0", i)
	}
	return text.String()
}

// expectUnwatched expects that this kind is told for all that are more than the record has objects.
func (w *watched) expectUnwatched(release deliver.Release, kind string) {
	w.t.Helper()
	unwatched := w.State(w.conn, release).Unwatched
	if err := unwatched[schema.GroupKind{Kind: kind}]; len(unwatched) > 9 || !errors.Is(err, errKindsOfRecord) {
		w.t.Errorf("%d kinds are unwatched, %s of them: %v", len(unwatched), kind, err)
	}
}

// TestKindsOfARecord are no more than it has objects. Its others, and those of other add-ons, are watched.
func TestKindsOfARecord(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.server.put(settings("a"))
	w.server.put(shown("Deployment", api, "x", "a"))
	w.follow(map[deliver.Release]Expected{
		web: {Applied: sumsOf(settings("a")) + forged(38_000), Objects: 3},
		api: {Applied: sumsOf(shown("Deployment", api, "x", "a")), Objects: 1},
	})
	w.awaitListed(settings(), shown("Deployment", api, "x"))
	if kinds := len(w.kinds()); kinds > 5 {
		t.Errorf("%d kinds are watched", kinds)
	}
	w.expectUnwatched(web, "Forged00003")
	if state := w.State(w.conn, api); state.Differs || len(state.Unwatched) > 0 {
		t.Errorf("the other add-on: %+v", state)
	}
	w.accept(changedObject{settings("a"), settings("b")})
	w.expectUnwatched(web, "Forged00003")
}

// TestKindsOfACluster are bounded, whatever its records say. Add-ons with few of them are watched.
func TestKindsOfACluster(t *testing.T) {
	t.Parallel()
	w := watchObjects(t)
	w.server.put(settings("a"))
	releases := map[deliver.Release]Expected{web: {Applied: sumsOf(settings("a")), Objects: 1}}
	for i := range 64 {
		release := deliver.Release{Namespace: "apps", Name: fmt.Sprint("a", i)}
		releases[release] = Expected{Applied: strings.ReplaceAll(forged(499), "Forged", fmt.Sprintf("Kind%d.", i)), Objects: 1 << 30}
	}
	w.follow(releases)
	if kinds := len(w.kinds()); kinds != maxKinds {
		t.Errorf("%d kinds are watched", kinds)
	}
	w.awaitListed(settings())
	w.expectDiffers(false, "its only kind is watched")
	unwatched := 0
	for release := range releases {
		for _, err := range w.State(w.conn, release).Unwatched {
			if errors.Is(err, errKindsOfCluster) {
				unwatched++
			}
		}
	}
	if want := 64*499 + 1 - maxKinds; unwatched != want {
		t.Errorf("%d kinds are told, and %d aren't watched", unwatched, want)
	}
	w.follow(map[deliver.Release]Expected{web: releases[web], {Namespace: "apps", Name: "a1"}: releases[deliver.Release{Namespace: "apps", Name: "a1"}]})
	if kinds := len(w.kinds()); kinds != 500 {
		t.Errorf("%d kinds are watched, and there is room for all", kinds)
	}
}
