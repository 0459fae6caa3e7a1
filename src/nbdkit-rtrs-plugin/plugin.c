/* SPDX-License-Identifier: BSD-3-Clause */
/* The callbacks of nbdkit, and nothing else.  All NBD connections share a single session.
 *
 * Any thread of nbdkit.  The session (clt-start.h) is probed in .get_ready, where a failure is
 * still an exit status, and lives from .after_fork to .cleanup.  Errors of the server go to the NBD
 * client; an error without a number in NBD becomes EIO. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "changes.h"
#include "cleanup.h"
#include "clt-export.h"
#include "clt-start.h"
#include "dev-req.h"
#include "dev.h"
#include "list.h"
#include "log.h"
#include "nbd-msg.h"
#include "plugin-tell.h"
#include "process.h"
#include "unix-sock.h"
#include "util.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL
#define MAX_REQUEST (64u << 20)		/* the largest request of nbdkit */
#define CACHE_PIECE (1u << 20)

/* nbdkit -D rtrs.io=1: a line per request. */
NBDKIT_DLL_PUBLIC int rtrs_debug_io = 0;

/* nbdkit_nanosleep() is the only way to hear of nbdkit's end.  The function prints an error at the
 * end, so only call while requests wait.  On a thread without a connection of nbdkit an early
 * return means nbdkit's end alone, as nbdkit (1.32) asserts.  The calling thread lives from
 * .after_fork to .cleanup, which joins the thread. */
static int front_nap(void)
{
	plugin_tell_by_nbdkit();
	return nbdkit_nanosleep(1, 0);
}

/* In a file that both gateways read. */
static const char *const of_rtrs_nbd[] = {
	"unix", "ipaddr", "port", "readonly", "foreground", "pidfile", "run", "exportname",
	"nbd-tls", "nbd-tls-psk", "nbd-tls-certificates", "nbd-tls-verify-peer", "memory",
	"threads", "verbose", NULL
};

/* nbdkit (1.32) without a descriptor to accept a client tries again without end.  nbdkit without
 * descriptors for the pipe of an accepted client lets the client wait for ever.  In neither case
 * the client gets an error.  So some descriptors are kept free, and .preconnect sends a client away
 * that would take these.  By then the connection has a thread and a pipe: more clients at the same
 * moment than the reserve covers can be faster. */
static const struct clt_front front = {
	.name = RUNDIR_NBDKIT,
	.program = "nbdkit-rtrs-plugin",
	.help = "nbdkit rtrs --help",
	.others = of_rtrs_nbd,
	.others_are = "an option of rtrs-nbd: give nbdkit's options on nbdkit's command line",
	.wait = &clt_wait_threads,
	/* from .get_ready to .after_fork: a pipe, listening sockets */
	.start_fds = 6,
	.client_fds = 3,		/* a socket and a pipe, open when .preconnect is called */
	.nap = front_nap,
	.nap_left = plugin_tell_let_go,
};

static struct clt_conf conf;
static struct clt_start start;

struct handle {
	struct list link;		/* handles */
	struct dev_handle io;
	bool readonly;
};

/* nbdkit at the end closes no connection any more: the plugin has to close open handles. */
static struct list handles = LIST_INIT(handles);
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

static void handle_close(struct handle *h)
{
	list_del(&h->link);
	dev_handle_fini(&h->io);
	dev_close(h->io.dev);
	free(h);
}

static void plugin_log(enum log_level level, const char *line)
{
	/* nbdkit has no warnings, and users must see the loss and the return of a path without
	 * -v. */
	plugin_tell_by_nbdkit();
	if (level == LOG_LEVEL_ERROR)
		nbdkit_error("%s", line);
	else if (level == LOG_LEVEL_WARN)
		plugin_tell(line);
	else
		nbdkit_debug("%s", line);
}

/* The help of the parameters.  nbdkit prints this text after .load, with another newline. */
static char help[4096];

static void help_init(void)
{
	FILE *f = fmemopen(help, sizeof(help), "w");

	if (!f)
		return;
	opt_help_rows(&clt_conf_options, f);
	fclose(f);
	help[strlen(help) - 1] = '\0';
}

