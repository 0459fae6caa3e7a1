/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what was read, until it is taken, and what held before from then on; of a change also the
 * lines of what was taken away. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cleanup.h"
#include "number.h"
#include "secrets-set.h"
#include "util.h"

#define WHY_MAX 2048			/* two names of files */

void secrets_set_add(struct secrets_set *set, struct secrets *s, const char *file)
{
	if (!s)
		return;
	assert(set->n < SECRETS_SET_MAX);
	set->all[set->n++] = (struct secrets_next){ .of = s, .file = file };
}

/* ---- read ---- */

bool secrets_set_read(struct secrets_set *set, FILE *errors)
{
	char why[WHY_MAX];
	bool good = true;

	for (unsigned i = 0; i < set->n; i++) {
		if (!secrets_read(&set->all[i], why, sizeof(why)))
			continue;
		/* The options of a server are those of a command line. */
		fprintf(errors, "%s%s\n", set->all[i].of->server ? "--" : "", why);
		good = false;
	}
	return good;
}

/* Copy to @both[i] the keys of set->all[i], or if it @holds of its owner, that files->all[i] has,
 * too.  0, or -ENOMEM and no keys. */
static int common_keys(const struct secrets_set *files, const struct secrets_set *set, bool holds,
		       struct psks both[])
{
	for (unsigned i = 0; i < files->n; i++) {
		const struct secrets_next *next = &set->all[i];

		if (!psk_common(holds ? &next->of->psks : &next->psks, &files->all[i].psks,
				&both[i]))
			continue;
		while (i)
			psk_free(&both[--i]);
		return -ENOMEM;
	}
	return 0;
}

/* Take from @set, which was read before @later, the keys that @later does not have.  The own key of
 * a client is replaced, and never taken away, here and in secrets_set_withdraw(): a client without
 * a key could not come back.  0, or -ENOMEM: nothing has changed. */
static int set_narrow(struct secrets_set *set, const struct secrets_set *later)
{
	struct psks both[SECRETS_SET_MAX];
	int rc;

	assert(set->n == later->n);
	rc = common_keys(later, set, false, both);
	for (unsigned i = 0; !rc && i < set->n; i++) {
		if (!set->all[i].of->server) {
			psk_free(&both[i]);
			continue;
		}
		psk_free(&set->all[i].psks);
		set->all[i].psks = both[i];
	}
	return rc;
}

/* ---- what holds ---- */

/* Let @s have @psks, which gets those of before. */
static void swap_keys(struct secrets *s, struct psks *psks)
{
	struct psks before;

	/* This thread alone replaces keys, and so reads the old ones without the lock: a handshake
	 * need not wait while two long files are compared. */
	psk_adopt(psks, &s->psks);
	LOCK_SCOPE(&s->lock);
	before = s->psks;
	s->psks = *psks;
	*psks = before;
}

/* Let the owner have the certificates of @next, if they are others.  False: they are not. */
static bool take_certs(struct secrets_next *next)
{
	struct secrets *s = next->of;
	struct certs *before;

	if (certs_same(next->certs, s->certs))
		return false;
	pthread_mutex_lock(&s->lock);
	before = s->certs;
	s->certs = next->certs;
	pthread_mutex_unlock(&s->lock);
	certs_put(before);
	next->certs = NULL;
	return true;
}

/* ---- what is told ---- */

static const char *whose(const struct secrets *s)
{
	return s->nbd ? "nbd " : "";
}

/* Begin the line of a key that is new, @sign '+', or gone. */
static void tell_key(const struct secrets *s, char sign, const struct psk *psk, FILE *report)
{
	fprintf(report, "%c%s%skey %s", sign, whose(s),
		s->kind == SECRETS_AUTH_KEYS ? "auth " : "", psk->name);
}

/* Tell of each key of @these that @those do not have.  Returns their number. */
static unsigned tell_keys(const struct secrets *s, char sign, const struct psks *these,
			  const struct psks *those, FILE *report)
{
	unsigned n = 0;

	for (unsigned i = 0; i < these->n; i++) {
		if (psk_by_serial(those, these->all[i].serial))
			continue;
		tell_key(s, sign, &these->all[i], report);
		fprintf(report, "\n");
		n++;
	}
	return n;
}

static void tell_certs(const struct secrets *s, bool others, FILE *report)
{
	fprintf(report, "%stls-certificates: %s", whose(s),
		others ? "read again" : "nothing has changed");
}

/* End a line about what has ended @n paths. */
static void tell_ended(unsigned n, FILE *report)
{
	if (n)
		fprintf(report, " (%u path%s ended)", n, n == 1 ? "" : "s");
	fprintf(report, "\n");
}

