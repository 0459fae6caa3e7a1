/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of keys and certificates for NBD clients, --tls-psk and --tls-certificates, in a reload
 * of the client (clt-reload.h). */
#ifndef GATE_RELOAD_H
#define GATE_RELOAD_H

#include "clt-files.h"
#include "gate-options.h"

struct gate_now;

struct gate_reload {
	struct gate_options *options;	/* the caller's; ->tls gets what was read */
	const struct gate_now *now;	/* likewise; whose clients may lose their trust */
	struct clt_files files;		/* that were read and not taken */
};

/* The functions of struct clt_front_files, which names their threads; @reload is a struct
 * gate_reload.  gate_reload_take() is the one place where keys and certificates for NBD clients
 * change: from its return on handshakes have the new ones.  Clients whose key or certificate is
 * gone are ended soon, also those in a handshake (gate-trust.h). */
bool gate_reload_any(void *reload);
bool gate_reload_read(void *reload, FILE *errors);
void gate_reload_take(void *reload, FILE *report);
void gate_reload_forget(void *reload);
struct json_t *gate_reload_show(void *reload);

#endif
