# Heed: what a contributor or a CI machine runs. Needs Go, make, git and Node
# with npm; everything else is pinned in go.mod, tools/go.mod and
# the package-lock.json of conformance and docs, and is fetched on first use.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Go that is installed is the Go that is used.
export GOTOOLCHAIN := local

FUZZTIME  ?= 20s
FUZZ_MESSAGES ?= 10m
MODEL_STEPS ?= 1000000
SOAK_TIME ?= 10m
KILLS     ?= 1000
DELAY     ?= 20000
BENCH     ?= .
BENCHTIME ?= 1s
BENCH_OUT ?= $(CURDIR)/bench/out
TESTFLAGS ?= -race -shuffle=on -timeout 20m

EACH := tools/each.sh
GOFILES = find . -name node_modules -prune -o -name '*.go' -print0
TEXTFILES = find . \( -name node_modules -o -name .git -o -name testdata \) -prune -o \
	\( -name '*.md' -o -name '*.mjs' -o -name Makefile -o -name '*.sh' \) -print0
NODE_STAMP := conformance/node_modules/.package-lock.json
SITE_STAMP := docs/node_modules/.package-lock.json

# Linters run outside the workspace: -modfile and go.work exclude one another.
TOOL = env GOWORK=off go tool -modfile=$(CURDIR)/tools/go.mod

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile
	@echo "  Variables: FUZZTIME=$(FUZZTIME) FUZZ_MESSAGES=$(FUZZ_MESSAGES) BENCH=$(BENCH) BENCHTIME=$(BENCHTIME) TESTFLAGS='$(TESTFLAGS)'"

.PHONY: test
test: $(NODE_STAMP) $(SITE_STAMP) ## Run every test of every module, the TypeScript clients and the site included
	@[ -n "$${LONGTOOL_TEST_POSTGRES:-}" ] || echo "== PostgreSQL is left out: LONGTOOL_TEST_POSTGRES is not set (examples/longtool/with-postgres.sh sets it)"
	@$(EACH) go test $(TESTFLAGS) ./...

# Allocations and the time of pure computing are not what delays can find out about.
.PHONY: test-delayed
test-delayed: $(NODE_STAMP) $(SITE_STAMP) ## Run every test with delays of up to DELAY microseconds in all functions, which find hidden orders
	@out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; go run ./internal/delays "$$(pwd -P)" "$$out"; \
	GOFLAGS=-overlay=$$out/overlay.json HEED_DELAY=$(DELAY) $(EACH) go test -vet=off $(TESTFLAGS) -skip 'Alloc|Bench|Fuzz|Growth' ./...

.PHONY: check
check: check-format check-vet check-staticcheck check-spelling check-architecture ## Run every static check

.PHONY: check-format
check-format: ## List files that gofmt would change
	@files=$$($(GOFILES) | xargs -0 gofmt -l); \
	if [ -n "$$files" ]; then echo "not gofmt-clean:"; echo "$$files"; exit 1; fi; echo "== gofmt: clean"

.PHONY: check-vet
check-vet: ## go vet in every module
	@$(EACH) go vet ./...

.PHONY: check-staticcheck
check-staticcheck: ## staticcheck (settings in staticcheck.conf) in every module
	@$(EACH) $(CURDIR)/tools/staticcheck.sh

# Comments of Go files, whole text of the others. The project's own spelling
# (cancelled) has exceptions that misspell cannot express, so a test of
# internal/architecture looks after it.
.PHONY: check-spelling
check-spelling: ## misspell on comments and documents
	@$(GOFILES) | xargs -0 $(TOOL) misspell -error -source=go
	@$(TEXTFILES) | xargs -0 $(TOOL) misspell -error
	@echo "== misspell: clean"

.PHONY: check-architecture
check-architecture: ## Layout, import arrows and the other rules that are tests
	@go test -count=1 ./internal/architecture

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME
	@FUZZTIME=$(FUZZTIME) $(EACH) $(CURDIR)/tools/fuzz.sh

