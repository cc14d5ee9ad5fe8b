# make demo    build, start 95 satellites, run a prompt without and with the cache
# make test    check all that CI checks; say what a missing tool leaves out, which is a failure if CI is set
# make mutants plant faults one by one, and say which of them the unit tests and the twin find; this takes half an hour
# make soak    use values for ten minutes while satellites, links and clients fail, and judge what was seen: SECONDS=600 SEED=1
# make docs    make a site of the documents and the reference of the Python names, in build-docs/
# make wheel   make wheels in dist/ for x86-64 and aarch64 that install without a compiler; docs/releasing.md has the rest
# make test-engines  test vLLM, LMCache and SGLang over a constellation, in an environment of their own of 4 GB
#
# A fresh machine needs Python 3.11, gcc and make: the rest comes from PyPI into .venv.

PYTHON ?= python3
JOBS ?= $(shell nproc)
# Seconds that each fuzz target runs.
FUZZ_SECONDS ?= $(if $(CI),60,10)
# Seeds of the twin. 150 take two to four minutes; a release needs 1000.
TWIN_SEEDS ?= 150

VENV := .venv
BIN := $(VENV)/bin
ENGINES := .venv-engines
export PATH := $(CURDIR)/$(BIN):$(PATH)

# Tools that some of the tests need; CI installs them.
TOOLS := $(shell cat tools/tools.txt)

SOURCES := $(shell find fsw_apps ground testbed icd CMakeLists.txt pyproject.toml -type f -not -path '*/__pycache__/*' -not -path '*/_native/*.so' -not -name skysat)
C_FILES = $(shell find fsw_apps ground/native testbed tests -name '*.[ch]' -not -name sky_icd.h -not -name sky_defaults.h)

.PHONY: all demo test test-host test-tools beside-python bench bench-compare docs lint lint-quick lint-python lint-cppcheck lint-tidy format build test-c \
        test-sanitized coverage test-aarch64 fuzz twin soak mutants mutants-few test-python test-docker test-engines wheel release-check clean

all: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/skymem demo

bench: $(VENV)/.installed $(VENV)/.dev
	$(BIN)/skymem bench idle
	$(BIN)/skymem bench links
	$(BIN)/skymem bench peers
	$(BIN)/skymem bench prefix

# Processor time of operations beside that of an earlier commit: BASE, or the one that tools/bench_base names. More than BOUND percent
# more is a failure.
BASE ?=
ROUNDS ?= 30
BOUND ?= 10
bench-compare: $(VENV)/.installed
	$(BIN)/python tools/bench_compare.py $(if $(BASE),--base $(BASE)) --rounds $(ROUNDS) --bound $(BOUND)

test: test-host
	$(MAKE) --no-print-directory test-docker
	@echo "make test: all passed"

# All that needs no containers. Quick failures come first, then targets that can share two cores. Tests in Python often wait:
# targets that only compute run beside them, and give way to them.
test-host: $(VENV)/.dev
	@$(MAKE) --no-print-directory test-tools
	@tools/step.sh $(MAKE) --no-print-directory lint-quick
	@tools/step.sh $(MAKE) --no-print-directory build $(VENV)/.installed
	@tools/step.sh $(MAKE) --no-print-directory -j$(JOBS) -Otarget lint-python docs test-c coverage test-sanitized test-aarch64
	@tools/step.sh $(MAKE) --no-print-directory -j2 -Otarget test-python beside-python
	@tools/step.sh $(MAKE) --no-print-directory fuzz

# What a later target would miss after half an hour is told now: with CI set it is a failure, elsewhere a warning.
test-tools:
	@tools/tool_works.sh $(TOOLS) || [ -z "$$CI" ]

beside-python: $(VENV)/.dev
	@tools/step.sh nice -n 19 $(MAKE) --no-print-directory lint-cppcheck lint-tidy twin mutants-few

# --- environment ------------------------------------------------------------------------------------------------------------

$(VENV)/.run: tools/setup_venv.py tools/pypi_file.py pyproject.toml constraints.txt
	$(PYTHON) tools/setup_venv.py $(VENV) model figures bench
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PYTHON) tools/setup_venv.py $(VENV) model bench figures tracing docs dev
	@touch $@

