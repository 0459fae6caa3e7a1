# SPDX-License-Identifier: BSD-3-Clause
# What is installed beside the programs: their completion in bash, and scripts for their probes, which name them by the
# path where make install puts them.  (configure would put a value for a whole @variable@ here, too.)
BT_FROM_TEMPLATE = $(AM_V_GEN)$(MKDIR_P) %D% && \
	sed -e 's|[@]sbindir@|$(sbindir)|' -e 's|[@]plugindir@|$(plugindir)|' "$<" >$@.t && \
	chmod +x $@.t && mv $@.t $@
pkgdata_SCRIPTS =
if BUILD_SERVER
pkgdata_SCRIPTS += %D%/rtrs-server-stages.bt
endif
if BUILD_PLUGIN
pkgdata_SCRIPTS += %D%/rtrs-plugin-requests.bt
endif
%D%/rtrs-server-stages.bt: $(srcdir)/%D%/rtrs-server-stages.bt.in Makefile
	$(BT_FROM_TEMPLATE)
%D%/rtrs-plugin-requests.bt: $(srcdir)/%D%/rtrs-plugin-requests.bt.in Makefile
	$(BT_FROM_TEMPLATE)
CLEANFILES += %D%/rtrs-server-stages.bt %D%/rtrs-plugin-requests.bt
EXTRA_DIST += %D%/rtrs-server-stages.bt.in %D%/rtrs-plugin-requests.bt.in

# bash-completion looks for a file by the name of the command.
bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = %D%/completion/rtrsctl
COMPLETED_LIKE_RTRSCTL = rtrs-server rtrs-bench rtrs-nbd