static void rtrs_load(void)
{
	log_init(plugin_log, LOG_LEVEL_DEBUG);
	help_init();
	files_age_reset();
	clt_conf_init(&conf, &front);
	clt_start_init(&start, &conf);
}

static void rtrs_unload(void)
{
	clt_conf_fini(&conf);
}

/* Return @r, after reporting @err if @r is -1.  Frees @err. */
static int conf_result(int r, char *err)
{
	if (r < 0)
		nbdkit_error("%s", err ? err : "no memory");
	free(err);
	return r < 0 ? -1 : 0;
}

static int rtrs_config(const char *key, const char *value)
{
	char *err = NULL;
	int r = clt_conf_set(&conf, key, value, &err);

	return conf_result(r, err);
}

static int rtrs_config_complete(void)
{
	char *err = NULL;
	int r = clt_conf_complete(&conf, &err);

	return conf_result(r, err);
}

static void rtrs_dump_plugin(void)
{
	printf("rtrs_transports=tcp%s\n", fab_provider_find("rdma") ? ",rdma" : "");
	printf("rtrs_parameters=");
	for (unsigned i = 0; i < clt_conf_options.n; i++)
		printf("%s%s", i ? "," : "", clt_conf_options.rows[i].name);
	printf("\n");
}

/* ---- the session ---- */

static int rtrs_get_ready(void)
{
	char err[CLT_FRONT_ERR];

	if (clt_probe(&start, err) == 0)
		return 0;
	nbdkit_error("%s", err);
	return -1;
}

static int rtrs_after_fork(void)
{
	char err[CLT_FRONT_ERR];
	int r;

	plugin_tell_forked();
	slices_shorten();		/* of nbdkit's threads, too, which it has yet to create */
	r = log_begin();
	if (r < 0)
		nbdkit_error("cannot start a thread for the log: %s", threads_strerror(r));
	/* A failure must not end nbdkit now: no user would see the exit status, because the pid
	 * file is written.  And where --run has forked, clients would wait for ever at the open
	 * socket.  So nbdkit lives on, and each client that comes hears the reason, or finds the
	 * session started. */
	if (clt_start_session(&start, err) < 0)
		nbdkit_error("%s: trying again when a client connects", err);
	return 0;
}

/* nbdkit has ended the threads of all connections. */
static void rtrs_cleanup(void)
{
	while (!list_empty(&handles))
		handle_close(list_entry(handles.next, struct handle, link));
	clt_start_end(&start);
	log_end(plugin_tell_let_go);
}

/* ---- connections of NBD ---- */

static int rtrs_preconnect(int readonly)
{
	char err[CLT_FRONT_ERR];

	if (clt_start_admit(&start, err) == 0)
		return 0;
	nbdkit_error("connection refused: %s", err);
	return -1;
}

static int rtrs_list_exports(int readonly, int is_tls, struct nbdkit_exports *exports)
{
	char err[CLT_FRONT_ERR];
	struct dev_list list;
	int r;

	if (conf.export_name)
		return nbdkit_add_export(exports, conf.export_name, NULL);
	r = clt_export_list(&start.run.clt, &list, err);
	if (r < 0)
		nbdkit_error("%s", err);
	for (unsigned i = 0; r == 0 && i < list.n; i++)
		r = nbdkit_add_export(exports, list.names[i], NULL);
	dev_list_fini(&list);
	return r < 0 ? -1 : 0;
}

static const char *rtrs_default_export(int readonly, int is_tls)
{
	return conf.export_name ? conf.export_name : "";
}

static void *rtrs_open(int readonly)
{
	const char *name = conf.export_name ? conf.export_name : nbdkit_export_name();
	char err[CLT_FRONT_ERR];
	struct handle *h;
	struct dev *dev;
	int r;

	if (!name)
		return NULL;
	if (!*name) {
		nbdkit_error("the NBD client asks for no export: put the name into its URI "
			     "(nbd+unix:///NAME?socket=...), or give export=NAME here");
		errno = EINVAL;
		return NULL;
	}
	h = calloc(1, sizeof(*h));
	if (!h) {
		nbdkit_error("no memory for a connection");
		return NULL;
	}
	r = clt_export_open(&start.run.clt, &conf, name, &dev, err);
	if (r < 0) {
		/* For any errno, nbdkit 1.32 tells the client "no such export". */
		nbdkit_error("%s", err);
		free(h);
		errno = -r;
		return NULL;
	}
	dev_handle_init(&h->io, dev);
	h->readonly = readonly;
	LOCK_SCOPE(&handles_lock);
	list_add_tail(&handles, &h->link);
	return h;
}

