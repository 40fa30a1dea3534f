# SPDX-License-Identifier: Apache-2.0
# `make` alone lists the targets.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
MODULE := github.com/cluster-chandler/chandler
VERSION_PACKAGE := $(MODULE)/internal/version
LDFLAGS := -X $(VERSION_PACKAGE).gitVersion=$(VERSION) -X $(VERSION_PACKAGE).gitCommit=$(COMMIT)
IMG ?= ghcr.io/cluster-chandler/chandler:$(VERSION)
# The digest of the pushed image, as sha256:...: with it, release manifests name the image by tag and digest.
DIGEST ?=
# What kubectl-chandler is released for.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
# What the image is built for.
IMAGE_PLATFORMS ?= linux/amd64 linux/arm64
COMMA := ,
SPACE := $(subst ,, )
# The program that the SBOM is of. Another one than the default isn't built.
BINARY ?= bin/manager
OUT ?= out
CLUSTERS  ?= 8
INSTANCES ?= 1
SERVERS   ?= 8
ADDONS    ?= 4
STACKS    ?= 1
IDLE_STACKS ?=
RUNS      ?= 3
MEMORY_LIMIT ?=
# Milliseconds of a round trip between manager and workload clusters in the benchmark.
RTT       ?=
# A checkout of the Cluster API Add-on Provider for Helm, which is then measured, too.
HELM_PROVIDER ?=

# Tools are pinned in modules of their own, so that theirs never mix with the
# product's dependencies.
CONTROLLER_GEN := go tool -modfile=hack/tools/go.mod controller-gen
KUSTOMIZE      := go tool -modfile=hack/tools/go.mod kustomize
GOVULNCHECK    := go tool -modfile=hack/tools/go.mod govulncheck
CRDIFY         := go tool -modfile=hack/tools/crdify/go.mod crdify
CYCLONEDX      := go tool -modfile=hack/tools/sbom/go.mod cyclonedx-gomod

# As in the image. Tests build the manager without C, too.
export CGO_ENABLED ?= 0

# PKG limits the tests to some packages, as in `make test PKG=./internal/...`.
PKG      ?= ./...
TEST_P   ?= 4
FLEETS   := /test/(e2e|instances|clusterctl|topology)$$
# The library is a module of its own, and so are what shows its use, other projects' tests of it, and tests with a browser.
MODULES  := . fleet examples test/suites test/browser
# Counted: the end of a duration can fail a run by itself (golang/go#75804), and minimizing would take most of it.
FUZZRUNS ?= 2000

##@ General

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*##/ {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Develop

.PHONY: build
build: ## Build the manager into bin/.
	go build -trimpath -ldflags "-s -w $(LDFLAGS)" -o bin/manager .

.PHONY: plugin
plugin: ## Build kubectl-chandler into bin/.
	go build -trimpath -ldflags "-s -w $(LDFLAGS)" -o bin/kubectl-chandler ./cmd/kubectl-chandler

.PHONY: generate
generate: ## Generate Go code (deep copies), the list of flags, and the table of reasons.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@# The page stays whole if this is interrupted.
	@mkdir -p bin
	@{ echo '# Flags'; echo; echo 'What `manager --help` prints. Names are those of Cluster API managers where these'; \
	   echo 'have such a flag.'; echo; echo '```'; go run . --help; echo '```'; } >bin/flags.md
	@mv bin/flags.md docs/reference/flags.md
	go test -count=1 ./test/docs -run '^TestAddonReasons$$' -update

