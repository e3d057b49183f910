# SPDX-License-Identifier: Apache-2.0
#
# Stele: a library, a command, their tests. There is no configure step.
#
#	make deps		install what is missing (Debian and Ubuntu)
#	make			library, command and pkg-config file into build/
#	make demo check		see `make help` for the rest
#
# Yours to set, on the command line or in the environment:
#	CC CFLAGS CPPFLAGS LDFLAGS LDLIBS PKG_CONFIG
#	PREFIX BINDIR LIBDIR INCDIR MANDIR DESTDIR
#	O=DIR		where the build goes
#	SAN=LIST	sanitizers, as -fsanitize= takes them (give O= as well)
#	RBD=0 FUSE=0 LMDB=0 HDF5=0  without librbd, libfuse3, LMDB or HDF5, though there
#	WERROR=1 V=1	warnings are errors; commands are shown
#	TEST_SECONDS=N	after which a test that hangs is killed
#	STRICT=1	a skipped test is a failed one
# Sources are found by wildcard: a new file needs no line here.

# ---- settings ---------------------------------------------------------------

CFLAGS ?= -O2 -g
PKG_CONFIG ?= pkg-config
PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
UDEVDIR ?= $(PREFIX)/lib/udev/rules.d
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
O ?= build
PROVE ?= prove
# Several at a time, as many of them wait: for devices, clocks and each other. What fails is
# shown with the log of what was run.
PROVEFLAGS ?= --timer --failures --comments -j$(shell n=$$(nproc); echo $$((n < 3 ? n + 1 : 4)))
TEST_SECONDS ?= $(if $(filter thread,$(SAN)),1800,600)
FUZZ_SECONDS ?= 30
CLANG ?= clang

.DELETE_ON_ERROR:
.SUFFIXES:

ifeq ($(V),1)
Q :=
say :=
else
Q := @
quiet := $(findstring s,$(filter-out --%,$(firstword $(MAKEFLAGS))))
say = $(if $(quiet),,@printf '  %-7s %s\n' $(1) $(2))
endif

MAKEFLAGS += --no-builtin-rules --no-print-directory

part = $(shell sed -n 's/^\#define STELE_VERSION_$(1) //p' lib/stele.h)
MAJOR := $(call part,MAJOR)
VERSION := $(MAJOR).$(call part,MINOR).$(call part,PATCH)

LIB_PC := liburing blkid libcrypto libisal
CMD_PC := jansson
# Loaded when they are needed, and never linked: their headers count.
LOADED_PC := libarchive sqlite3
pc = $(shell $(PKG_CONFIG) $(1) 2>/dev/null)
PC_CFLAGS := $(call pc,--cflags $(LIB_PC) $(CMD_PC) $(LOADED_PC))
CMD_LIBS := $(call pc,--libs $(CMD_PC))
# So is librbd, which has no pkg-config file.
ifndef RBD
RBD := $(shell $(CC) -include rbd/librbd.h -x c -fsyntax-only /dev/null \
	2>/dev/null && echo 1)
endif
# Likewise those of the command.
ifndef FUSE
FUSE := $(if $(call pc,--modversion fuse3),1)
endif
ifndef LMDB
LMDB := $(if $(call pc,--modversion lmdb),1)
endif
ifndef HDF5
HDF5 := $(if $(call pc,--modversion hdf5),1)
endif
CMD_CFLAGS := $(if $(filter 1,$(FUSE)),-DHAVE_FUSE) $(if $(filter 1,$(LMDB)),-DHAVE_LMDB) \
	$(if $(filter 1,$(HDF5)),-DHAVE_HDF5 $(call pc,--cflags hdf5))
LIB_LIBS := $(call pc,--libs $(LIB_PC)) -ldl -pthread -lm

WARN := -Wall -Wextra -Wundef -Wmissing-prototypes -Wstrict-prototypes \
	-Wvla -Wimplicit-fallthrough -Wshadow $(if $(WERROR),-Werror)
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(INC) $(PC_CFLAGS) $(WARN) $(WARN_MORE) \
	$(if $(filter 1,$(RBD)),-DHAVE_LIBRBD) -fPIC -fvisibility=hidden \
	-pthread $(SAN_FLAGS) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) $(SAN_FLAGS) $(CFLAGS) $(LDFLAGS)

# ---- what there is ----------------------------------------------------------

obj = $(patsubst %.c,$(O)/%.o,$(1))
prog = $(patsubst %.c,$(O)/%,$(1))

