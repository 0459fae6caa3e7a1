/* SPDX-License-Identifier: BSD-3-Clause */
/* An image of a Ceph cluster as an export: "NAME=rbd:POOL/[NAMESPACE/]IMAGE[@SNAP][,conf=FILE]
 * [,id=USER][,luks=FILE]".
 *
 * The cache of librbd is off, whatever the configuration of Ceph says: a WRITE that is answered is
 * on the osds, so FUA and FLUSH have nothing to add, and no error waits for a later FLUSH.
 *
 * librbd calls back on threads of its own, and the callback posts a message to the reactor of the
 * request (store-rbd-io.c).  The eventfd of rbd_set_image_notification() is not used: an image has
 * one, and several reactors; a message wakes a reactor only if that sleeps. */
#ifndef STORE_RBD_PRIV_H
#define STORE_RBD_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "export.h"
#include "store-wait.h"

/* ---- store-rbd-connect.c: Ceph's libraries ---- */

/* librbd and librados, loaded when the first export asks for them: a server without such an export
 * needs neither on its machine.  Facts of both libraries: <rbd/librbd.h>, <rados/librados.h>. */

#define RBD_LIB_RADOS(X) \
	X(rados_create)                                                                            \
	X(rados_conf_read_file)                                                                    \
	X(rados_conf_get)                                                                          \
	X(rados_conf_set)                                                                          \
	X(rados_connect)                                                                           \
	X(rados_shutdown)                                                                          \
	X(rados_cluster_fsid)                                                                      \
	X(rados_ioctx_create)                                                                      \
	X(rados_ioctx_destroy)                                                                     \
	X(rados_ioctx_get_id)                                                                      \
	X(rados_ioctx_set_namespace)                                                               \
	X(rados_set_pool_full_try)                                                                 \
	X(rados_aio_create_completion2)                                                            \
	X(rados_aio_get_return_value)                                                              \
	X(rados_aio_release)                                                                       \
	X(rados_aio_cancel)                                                                        \
	X(rados_aio_wait_for_complete_and_cb)                                                      \
	X(rados_aio_stat)

#define RBD_LIB_RBD(X) \
	X(rbd_version)                                                                             \
	X(rbd_open)                                                                                \
	X(rbd_open_read_only)                                                                      \
	X(rbd_close)                                                                               \
	X(rbd_get_id)                                                                              \
	X(rbd_get_size)                                                                            \
	X(rbd_get_features)                                                                        \
	X(rbd_config_image_list)                                                                   \
	X(rbd_config_image_list_cleanup)                                                           \
	X(rbd_snap_create)                                                                         \
	X(rbd_snap_get_id)                                                                         \
	X(rbd_lock_acquire)                                                                        \
	X(rbd_lock_release)                                                                        \
	X(rbd_lock_get_owners)                                                                     \
	X(rbd_lock_get_owners_cleanup)                                                             \
	X(rbd_watchers_list)                                                                       \
	X(rbd_watchers_list_cleanup)                                                               \
	X(rbd_lock_break)                                                                          \
	X(rbd_encryption_load)                                                                     \
	X(rbd_update_watch)                                                                        \
	X(rbd_update_unwatch)                                                                      \
	X(rbd_diff_iterate2)                                                                       \
	X(rbd_aio_create_completion)                                                               \
	X(rbd_aio_get_return_value)                                                                \
	X(rbd_aio_release)                                                                         \
	X(rbd_aio_read2)                                                                           \
	X(rbd_aio_write2)                                                                          \
	X(rbd_aio_discard)                                                                         \
	X(rbd_aio_write_zeroes)                                                                    \
	X(rbd_aio_flush)

#define RBD_LIB_MEMBER(name) __typeof__(name) *name;
struct rbd_lib {
	RBD_LIB_RADOS(RBD_LIB_MEMBER)
	RBD_LIB_RBD(RBD_LIB_MEMBER)
};

/* The functions of both libraries, constant once rbd_lib_load() has returned 0. */
extern struct rbd_lib rbd_lib;

/* Load both libraries, once in the process.  0, or -ENOENT with a text in @err that says what to
 * install.  Any thread. */
int rbd_lib_load(char *err, size_t errlen);

struct export;
struct loop;
struct rbd_asking;
struct store_rbd;

/* ---- store-rbd-connect.c: the name of an image; pure ---- */