# Python tests run against the installed wheel, as a user gets it, not against the source tree.
$(VENV)/.installed: $(VENV)/.run $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .
	@touch $@

# Wheels in dist/ that other Linux systems install without a compiler.
wheel: $(VENV)/.dev
	$(BIN)/python tools/make_wheels.py dist

release-check: wheel
	tools/release_check.sh dist

# The engines have an environment of their own: they pin each other's libraries to versions that differ from ours.
$(ENGINES)/.run: tools/setup_engines.py tools/setup_venv.py tools/pypi_file.py pyproject.toml constraints-engines.txt
	$(PYTHON) tools/setup_engines.py $(ENGINES)
	@touch $@

# It waits for the other environment's installation: both build in one folder.
$(ENGINES)/.installed: $(ENGINES)/.run $(SOURCES) | $(VENV)/.installed
	PATH=$(CURDIR)/$(ENGINES)/bin:$$PATH $(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
	    --no-build-isolation --force-reinstall .
	@touch $@

# --- lint -------------------------------------------------------------------------------------------------------------------

lint: lint-quick lint-python lint-cppcheck lint-tidy

lint-quick: $(VENV)/.dev
	$(BIN)/python tools/gen_icd.py --check
	$(BIN)/python tools/gen_structures.py --check
	$(BIN)/python tools/gen_outlines.py --check
	$(BIN)/python tools/set_version.py --check
	$(BIN)/python tools/gen_parameters.py --check
	$(BIN)/python tools/check_docstrings.py
	$(BIN)/ruff check ground tests tools
	$(BIN)/ruff format --check --quiet ground tests tools
	@$(BIN)/clang-format --dry-run -Werror $(C_FILES)

# pyproject.toml says which package may import which: [tool.importlinter].
lint-python: $(VENV)/.dev
	$(BIN)/mypy
	PYTHONPATH=ground $(BIN)/lint-imports --no-cache

lint-cppcheck: build
	@tools/optional.sh cppcheck "static analysis by cppcheck" -- \
	    cppcheck --project=build/compile_commands.json --quiet --error-exitcode=1 --inline-suppr -j$(JOBS) \
	    --enable=warning,performance,portability --suppress=missingIncludeSystem --library=posix -itests -i.cache

lint-tidy: build
	@tools/optional.sh clang-tidy "static analysis by clang-tidy" -- tools/tidy.sh "$(JOBS)"

format: $(VENV)/.dev
	@$(BIN)/clang-format -i $(C_FILES)
	$(BIN)/ruff check --fix ground tests tools
	$(BIN)/ruff format ground tests tools

# --- documents --------------------------------------------------------------------------------------------------------------

# A link or a name that leads nowhere is an error.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# --- C ----------------------------------------------------------------------------------------------------------------------

CMAKE = $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja
# Ninja 1.13 looks for make's job server, which make hides from other programs.
CMAKE_BUILD = env -u MAKEFLAGS $(BIN)/cmake --build

build: $(VENV)/.dev
	@$(CMAKE) -B build >/dev/null
	@$(CMAKE_BUILD) build

test-c: build
	$(BIN)/ctest --test-dir build --output-on-failure --timeout 300 -j$(JOBS)

test-sanitized: $(VENV)/.dev
	@$(CMAKE) -B build-sanitized -DSKYMEM_SANITIZE=address,undefined >/dev/null
	@$(CMAKE_BUILD) build-sanitized
	$(BIN)/ctest --test-dir build-sanitized --output-on-failure --timeout 300 -j$(JOBS)
	@$(CMAKE) -B build-threads -DSKYMEM_SANITIZE=thread >/dev/null
	@$(CMAKE_BUILD) build-threads --target native_test_ground native_test_alone
	build-threads/tests/ground/native/native_test_ground
	build-threads/tests/ground/native/native_test_alone

# The unit tests of the flight core cover each of its lines and branches; no other test counts. Assertions stand alone on their lines
# and are never false, so their branches do not count (docs/cfs-integration.md, Assertions). Tests run one at a time: of two that end at
# once one may lose its counts. A thread that still runs when its test ends may leave a count of -1, which gcovr takes for 0: then other
# tests must cover the line.
GCOVR = $(BIN)/gcovr --root . build-coverage --exclude-branches-by-pattern '\s*SKY_ASSERT\(' \
	--gcov-ignore-parse-errors negative_hits.warn_once_per_file
# Operations of the ground are covered by the twin's tests, too: what matters there is how they go together. What few branches are left
# need several rare things at once, or are guards of limits that no known case reaches.
OPERATIONS = fsw_apps/sky/ground/src/sky_ground

coverage: $(VENV)/.dev
	@$(CMAKE) -B build-coverage -DSKYMEM_COVERAGE=ON >/dev/null
	@$(CMAKE_BUILD) build-coverage --target core_tests twin_tests
	@find build-coverage -name '*.gcda' -delete
	$(BIN)/ctest --test-dir build-coverage --tests-regex '^sky/' --output-on-failure --timeout 300
	$(GCOVR) --filter 'fsw_apps/sky/(fsw|ground)/src/' --exclude '$(OPERATIONS)' --fail-under-line 100 --fail-under-branch 100
	$(BIN)/ctest --test-dir build-coverage --tests-regex '^twin/' --output-on-failure --timeout 600
	$(GCOVR) --filter '$(OPERATIONS)' --fail-under-line 99 --fail-under-branch 97

test-aarch64: $(VENV)/.dev
	@tools/optional.sh aarch64-linux-gnu-gcc "C tests for aarch64" -- \
	tools/optional.sh qemu-aarch64 "C tests for aarch64" -- \
	env -u MAKEFLAGS tools/test_aarch64.sh "$(JOBS)"

fuzz: $(VENV)/.dev
	@tools/optional.sh clang "fuzzing" -- env -u MAKEFLAGS tools/fuzz.sh "$(FUZZ_SECONDS)"

# --- Python and containers --------------------------------------------------------------------------------------------------

# There are more workers than cores, as many tests wait. A module's tests stay together, as they share a constellation or server. A
# model has one thread: threads that wait for each other on a busy core wait long. A test that fails runs once more, alone.
WORKERS = -n $(shell expr $(JOBS) + 1) --dist loadscope
# The slowest tests are printed.
SLOWEST = --durations=20

test-python: $(VENV)/.dev $(VENV)/.installed
	OMP_NUM_THREADS=1 $(BIN)/python tools/run_pytest.py -m "not docker and not engines and not gpu" $(WORKERS) $(SLOWEST)

# They give way to tests in containers, which run beside them in CI, but not so far that their satellites miss deadlines.
test-engines: $(ENGINES)/.installed
	PATH=$(CURDIR)/$(ENGINES)/bin:$$PATH nice -n 5 $(ENGINES)/bin/python tools/run_pytest.py -m engines tests/engines -n 2 --dist loadscope $(SLOWEST)

# Each seed is a run in virtual time with its own faults. A run that violates an invariant says how to replay it.
twin: $(VENV)/.installed
	$(BIN)/skymem twin --seeds $(TWIN_SEEDS)

# The same at the level of processes: real satellites, stores, agents and commands, in real time. SOAK has more of its arguments.
SECONDS ?= 600
SEED ?= 1
SOAK ?=
soak: $(VENV)/.installed $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m soak --seconds $(SECONDS) --seed $(SEED) $(SOAK)

# Tests and twin have to find planted faults: all of them, or three that the commit chooses. Three run with fewer seeds, because only
# the tests have to find each. All patches have to apply in any case.
mutants: $(VENV)/.dev
	$(BIN)/python tools/mutants.py --jobs $(JOBS)

mutants-few: $(VENV)/.dev
	$(BIN)/python tools/mutants.py --jobs $(JOBS) --pick 3 --seeds 20 --by $$(git rev-parse HEAD)

test-docker: $(VENV)/.dev $(VENV)/.installed
	$(BIN)/python tools/run_pytest.py -m docker tests/docker $(SLOWEST)

clean:
	rm -rf build build-* dist $(VENV) $(ENGINES) .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
