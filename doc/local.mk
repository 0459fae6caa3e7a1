# SPDX-License-Identifier: BSD-3-Clause
# make doc draws the tables of states: DOT files, which are in the tree, and SVG where Graphviz is.
if BUILD_SERVER
check_PROGRAMS += %D%/fsm-dot %D%/fsm-dot-server
# They show the tables as they are.
TESTS += tests/check-pictures.sh
%C%_fsm_dot_SOURCES = %D%/fsm-dot.c %D%/fsm-dot.h
%C%_fsm_dot_CPPFLAGS = $(CLT_CPPFLAGS) $(UBLK_CPPFLAGS)
%C%_fsm_dot_LDADD = \
	libublk.la libublkring.la libcltkit.la libctl.la libopt.la libclt.la libcltthread.la libloop.la libfab.la librtrs.la librnbd.la libbase.la libclock.la $(JANSSON_LIBS)
%C%_fsm_dot_server_SOURCES = %D%/fsm-dot-server.c %D%/fsm-dot.h
%C%_fsm_dot_server_CPPFLAGS = $(SRV_CPPFLAGS)
%C%_fsm_dot_server_LDADD = librtrssrv.la librtrsring.la librnbd.la libbase.la libclock.la
endif

.PHONY: doc
doc: %D%/fsm-dot$(EXEEXT) %D%/fsm-dot-server$(EXEEXT)
	@draw() { \
		"$$1" "$$2" >$(srcdir)/%D%/fsm-$$3.dot || exit 1; \
		if dot -V 2>/dev/null; then dot -Tsvg -o %D%/fsm-$$3.svg $(srcdir)/%D%/fsm-$$3.dot; fi; \
	}; \
	for t in session path connection service device handshake queue; do draw ./%D%/fsm-dot $$t $$t; done; \
	for t in path connection handshake lead; do draw ./%D%/fsm-dot-server $$t server-$$t; done

# make demo records two paths anew while one is cut and while the server is killed, and draws that: doc/demo.svg.  Then
# the same for "rtrsctl top" while a cable is pulled: doc/top.svg.
.PHONY: demo
demo: all
	$(srcdir)/%D%/demo-record.sh $(srcdir)/%D%/demo.csv
	$(srcdir)/%D%/demo-svg.py $(srcdir)/%D%/demo.csv >$(srcdir)/%D%/demo.svg
	$(srcdir)/%D%/top-record.sh $(srcdir)/%D%/top.rec
	$(srcdir)/%D%/top-svg.py $(srcdir)/%D%/top.rec >$(srcdir)/%D%/top.svg

# make page-picture draws the status page in headless Chromium, with the script that tests the page.
.PHONY: page-picture
page-picture: all
	PAGE_PICTURE=$(abs_srcdir)/%D%/status-page.png $(srcdir)/tests/test-metrics-page.sh
