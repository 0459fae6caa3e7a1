# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += %D%/run.py

# Options for the script: make bench BENCH='--rounds=1 --rows=4k-*'.  Not part of make check: numbers
# of a busy machine are no pass or fail.
BENCH =
.PHONY: bench
bench: all
	top_builddir=$(top_builddir) /usr/bin/python3 $(srcdir)/%D%/run.py $(BENCH)
