# kubelua's build. `make help` explains the targets; files are found by pattern, so a new file needs no change
# here.
#
#   build/            VARIANT=release          build/kubelua  build/libkubelua.a  build/lua/kubelua/core.so
#   build/asan, tsan  VARIANT=asan|tsan        the same under a sanitizer; lua-host, an interpreter with it
#   build/fuzz        VARIANT=fuzz             clang and libFuzzer
#   build/arm64       ARCH=arm64               the first three for another architecture of Debian
#
# What is missing on the machine is installed on the way (.ci/deps says what).

.DEFAULT_GOAL := all

VARIANT ?= release
PREFIX  ?= /usr/local
LUA     ?= lua5.4
WERROR  ?= -Werror
N       ?= 20000

# Debian's word for an architecture. The environment's ARCH is somebody else's.
MACHINE := $(shell dpkg --print-architecture 2>/dev/null)
ARCH := $(MACHINE)
CROSS := $(filter-out $(MACHINE),$(ARCH))

ifneq ($(CROSS),)
B := build/$(ARCH)
else ifeq ($(VARIANT),release)
B := build
else
B := build/$(VARIANT)
endif

MAKEFLAGS += --no-builtin-rules --no-builtin-variables
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
# Specs and benches start servers on ports that others had before: nothing is remembered about them.
export KUBELUA_CACHE_DIR ?= off
# V=1 shows the commands.
ifeq ($(V),)
say = @echo "  $(1)  $@";
else
say =
endif
CC := gcc
CXX := g++
AR := ar
# Sanitizers come from gcc: its runtimes are shared libraries, so lua-host can load an instrumented module.
VARIANTS := release asan tsan fuzz
ifeq ($(filter $(VARIANT),$(VARIANTS)),)
$(error VARIANT=$(VARIANT) is unknown; it is one of: $(VARIANTS))
endif
OPT_release := -O2 -D_FORTIFY_SOURCE=2
OPT_asan    := -O1 -DKL_DEBUG -fsanitize=address,undefined -fno-sanitize-recover=undefined \
               -fno-omit-frame-pointer
OPT_tsan    := -O1 -DKL_DEBUG -fsanitize=thread -fno-omit-frame-pointer
# NULL + 0 is what an empty slice is; clang calls it an overflow, C2y and gcc do not.
OPT_fuzz    := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow \
               -fno-sanitize-recover=undefined -fno-omit-frame-pointer
ifeq ($(VARIANT),fuzz)
CC := clang
CXX := clang++
endif

# pkg-config's answers, found once the packages are there; make reads this file again after writing it.
NOBUILD := help clean deps bench-docs
CONFIG := $(if $(CROSS),$(B),build)/config.mk
ifneq ($(filter-out $(NOBUILD),$(or $(MAKECMDGOALS),all)),)
include $(CONFIG)
endif
CORE_PACKAGES := libcjson yaml-0.1 libmicrohttpd gnutls libcrypto zlib sqlite3
OTHER_LIBS := -lwslay -lre2 -lstdc++ -lpthread -lm
define config
@{ echo "CORE_CFLAGS := $$(pkg-config --cflags libcurl $(CORE_PACKAGES))"; \
   echo "CURL_LIBS := $$(pkg-config --libs libcurl)"; \
   echo "CORE_LIBS := $$(pkg-config --libs $(CORE_PACKAGES)) $(OTHER_LIBS)"; \
   echo "MAIN_LIBS := $$(pkg-config --libs libedit)"; \
   echo "LUA_CFLAGS := $$(pkg-config --cflags lua5.4)"; \
   echo "LUA_LIBS := $$(pkg-config --libs lua5.4)"; } >> $@.new && mv $@.new $@
endef
build/config.mk: .ci/deps Makefile
	@.ci/deps build
	@mkdir -p build && rm -f $@.new
	$(config)