static void rtrs_close(void *handle)
{
	LOCK_SCOPE(&handles_lock);
	handle_close(handle);
}

static struct dev_handle *io_of(void *handle)
{
	return &((struct handle *)handle)->io;
}

static struct dev *dev_of(void *handle)
{
	return io_of(handle)->dev;
}

static int64_t rtrs_get_size(void *handle)
{
	return (int64_t)dev_size(dev_of(handle));
}

static const char *rtrs_export_description(void *handle)
{
	return nbdkit_printf_intern("RNBD export '%s' of %s", dev_name(dev_of(handle)),
				    conf.server);
}

static int rtrs_block_size(void *handle, uint32_t *minimum, uint32_t *preferred,
			   uint32_t *maximum)
{
	/* For a part of a block the client reads, changes and writes the block (dev-req.h).
	 * libnbd, and so nbdfuse, would itself refuse a request below a minimum. */
	*minimum = 1;
	*preferred = clt_export_block(dev_of(handle));
	*maximum = MAX_REQUEST;
	return 0;
}

static int rtrs_can_write(void *handle)
{
	struct handle *h = handle;

	return !h->readonly && dev_mode(h->io.dev) != RNBD_ACCESS_RO;
}

static int rtrs_can_flush(void *handle)
{
	return 1;
}

static int rtrs_is_rotational(void *handle)
{
	return dev_info(dev_of(handle))->rotational;
}

static int rtrs_can_trim(void *handle)
{
	return dev_can_discard(dev_of(handle));
}

static int rtrs_can_zero(void *handle)
{
	return dev_can_zero(dev_of(handle));	/* no: nbdkit writes zeroes */
}

static int rtrs_can_fast_zero(void *handle)
{
	return clt_export_fast_zeroes(dev_of(handle));
}

static int rtrs_can_fua(void *handle)
{
	return clt_export_flushes_fua(dev_of(handle)) ? NBDKIT_FUA_EMULATE : NBDKIT_FUA_NATIVE;
}

/* All connections share a session, and a FLUSH covers the file, not the connection. */
static int rtrs_can_multi_conn(void *handle)
{
	return 1;
}

static int rtrs_can_cache(void *handle)
{
	return NBDKIT_CACHE_NATIVE;
}

/* Without extents, nbdkit takes all for data. */
static int rtrs_can_extents(void *handle)
{
	return dev_extents_known(dev_of(handle));
}

/* ---- requests ---- */

/* Turn @r into the result and errno of a callback.  For an errno without a number in NBD nbdkit
 * would send EINVAL to the client; the numbers are those of Linux. */
static int io_result(void *handle, const char *what, uint32_t count, uint64_t offset, int r)
{
	struct dev *dev = dev_of(handle);

	if (rtrs_debug_io)
		log_dbg(dev_name(dev), "%s count=%u offset=%llu: %d", what, count,
			(unsigned long long)offset, r);
	if (r == 0)
		return 0;
	clt_export_failed(dev, what, count, offset, r);
	errno = r == -ESHUTDOWN ? ESHUTDOWN : (int)nbd_error_of(r);
	return -1;
}

static int rtrs_pread(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	return io_result(handle, "read", count, offset,
			 dev_call_read(io_of(handle), buf, count, offset));
}

/* Read, to warm the server's cache.  RACE: with NBDKIT_CACHE_EMULATE nbdkit reads the CACHEs of all
 * threads into one buffer, so answers on several connections are written to one place at once. */
