# SPDX-License-Identifier: BSD-3-Clause
# make mutate: see README.  In a copy of the tree below mutate/, which is kept: a second run builds less.
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