/* ---- the differences ---- */

/* Take out of next->of all keys but @stay. */
static void withdraw_keys(struct secrets_next *next, struct psks *stay, secrets_end_fn *end,
			  void *arg, FILE *report)
{
	struct secrets *s = next->of;
	struct psks *before = stay;

	swap_keys(s, stay);
	for (unsigned i = 0; i < before->n; i++) {
		if (psk_by_serial(&s->psks, before->all[i].serial))
			continue;
		next->told = true;
		tell_key(s, '-', &before->all[i], report);
		tell_ended(end(arg, before->all[i].serial), report);
	}
}

static void withdraw_certs(struct secrets_next *next, secrets_end_fn *end, void *arg, FILE *report)
{
	const bool others = take_certs(next);
	/* The same files, too, refuse a certificate that has ended. */
	unsigned n = end(arg, 0);

	if (!others && !n)
		return;
	next->told = true;
	tell_certs(next->of, others, report);
	tell_ended(n, report);
}

int secrets_set_withdraw(struct secrets_set *set, secrets_end_fn *end, void *arg, FILE *report)
{
	struct psks both[SECRETS_SET_MAX];
	int rc = common_keys(set, set, true, both);

	for (unsigned i = 0; !rc && i < set->n; i++) {
		if (set->all[i].of->server && set->all[i].certs)
			withdraw_certs(&set->all[i], end, arg, report);
		else if (set->all[i].of->server)
			withdraw_keys(&set->all[i], &both[i], end, arg, report);
		psk_free(&both[i]);
	}
	return rc;
}

void secrets_set_give(struct secrets_set *set, FILE *report)
{
	for (unsigned i = 0; i < set->n; i++) {
		struct secrets_next *next = &set->all[i];

		if (next->of->kind == SECRETS_CERTS)
			continue;
		swap_keys(next->of, &next->psks);
		tell_keys(next->of, '+', &next->of->psks, &next->psks, report);
	}
}

static void replace_keys(struct secrets_next *next, FILE *report)
{
	const struct secrets *s = next->of;
	unsigned n;

	swap_keys(next->of, &next->psks);
	n = tell_keys(s, '-', &next->psks, &s->psks, report);
	n += tell_keys(s, '+', &s->psks, &next->psks, report);
	if (!n && !next->told)
		fprintf(report, "%s%s: nothing has changed\n", whose(s),
			s->kind == SECRETS_AUTH_KEYS ? "auth-psk" : "tls-psk");
}

void secrets_set_replace(struct secrets_set *set, FILE *report)
{
	for (unsigned i = 0; i < set->n; i++) {
		struct secrets_next *next = &set->all[i];

		if (next->of->kind != SECRETS_CERTS) {
			replace_keys(next, report);
		} else if (!next->told) {
			tell_certs(next->of, take_certs(next), report);
			fprintf(report, "\n");
		}
	}
}

void secrets_set_free(struct secrets_set *set)
{
	while (set->n)
		secrets_next_free(&set->all[--set->n]);
}

/* ---- as part of a change ---- */

/* Take from all other changes that read the same files the keys that @change does not have: what
 * they have read is older.  0, or -ENOMEM. */
static int narrow_others(struct secrets_change *change)
{
	struct changes_call *call;
	int rc = 0;

	list_for_each(call, &change->queued.queue->all, link) {
		struct secrets_change *other = container_of(call, struct secrets_change, queued);

		if (other != change && call->ops->read == change->queued.ops->read &&
		    other->set.n == change->set.n && !rc)
			rc = set_narrow(&other->set, &change->set);
	}
	return rc;
}

static void keep_lines(struct secrets_change *change, const char *lines)
{
	char *before = change->withdrawn;

	if (!lines || !*lines)
		return;
	change->withdrawn = fmt_new("%s%s", before ? before : "", lines);
	free(before);
}

int secrets_change_withdraw(struct secrets_change *change, secrets_end_fn *end, void *arg,
			    char **lines)
{
	size_t len = 0;
	FILE *out;
	int rc;

	*lines = NULL;
	out = open_memstream(lines, &len);
	if (!out)
		return -ENOMEM;
	rc = narrow_others(change);
	if (!rc)
		rc = secrets_set_withdraw(&change->set, end, arg, out);
	fclose(out);
	keep_lines(change, *lines);
	return rc;
}

void secrets_change_free(struct secrets_change *change)
{
	secrets_set_free(&change->set);
	free(change->withdrawn);
	change->withdrawn = NULL;
}
