# The front door: every target installs what it needs (tools/setup.sh) and calls CMake or a script
# in tools/. Nothing is built here; CMakeLists.txt and CMakePresets.json say how.

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
RUN_DIR ?= ./vigil-data
RUN_ARGS ?=
KUBECONFIG ?=
DIFF_ARGS ?=
BENCH_ARGS ?=
export FUZZ_SECONDS

.DEFAULT_GOAL := build
.PHONY: build run test test-more test-long test-diff bench bench-parts fuzz lint format cov install clean help

build: ## build the release binaries into build/ (the default)
	@tools/setup.sh build
	@tools/build.sh

run: ## build vigild and vigil, start vigild with its data in RUN_DIR (./vigil-data); RUN_ARGS: more flags
	@tools/setup.sh build
	@tools/build.sh vigild vigil-store vigil-copy vigil_cli
	@exec build/vigild --data-dir $(RUN_DIR) $(RUN_ARGS)

test: ## the tests under ASan+UBSan, the threaded core under TSan; 10 minutes on two cores
	@tools/setup.sh build test
	@tools/test.sh

test-more: ## what test leaves out: the whole server under TSan, etcd 3.5 and 3.6, clients that Go must build
	@tools/setup.sh build test
	@tools/test.sh more

test-long: ## both with the long rounds (hundreds of kills), and real kube-apiservers; hours
	@tools/setup.sh build test
	@tools/test.sh long

test-diff: ## send the kinds' fixtures to the cluster of KUBECONFIG=..., as dry runs, and show what it answers otherwise
	@tools/setup.sh build
	@KUBECONFIG="$(KUBECONFIG)" DIFF_ARGS="$(DIFF_ARGS)" tools/diff.sh

bench: ## measure vigild beside kube-apiserver, etcd and bare loops, and write docs/benchmarks.md; under 20 minutes; BENCH_ARGS=--quick: see that it works
	@tools/setup.sh build bench
	@tools/bench.sh $(BENCH_ARGS)

bench-parts: ## measure the parts (json, storage, cacher, net, client ...) beside their rivals; tables also in build/bench/
	@tools/setup.sh build bench
	@tools/build.sh --bench
	@tools/bench_parts.sh

fuzz: ## run each fuzzer for FUZZ_SECONDS (60); FUZZ=name for one
	@tools/setup.sh build test
	@tools/fuzz.sh $(FUZZ)

lint: ## clang-format, clang-tidy, cppcheck, banned calls, include direction
	@tools/setup.sh build test bench lint
	@tools/lint.sh

format: ## rewrite every .c and .h as .clang-format says
	@tools/setup.sh lint
	@tools/format.sh

cov: ## line coverage of the tests, as a table and as build/cov/html
	@tools/setup.sh build test
	@tools/cov.sh

install: build ## install what is built under PREFIX (/usr/local); DESTDIR is honoured
	@cmake --install build/release --prefix "$(PREFIX)"

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'