static int rtrs_cache(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	_cleanup_free_ void *sink = malloc(CACHE_PIECE);
	int r = sink ? 0 : -ENOMEM;
	uint32_t n;

	for (uint32_t done = 0; r == 0 && done < count; done += n) {
		n = MIN(count - done, CACHE_PIECE);
		r = dev_call_read(io_of(handle), sink, n, offset + done);
	}
	return io_result(handle, "cache", count, offset, r);
}

static int rtrs_pwrite(void *handle, const void *buf, uint32_t count, uint64_t offset,
		       uint32_t flags)
{
	return io_result(handle, "write", count, offset,
		      dev_call_write(io_of(handle), buf, count, offset, flags & NBDKIT_FLAG_FUA));
}

static int rtrs_flush(void *handle, uint32_t flags)
{
	return io_result(handle, "flush", 0, 0, dev_call_flush(io_of(handle)));
}

static int rtrs_trim(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	return io_result(handle, "trim", count, offset,
		      dev_call_discard(io_of(handle), count, offset, flags & NBDKIT_FLAG_FUA));
}

static int rtrs_zero(void *handle, uint32_t count, uint64_t offset, uint32_t flags)
{
	bool may_trim = flags & NBDKIT_FLAG_MAY_TRIM;
	int r = -EOPNOTSUPP;

	if (may_trim || !(flags & NBDKIT_FLAG_FAST_ZERO))
		r = dev_call_zero(io_of(handle), count, offset, may_trim, flags & NBDKIT_FLAG_FUA);
	return io_result(handle, "zero", count, offset, r);
}

static int add_extent(void *arg, uint64_t off, const struct rnbd_extent *e)
{
	uint32_t type = (e->what & RNBD_EXTENT_HOLE ? NBDKIT_EXTENT_HOLE : 0) |
			(e->what & RNBD_EXTENT_ZERO ? NBDKIT_EXTENT_ZERO : 0);

	return nbdkit_add_extent(arg, off, e->len, type) < 0 ? -errno : 0;
}

static int rtrs_extents(void *handle, uint32_t count, uint64_t offset, uint32_t flags,
			struct nbdkit_extents *extents)
{
	return io_result(handle, "extents", count, offset,
			 dev_extents(io_of(handle), count, offset, flags & NBDKIT_FLAG_REQ_ONE,
				     add_extent, extents));
}

static struct nbdkit_plugin plugin = {
	.name = "rtrs",
	.longname = "nbdkit RTRS/RNBD client",
	.version = PACKAGE_VERSION,
	.description = "Access block devices of rtrs-server and of the kernel's rnbd-server",
	.load = rtrs_load,
	.unload = rtrs_unload,
	.config = rtrs_config,
	.config_complete = rtrs_config_complete,
	.config_help = help,
	.magic_config_key = "server",
	.dump_plugin = rtrs_dump_plugin,
	.get_ready = rtrs_get_ready,
	.after_fork = rtrs_after_fork,
	.cleanup = rtrs_cleanup,
	.preconnect = rtrs_preconnect,
	.list_exports = rtrs_list_exports,
	.default_export = rtrs_default_export,
	.open = rtrs_open,
	.close = rtrs_close,
	.get_size = rtrs_get_size,
	.export_description = rtrs_export_description,
	.block_size = rtrs_block_size,
	.can_write = rtrs_can_write,
	.can_flush = rtrs_can_flush,
	.is_rotational = rtrs_is_rotational,
	.can_trim = rtrs_can_trim,
	.can_zero = rtrs_can_zero,
	.can_fast_zero = rtrs_can_fast_zero,
	.can_fua = rtrs_can_fua,
	.can_multi_conn = rtrs_can_multi_conn,
	.can_cache = rtrs_can_cache,
	.can_extents = rtrs_can_extents,
	.pread = rtrs_pread,
	.pwrite = rtrs_pwrite,
	.flush = rtrs_flush,
	.trim = rtrs_trim,
	.zero = rtrs_zero,
	.extents = rtrs_extents,
	.cache = rtrs_cache,
	.errno_is_preserved = 1,
};

/* The macro of nbdkit defines plugin_init() without a prototype, a warning of clang. */
struct nbdkit_plugin *plugin_init(void);
NBDKIT_REGISTER_PLUGIN(plugin)
