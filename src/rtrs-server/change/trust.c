/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns keys and certificates that were read, until the server has them.  The change calls one
 * function at a time, on the thread that the header names. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "tell.h"
#include "trust.h"

bool trust_read(struct trust *t, const struct srv *srv, FILE *errors)
{
	srv_keys_add(srv, &t->set);
	return secrets_set_read(&t->set, errors);
}

int trust_withdraw(struct trust *t, struct srv *srv)
{
	size_t len = 0;
	FILE *out = open_memstream(&t->withdrawn, &len);
	int rc;

	if (!out)
		return -ENOMEM;
	rc = srv_keys_withdraw(srv, &t->set, out);
	fclose(out);
	if (t->withdrawn)
		tell_changes(t->withdrawn);
	return rc;
}

void trust_fini(struct trust *t)
{
	secrets_set_free(&t->set);
	free(t->withdrawn);
	*t = (struct trust){ 0 };
}
