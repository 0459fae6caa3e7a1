/* SPDX-License-Identifier: BSD-3-Clause */
/* librbd and librados, loaded when the first export asks for them: a server without such an export
 * needs neither on its machine.  Facts of both libraries: <rbd/librbd.h>, <rados/librados.h>. */
#ifndef RBD_LIB_H
#define RBD_LIB_H

#include <stddef.h>

#include <rados/librados.h>
#include <rbd/librbd.h>

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

#endif
