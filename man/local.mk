# SPDX-License-Identifier: BSD-3-Clause
# Manuals: NAME.pod becomes NAME.SECTION.
MANUALS = \
	%D%/nbdkit-rtrs-plugin.1 \
	%D%/rtrs-attach.8 \
	%D%/rtrs-bench.1 \
	%D%/rtrs-detach.8 \
	%D%/rtrs-guide.7 \
	%D%/rtrs-nbd.1 \
	%D%/rtrs-protocol.7 \
	%D%/rtrs-psk.1 \
	%D%/rtrs-server.8 \
	%D%/rtrsctl.8 \
	$(NULL)

# The line =item of an option, with its argument, range and default, is made of the program's row; the unit tests of the
# rows refuse another one.  A page needs no program to be built.
.PHONY: man-items
man-items:
	$(MAKE) check MAN_ITEMS=write TESTS='tests/unit/test-conf.crit tests/unit/test-clt-conf.crit \
		tests/unit/test-gate-options.crit tests/unit/test-attach-options.crit \
		tests/unit/test-bench-options.crit tests/unit/test-rtrsctl-args.crit'

if HAVE_POD2MAN
man_MANS += $(MANUALS)
CLEANFILES += $(MANUALS)
endif

SUFFIXES = .pod .1 .7 .8
# pod2man says what is wrong in a page of its own: make it an error here.
POD_TO_MAN = $(MKDIR_P) $(@D) && \
	$(POD2MAN) --errors=die --utf8 --center=nbdkit-rtrs --release=$(PACKAGE_VERSION) --date="$(RELEASED)" \
		--name="$$(basename $@ .$$section)" --section=$$section $< $@.t && mv $@.t $@
.pod.1:
	$(AM_V_GEN)section=1; $(POD_TO_MAN)
.pod.7:
	$(AM_V_GEN)section=7; $(POD_TO_MAN)
.pod.8:
	$(AM_V_GEN)section=8; $(POD_TO_MAN)
