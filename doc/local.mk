# SPDX-License-Identifier: BSD-3-Clause
# make doc draws the tables of states: DOT files, which are in the tree, and SVG where Graphviz is.
EXTRA_DIST += %D%/fsm-session.dot %D%/fsm-path.dot %D%/fsm-connection.dot
EXTRA_PROGRAMS = %D%/fsm-dot
CLEANFILES += %D%/fsm-dot
%C%_fsm_dot_SOURCES = %D%/fsm-dot.c
%C%_fsm_dot_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/src/nbdkit-rtrs-plugin
%C%_fsm_dot_LDADD = \
	libclt.la libcltthread.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la

.PHONY: doc
doc: %D%/fsm-dot$(EXEEXT)
	@for t in session path connection; do \
		./%D%/fsm-dot $$t >$(srcdir)/%D%/fsm-$$t.dot || exit 1; \
		if dot -V 2>/dev/null; then dot -Tsvg -o %D%/fsm-$$t.svg $(srcdir)/%D%/fsm-$$t.dot; fi; \
	done
