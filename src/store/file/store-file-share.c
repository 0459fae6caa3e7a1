/* SPDX-License-Identifier: BSD-3-Clause */
/* The reservation of a block device as the lock between two servers (store-lead.h; doc/decisions.md
 * D22).  Owns nothing; main thread at start and end, or a worker of the store.
 *
 * A reservation fences as long as a host has it.  A host that was frozen may send late writes when
 * it goes on, and they land if nobody has the reservation then.  So two rules hold:
 *   - A server registers its key only when this host has no late writes: at its start, behind the
 *     claim, and when it has been fenced and all its clients have left.  Who takes the reservation
 *     from a host removes the key of that host.
 *   - A server gives the reservation back only if the other host is registered, and no third one.
 * A registered host that does not write asks for the reservation by its key alone. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exports.h"
#include "log.h"
#include "store-file-pr.h"
#include "store-file-priv.h"
#include "store-wait.h"

/* The device of @all as the functions of store-file-pr.h want it. */
static struct store_file_pr device_of(const struct store_file_all *all)
{
	return (struct store_file_pr){ .fd = store_file(all->sharer)->fd, .path = all->sharer->path,
				       .key = all->key };
}

/* Fill @view with the reservation.  -EUSERS: the device knows more than two hosts. */
static int look(const struct store_file_pr *pr, struct store_file_pr_view *view, char *why,
		size_t len)
{
	int rc = store_file_pr_look(pr, view, why, len);

	if (rc || view->others <= 1)
		return rc;
	snprintf(why, len, "'%s' holds the keys of %u other hosts, and only two hosts may share "
		 "it: if these hosts are gone for good, rtrsctl --force export break removes their "
		 "keys",
		 pr->path, view->others);
	return -EUSERS;
}

/* ---- while the export comes ---- */

int store_file_share_check(struct export *ex, char *why, size_t len)
{
	const struct store_file_pr pr = { .fd = store_file(ex)->fd, .path = ex->path };

	if (!store_file_has_wwid(ex)) {
		snprintf(why, len, "'%s' has no identifier that other hosts can see (wwid in "
			 "sysfs)", ex->path);
		return -EOPNOTSUPP;
	}
	return ex->spec.readonly ? 0 : store_file_pr_check(&pr, why, len);
}

/* Page caches of two hosts differ, so all names of the device have to be direct. */
static int check_names(const struct export *ex, char *why, size_t len)
{
	const struct export *other;

	list_for_each(other, &ex->store->names, store_link) {
		if (other->spec.shared == ex->spec.shared)
			continue;
		snprintf(why, len, "'%s' is exported as '%s', too: all names of a shared device "
			 "need ',shared=yes'", ex->path, other->name);
		return -EINVAL;
	}
	return 0;
}

/* Make this host known to the device.  No request of an earlier server is under way.
 *
 * If two other hosts share the device, or did, they go on without the key of this server.  The
 * server serves no writer until its administrator has their keys removed
 * (store_file_share_forget()). */
static int begin(struct store_file_all *all, struct export *ex, char *why, size_t len)
{
	struct store_file_pr_view view = { .owner = STORE_FILE_PR_FREE };
	struct store_file_pr pr;
	int rc = store_file_pr_new_key(&all->key);

	if (rc)
		return rc;
	all->sharer = ex;
	pr = device_of(all);
	rc = store_file_pr_register(&pr, why, len);
	if (!rc)
		rc = look(&pr, &view, why, len);
	if (rc == -EUSERS) {
		log_warn(ex->name, "no client can write: %s", why);
		rc = view.owner == STORE_FILE_PR_OURS ? 0 :
			store_file_pr_unregister(&pr, why, len);
	}
	if (rc) {
		all->sharer = NULL;
		return rc;
	}
	all->kept = view.owner == STORE_FILE_PR_OURS;
	log_info(ex->name, "this server's key at '%s' is 0x%" PRIx64 "%s", ex->path, all->key,
		 all->kept ? ", and an earlier server left the reservation to it" : "");
	return 0;
}

int store_file_share_begin(struct export *ex, char *err, size_t errlen)
{
	struct store_file_all *all = store_file_all(ex->store);
	char why[384] = "";
	int rc = check_names(ex, why, sizeof(why));

	if (!rc && ex->spec.shared && !ex->spec.readonly && !all->sharer)
		rc = begin(all, ex, why, sizeof(why));
	if (rc)
		snprintf(err, errlen, "export '%s': shared=yes: %s", ex->name,
			 *why ? why : strerror(-rc));
	return rc;
}

bool store_file_share_keeps(const struct store *store)
{
	return store_file_all(store)->kept;
}

/* ---- the lock ---- */

static int keep_or_release(const struct store_file_pr *pr, const struct store_file_pr_view *view,
			   char *why, size_t len)
{
	return view->others == 1 ? store_file_pr_release(pr, why, len) : -EAGAIN;
}

struct file_taking {
	struct store_taking try;
	struct store_file_all *all;
	struct store_file_pr pr;
};

/* Another server may do the same at the same time. */
static int again_if_late(int rc)
{
	return rc == -EBUSY || rc == -ENOKEY ? -EAGAIN : rc;
}

