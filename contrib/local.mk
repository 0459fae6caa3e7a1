# SPDX-License-Identifier: BSD-3-Clause
# What is installed beside the programs: their completion in bash, rules and a dashboard for their metrics, and scripts
# for their probes, which name the programs by the path where make install puts them.  (configure would put a value for
# a whole @variable@ here, too.)
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
if BUILD_GATEWAY
pkgdata_SCRIPTS += %D%/rtrs-nbd-requests.bt
endif
%D%/rtrs-server-stages.bt: $(srcdir)/%D%/rtrs-server-stages.bt.in Makefile
	$(BT_FROM_TEMPLATE)
%D%/rtrs-plugin-requests.bt: $(srcdir)/%D%/rtrs-plugin-requests.bt.in Makefile
	$(BT_FROM_TEMPLATE)
# The client's probes are the same in both front ends.
%D%/rtrs-nbd-requests.bt: $(srcdir)/%D%/rtrs-plugin-requests.bt.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	sed -e 's|[@]plugindir@/nbdkit-rtrs-plugin.so|$(bindir)/rtrs-nbd|' \
		-e 's|nbdkit-rtrs-plugin|rtrs-nbd|' -e 's|pidof nbdkit|pidof rtrs-nbd|' \
		-e 's|rtrs-plugin-requests|rtrs-nbd-requests|' \
		-e 's|its thread may have it|its NBD client may have it|' "$<" >$@.t && \
	chmod +x $@.t && mv $@.t $@
CLEANFILES += %D%/rtrs-server-stages.bt %D%/rtrs-plugin-requests.bt %D%/rtrs-nbd-requests.bt

# udev looks below /usr and /usr/local.
udevrulesdir = $(prefix)/lib/udev/rules.d
udevrules_DATA =
if BUILD_ATTACH
udevrules_DATA += %D%/udev/60-rtrs-attach.rules
endif
%D%/udev/60-rtrs-attach.rules: $(srcdir)/%D%/udev/60-rtrs-attach.rules.in Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|[@]sbindir@|$(sbindir)|' $< >$@.t && mv $@.t $@
CLEANFILES += %D%/udev/60-rtrs-attach.rules

# Disks that a machine boots from.  mkinitramfs of Debian looks below /usr/share and /etc: with another prefix the hook
# lies there to be copied, for make install stays below its prefix.
initramfs_hooksdir = $(datadir)/initramfs-tools/hooks
initramfs_local_topdir = $(datadir)/initramfs-tools/scripts/local-top
initramfs_hooks_SCRIPTS =
initramfs_local_top_SCRIPTS =
if BUILD_ATTACH
initramfs_hooks_SCRIPTS += %D%/initramfs/hooks/rtrs-attach
initramfs_local_top_SCRIPTS += %D%/initramfs/local-top/rtrs-attach
endif
INITRAMFS_FROM_TEMPLATE = $(AM_V_GEN)$(MKDIR_P) $(@D) && \
	sed -e 's|[@]sbindir@|$(sbindir)|' -e 's|[@]sysconfdir@|$(sysconfdir)|' \
		-e 's|[@]udevrulesdir@|$(udevrulesdir)|' $< >$@.t && chmod +x $@.t && mv $@.t $@
%D%/initramfs/hooks/rtrs-attach: $(srcdir)/%D%/initramfs/hook.in Makefile
	$(INITRAMFS_FROM_TEMPLATE)
%D%/initramfs/local-top/rtrs-attach: $(srcdir)/%D%/initramfs/local-top.in Makefile
	$(INITRAMFS_FROM_TEMPLATE)
CLEANFILES += %D%/initramfs/hooks/rtrs-attach %D%/initramfs/local-top/rtrs-attach

# For Prometheus and Grafana.
dist_pkgdata_DATA = %D%/alerts.yml %D%/alerts-test.yml %D%/grafana.json

# bash-completion looks for a file by the name of the command.
bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = %D%/completion/rtrsctl
COMPLETED_LIKE_RTRSCTL = rtrs-server rtrs-bench rtrs-nbd rtrs-psk rtrs-attach rtrs-detach

# For administrators, to copy.
exampledir = $(docdir)/examples
dist_example_DATA = \
	%D%/examples/README \
	%D%/examples/ansible.yml \
	%D%/examples/attach.conf \
	%D%/examples/cloud-init.yml \
	%D%/examples/gateway-shared.conf \
	%D%/examples/gateway-tls.conf \
	%D%/examples/gateway.conf \
	%D%/examples/libvirt-commandline.xml \
	%D%/examples/libvirt.apparmor \
	%D%/examples/libvirt.xml \
	%D%/examples/prometheus.yml \
	%D%/examples/proxmox.sh \
	%D%/examples/server-shared.conf \
	%D%/examples/server-tls.conf \
	%D%/examples/server.conf \
	$(NULL)