.PHONY: manifests
manifests: ## Generate CRDs, RBAC and webhook configurations into config/.
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	go run ./hack/crds config/crd/bases/*.yaml
	$(CONTROLLER_GEN) rbac:roleName=manager-role webhook paths=./controllers/... paths=./webhooks/... \
		output:rbac:artifacts:config=config/rbac output:webhook:artifacts:config=config/webhook

.PHONY: lint
lint: ## Run the linters.
	@# Its cache names files by the checkout that was looked at first: each has its own.
	@for module in $(MODULES); do \
		echo "== $$module"; (cd $$module && GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint-cache \
			go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint run --timeout 20m); \
	done

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what the manager reaches. Needs access to their database.
	@# One small package shows whether there is access; to load all of them takes minutes.
	@if out=$$($(GOVULNCHECK) ./internal/version 2>&1) || [[ $$out != *"govulncheck: fetching vulnerabilities: Get "* ]]; then $(GOVULNCHECK) .; \
	else echo "$$out"; echo "SKIPPED: the database of vulnerabilities can't be reached, so nothing was checked"; fi

# A folder for each release, with its CRDs.
RELEASED_CRDS ?= config/crd/released

.PHONY: outdated
outdated: ## Fail if a direct module or a tool is behind, unless hack/outdated.txt has the reason. Needs a module proxy.
	@{ for m in $(MODULES); do go -C $$m list -m -e -u -f '{{if and .Update (not .Indirect)}}{{.Path}} {{.Version}}, and there is {{.Update.Version}}{{end}}' all; done; \
		for m in $$(git ls-files 'hack/*/go.mod' | xargs -n1 dirname); do \
			tools=$$(go -C $$m list -f '{{with .Module}}{{.Path}}{{end}}' tool 2>/dev/null | sort -u); \
			[ -z "$$tools" ] || go -C $$m list -m -e -u -f "{{if .Update}}$$m:{{.Path}} {{.Version}}, and there is {{.Update.Version}}{{end}}" $$tools; \
		done; } | sort -u \
		| awk 'NR == FNR {if ($$1 != "#") reasons[$$1]; next} $$1 in reasons {held[$$1]; next} {print; n++} \
			END {for (m in reasons) if (!(m in held)) {print m " isn\x27t behind, or no module proxy answers: hack/outdated.txt has it"; n++} exit n > 0}' hack/outdated.txt -

.PHONY: verify-crds
verify-crds: ## Fail if the CRDs lack a field that those of a release serve, or refuse more.
	@for released in $$(find $(RELEASED_CRDS) -name '*.yaml' | sort); do \
		echo "== $$released"; \
		$(CRDIFY) --config hack/tools/crdify/config.yaml file://$$released file://config/crd/bases/$$(basename $$released) | sed '/✓/d;/^$$/d'; \
	done

