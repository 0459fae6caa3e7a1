# SPDX-License-Identifier: BSD-3-Clause
# make mutate: see README.  In a copy of the tree below mutate/, which is kept: a second run builds less.
MUTANT_LISTS = \
	%D%/auth.list \
	%D%/bench.list \
	%D%/client.list \
	%D%/clients.list \
	%D%/control.list \
	%D%/fabric.list \
	%D%/identity.list \
	%D%/install.list \
	%D%/keys.list \
	%D%/metrics.list \
	%D%/nbd.list \
	%D%/options.list \
	%D%/protocol.list \
	%D%/reload.list \
	%D%/server.list \
	%D%/share.list \
	%D%/storage.list \
	%D%/tls.list \
	$(NULL)
EXTRA_DIST += $(MUTANT_LISTS) %D%/README tests/mutate.py tests/test-mutants.sh
# Each mutant still applies.
TESTS += tests/test-mutants.sh

MUTANTS =
MUTATE_EVERY = 1
.PHONY: mutate
mutate:
	@rm -rf mutate/new && $(MKDIR_P) mutate
	@$(MAKE) distdir distdir=mutate/new >mutate/dist.log 2>&1 || { cat mutate/dist.log; exit 1; }
	@/usr/bin/python3 $(top_srcdir)/tests/mutate.py --list mutate/new/tests/mutants --source mutate/new \
		--programs "$(check_PROGRAMS) $(check_LTLIBRARIES)" --every $(MUTATE_EVERY) $(MUTANTS)

clean-local:
	rm -rf mutate trace