LIB_OBJS := $(call obj,$(filter-out $(if $(filter 1,$(RBD)),,lib/device/rbd/%),\
	$(sort $(wildcard format/*.c lib/*/*.c lib/*/*/*.c))))
CMD_OBJS := $(call obj,$(filter-out $(if $(filter 1,$(FUSE)),,cmd/mount/fuse/%) \
	$(if $(filter 1,$(LMDB)),,cmd/liblmdb.c cmd/%/lmdb.c) \
	$(if $(filter 1,$(HDF5)),,cmd/libhdf5.c cmd/%/hdf5.c cmd/%/hdf5_child.c),\
	$(sort $(wildcard cmd/*.c cmd/*/*.c cmd/*/*/*.c))))
TAP_OBJS := $(call obj,$(sort $(wildcard tests/*.c tests/device/*.c \
	tests/fixture/*.c tests/crash/*.c)))
UNIT := $(call prog,$(sort $(wildcard tests/format/*.c tests/lib/*.c)))
# One thread that computes for long: nothing for TSan, which makes it ten times as long.
ALONE := $(addprefix %/,crash-explore crash-posix depth-knee)
UNIT := $(if $(filter thread,$(SAN)),$(filter-out $(ALONE),$(UNIT)),$(UNIT))
FUZZ := $(call prog,$(filter-out %/replay.c %/seed.c,\
	$(sort $(wildcard tests/fuzz/*.c))))
AIDS := $(call prog,$(sort $(wildcard tests/cmd/*.c tests/demo/*.c)) tests/fuzz/seed.c)
# bench/: what all its programs share, and the programs.
BENCH_SHARED := bench/content.c bench/race.c
BENCH := $(call prog,$(filter-out $(BENCH_SHARED),$(sort $(wildcard bench/*.c))))
BENCH_PYTHON := $(addprefix $(O)/bench/,generate synthetic)
HEADERS := $(sort $(wildcard lib/stele*.h))
PAGES := $(sort $(wildcard man/*.[1-8]))

STELE := $(if $(wildcard cmd/stele.c),$(O)/stele)
LIBS := $(O)/libstele.a $(O)/libstele.so.$(MAJOR) $(O)/libstele.so

all: $(LIBS) $(STELE) $(O)/stele.pc ## library, command, pkg-config file

# ---- compile and link -------------------------------------------------------

INC = -I.
$(O)/cmd/%.o: INC = -Ilib -Icmd $(CMD_CFLAGS)
$(O)/tests/demo/%.o: INC = -Ilib
$(O)/tests/cmd/%.o $(O)/bench/%.o: INC = -I. -Ilib
$(O)/format/%.o: WARN_MORE = -Wconversion
$(O)/tests/fuzz/%.o: WARN_MORE = -Wno-missing-prototypes
$(O)/tests/fuzz/%.o: INC = -I. -Ilib -Icmd

$(O)/%.o: %.c $(O)/settings
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Every object hangs on this file, which changes when the settings do, whoever asks for it.
$(O)/settings: INC = -I.
$(O)/settings: WARN_MORE =
$(O)/settings: export SETTINGS = $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(LDLIBS) \
	$(LIB_LIBS) $(CMD_LIBS) $(CMD_CFLAGS)
$(O)/settings: FORCE
	@$(PKG_CONFIG) --exists --print-errors $(LIB_PC) $(CMD_PC) $(LOADED_PC) || \
		{ echo "libraries are missing: run 'make deps'" >&2; exit 1; }
	@mkdir -p $(@D)
	@printf '%s\n' "$$SETTINGS" | cmp -s - $@ 2>/dev/null || \
		printf '%s\n' "$$SETTINGS" >$@

$(O)/libstele.a: $(LIB_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/libstele.so.$(MAJOR): $(LIB_OBJS) lib/libstele.map
	$(call say,LD,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) $(if $(SAN),,-Wl,--no-undefined) \
		-Wl,--version-script=lib/libstele.map $(LIB_OBJS) \
		$(LIB_LIBS) $(LDLIBS) -o $@

$(O)/libstele.so: $(O)/libstele.so.$(MAJOR)
	$(Q)ln -sf $(<F) $@

$(O)/stele.pc: lib/stele.pc.in FORCE
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@INCDIR@|$(INCDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		-e 's|@LIB_PC@|$(LIB_PC)|' \
		$< >$@

# ---- Python ------------------------------------------------------------------

# setup.py compiles; here is where it finds the library and what that needs.
PYTHON ?= python3
VENV := $(O)/venv
PY_SOURCES := $(sort $(wildcard python/src/*.[ch] python/stele/*.* \
	python/stele/sources/*.py)) python/setup.py \
	python/stele_command.py

$(O)/python.libs: $(O)/settings
	$(Q)printf '%s\n' "$(LIB_LIBS) $(LDLIBS)" >$@

$(VENV)/done: python/tests/requirements.txt
	$(call say,VENV,$(VENV))
	$(Q)$(PYTHON) -m venv --clear $(VENV)
	$(Q)$(VENV)/bin/pip install -q --disable-pip-version-check -r $<
	$(Q)touch $@

$(O)/python/done: $(PY_SOURCES) $(HEADERS) $(O)/libstele.a $(O)/stele $(O)/python.libs \
		$(VENV)/done
	$(call say,PY,$(@D))
	$(Q)mkdir -p $(@D)/stele/sources
	$(Q)cd python && CC="$(CC)" CFLAGS="$(CFLAGS) $(if $(WERROR),-Werror)" \
		STELE_BUILD=$(abspath $(O)) $(abspath $(VENV))/bin/python setup.py -q \
		build_ext --build-lib $(abspath $(@D)) --build-temp $(abspath $(@D))/tmp
	$(Q)cp -u python/stele/*.* $(@D)/stele/
	$(Q)cp -u python/stele/sources/*.py $(@D)/stele/sources/
	$(Q)cp -u python/stele_command.py $(@D)/
	$(Q)touch $@

python: $(O)/python/done ## the package into build/python, to use it with that as PYTHONPATH

pip = CC="$(CC)" CFLAGS="$(CFLAGS) -I$(abspath lib)" $(1) -m pip -q \
	--disable-pip-version-check $(2) --no-deps --no-build-isolation

wheel: deps ## a wheel with the library and what it needs inside, into build/wheel
	$(Q)$(MAKE) wheel-here
wheel-here: $(O)/libstele.a $(O)/stele $(O)/python.libs $(VENV)/done
	$(Q)rm -rf $(O)/wheel && mkdir -p $(O)/wheel/bare
	$(Q)STELE_BUILD=$(abspath $(O)) $(call pip,$(VENV)/bin/python,wheel) \
		-w $(O)/wheel/bare ./python
	$(Q)PATH=$(abspath $(VENV))/bin:$$PATH $(VENV)/bin/auditwheel repair \
		-w $(O)/wheel $(O)/wheel/bare/*.whl
	$(Q)rm -r $(O)/wheel/bare

install-python: all ## the package, for distributions: it links to libstele.so
	STELE_SYSTEM=1 PKG_CONFIG_PATH=$(abspath $(O)) LDFLAGS="-L$(abspath $(O)) $(LDFLAGS)" \
		$(call pip,$(PYTHON),install) --prefix $(PREFIX) \
		$(if $(DESTDIR),--root $(DESTDIR)) ./python

link = $(Q)$(LINK) $(filter %.o %.a,$^) $(LIB_LIBS) $(CMD_LIBS) \
	$(MORE_LIBS) $(LDLIBS) -o $@

$(O)/stele: $(CMD_OBJS) $(O)/libstele.a
	$(call say,LD,$@)
	$(link)

$(O)/tests/tap.a: $(TAP_OBJS)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(UNIT) $(AIDS): $(O)/%: $(O)/%.o $(O)/tests/tap.a $(O)/libstele.a
	$(call say,LD,$@)
	$(link)

$(O)/bench/lmdb $(O)/tests/cmd/lmdb-writer: MORE_LIBS := -llmdb
$(BENCH): $(O)/%: $(O)/%.o $(call obj,$(BENCH_SHARED)) $(O)/libstele.a
	$(call say,LD,$@)
	$(link)

# What the program has but for its main(): the fuzz targets of its parsers.
$(O)/cmd.a: $(filter-out %/cmd/stele.o,$(CMD_OBJS))
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# The fuzz targets again, as programs that replay their corpus and speak TAP.
$(FUZZ): $(O)/%: $(O)/%.o $(O)/tests/fuzz/replay.o $(O)/cmd.a $(O)/tests/tap.a \
		$(O)/libstele.a
	$(call say,LD,$@)
	$(link)

$(addsuffix .fuzz,$(FUZZ)): %.fuzz: %.o $(O)/cmd.a $(O)/tests/tap.a $(O)/libstele.a
	$(call say,LD,$@)
	$(Q)$(LINK) -fsanitize=fuzzer $^ $(LIB_LIBS) $(CMD_LIBS) $(LDLIBS) -o $@

-include $(shell find $(O) -name '*.d' -type f 2>/dev/null)

# ---- tests ------------------------------------------------------------------

# TSan needs a fixed address layout, and takes ten times as long.
FIXED := $(if $(filter thread,$(SAN)),\
	env TSAN_OPTIONS=suppressions=$(abspath tests/tsan.supp) MODEL_STEPS=4000 setarch -R)
prove = $(Q)BUILD=$(abspath $(O)) CC='$(CC)' tests/ceph/run.sh $(FIXED) \
	$(PROVE) $(PROVEFLAGS) --exec 'timeout -k 10 $(TEST_SECONDS)' $(1)
CMD_TESTS := $(sort $(wildcard tests/cmd/*.t))
TREE_TESTS := $(sort $(wildcard tests/tree/*.t))
PY_TESTS := $(sort $(wildcard python/tests/*.t))

check: deps ## install, build, run every test
	$(Q)$(MAKE) check-here
check-asan: deps ## all but tests/tree under ASan, LSan and UBSan
	$(Q)$(MAKE) O=build-asan SAN=address,undefined check-here
check-tsan: deps ## unit tests under TSan
	$(Q)$(MAKE) O=build-tsan SAN=thread check-unit
check-unit: $(UNIT) ## tests/format and tests/lib alone: quick
	$(if $(UNIT),$(call prove,$(UNIT)))
# bench-python.t runs what measures, too.
check-here: all $(UNIT) $(FUZZ) $(AIDS) $(BENCH_PYTHON) $(if $(SAN),,python)
	$(call prove,$(UNIT) $(FUZZ) $(CMD_TESTS) $(if $(SAN),,$(TREE_TESTS) $(PY_TESTS)))
check-python: deps ## the tests of the Python package alone
	$(Q)$(MAKE) check-python-here
check-python-here: all $(AIDS) python
	$(call prove,$(PY_TESTS))

# In an environment of its own: 3 GB, most of it PyTorch and TensorFlow.
$(VENV)-full/done: python/tests/full/requirements.txt
	$(call say,VENV,$(@D))
	$(Q)$(PYTHON) -m venv --clear $(@D)
	$(Q)$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	$(Q)$(@D)/bin/pip install -q --disable-pip-version-check --no-deps \
		-r $(<D)/alone.txt
	$(Q)touch $@

$(VENV)-mxnet/done: python/tests/full/mxnet.txt
	$(call say,VENV,$(@D))
	$(Q)$(PYTHON) -m venv --clear $(@D)
	$(Q)$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	$(Q)touch $@

check-python-full: deps ## it with PyTorch and all that it has adapters for, which pip installs
	$(Q)$(MAKE) check-python-full-here
# One test of all.
check-python-full-here: TEST_SECONDS = 3600
check-python-full-here: all python $(VENV)-full/done $(VENV)-mxnet/done
	$(call prove,python/tests/full/full.t)

check-vm: DEPS += dmsetup
check-vm: deps ## real devices, two machines, krbd: in QEMU guests, by emulation
	$(Q)$(MAKE) check-vm-here
check-vm-here: all $(UNIT) $(AIDS)
	$(Q)BUILD=$(abspath $(O)) $(PROVE) $(filter-out -j%,$(PROVEFLAGS)) \
		--exec 'timeout -k 10 $(TEST_SECONDS)' $(sort $(wildcard tests/vm/*.t))

bench: deps ## stele and its peers against each other: minutes (bench/README.md)
	$(Q)$(MAKE) bench-here
bench-here: all $(BENCH)
	$(Q)BUILD=$(abspath $(O)) python3 bench/bench.py run

# In environments of their own: 6 GB. MindSpore wants other versions than the others.
$(VENV)-bench/done: bench/python/requirements.txt bench/python/alone.txt
	$(call say,VENV,$(@D))
	$(Q)$(PYTHON) -m venv --clear $(@D)
	$(Q)$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	$(Q)$(@D)/bin/pip install -q --disable-pip-version-check --no-deps \
		-r $(<D)/alone.txt
	$(Q)touch $@
$(VENV)-bench-mindspore/done: bench/python/mindspore.txt
	$(call say,VENV,$(@D))
	$(Q)$(PYTHON) -m venv --clear $(@D)
	$(Q)$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	$(Q)touch $@

bench-python: deps ## loaders that people train with, against each other: hours, 6 GB of packages
	$(Q)$(MAKE) bench-python-here
bench-python-here: all python $(BENCH_PYTHON) $(VENV)-bench/done \
		$(VENV)-bench-mindspore/done
	$(Q)BUILD=$(abspath $(O)) $(PYTHON) bench/bench.py python
	$(Q)cp $${BENCH_OUT:-$(O)/bench}/python.md bench/PYTHON.md

bench-knee: deps ## the automatic depth against fixed ones, on a disk, a loop device, and Ceph
	$(Q)$(MAKE) bench-knee-here
bench-knee-here: all $(BENCH)
	$(Q)BUILD=$(abspath $(O)) python3 bench/bench.py knee

bench-clean: ## removes what it measured on, keeps the results
	$(Q)BUILD=$(abspath $(O)) python3 bench/bench.py clean

demo: deps ## build, and show it on a real directory (DEMO_SRC=DIR)
	$(Q)$(MAKE) demo-here
demo-here: all $(AIDS)
	$(Q)BUILD=$(abspath $(O)) DEMO_SRC='$(DEMO_SRC)' tests/demo/demo.sh

fuzz: DEPS += clang libclang-rt-14-dev
fuzz: deps ## each fuzz target for FUZZ_SECONDS
	$(Q)$(MAKE) O=build-fuzz CC=$(CLANG) fuzz-here \
		SAN=fuzzer-no-link,address,undefined
fuzz-here: $(addsuffix .fuzz,$(FUZZ))
	$(Q)for f in $(notdir $(FUZZ)); do echo "fuzz $$f"; \
		mkdir -p $(O)/corpus/$$f; \
		$(O)/tests/fuzz/$$f.fuzz -max_total_time=$(FUZZ_SECONDS) \
			-print_final_stats=1 -artifact_prefix=$(O)/crash-$$f- \
			$(O)/corpus/$$f $(wildcard tests/fuzz/corpus/$$f) \
			2>$(O)/$$f.log || { tail -40 $(O)/$$f.log; exit 1; }; \
		grep -E 'stat::(number|new)' $(O)/$$f.log; \
	done

corpus: $(O)/tests/fuzz/seed ## writes tests/fuzz/corpus anew
	$(Q)rm -rf tests/fuzz/corpus && $<

no_tidy := easily-swappable-parameters suspicious-string-compare \
	narrowing-conversions implicit-widening-of-multiplication-result \
	not-null-terminated-result
C_FILES := $(wildcard format/*.c lib/*/*.c lib/*/*/*.c cmd/*.c cmd/*/*.c cmd/*/*/*.c)
lint: ## shellcheck, mandoc, and cppcheck, clang-tidy, clang-format if there
	$(Q)shellcheck $$(git ls-files '*.sh' '*.t' .ci/run)
	$(Q)mandoc -Tlint -W warning $(PAGES)
	$(Q)! command -v cppcheck >/dev/null || cppcheck -q --std=c11 \
		--enable=warning,portability --inline-suppr --error-exitcode=1 \
		--suppress=missingInclude -I. -Ilib $(C_FILES)
	$(Q)! command -v clang-tidy >/dev/null || clang-tidy --quiet \
		--warnings-as-errors='*' $(C_FILES) \
		--checks='-*,bugprone-*$(no_tidy:%=,-bugprone-%)' -- \
		-std=gnu11 -D_GNU_SOURCE -I. -Ilib -Icmd $(PC_CFLAGS) 2>/dev/null
	$(Q)! command -v clang-format >/dev/null || echo "clang-format would" \
		"change $$(clang-format -n $$(git ls-files '*.[ch]') 2>&1 | \
		grep -c warning:) places (advice)"

# ---- install ----------------------------------------------------------------

man_dir = $(DESTDIR)$(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))
SO_DIR = $(DESTDIR)$(LIBDIR)

install: all ## PREFIX, DESTDIR and the like are honoured
	install -d $(SO_DIR)/pkgconfig $(DESTDIR)$(INCDIR) $(DESTDIR)$(BINDIR)
	$(if $(STELE),install -m 755 $(STELE) $(DESTDIR)$(BINDIR)/)
	install -m 644 $(HEADERS) $(DESTDIR)$(INCDIR)/
	install -m 644 $(O)/libstele.a $(SO_DIR)/
	install -m 755 $(O)/libstele.so.$(MAJOR) $(SO_DIR)/libstele.so.$(VERSION)
	ln -sf libstele.so.$(VERSION) $(SO_DIR)/libstele.so.$(MAJOR)
	ln -sf libstele.so.$(MAJOR) $(SO_DIR)/libstele.so
	install -m 644 $(O)/stele.pc $(SO_DIR)/pkgconfig/
	install -d $(DESTDIR)$(UDEVDIR)
	sed 's|@BINDIR@|$(BINDIR)|' share/udev/60-stele.rules | \
		install -m 644 /dev/stdin $(DESTDIR)$(UDEVDIR)/60-stele.rules
	install -D -m 644 share/completion/stele.bash $(DESTDIR)$(BASHDIR)/stele
	install -D -m 644 -t $(DESTDIR)$(ZSHDIR) share/completion/_stele
	$(foreach p,$(PAGES),install -D -m 644 -t $(call man_dir,$(p)) $(p) &&) :

# Where pip puts the package; empty without Python.
PY_DIR = $(shell $(PYTHON) -c 'import sysconfig as s; \
	print(s.get_path("platlib", s.get_preferred_scheme("prefix"), \
	dict.fromkeys(("base", "platbase"), "$(PREFIX)")))' 2>/dev/null)

uninstall: ## removes what install and install-python made
	rm -f $(DESTDIR)$(BINDIR)/stele $(HEADERS:lib/%=$(DESTDIR)$(INCDIR)/%) \
		$(SO_DIR)/libstele.a $(SO_DIR)/libstele.so* \
		$(SO_DIR)/pkgconfig/stele.pc $(DESTDIR)$(UDEVDIR)/60-stele.rules \
		$(DESTDIR)$(BASHDIR)/stele $(DESTDIR)$(ZSHDIR)/_stele \
		$(foreach p,$(PAGES),$(call man_dir,$(p))/$(notdir $(p)))
	$(if $(PY_DIR),rm -rf $(DESTDIR)$(PY_DIR)/stele \
		$(DESTDIR)$(PY_DIR)/stele_command.py \
		$(DESTDIR)$(PY_DIR)/__pycache__/stele_command.*.pyc \
		$(DESTDIR)$(PY_DIR)/stele-$(VERSION).dist-info)

clean: ## removes build directories
	rm -rf $(O) build build-asan build-tsan build-fuzz python/build python/*.egg-info

# ---- what Debian and Ubuntu call what we need -------------------------------

DEPS := gcc g++ libc6-dev make pkg-config liburing-dev libblkid-dev libssl-dev \
	libisal-dev libjansson-dev libarchive-dev libsqlite3-dev libseccomp-dev \
	mandoc shellcheck perl git jq python3 libarchive-tools \
	util-linux mount strace iproute2 fdisk gdisk mdadm lvm2 cryptsetup-bin e2fsprogs xfsprogs \
	fio btrfs-progs dosfstools squashfs-tools erofs-utils f2fs-tools ntfs-3g \
	exfatprogs procps zsh ceph-mon ceph-osd ceph-common librbd-dev librados-dev \
	fuse3 libfuse3-dev attr liblmdb-dev libhdf5-dev chromium file rpm systemd udev \
	python3-dev python3-venv python3-pip

deps: ## install what is missing (as root, or through sudo)
	@missing=; for p in $(DEPS); do \
		dpkg-query -W -f '$${db:Status-Status}\n' $$p 2>/dev/null | \
			grep -qx installed || missing="$$missing $$p"; done; \
	[ -n "$$missing" ] || exit 0; \
	command -v apt-get >/dev/null || { \
		echo "no apt-get here; Debian calls it$$missing"; exit 0; }; \
	root=; [ "$$(id -u)" = 0 ] || root=sudo; \
	echo "installing$$missing"; \
	$$root .ci/install.sh $$missing

deb: DEPS += build-essential debhelper dh-python pybuild-plugin-pyproject \
	python3-setuptools lintian fakeroot
deb: deps ## Debian packages, into build/deb
	$(Q)packaging/deb.sh $(O)/deb
check-deb: DEPS += mmdebstrap
check-deb: deb ## installs, runs and removes them in a fresh Debian
	$(Q)BUILD=$(abspath $(O)) $(PROVE) $(PROVEFLAGS) packaging/check-deb.t

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(firstword $(MAKEFILE_LIST)) | \
		expand -t 16

FORCE:
.PHONY: all python check check-asan check-tsan check-unit check-here \
	check-python check-python-here check-python-full check-python-full-here \
	wheel wheel-here install-python check-vm \
	check-vm-here bench bench-here bench-python bench-python-here bench-knee \
	bench-knee-here bench-clean \
	demo demo-here corpus fuzz fuzz-here lint install uninstall clean deb check-deb deps \
	help FORCE