.PHONY: release-crds
release-crds: ## Keep the CRDs as those of VERSION.
	@mkdir -p $(RELEASED_CRDS)/$(VERSION)
	cp config/crd/bases/*.yaml $(RELEASED_CRDS)/$(VERSION)/

.PHONY: verify
verify: generate manifests verify-crds ## Regenerate everything, and fail if anything differs from what is committed.
	@for module in $(MODULES); do go -C $$module mod tidy -diff; done
	@for overlay in default clusterctl shared instance; do $(KUSTOMIZE) build config/$$overlay >/dev/null; done
	@if [ -n "$$(git status --porcelain)" ]; then git status --short; git diff --stat; echo "Commit what 'make generate manifests' makes"; exit 1; fi

##@ Test

.PHONY: controlplane
controlplane: ## Build the local control planes (kube-apiserver, etcd, ...), which tests and demo start.
	go -C hack/controlplane run . >/dev/null

.PHONY: test test-all
test: export CHANDLER_LONG_TESTS ?= no
test: ## Run the tests, on real API servers, but for those that take long: with CHANDLER_LONG_TESTS=some those of CI.
test-all: ## Run all tests. Takes 40 minutes.
test test-all:
	@# A package whose tests start no control plane needs none.
	@if [ '$(PKG)' = ./... ] || [ -n "$$(go list -test -deps $(PKG) | sed -n '\|^$(MODULE)/test/controlplane$$|p')" ]; then $(MAKE) controlplane; fi
	go test -vet=off -p $(TEST_P) -timeout 30m $$(go list $(PKG) | grep -vE '$(FLEETS)' || echo ./api/...)
	@if [ '$(PKG)' = ./... ]; then $(MAKE) test-library; fi
	@# Those that start many processes mostly wait: the largest runs by itself, and the others beside each other.
	@for tests in e2e 'instances|clusterctl|topology'; do \
		pkgs=$$(go list $(PKG) | grep -E "/test/($$tests)\$$" || true); \
		if [ -n "$$pkgs" ]; then go test -vet=off -timeout 30m -p 3 $$pkgs; fi; \
	done

.PHONY: test-library
test-library: ## Run the tests of the library, whose examples need a control plane.
	KUBEBUILDER_ASSETS=$$(go -C hack/controlplane run .) go -C fleet test -vet=off -p $(TEST_P) -timeout 30m ./...

.PHONY: test-browser
test-browser: controlplane ## Look at the plugin's page of 1,000 clusters with Chromium. Skipped where there is none.
	go -C test/browser test -vet=off -count=1 -timeout 30m -v .

.PHONY: test-race
test-race: controlplane ## Run all tests with the race detector.
	CGO_ENABLED=1 go test -race -p $(TEST_P) -timeout 60m $(PKG)
	CGO_ENABLED=1 go -C fleet test -race -p $(TEST_P) -timeout 60m ./...

.PHONY: test-hostile
test-hostile: controlplane ## Run the tests with hostile and slow clusters for longer, and with times. For a machine at rest.
	CHANDLER_E2E_HOSTILE=1m go test -count=1 -timeout 60m ./test/e2e -run 'TestHostileClusters|TestHostileFleet|TestEachHostileCluster|TestSlowClusters|TestMemoryOfAttacks' -v
	CHANDLER_E2E_HOSTILE=1m go test -count=1 ./internal/source -run TestOneTenantDelaysNoOther -v

.PHONY: test-upgrades
test-upgrades: controlplane ## Kill all that takes part in 50 upgrades of Kubernetes, and try the oldest Cluster API.
	CHANDLER_UPGRADES=50 go test -count=1 -timeout 90m ./test/topology -run TestUpgradesThroughKills -v
	CHANDLER_CORE_MODULE=hack/tools/capi-oldest go test -count=1 -timeout 30m ./test/topology -run TestOldestClusterAPI -v

.PHONY: test-long
test-long: controlplane ## Let the manager die at each write, empty and restore fleets, install on a busy machine, and do random things to a fleet. Takes five hours.
	CHANDLER_ROLLOUT_HISTORIES=100000 go test -count=1 -timeout 60m ./internal/rollout -run TestRandomHistories -v
	CHANDLER_ROLLOUT_CLUSTERS=200 CHANDLER_ROLLOUT_KILLS=50 go test -count=1 -timeout 90m ./test/e2e -run 'TestRolloutThroughKills|TestRolloutOfAllAtOnce' -v
	CHANDLER_ROLLOUT_CHANGES=300 CHANDLER_ROLLOUT_DEAD=30 go test -count=1 -timeout 60m ./test/e2e -run 'TestRolloutAmidChanges|TestRolloutBudget' -v
	CHANDLER_E2E_INSTANCES=10 go test -count=1 -timeout 30m ./test/e2e -run TestTenInstancesShareOneLimit -v
	KUBEBUILDER_ASSETS=$$(cd hack/controlplane/next && go run ../main.go) go test -count=1 -timeout 60m ./test/e2e ./internal/deliver
	CHANDLER_EVERY_WRITE=1 go test -count=1 -timeout 60m ./internal/deliver -run 'TestCrash$$'
	CHANDLER_MODEL_SEEDS=20 go test -count=1 -timeout 30m ./internal/deliver -run TestModel
	CHANDLER_E2E_EVERY_WRITE=1 go test -count=1 -parallel 4 -timeout 60m ./test/e2e -run 'TestCrash$$'
	CHANDLER_E2E_CLUSTERS=20 CHANDLER_RESTORES=200 go test -count=1 -timeout 90m ./test/e2e -run 'TestLargeRemovalIsHeld|TestRestore$$' -v
	CHANDLER_E2E_CLUSTERS_AT_REST=1000 go test -count=1 -timeout 30m ./test/e2e -run TestManyClustersAtRest -v
	CHANDLER_E2E_GIT_CLUSTERS=20 go test -count=1 -timeout 60m ./test/e2e -run TestGitOfAFleet -v
	KUBEBUILDER_ASSETS=$$(go -C hack/controlplane run .) go -C test/suites test -count=1 -timeout 60m -v .
	CHANDLER_ENGAGEMENTS=1000 go -C fleet test -count=1 -timeout 30m -run TestEngagementsLeaveNothing -v .
	CHANDLER_REPLACEMENTS=1000 CGO_ENABLED=1 go -C fleet test -race -count=1 -timeout 30m -run TestEngageEndsBeforeTheNext -v .
	CHANDLER_E2E_INSTALLS=50 go test -count=1 -timeout 60m ./test/e2e -run TestInstalledAgainAndAgain -v
	CHANDLER_ACTIONS=200 CHANDLER_ACTIONS_CLUSTERS=20 CHANDLER_ACTIONS_SEEDS=20 go test -count=1 -timeout 300m ./test/actions -v

.PHONY: fuzz
fuzz: ## Run each fuzz target FUZZRUNS times.
	@for pkg in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$pkg/*_test.go | sed 's/func //'); do \
			echo "== $$pkg $$target"; go -C $$pkg test -run='^$$' -fuzz="^$$target$$" -fuzztime=$(FUZZRUNS)x -fuzzminimizetime=10x .; \
		done; \
	done

.PHONY: bench
bench: controlplane ## Measure fleets of CLUSTERS, as in "8 40 200", RUNS times, and write tables into OUT. For a machine at rest.
	CHANDLER_BENCH_HELM_PROVIDER=$(abspath $(HELM_PROVIDER)) CHANDLER_BENCH_CLUSTERS="$(CLUSTERS)" CHANDLER_BENCH_INSTANCES="$(INSTANCES)" \
		CHANDLER_BENCH_SERVERS=$(SERVERS) CHANDLER_BENCH_ADDONS=$(ADDONS) CHANDLER_BENCH_RUNS=$(RUNS) CHANDLER_BENCH_MEMORY_LIMIT=$(MEMORY_LIMIT) CHANDLER_BENCH_RTT=$(RTT) CHANDLER_BENCH_OUT=$(abspath $(OUT)) \
		go test -count=1 -timeout 5h ./test/bench -run TestFleet -v

.PHONY: bench-growth
bench-growth: controlplane ## Measure CLUSTERS with STACKS of ADDONS that have one ConfigMap each, and beside IDLE_STACKS that select no cluster. These three may be lists.
	CHANDLER_BENCH_CLUSTERS=$(CLUSTERS) CHANDLER_BENCH_SERVERS=$(SERVERS) CHANDLER_BENCH_STACKS="$(STACKS)" CHANDLER_BENCH_STACK_ADDONS="$(ADDONS)" \
		CHANDLER_BENCH_IDLE_STACKS="$(IDLE_STACKS)" CHANDLER_BENCH_RUNS=$(RUNS) CHANDLER_BENCH_OUT=$(abspath $(OUT)) \
		go test -count=1 -timeout 5h ./test/bench -run TestGrowth -v

.PHONY: bench-micro
bench-micro: controlplane ## Run the benchmarks of single functions, for benchstat.
	go test -run='^$$' -bench=. -benchmem $(PKG)

.PHONY: demo
demo: ## Start four clusters, and install, upgrade, crash and remove add-ons. DEMO_EXIT=1 ends it by itself.
	go run ./hack/demo

##@ Release

.PHONY: docker-build
docker-build: ## Build the container image IMG.
	docker build --build-arg LDFLAGS="$(LDFLAGS)" -t $(IMG) .

.PHONY: docker-buildx
docker-buildx: ## Build the container image IMG for IMAGE_PLATFORMS, and push it. image.json gets its digest.
	docker buildx build --platform $(subst $(SPACE),$(COMMA),$(IMAGE_PLATFORMS)) --provenance=mode=max --push -t $(IMG) \
		--build-arg LDFLAGS="$(LDFLAGS)" --metadata-file image.json .

# Texts before a version of Chandler in the pages, and in the overlays, whose users refer to a tag.
BEFORE_VERSION := (chandler[:/-]|[?]ref=|VERSION=|chandler/releases/download/|team-a +)
RELEASED := addon-components.yaml shared-components.yaml extension-config.yaml metadata.yaml sbom.cdx.json notes.md
CHART := chandler-$(VERSION:v%=%).tgz

.PHONY: release
release: release-version release-platforms release-manifests release-chart release-plugin release-notes sbom ## Write all files of a release into OUT, by default out/: manifests, Helm chart, kubectl-chandler, notes, SBOM, and checksums of these.
	cd $(OUT) && sha256sum $(RELEASED) $(CHART) chandler.yaml kubectl-chandler_*.tar.gz >checksums.txt

.PHONY: release-modules
release-modules: ## Have the product require the library of VERSION, whose tag is published: `go install` takes no module that replaces another one.
	go mod edit -dropreplace=$(MODULE)/fleet -require=$(MODULE)/fleet@$(VERSION)
	go mod tidy

.PHONY: release-notes
release-notes: ## Write the changes of VERSION into OUT.
	mkdir -p $(OUT)
	awk '/^## / {is = $$2 == "$(VERSION)"; next} is' CHANGELOG.md >$(OUT)/notes.md
	@[[ -s $(OUT)/notes.md ]] || { echo "CHANGELOG.md has no section $(VERSION)"; exit 1; }

.PHONY: release-platforms
release-platforms: ## Check that the manager can be built for all of IMAGE_PLATFORMS.
	@for platform in $(IMAGE_PLATFORMS); do GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -o /dev/null .; done

.PHONY: release-plugin
release-plugin: ## Write archives of kubectl-chandler for PLATFORMS, and its manifest for krew, into OUT.
	mkdir -p $(OUT)
	sed 's/VERSION/$(VERSION)/' cmd/kubectl-chandler/krew.yaml >$(OUT)/chandler.yaml
	@for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/} staged=$$(mktemp -d); \
		binary=kubectl-chandler; [[ $$os != windows ]] || binary+=.exe; \
		GOOS=$$os GOARCH=$$arch go build -trimpath -ldflags "-s -w $(LDFLAGS)" -o $$staged/$$binary ./cmd/kubectl-chandler; \
		cp LICENSE cmd/kubectl-chandler/kubectl_complete-chandler $$staged/; \
		archive=kubectl-chandler_$${os}_$$arch.tar.gz; \
		tar -C $$staged --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c . | gzip -n >$(OUT)/$$archive; \
		rm -r $$staged; \
		{ echo "  - selector: {matchLabels: {os: $$os, arch: $$arch}}"; \
		  echo "    uri: https://github.com/cluster-chandler/chandler/releases/download/$(VERSION)/$$archive"; \
		  echo "    sha256: $$(sha256sum $(OUT)/$$archive | cut -d' ' -f1)"; echo "    bin: $$binary"; } >>$(OUT)/chandler.yaml; \
	done

.PHONY: release-version
release-version: ## Check that metadata.yaml has the series of VERSION, and that pages and overlays name no other version.
	@[[ '$(VERSION)' =~ ^v([0-9]+)\.([0-9]+)\.[0-9]+(-.*)?$$ ]] && grep -q "{major: $${BASH_REMATCH[1]}, minor: $${BASH_REMATCH[2]}," metadata.yaml \
		|| { echo "metadata.yaml has no series of VERSION $(VERSION)"; exit 1; }
	@others=$$(grep -noE '$(BEFORE_VERSION)v?[0-9]+\.[0-9]+\.[0-9]+[-.0-9a-z]*' README.md docs/*.md config/*/*.yaml config/*/*/*.yaml | grep -vE '$(BEFORE_VERSION)v?$(subst .,\.,$(VERSION:v%=%))(\.tgz)?$$' || true); \
		[[ -z $$others ]] || { echo "These name another version than $(VERSION):"; echo "$$others"; exit 1; }
	@grep -qx '## $(VERSION)' fleet/CHANGELOG.md || { echo "fleet/CHANGELOG.md has no section $(VERSION)"; exit 1; }