ifneq ($(CROSS),)
# The compiler is the machine's; headers and libraries are Debian's for the other architecture, in a
# directory.
$(B)/config.mk: export PKG_CONFIG_SYSROOT_DIR = $(SYSROOT)
$(B)/config.mk: export PKG_CONFIG_LIBDIR = $(SYSROOT)/usr/lib/$(TRIPLET)/pkgconfig
$(B)/config.mk: SYSROOT = $(shell deploy/sysroot.sh $(ARCH))
$(B)/config.mk: TRIPLET = $(shell dpkg-architecture -a$(ARCH) -qDEB_HOST_GNU_TYPE 2>/dev/null)
$(B)/config.mk: .ci/deps Makefile deploy/sysroot.sh
	@mkdir -p $(B)
	@.ci/deps dist
	@printf 'SYSROOT := %s\nTRIPLET := %s\n' "$(SYSROOT)" "$(TRIPLET)" > $@.new
	$(config)
CC = $(TRIPLET)-gcc --sysroot=$(SYSROOT)
CXX = $(TRIPLET)-g++ --sysroot=$(SYSROOT)
AR = $(TRIPLET)-ar
# `make deb` strips what is for debuggers. Another linker of the machine's may know no other architecture.
CFLAGS := -g0
override LDFLAGS := $(filter-out -fuse-ld=%,$(LDFLAGS))
endif
build/.deps-%: .ci/deps
	@.ci/deps $*
	@mkdir -p build && touch $@

# snprintf may cut texts on purpose. Only the release build warns: a sanitizer's instrumentation confuses the
# analysis of values in gcc.
WARN   := $(if $(filter release,$(VARIANT)),-Wall -Wextra -Wno-format-truncation \
            -Wno-missing-field-initializers $(WERROR),-w)
# One code for library and module. No interposition: the compiler may inline our own functions.
# Lines are enough for a sanitizer's report, and a sixth faster to compile.
CFLAGS ?= $(if $(filter release,$(VARIANT)),-g,-g1)
ALL_CFLAGS = -std=gnu11 -fPIC -fno-semantic-interposition -D_GNU_SOURCE $(OPT_$(VARIANT)) $(CFLAGS) $(WARN) \
             -Icore -MMD -MP
LDFLAGS_VARIANT = $(filter -fsanitize=%,$(subst fuzzer-no-link,fuzzer,$(OPT_$(VARIANT))))