# make test does the same for a few seconds. FUZZ_SEED repeats what a run has sent.
.PHONY: fuzz-wire
fuzz-wire: $(NODE_STAMP) ## Send arbitrary messages to the fixture server, over stdio and HTTP, for FUZZ_MESSAGES
	@FUZZ_MESSAGES=$(FUZZ_MESSAGES) go test -race -count=1 -timeout 0 -v -run '^TestFuzz' ./conformance

# Two thousand clients for ten minutes; writes docs/soak.md and its charts. make test does it
# for some seconds.
.PHONY: soak
soak: soak-model soak-load ## All long runs: the model for a million steps, then the load

.PHONY: soak-load
soak-load: ## Mixed load over both transports and eras for SOAK_TIME; writes docs/soak.md
	@SOAK_TIME=$(SOAK_TIME) SOAK_OUT=$(CURDIR)/docs go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./internal/soak

# make test does some dozens.
.PHONY: soak-kill
soak-kill: ## Kill servers and clients of longtool KILLS times, and audit the database after each
	@cd examples/longtool && KILLS=$(KILLS) go test -count=1 -timeout 0 -v -run '^TestKilled' .

# Its database is on the network: not a part of make check. VULNDB names another one, such as a folder.
.PHONY: vuln
vuln: ## Look for known vulnerabilities in what the library uses (needs a network, or VULNDB=file://FOLDER)
	@$(EACH) env GOFLAGS= GOWORK=off go tool -modfile=$(CURDIR)/tools/go.mod govulncheck $(if $(VULNDB),-db $(VULNDB)) -test ./...

# make test does some thousands. A failure shrinks and prints what went over the wire.
.PHONY: soak-model
soak-model: ## Compare the server with the model of a request's life for MODEL_STEPS random steps
	@MODEL_STEPS=$(MODEL_STEPS) go test -count=1 -timeout 0 -v -run '^TestServerFollowsTheModel$$' ./internal/model

.PHONY: bench
bench: ## Measure Heed, other SDKs and a server without one, and write docs/performance.md (a quarter of an hour)
	@OUT=$(BENCH_OUT) bench/page.sh

.PHONY: compare
compare: ## Try Heed and other SDKs with heedcheck, and write docs/comparison.md (some minutes)
	@bench/compare.sh

.PHONY: bench-quick
bench-quick: ## The same in under a minute, for a first look: two servers, one short round
	@OUT=$(BENCH_OUT) ROUNDS=1 SCALE=0.3 SERVERS=floor,heed ONLY='pipe|cancel$$|http_' bench/run.sh

.PHONY: bench-go
bench-go: ## Run the Go benchmarks that match BENCH for BENCHTIME
	@go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: site
site: $(SITE_STAMP) ## Build the documentation site into docs/.site
	@cd docs && npm run --silent build && echo "site: docs/.site"

.PHONY: site-serve
site-serve: site ## Build it and serve it at http://localhost:4173
	@cd docs && npm run --silent serve

# Needs Chromium; screenshots are what a person has to look at.
.PHONY: site-shots
site-shots: $(NODE_STAMP) $(SITE_STAMP) ## Walk through the site in a browser and leave screenshots in docs/.site-shots
	@mkdir -p docs/.site-shots && SITE_SHOTS=$(CURDIR)/docs/.site-shots go test -count=1 -run '^TestSite$$' ./conformance

.PHONY: recording
recording: ## Record a run of longtool into docs/images/longtool.svg (needs util-linux's script)
	@tools/recording.sh

.PHONY: clean
clean: ## Remove what npm installed, and the site
	rm -rf conformance/node_modules docs/node_modules docs/.site docs/.site-shots

# npm writes this file last, so it is newer than the lock file exactly when
# the installation is complete.
$(SITE_STAMP): docs/package.json docs/package-lock.json docs/.npmrc
	cd docs && npm ci --loglevel=error
	@touch $@

$(NODE_STAMP): conformance/package.json conformance/package-lock.json conformance/.npmrc
	cd conformance && npm ci --loglevel=error
	@touch $@