#define RBD_TARGET_PREFIX "rbd:"
#define RBD_TARGET_EXPECTED RBD_TARGET_PREFIX "POOL/[NAMESPACE/]IMAGE[@SNAP]"

struct rbd_target {
	char *text;			/* the memory of the others */
	const char *pool;
	const char *space;		/* namespace; "": none */
	const char *image;
	const char *snap;		/* NULL: the image itself */
};

/* Take @text apart.  0; -EINVAL: not such a name; -ENOMEM.  After 0 call rbd_target_fini(). */
int rbd_target_parse(struct rbd_target *target, const char *text);
void rbd_target_fini(struct rbd_target *target);

/* ---- an image ---- */

/* An opened image with a connection of its own to the cluster. */
struct rbd_handle {
	rados_t cluster;		/* NULL: not made yet, as the next ones */
	rados_ioctx_t pool;
	rbd_image_t image;
	bool has_lock;			/* store-rbd-lock.c */
};

struct store_rbd {
	struct export ex;
	struct rbd_target target;
	/* Constant while a client has the export open.  store_rbd_share_renew() replaces the handle
	 * under @renews, which questions for the size hold, too. */
	struct rbd_handle handle;
	pthread_mutex_t renews;
	/* 0; or -errno of the first refusal that says that another client may write the image:
	 * nothing is read or written by @handle any more (store-rbd-lost.c).  Any thread. */
	_Atomic(int) lost;
	unsigned opened;		/* counts handles; under @renews */
	char header[64];		/* the object that each client of the image has */
	uint64_t features;		/* RBD_FEATURE_* of the image */
	/* Counts what librbd has told of the image, and the part of that for which it has asked the
	 * cluster: while they differ, a question for the size may wait. */
	_Atomic(unsigned) updates, seen;
	unsigned timeout_s;		/* client_mount_timeout */
	bool lent;			/* the server stops, and a call keeps @handle to the end of
					 * the process: store-rbd-share.c */
	struct aside *leaving;		/* store_rbd_leave() has begun; NULL: it has not */
	/* Begin or end to hear of sizes of the image; NULL: no ring has the export.  Set by the
	 * first ring; store-rbd-io.c. */
	void (*hear)(struct store_rbd *r, bool begin);
	struct rbd_slot *hearer;
	struct rbd_asking *asking;	/* of the first ring, too: store-rbd-lost.c */
};

/* The part of the driver in struct store. */
struct store_rbd_all {
	const struct export *writer;	/* the name that is written; NULL: none */
	int own_fd;			/* store-rbd-lock.c: the lock file; -1: none */
} __attribute__((may_alias));

static inline struct store_rbd_all *store_rbd_all(const struct store *store)
{
	return (struct store_rbd_all *)(void *)(uintptr_t)store->own;
}

static inline struct store_rbd *store_rbd(const struct export *ex)
{
	return container_of(ex, struct store_rbd, ex);
}

/* Connect to the cluster, and open the image of @r with its size and ids.  0, or -errno with one
 * line in @err; store_rbd_disconnect() in any case.  Waits for the cluster: at the start as long as
 * it takes, later for a while, or until the server stops. */
int store_rbd_connect(struct store_rbd *r, char *err, size_t errlen);
/* How long @r waits for the osds, see store_rbd_connect(). */
struct rbd_patience store_rbd_connect_patience(const struct store_rbd *r);
/* Begin to close the image, to give its lock back and to leave the cluster. */
void store_rbd_leave(struct store_rbd *r);
/* The same, and wait for the end.  Waits for the cluster for a while, and leaves a handle of a
 * cluster that does not answer to the end of the process. */
void store_rbd_disconnect(struct store_rbd *r);
/* Close @handle, on a thread of aside_begin(). */
void store_rbd_connect_undo(struct rbd_handle *handle);

/* Refuse @ex if another name of its image is written, too: a lock belongs to a handle, and each
 * name has a handle of its own.  struct store_driver.claim. */
int store_rbd_claim(struct export *ex, char *err, size_t errlen);
/* Lock the image of @ex, if @ex is written: struct store_driver.lock. */
int store_rbd_lock(struct export *ex, char *err, size_t errlen);
/* Give back the lock file of @store, which is not written any more.  librbd's lock goes with the
 * handle. */
void store_rbd_unlock(struct store *store);

/* The owner of the lock of @image, as the cluster names clients.  1 with @owner; 0: nobody has the
 * lock; or -errno.  Waits for the cluster, as the next one. */