CORE_C := $(sort $(wildcard core/*/*.c core/*.c))
# RE2's door; nothing else is C++.
CORE_CC := core/base/regex.cc
# The command line is in the binary alone.
MAIN_C := $(sort $(wildcard bindings/cli/*.c bindings/terminal/*.c))
BIND_C := $(sort $(filter-out $(MAIN_C),$(wildcard bindings/*/*.c)))
TEST_C := $(sort $(shell find spec/core -name '*_test.c' 2>/dev/null))
PROG_C := $(sort $(wildcard spec/programs/*.c))
FUZZ_C := $(sort $(wildcard spec/fuzz/*.c))
ORACLE_C := $(sort $(wildcard spec/oracle/*.c))
HUNT_C := $(sort $(wildcard spec/hunt/*.c))
LIB_LUA := $(sort $(shell find lua -name '*.lua' 2>/dev/null))
SIM_LUA := $(sort $(shell find controllers/simulate -name '*.lua' ! -name '*_test.lua' 2>/dev/null))
obj = $(patsubst %.c,$(B)/obj/%.o,$(1))

LIB    := $(B)/libkubelua.a
MODULE := $(B)/lua/kubelua/core.so
BIN    := $(B)/kubelua
HOST   := $(B)/lua-host
# See the file: liblua's way out of a C function, told to ThreadSanitizer.
LONGJMP := $(if $(filter tsan,$(VARIANT)),$(B)/obj/spec/support/tsan_longjmp.o)
CHILD  := build/spec/child
TESTS  := $(patsubst spec/%.c,$(B)/spec/%,$(TEST_C))
PROGS  := $(patsubst spec/programs/%.c,$(B)/spec/%,$(PROG_C))
ORACLE := $(B)/oracle
HUNTER := $(B)/spec/hunter
FUZZERS := $(patsubst spec/fuzz/%.c,$(B)/fuzzers/%,$(FUZZ_C))
ALL_C  := $(CORE_C) $(BIND_C) $(MAIN_C) $(TEST_C) $(PROG_C) $(FUZZ_C) $(ORACLE_C) $(HUNT_C)
OBJS   := $(CORE_CC:%.cc=$(B)/obj/%.o) $(call obj,$(ALL_C))

.PHONY: all site check test soak asan tsan spec specs helpers programs versions demo fixtures oracle \
  generate bench bench-docs bench-sim bench-sync lint format fuzz hunt mutants leak assets deps install man \
  module install-module deb dist clean help picture
.DELETE_ON_ERROR:
.SECONDARY: $(OBJS)

all: ## the library, the Lua module and build/kubelua (VARIANT=asan|tsan: under a sanitizer)
all: $(LIB) $(if $(BIND_C),$(MODULE)) $(if $(MAIN_C),$(BIN))

$(LIB): $(call obj,$(CORE_C)) $(CORE_CC:%.cc=$(B)/obj/%.o) $(B)/obj/gen/definitions.o
	@rm -f $@
	$(call say,AR  )$(AR) rcs $@ $^

# Our threads must not outlive their code: they join at state close, and nodelete keeps the pages for their
# last steps.
$(MODULE): $(call obj,$(BIND_C)) $(B)/obj/gen/lualib.o $(LIB) bindings/state/core.map
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -shared $(LDFLAGS_VARIANT) -o $@ $(filter %.o %.a,$^) -Wl,-z,nodelete,-z,now \
	  -Wl,--version-script=bindings/state/core.map $(CORE_LIBS) -Wl,--no-as-needed $(CURL_LIBS) $(LDFLAGS)

GENERATED := lualib pages annotations
$(BIN): $(call obj,$(MAIN_C) $(BIND_C)) $(GENERATED:%=$(B)/obj/gen/%.o) $(LONGJMP) $(LIB)
	$(call say,LINK)$(CC) $(LDFLAGS_VARIANT) -o $@ $^ $(LUA_LIBS) $(CORE_LIBS) $(MAIN_LIBS) $(LDFLAGS)

$(B)/gen/lualib.c: bindings/embed.lua $(LIB_LUA) $(SIM_LUA)
	@mkdir -p $(@D)
	$(call say,GEN )$(LUA) bindings/embed.lua lua lkl_embedded controllers/simulate lkl_simulated > $@
$(B)/gen/pages.c: bindings/pages.lua $(wildcard bindings/dashboard/*)
	@mkdir -p $(@D)
	$(call say,GEN )$(LUA) bindings/pages.lua bindings/dashboard > $@
$(B)/gen/definitions.gz: core/openapi/definitions.txt
	@mkdir -p $(@D)
	@gzip -9nc $< > $@
$(B)/gen/definitions.c: core/base/pack.lua $(B)/gen/definitions.gz core/openapi/definitions.txt
	$(call say,GEN )$(LUA) $^ kl__definitions_packed > $@
$(B)/gen/annotations.txt: bindings/annotations.lua $(LIB_LUA)
	@mkdir -p $(@D)
	@$(LUA) $< lua > $@
$(B)/gen/annotations.gz: $(B)/gen/annotations.txt
	@gzip -9nc $< > $@
$(B)/gen/annotations.c: core/base/pack.lua $(B)/gen/annotations.gz $(B)/gen/annotations.txt
	$(call say,GEN )$(LUA) $^ cli_annotations > $@
$(B)/obj/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_CFLAGS) -Ibindings $(LUA_CFLAGS) -c -o $@ $<

$(B)/obj/core/%.o: core/%.c $(CONFIG)
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_CFLAGS) $(CORE_CFLAGS) -c -o $@ $<
$(CORE_CC:%.cc=$(B)/obj/%.o): $(B)/obj/%.o: %.cc $(CONFIG)
	@mkdir -p $(@D)
	$(call say,CXX )$(CXX) -std=c++17 $(filter-out -std=gnu11 -Wno-missing-field-initializers,$(ALL_CFLAGS)) \
	  -fno-exceptions -fno-rtti -c -o $@ $<
$(B)/obj/bindings/%.o: bindings/%.c $(CONFIG)
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_CFLAGS) -Ibindings $(LUA_CFLAGS) -c -o $@ $<
$(B)/obj/spec/%.o: spec/%.c $(CONFIG)
	@mkdir -p $(@D)
	$(call say,CC  )$(CC) $(ALL_CFLAGS) -Ibindings -Ispec $(LUA_CFLAGS) -c -o $@ $<

$(TESTS): $(B)/spec/%: $(B)/obj/spec/%.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_VARIANT) -o $@ $^ -lcmocka $(CORE_LIBS) $(LDFLAGS)
$(PROGS): $(B)/spec/%: $(B)/obj/spec/programs/%.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_VARIANT) -o $@ $(filter %.o,$^) $(LIB) $(CORE_LIBS) $(LDFLAGS)
# These run scripts.
$(B)/spec/reloads $(B)/spec/walk: $(call obj,$(BIND_C)) $(B)/obj/gen/lualib.o $(LONGJMP)
$(B)/spec/reloads $(B)/spec/walk: CORE_LIBS += $(LUA_LIBS)
$(ORACLE): $(call obj,$(ORACLE_C)) $(LIB)
	$(call say,LINK)$(CC) $(LDFLAGS_VARIANT) -o $@ $^ $(CORE_LIBS) $(LDFLAGS)
$(HUNTER): $(call obj,$(HUNT_C) $(BIND_C)) $(B)/obj/gen/lualib.o $(LONGJMP) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_VARIANT) -rdynamic -o $@ $^ $(LUA_LIBS) $(CORE_LIBS) $(LDFLAGS)
$(HOST): $(B)/obj/spec/support/lua_host.o $(LONGJMP)
	$(call say,LINK)$(CC) $(LDFLAGS_VARIANT) -rdynamic -o $@ $^ $(LUA_LIBS) $(LDFLAGS)
# The keeper of spec's child processes is never the thing under test, so every variant shares one.
$(CHILD): spec/support/child.c
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g $(WARN) -o $@ $<
# Without libFuzzer a target replays its seeds, as a spec.
$(FUZZERS): $(B)/fuzzers/%: $(B)/obj/spec/fuzz/%.o \
  $(if $(filter fuzz,$(VARIANT)),,$(B)/obj/spec/support/replay.o) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_VARIANT) -o $@ $^ $(CORE_LIBS) $(LUA_LIBS) $(LDFLAGS)

ifeq ($(VARIANT),fuzz)
$(OBJS): | build/.deps-lint
endif

-include $(OBJS:.o=.d)

# ---------------------------------------------------------------- specs

# JOBS=4: so many files side by side; else as many as keep the cores busy.
RUN = $(LUA) spec/support/run.lua --build $(B) --variant $(VARIANT) $(if $(JOBS),--jobs $(JOBS))

$(TESTS) $(PROGS) $(HUNTER) $(HOST) $(CHILD) $(call obj,$(TEST_C)): | build/.deps-test
# What specs run that this variant, or `make check`, leaves out (spec/README.md: "not in tsan") is built only
# if F names them.
left_out = $(filter-out $(F:./%=%),$(shell grep -lE '^[-/* ]+not in [a-z, ]*$(1)' \
  $(TEST_C) spec/oracle_spec.lua spec/fuzz_spec.lua))
tests_without = $(filter-out $(patsubst spec/%.c,$(B)/spec/%,$(1)),$(TESTS))
LEFT_OUT = $(call left_out,$(VARIANT))
helpers: all $(PROGS) $(CHILD) build/.deps-test $(if $(filter asan tsan,$(VARIANT)),$(HOST))
programs: helpers $(HUNTER)
specs: programs $(call tests_without,$(LEFT_OUT)) \
  $(if $(filter spec/oracle_spec.lua,$(LEFT_OUT)),,$(ORACLE)) \
  $(if $(filter spec/fuzz_spec.lua,$(LEFT_OUT)),,$(FUZZERS))

assets: build/.deps-test ## kube-apiserver, kubectl and etcd in build/assets, built by Go (minutes, once)
	@[ -n "$$KUBEBUILDER_ASSETS" ] || sh spec/realserver/build.sh build/assets || \
	  echo "kubelua: no real API server here: the specs that need it are skipped" >&2

versions: assets ## the programs of other projects that specs run beside ours, built once (minutes each)
	@for what in oldest newest helm clients rust python definitions celspec koordinator; do \
	  sh spec/realserver/build.sh build/assets/$$what $$what || \
	    echo "kubelua: spec/realserver/build.sh cannot make \"$$what\" here; its specs are skipped" >&2; \
	done

CHECKED = helpers $(call tests_without,$(call left_out,check)) $(ORACLE)
check: $(if $(F),specs,$(CHECKED)) ## the fast part of the specs, below a minute: no real API server
	@$(RUN) --fast $(F)

test: specs assets ## every spec, minutes: with the real API server (F="spec/a_spec.lua ...": some; JOBS=4)
	@$(RUN) --again $(F)

# What only long forms run: not in versions, which .ci/run builds.
ORIGINALS = koorddescheduler koordmanager koordscheduler
SOAKED = $(if $(F),$(foreach what,$(ORIGINALS),$(findstring $(what),$(F))),$(ORIGINALS))
soak: specs assets ## the specs' long forms: 200 freezes, 1,000 reloads, 10,000 objects behind faults
	@for what in $(SOAKED); do \
	  sh spec/realserver/build.sh build/assets/$$what $$what || \
	    echo "kubelua: spec/realserver/build.sh cannot make \"$$what\" here; its specs are skipped" >&2; \
	done
	@$(RUN) --long $(F)

asan: ## the specs under AddressSanitizer, LeakSanitizer and UBSan, but those that say why not
	@$(MAKE) --no-print-directory VARIANT=asan test

tsan: ## the specs under ThreadSanitizer, but those that say why not
	@$(MAKE) --no-print-directory VARIANT=tsan test

spec: specs ## some specs, whole output: make spec F=spec/layers_spec.lua
	@$(RUN) --verbose $(F)

WITH_MODULE = LUA_PATH_5_4="lua/?.lua;lua/?/init.lua;?.lua;spec/?.lua;;" \
  LUA_CPATH_5_4="$(B)/lua/?.so;;" $(LUA)
fixtures: all ## Koordinator's cases through the policies' functions (DIR=your own cases)
	@$(WITH_MODULE) spec/support/fixtures.lua $(or $(DIR),spec/fixtures/koordinator)

oracle: $(ORACLE) ## the Go libraries' answers against ours (DIR=another set of tables)
	@$(ORACLE) $(or $(DIR),spec/fixtures/oracle)

generate: specs assets ## make the committed data of kinds and protobuf again, from the real API server
	@$(WITH_MODULE) spec/support/generate.lua

leak: ## valgrind: `kubelua run` frees everything after a signal
	@$(MAKE) --no-print-directory spec F=spec/leak_spec.lua

fuzz: ## libFuzzer over the parsers, FUZZ_SECONDS=60 each
	@$(MAKE) --no-print-directory VARIANT=fuzz fuzz-run
.PHONY: fuzz-run
fuzz-run: build/.deps-lint $(FUZZERS)
	@set -e; for f in $(FUZZERS); do n=$${f##*/}; mkdir -p $(B)/corpus/$$n; echo "fuzz: $$n"; \
	  seeds=spec/fuzz/seeds/$$n; [ -d $$seeds ] || seeds=; \
	  dict=spec/fuzz/$$n.dict; [ -f $$dict ] && dict=-dict=$$dict || dict=; \
	  $$f -max_total_time=$(or $(FUZZ_SECONDS),60) -print_final_stats=1 -artifact_prefix=$(B)/ $$dict \
	    $(B)/corpus/$$n $$seeds; done

hunt: specs ## hostile scripts, made by chance: N=1000000 programs from SEED=1; shows what fails, made smaller
	@nice -n 10 $(HUNTER) --seed $(or $(SEED),1) --programs $(or $(N),100000) --keep $(B)

mutants: specs ## small changes of meaning, and whether specs notice: N=200 from SEED=1, MINUTES=60 at most
	@nice -n 15 $(LUA) spec/support/mutants.lua --n $(or $(N),200) --seed $(or $(SEED),1) \
	  $(if $(MINUTES),--minutes $(MINUTES))

# Generated tables keep the shape that their generators give them.
FORMATTED = $(shell git ls-files '*.c' '*.h' | grep -v '_data\.c$$')
format: build/.deps-lint ## C as .clang-format has it
	@clang-format -i $(FORMATTED)

# gcc knows no lock contracts (KL_GUARDED_BY, KL_REQUIRES): clang holds the code to them.
CLANG = clang -fsyntax-only -std=gnu11 -D_GNU_SOURCE -Icore $(CORE_CFLAGS) -Wno-everything -Wthread-safety \
  -Werror
LINT := luacheck format rules annotations
LINT_C := $(CORE_C:%=lint/%) $(BIND_C:%=lint/%) $(MAIN_C:%=lint/%)
.PHONY: $(LINT:%=lint-%) $(LINT_C)
lint: ## luacheck, layers, lock contracts (clang), annotations (cargo), every exported function documented
lint: $(LINT:%=lint-%) $(LINT_C)
	@echo "lint: clean"
$(LINT:%=lint-%) $(LINT_C): | build/.deps-lint build/.deps-test
lint-luacheck:
	@luacheck --quiet .
lint-format:
	@clang-format --dry-run -Werror $(FORMATTED)
lint-rules:
	@$(LUA) spec/support/lint.lua
lint-annotations:
	@$(LUA) spec/support/annotations.lua
$(CORE_C:%=lint/%): lint/%:
	@$(CLANG) -Wmissing-prototypes -Wstrict-prototypes $*
$(BIND_C:%=lint/%) $(MAIN_C:%=lint/%): lint/%:
	@$(CLANG) -Ibindings $(LUA_CFLAGS) $*

# ---------------------------------------------------------------- people

site: ## the documentation as a site in build/site, with search (pip brings mkdocs-material, once)
	@$(LUA) docs/site/build.lua build/site

picture: all build/.deps-test ## draw the pictures of README and the examples again: terminals, the dashboard
	@$(LUA) docs/picture/record.lua readme docs/picture/session.cast
	@$(LUA) docs/picture/draw.lua docs/picture/session.cast docs/picture.svg
	@set -e; for name in $(notdir $(patsubst %/,%,$(wildcard examples/*/))); do \
	  $(LUA) docs/picture/record.lua $$name $(B)/session.cast; \
	  $(LUA) docs/picture/draw.lua $(B)/session.cast examples/$$name/picture.svg still; done
	@LUA_CPATH_5_4="$(B)/lua/?.so;;" $(LUA) docs/picture/dashboard.lua docs/dashboard.svg

demo: all ## a Koordinator cluster and its policies (nodes, webhook, quota, migration), in one process
	@rm -rf build/demo && cp -R controllers build/demo
	@$(BIN) dev build/demo/koordinator/noderesource.lua build/demo/koordinator/colocationprofile.lua \
	  build/demo/koordinator/elasticquota.lua build/demo/koordinator/podmigrationjob.lua \
	  build/demo/koordinator/reservations.lua build/demo/koordinator/scheduler.lua build/demo/demo/demo.lua \
	  --simulate=deployments,replicasets,pods --log-level warn \
	  --crds build/demo/koordinator/crds --load build/demo/demo --play build/demo/demo/show.lua

bench: all build/.deps-bench ## ours beside the peers (QUICK=1: minutes; SECTIONS=sync,wq; RUNS=5; PORT=18080)
	@$(MAKE) --no-print-directory -C bench all

bench-docs: ## the figures of the last `make bench` into docs/performance.md
	@$(MAKE) --no-print-directory -C bench docs

bench-sync: all build/.deps-bench ## ours and the peers on one list of N=20000 pods
	@$(MAKE) --no-print-directory -C bench sync N=$(N)

bench-sim: all ## what `kubelua sim` takes, beside its goals (QUICK=1: seconds; RUNS=3)
	@$(MAKE) --no-print-directory -C bench sim

deps: ## install what building, testing and measuring need (apt)
	@.ci/deps build
	@.ci/deps test
	@.ci/deps lint
	@.ci/deps bench

TO = $(DESTDIR)$(PREFIX)
install: all man ## to PREFIX=/usr/local: binary, manual, completion, library, headers, Lua module
	install -d $(TO)/bin $(TO)/lib/pkgconfig $(TO)/lib/lua/5.4/kubelua $(TO)/share/lua/5.4 \
	  $(TO)/include/kubelua
	install -m 755 $(BIN) $(TO)/bin/
	install -m 644 $(LIB) $(TO)/lib/
	install -m 644 $(MODULE) $(TO)/lib/lua/5.4/kubelua/
	cp -R lua/kubelua $(TO)/share/lua/5.4/
	install -d $(TO)/share/man/man1 $(TO)/share/bash-completion/completions $(TO)/share/zsh/site-functions \
	  $(TO)/share/fish/vendor_completions.d
	install -m 644 $(B)/man/*.1 $(TO)/share/man/man1/
	install -m 644 $(B)/completion/bash $(TO)/share/bash-completion/completions/kubelua
	install -m 644 $(B)/completion/zsh $(TO)/share/zsh/site-functions/_kubelua
	install -m 644 $(B)/completion/fish $(TO)/share/fish/vendor_completions.d/kubelua.fish
	cd core && find . -name '*.h' ! -name '*_impl.h' \
	  -exec install -D -m 644 {} $(abspath $(TO))/include/kubelua/{} \;
	@{ echo "prefix=$(PREFIX)"; \
	   echo "Name: kubelua"; \
	   echo "Description: Kubernetes controllers in C and Lua"; \
	   echo "Version: $$(sed -n 's|.*KL_VERSION "\(.*\)".*|\1|p' core/base/version.h)"; \
	   echo "Requires: libcurl libcjson yaml-0.1 libmicrohttpd gnutls libcrypto zlib"; \
	   echo "Cflags: -I\$${prefix}/include/kubelua"; \
	   echo "Libs: -L\$${prefix}/lib -lkubelua $(OTHER_LIBS)"; } \
	  > $(TO)/lib/pkgconfig/kubelua.pc

# Both are the binary's own words; it runs once for each command.
man: $(B)/man/kubelua.1 ## man pages and completion of shells, in build/man and build/completion
ifneq ($(CROSS),)
$(B)/man/kubelua.1: $(BIN)
	@$(MAKE) --no-print-directory ARCH=$(MACHINE) man
	@rm -rf $(B)/man $(B)/completion && cp -R build/man build/completion $(B)/
else
$(B)/man/kubelua.1: $(BIN)
	@rm -rf $(B)/man $(B)/completion && mkdir -p $(B)/man $(B)/completion
	@set -e; for shell in bash zsh fish; do $(BIN) completion $$shell > $(B)/completion/$$shell; done
	@set -e; $(BIN) __complete "" | sed -n 's/\t.*//p' | \
	  while read -r c; do $(BIN) help "$$c" -o man > $(B)/man/kubelua-$$c.1; done
	$(call say,MAN )$(BIN) help -o man > $@
endif

# For luarocks (deploy/*.rockspec): the module alone, in its directories.
module: $(MODULE)
install-module: module
	install -d $(LIBDIR)/kubelua $(LUADIR)
	install -m 755 $(MODULE) $(LIBDIR)/kubelua/
	cp -R lua/kubelua $(LUADIR)/

VERSION = $(shell sed -n 's|.*KL_VERSION "\(.*\)".*|\1|p' core/base/version.h)
VERSION_DATE = $(shell sed -n 's|.*KL_VERSION_DATE "\(.*\)".*|\1|p' core/base/version.h)
DEB = $(B)/deb
deb: ## a Debian package in build/deb
	@rm -rf $(DEB)/root
	@$(MAKE) --no-print-directory install DESTDIR=$(abspath $(DEB))/root PREFIX=/usr >/dev/null
	@rm -f $(DEB)/*.deb
	@SOURCE_DATE_EPOCH=$$(date -ud $(VERSION_DATE) +%s) deploy/debian/build.sh $(DEB)/root $(DEB) $(ARCH)

# For another architecture than the machine's it is cross compiled, into build/ARCH.
DIST_ARCHS := amd64 arm64
deb_of = $(if $(filter $(MACHINE),$(1)),build,build/$(1))/deb
dist: ## a release in build/dist: packages, tarballs, images, chart, SBOMs, checksums, for amd64 and arm64
	@set -e; for arch in $(DIST_ARCHS); do $(MAKE) --no-print-directory ARCH=$$arch deb; done
	@$(LUA) deploy/dist.lua $(VERSION) $(VERSION_DATE) $(B)/dist \
	  $(foreach a,$(DIST_ARCHS),$(a)=$(call deb_of,$(a)))

clean: ## remove build/
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile
