# SPDX-License-Identifier: BSD-3-Clause
# Units of systemd, with the places of make install in them.  rtrs-server.service and
# rtrs-server@.service have one template, and so have the gateways; hardening.inc goes into each
# service.  systemd looks below /usr and /usr/local.

systemdsystemunit_DATA =
sysusersdir = $(prefix)/lib/sysusers.d
sysusers_DATA =
tmpfilesdir = $(prefix)/lib/tmpfiles.d
tmpfiles_DATA =

SERVER_UNITS = %D%/rtrs-server.service %D%/rtrs-server@.service
RTRS_NBD_UNITS = %D%/rtrs-nbd@.service %D%/rtrs-nbd@.socket
NBDKIT_UNITS = %D%/nbdkit-rtrs@.service %D%/nbdkit-rtrs@.socket
CLEANFILES += $(SERVER_UNITS) $(RTRS_NBD_UNITS) $(NBDKIT_UNITS) %D%/rtrs-attach@.service
CLEANFILES += %D%/sysusers/rtrs-server.conf %D%/sysusers/rtrs-nbd.conf %D%/sysusers/nbdkit-rtrs.conf
CLEANFILES += %D%/tmpfiles/rtrs-server.conf
if INSTALL_UNITS
if BUILD_SERVER
systemdsystemunit_DATA += $(SERVER_UNITS) %D%/rtrs-servers.target
sysusers_DATA += %D%/sysusers/rtrs-server.conf
tmpfiles_DATA += %D%/tmpfiles/rtrs-server.conf
endif
if BUILD_GATEWAY
systemdsystemunit_DATA += $(RTRS_NBD_UNITS)
sysusers_DATA += %D%/sysusers/rtrs-nbd.conf
endif
if BUILD_ATTACH
systemdsystemunit_DATA += %D%/rtrs-attach@.service
endif
if BUILD_PLUGIN
systemdsystemunit_DATA += $(NBDKIT_UNITS)
sysusers_DATA += %D%/sysusers/nbdkit-rtrs.conf
endif
endif

# The hardening stands in the place of its line; the other values are those of the unit.
UNIT_FROM_TEMPLATE = $(AM_V_GEN)$(MKDIR_P) %D% && \
	sed -e '/^[@]hardening@$$/{' -e 'r $(srcdir)/%D%/hardening.inc' -e 'd' -e '}' $(UNIT_VALUES) \
		-e 's|[@]sbindir@|$(sbindir)|' -e 's|[@]sysconfdir@|$(sysconfdir)|' "$<" >$@.t && mv $@.t $@
# An order between two units is written in one of them.
RTRS_NBD_VALUES = -e 's|[@]before@|Before=|' -e 's|[@]name@|rtrs-nbd|' -e 's|[@]other@|nbdkit-rtrs|' -e 's|[@]manual@|man:rtrs-nbd(1)|' \
	-e 's|[@]description@|NBD gateway to RTRS/RNBD disk %i|' -e 's|[@]type@|notify|' \
	-e '/[@]options@/d' -e 's|[@]command@|$(bindir)/rtrs-nbd|'
NBDKIT_VALUES = -e '/[@]before@/d' -e 's|[@]name@|nbdkit-rtrs|' -e 's|[@]other@|rtrs-nbd|' \
	-e 's|[@]manual@|man:nbdkit-rtrs-plugin(1)|' -e 's|[@]description@|nbdkit for RTRS/RNBD disk %i|' \
	-e 's|[@]type@|exec|' -e 's|[@]options@|Environment=NBDKIT_OPTIONS=|' \
	-e 's|[@]command@|nbdkit --foreground --threads=32 $$NBDKIT_OPTIONS $(plugindir)/nbdkit-rtrs-plugin.so|'

%D%/rtrs-server.service: UNIT_VALUES = -e 's|[@]description@|RTRS/RNBD server|' \
	-e 's|[@]config@|$(sysconfdir)/rtrs-server.conf|' -e 's|[@]rundir@|rtrs-server|'
%D%/rtrs-server@.service: UNIT_VALUES = -e 's|[@]description@|RTRS/RNBD server %i|' \
	-e 's|[@]config@|$(sysconfdir)/rtrs-server/%i.conf|' -e 's|[@]rundir@|rtrs-server-%i|'
$(RTRS_NBD_UNITS): UNIT_VALUES = $(RTRS_NBD_VALUES)
$(NBDKIT_UNITS): UNIT_VALUES = $(NBDKIT_VALUES)
$(SERVER_UNITS): $(srcdir)/%D%/rtrs-server.service.in $(srcdir)/%D%/hardening.inc Makefile
	$(UNIT_FROM_TEMPLATE)
%D%/rtrs-nbd@.service %D%/nbdkit-rtrs@.service: $(srcdir)/%D%/gateway.service.in $(srcdir)/%D%/hardening.inc Makefile
	$(UNIT_FROM_TEMPLATE)
%D%/rtrs-nbd@.socket %D%/nbdkit-rtrs@.socket: $(srcdir)/%D%/gateway.socket.in Makefile
	$(UNIT_FROM_TEMPLATE)
# Its hardening is its own.
%D%/rtrs-attach@.service: $(srcdir)/%D%/rtrs-attach@.service.in Makefile
	$(UNIT_FROM_TEMPLATE)

%D%/sysusers/rtrs-server.conf: $(srcdir)/%D%/rtrs-server.sysusers
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $< $@
%D%/sysusers/rtrs-nbd.conf %D%/sysusers/nbdkit-rtrs.conf: $(srcdir)/%D%/gateway.sysusers
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $< $@
%D%/tmpfiles/rtrs-server.conf: $(srcdir)/%D%/rtrs-server.tmpfiles Makefile
	$(AM_V_GEN)$(MKDIR_P) $(@D) && sed -e 's|[@]sysconfdir@|$(sysconfdir)|' $< >$@.t && mv $@.t $@
