/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns keys and certificates between clt_files_read() and clt_files_take(), and those of before
 * from then on. */
#include <config.h>

#include "clt-files.h"
#include "certs.h"
#include "fab-tls.h"

#define CERTS_WHY 2048			/* two names of files */

bool clt_files_read(struct clt_files *f, const struct fab_tls *tls, const struct fab_tls_conf *conf,
		    const char *dashes, FILE *errors)
{
	char why[CERTS_WHY];
	int rc = 0;

	if (tls && conf->psk)
		rc = fab_tls_read_keys(tls, conf->psk, &f->psks, why, sizeof(why));
	else if (tls)
		rc = fab_tls_read_certs(tls, conf->certificates, &f->certs, why, sizeof(why));
	if (rc)
		fprintf(errors, "%s%s\n", dashes, why);
	return !rc;
}

/* Tell of each key of @these that @those do not have. */
static unsigned tell_keys(const struct psks *these, const struct psks *those, char sign,
			  const char *kind, FILE *report)
{
	unsigned n = 0;

	for (unsigned i = 0; i < these->n; i++) {
		if (psk_by_serial(those, these->all[i].serial))
			continue;
		fprintf(report, "%c%skey %s\n", sign, kind, these->all[i].name);
		n++;
	}
	return n;
}

static void take_keys(struct clt_files *f, struct fab_tls *tls, const char *kind, FILE *report)
{
	const struct psks *now;
	unsigned n;

	fab_tls_take_keys(tls, &f->psks);
	now = fab_tls_keys(tls);
	n = tell_keys(&f->psks, now, '-', kind, report);
	n += tell_keys(now, &f->psks, '+', kind, report);
	if (!n)
		fprintf(report, "%stls-psk: nothing has changed\n", kind);
}

void clt_files_take(struct clt_files *f, struct fab_tls *tls, const char *kind, FILE *report)
{
	if (f->psks.n) {
		take_keys(f, tls, kind, report);
	} else if (f->certs && certs_same(f->certs, fab_tls_certs(tls))) {
		fprintf(report, "%stls-certificates: nothing has changed\n", kind);
	} else if (f->certs) {
		fab_tls_take_certs(tls, f->certs);
		f->certs = NULL;
		fprintf(report, "%stls-certificates: read again\n", kind);
	}
}

void clt_files_forget(struct clt_files *f)
{
	psk_free(&f->psks);
	certs_put(f->certs);
	*f = (struct clt_files){ 0 };
}
