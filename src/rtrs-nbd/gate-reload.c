/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing but what was read and not taken. */
#include <config.h>

#include "clt-ctl-json.h"
#include "fab-tls.h"
#include "gate-reload.h"
#include "gate-trust.h"

bool gate_reload_any(void *reload)
{
	return ((struct gate_reload *)reload)->options->tls;
}

bool gate_reload_read(void *reload, FILE *errors)
{
	struct gate_reload *r = reload;

	return clt_files_read(&r->files, r->options->tls, &r->options->tls_conf, "--", errors);
}

void gate_reload_take(void *reload, FILE *report)
{
	struct gate_reload *r = reload;

	clt_files_take(&r->files, r->options->tls, "nbd ", report);
	gate_trust_changed(r->now);
}

void gate_reload_forget(void *reload)
{
	clt_files_forget(&((struct gate_reload *)reload)->files);
}

json_t *gate_reload_show(void *reload)
{
	const struct gate_options *options = ((struct gate_reload *)reload)->options;

	return clt_secrets_json(options->tls, &options->tls_conf, NULL);
}