#define STORE_RBD_OWNER_MAX STORE_TAKING_OWNER_MAX
int store_rbd_lock_owner(rbd_image_t image, char owner[STORE_RBD_OWNER_MAX]);
/* True if @owner has @image open, or has died within the last 30 s, or the cluster does not tell.
 * Most clients give their lock away when somebody asks, and write no more: so nobody is asked who
 * lives. */
bool store_rbd_lock_watches(rbd_image_t image, const char *owner);

/* struct store_driver.take, yield and renew: store-rbd-share.c. */
int store_rbd_share_take(struct export *ex, uint64_t may_break_ms, uint64_t since_ms, char *why,
			 size_t len);
int store_rbd_share_yield(struct export *ex);
int store_rbd_share_renew(struct export *ex, char *why, size_t len);

/* How long a server that stops waits for a cluster that may be silent. */
#define STORE_RBD_STOP_S 10u

/* How long a caller waits for a call (worker.h).  Threads that Ceph's libraries make inherit the
 * mask of the call's thread: a signal for this program never runs on one of them. */
struct rbd_patience {
	unsigned limit_s;		/* since aside_begin(); 0: no limit */
	const _Atomic(bool) *stops;	/* true: wait no more; NULL: there is no such word */
	unsigned stops_s;		/* wait on for so long after @stops */
	uint64_t stops_ms;		/* when @stops was seen, of the wait, + 1; 0: it was not */
	const struct export *ex;
	const char *whom;		/* for the log: after some seconds it says once that @ex
					 * waits for these; NULL: it says nothing */
	const char *advice;		/* for the log, some seconds later; NULL: none */
	unsigned told;			/* lines of the log until now */
};

/* aside_wait(): 0; or -ETIMEDOUT after the limit, -ECANCELED if the server stops. */
int store_rbd_connect_wait(struct aside *call, struct rbd_patience *patience);

/* ---- store-rbd-lost.c: clients that were fenced, or have lost the lock of their image ---- */

/* @result of an operation of @r as the request is to hear of it: once a client is fenced, all its
 * operations fail, also when the cluster has forgotten that.  Any thread. */
int store_rbd_lost(struct store_rbd *r, int result);
/* As store_driver.fenced.  A shared image is opened again by its lead (store-lead.h). */
bool store_rbd_lost_already(const struct export *ex);
/* Ask the cluster every few seconds whether @ex is fenced, so that a client without requests does
 * not read what the next owner writes: @ex may be idle until the cluster has forgotten.  @loop is
 * the control thread's.  NULL: no memory.  Control thread, as the next one. */
struct rbd_asking *store_rbd_lost_watch(const struct export *ex, struct loop *loop);
/* The handle of the export goes: end the question that is under way by it.  The next one follows
 * with the next handle.  NULL: nothing to do.  Under store_rbd.renews. */
void store_rbd_lost_cancel(struct rbd_asking *asking);
/* Ends the question under way, too.  No handle comes or goes meanwhile. */
void store_rbd_lost_unwatch(struct rbd_asking *asking);

/* ---- store-rbd-steps.c: the steps to an opened image, on the thread of aside_begin() ---- */

#define RBD_MOUNT_TIMEOUT "client_mount_timeout"
#define RBD_MOUNT_TIMEOUT_S 30u
#define RBD_PHASES 3

struct rbd_phase;

/* The caller may leave meanwhile, with all that is its own. */
struct rbd_connect {
	struct store_rbd copy;		/* of the caller's: what is asked for, and what is got */
	struct store_rbd *r;		/* @copy */
	const struct rbd_phase *phase;
	char err[320];
	int rc;
};

/* A phase of the steps.  A thread that waits reads the phase, and can say for whom it waits. */
struct rbd_phase {
	const char *whom;
	const char *advice;
	unsigned grace_s;		/* Ceph ends the steps, with its reason */
	/* 0, or -errno with one line in c->err. */
	int (*steps[7])(struct rbd_connect *c);
};

extern const struct rbd_phase store_rbd_phases[RBD_PHASES];

/* ---- why librados cannot read the key of its user; any thread ---- */

/* Describe in @buf the keyring that rados_connect() of @cluster could not read: librados 16 and 18
 * answer -EIO then, and never for a monitor; 20.2 goes on without the keyring.  The text names the
 * file, and for a key of a newer cipher the version of librbd and the Ceph that knows the key. */
void store_rbd_steps_fault(rados_t cluster, char *buf, size_t len);

#endif
