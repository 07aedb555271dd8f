# Needs Python >= 3.11 with venv, and make. Everything is installed into .venv; nothing else is touched.

PYTHON ?= python3
VENV   ?= .venv
CODE   ?= nn.RMSNorm(2048)(torch.randn(1, 32, 2048))
override export CODE := $(value CODE)
export DEPLO_CACHE_DIR ?= $(abspath $(VENV))/cache
JOBS   ?= 2
# Each process would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: run test test-all test-ops test-lazy test-array-api test-gpu test-schedules lit pytest test-xdsl kernels-diff kernels-accept check clean

# Compile CODE for this CPU, run it and compare it with PyTorch's eager mode.
run: $(STAMP)
	$(BIN)/deplo run -c "$$CODE"

# Both halves run, whatever the first one finds.
test: $(STAMP)
	@status=0; $(MAKE) lit || status=1; $(MAKE) pytest || status=1; exit $$status

lit: $(STAMP)
	$(BIN)/lit -j$(JOBS) --succinct test

pytest: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# All cases of tests of which `make test` runs a sample.
test-all: $(STAMP)
	DEPLO_RANDOM_CASES=400 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --all-cases --hypothesis-profile=whole

# What runs on a GPU, where there is one; a second time under NVIDIA's checker, where that is there.
test-gpu: $(STAMP)
	$(BIN)/python -m pytest test/gpu
	! command -v compute-sanitizer || compute-sanitizer --report-api-errors no --error-exitcode 9 $(BIN)/python -m pytest test/gpu -k "not corpus"

# Which kernels of the corpus and of the layers have another text than the committed digest says; accept takes the new ones.
kernels-diff: $(STAMP)
	$(BIN)/python -m pytest -q test/python/test_cuda_corpus.py test/schedules -k committed

kernels-accept: $(STAMP)
	DEPLO_UPDATE_CORPUS=1 $(BIN)/python -m pytest -q test/python/test_cuda_corpus.py test/schedules -k committed

# Programs under several schedules on the machine that finds races, and every kernel of the corpus and of
# layers of published models compiled for three architectures. About half an hour.
test-schedules: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal test/schedules

# All of PyTorch's operator database; docs/coverage.md is written from what this finds. About an hour.
test-ops: $(STAMP)
	@status=0; for dtype in float32 bfloat16 float16 int64 uint8 bool; do \
	  $(BIN)/python test/python/opinfo.py --dtype $$dtype --samples $$([ $$dtype = float32 ] && echo 8 || echo 2) \
	    --write test/python/opinfo.json || status=1; \
	done; $(BIN)/python -m deplo.tools.generate_coverage || status=1; exit $$status

# 5,000 random cases of the functions of lazy tensors, against numpy. A few minutes.
test-lazy: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest test/python/test_lazy_functions.py -k test_random_cases --hypothesis-profile=many

# The array API standard's own tests; SUITE is a checkout of data-apis/array-api-tests with its submodule, of which
# requirements.txt is installed. About 20 minutes.
test-array-api: $(STAMP)
	cd $(SUITE) && ARRAY_API_TESTS_MODULE=deplo.array_api ARRAY_API_TESTS_VERSION=2024.12 \
	  $(abspath $(BIN))/python -m pytest array_api_tests --max-examples=20 --disable-deadline

# xDSL's own file-check tests, with deplo-opt in place of xdsl-opt. pip downloads them. About 15 minutes.
test-xdsl: $(STAMP)
	$(BIN)/python test/xdsl_filecheck.py -j $(JOBS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "deplo needs Python >= 3.11: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,hf,cuda,proofs]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find test -name Output -type d -prune -exec rm -rf {} +
