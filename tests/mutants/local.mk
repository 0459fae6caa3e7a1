# SPDX-License-Identifier: BSD-3-Clause
# make mutate, mutate-sample, mutate-new: see README.  In a copy of the tree below mutate/, which is kept: a second run
# builds less.
MUTANTS =
SUBSYSTEM =
SEED = 1
COUNT = 40
BASE =
MUTATE_FLAGS =
MUTATE = /usr/bin/python3 $(top_srcdir)/tests/mutate.py --list mutate/new/tests/mutants --source mutate/new \
	--programs "$(check_PROGRAMS) $(check_LTLIBRARIES)"
.PHONY: mutate mutate-copy mutate-sample mutate-new
mutate-copy:
	@rm -rf mutate/new && $(MKDIR_P) mutate
	@$(MAKE) distdir distdir=mutate/new >mutate/dist.log 2>&1 || { cat mutate/dist.log; exit 1; }

mutate: mutate-copy
	@$(MUTATE) $(MUTANTS)

mutate-sample: mutate-copy
	@$(MUTATE) --sample "$(SUBSYSTEM)" --seed $(SEED) --count $(COUNT) $(MUTATE_FLAGS)

mutate-new: mutate-copy
	@test -n "$(BASE)" || { echo "BASE=COMMIT is missing: the commit before the change"; exit 1; }
	@git -C $(srcdir) diff -U0 $(BASE) -- src >mutate/diff
	@$(MUTATE) --diff mutate/diff $(MUTATE_FLAGS)

clean-local:
	rm -rf mutate trace