static int preempt(const struct file_taking *t, uint64_t holder)
{
	int rc = store_wait_may_break(&t->try);

	if (!rc)
		rc = again_if_late(store_file_pr_preempt(&t->pr, holder, t->try.why, t->try.len));
	if (rc)
		return rc;
	return store_wait_tell(&t->try, 0, "kept its reservation, which this server takes");
}

/* 0: this host has the reservation.  -EAGAIN: not yet.  Another error is the end. */
static int try_to_take(struct store_taking *try)
{
	struct file_taking *t = container_of(try, struct file_taking, try);
	char owner[STORE_TAKING_OWNER_MAX];
	struct store_file_pr_view view;
	int rc = look(&t->pr, &view, try->why, try->len);

	t->all->kept &= !!rc;
	if (!rc && !view.registered)
		rc = store_file_pr_register(&t->pr, try->why, try->len);
	if (rc || view.owner == STORE_FILE_PR_OURS)
		return rc;
	if (view.owner == STORE_FILE_PR_FREE)
		return again_if_late(store_file_pr_reserve(&t->pr, try->why, try->len));
	snprintf(owner, sizeof(owner), "the host with the key 0x%" PRIx64, view.holder);
	rc = store_wait_patience(try, owner);
	return rc ? rc : preempt(t, view.holder);
}

int store_file_share_take(struct export *ex, uint64_t may_break_ms, uint64_t since_ms, char *why,
			  size_t len)
{
	struct store_file_all *all = store_file_all(ex->store);
	struct file_taking t = {
		.try = { .exports = ex->all, .may_break_ms = may_break_ms, .asked_ms = since_ms,
			 .why = why, .len = len },
		.all = all, .pr = device_of(all),
	};

	return store_wait_take(&t.try, try_to_take);
}

/* A host whose key goes has no late writes that could land: it does not have the reservation.  If
 * its server lives, the server registers again when it takes the reservation. */
int store_file_share_forget(struct export *ex, char *why, size_t len)
{
	struct store_file_pr pr = device_of(store_file_all(ex->store));
	struct store_file_pr_view view;
	int rc = store_file_pr_look(&pr, &view, why, len);

	if (!rc && view.idle && !view.registered)
		rc = store_file_pr_register(&pr, why, len);
	for (uint64_t key; !rc && (key = view.idle);) {
		rc = store_file_pr_forget(&pr, key, why, len);
		if (rc)
			break;
		log_warn(ex->name, "the key 0x%" PRIx64 " of another host is removed from '%s'",
			 key, ex->path);
		rc = store_file_pr_look(&pr, &view, why, len);
	}
	return rc;
}

/* As store_driver.owns, with the words of the device in @why. */
static int look_ours(const struct store_file_pr *pr, struct store_file_pr_view *view, char *why,
		     size_t len)
{
	int rc = store_file_pr_look(pr, view, why, len);

	return !rc && view->owner != STORE_FILE_PR_OURS ? -ESHUTDOWN : rc;
}

int store_file_share_yield(struct export *ex)
{
	struct store_file_all *all = store_file_all(ex->store);
	struct store_file_pr pr = device_of(all);
	struct store_file_pr_view view;
	char why[384];
	int rc = look_ours(&pr, &view, why, sizeof(why));

	if (!rc)
		rc = keep_or_release(&pr, &view, why, sizeof(why));
	all->kept &= rc == -EAGAIN;
	return rc;
}

/* The device refuses the writes of a fenced host alone: READs and FLUSHes would go on. */
int store_file_share_owns(struct export *ex)
{
	struct store_file_pr pr = device_of(store_file_all(ex->store));
	struct store_file_pr_view view;
	char why[384];

	return look_ours(&pr, &view, why, sizeof(why)) == -ESHUTDOWN ? -ESHUTDOWN : 0;
}

int store_file_share_renew(struct export *ex, char *why, size_t len)
{
	struct store_file_all *all = store_file_all(ex->store);
	struct store_file_pr pr = device_of(all);

	all->kept = false;
	return store_file_pr_register(&pr, why, len);
}

/* ---- while the export goes ---- */

void store_file_share_left(const struct export *ex)
{
	struct store_file_all *all = store_file_all(ex->store);
	struct export *next = store_other_writer(ex->store, ex);

	if (all->sharer != ex)
		return;
	if (next)
		all->sharer = next;
	else
		store_file_share_end(ex->store);
}

void store_file_share_end(struct store *store)
{
	struct store_file_all *all = store_file_all(store);
	struct store_file_pr_view view;
	struct store_file_pr pr;
	char why[384] = "";
	int rc;

	if (!all->sharer)
		return;
	pr = device_of(all);
	rc = store_file_pr_look(&pr, &view, why, sizeof(why));
	if (!rc && view.owner == STORE_FILE_PR_OURS)
		rc = keep_or_release(&pr, &view, why, sizeof(why));
	if (rc == -EAGAIN)
		log_info(all->sharer->name, "the reservation of '%s' stays with this host, because "
			 "%s registered", pr.path, view.others ? "a third host is" :
			 "no other host is");
	else if (rc)
		log_warn(all->sharer->name, "the reservation cannot be given back: %s", why);
	all->sharer = NULL;
}