.PHONY: release-manifests
release-manifests: ## Write what clusterctl installs, and the shared overlays, into OUT.
	@[[ -z '$(DIGEST)' || '$(DIGEST)' =~ ^sha256:[0-9a-f]{64}$$ ]] || { echo "DIGEST is to be sha256: and 64 hexadecimal digits: $(DIGEST)"; exit 1; }
	mkdir -p $(OUT)
	@# Variables of clusterctl are replaced in the text, so a string is in quotes, unless its default has them: clusterctl wants
	@# a value for a variable with nothing as default.
	for overlay in clusterctl shared; do \
		$(KUSTOMIZE) build config/$$overlay | sed -E "s|image: ghcr.io/cluster-chandler/chandler:.*|image: $(IMG)$(addprefix @,$(DIGEST))|; s|value: (\\$$\{[^\"]*\})|value: '\1'|" \
			>$(OUT)/$$(sed 's/^clusterctl$$/addon/' <<<$$overlay)-components.yaml; \
	done
	sed -E '/^#/d; s/\bsystem\b/$${CHANDLER_NAMESPACE:=chandler-system}/' config/hooks/extension_config.yaml >$(OUT)/extension-config.yaml
	cp metadata.yaml $(OUT)/

.PHONY: release-chart
release-chart: ## Write the Helm chart, which has the overlays, into OUT/charts, and its archive into OUT.
	rm -rf $(OUT)/charts/chandler
	mkdir -p $(OUT)/charts
	cp -r hack/chart/chandler $(OUT)/charts/
	sed 's/VERSION/$(VERSION:v%=%)/' hack/chart/chandler/Chart.yaml >$(OUT)/charts/chandler/Chart.yaml
	mkdir $(OUT)/charts/chandler/overlays
	@for overlay in all=config/default shared=config/shared instance=hack/chart/instance; do \
		$(KUSTOMIZE) build $${overlay#*=} >$(OUT)/charts/chandler/overlays/$${overlay%=*}.yaml; \
	done
	tar -C $(OUT)/charts --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c chandler | gzip -n >$(OUT)/$(CHART)

.PHONY: sbom
sbom: $(if $(filter bin/manager,$(BINARY)),build) ## Write the SBOM of BINARY, as CycloneDX, into OUT. It lists what was linked.
	mkdir -p $(OUT)
	$(CYCLONEDX) bin -json -std -noserial -notimestamp -version $(VERSION) -output $(OUT)/sbom.cdx.json $(BINARY)

.PHONY: clean
clean: ## Delete what was built here.
	rm -rf bin out
