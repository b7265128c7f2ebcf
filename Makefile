# Run `make` or `make help` for what there is. Everything works on a bare Debian with Go:
# the servers that tests and demo need are fetched into ~/.cache/binlogd on first use.

SHELL := /bin/bash
.DEFAULT_GOAL := help

SERVERS := go run ./internal/testenv/servers
LINT    := go tool -modfile=tools/go.mod golangci-lint

# The sink of `make demo`: embedded (a file), kafka or redis.
SINK ?= file
# What `make test` runs, and how: PKG=./canal/... TESTFLAGS='-run GTID -v'
# The packages whose tests take longest come first, so that none of them runs alone at the end.
PKG ?= ./internal/pipeline ./publish ./...
TESTFLAGS ?=
# What `make services-up` starts: SERVICES='mysql kafka'
SERVICES ?=
# Further arguments of the benchmark: BENCHFLAGS='-help' lists them
BENCHFLAGS ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/binlogd
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/binlogd ./cmd/binlogd

.PHONY: demo
demo: ## Watch binlogd lose nothing while it is killed (SINK=file, kafka or redis)
	go run ./examples/demo -sink $(SINK)

# Two packages at a time: the servers and the race detector want the rest of the machine.
.PHONY: test
test: services-fetch ## Run all tests with the race detector on real servers (PKG=, TESTFLAGS=)
	go test -race -p 2 -timeout 40m $(TESTFLAGS) $(PKG)

.PHONY: test-quick
test-quick: services-fetch ## The same without the race detector
	go test -p 2 -timeout 40m $(TESTFLAGS) $(PKG)

.PHONY: bench
bench: ## Measure throughput, latency and memory on real servers (BENCHFLAGS=)
	go run ./internal/bench $(BENCHFLAGS)

.PHONY: lint
lint: ## Check style, common mistakes and import rules
	$(LINT) run

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt

.PHONY: services-up
services-up: ## Start MySQL, Kafka and Redis for development (SERVICES=)
	@$(SERVERS) up $(SERVICES)

.PHONY: services-down
services-down: ## Stop them; their data stays
	@$(SERVERS) down

.PHONY: services-status
services-status: ## Say which of them are running
	@$(SERVERS) status

.PHONY: services-fetch
services-fetch: ## Fetch all servers that tests use into the cache folder
	@$(SERVERS) fetch

.PHONY: clean
clean: ## Delete what was built here, and the development servers' data
	rm -f bin/binlogd
	@$(SERVERS) down -wipe
