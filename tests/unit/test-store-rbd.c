/* SPDX-License-Identifier: BSD-3-Clause */
/* Images of a Ceph, with a librbd and a librados that the test plays: limits of configurations,
 * passphrases, ids, watchers, keyrings; the questions whether a client is fenced. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export-life.h"
#include "exports.h"
#include "loop-impl.h"
#include "rnbd-ext.h"
#include "store-driver.h"
#include "store-rbd-priv.h"
#include "unit.h"
#include "worker.h"

#define KEY_MAX 2048u			/* as store-rbd-steps.c has it */
#define CEPH_CONF_MAX (16u << 20)	/* likewise */
#define WATCHERS_MAX 64u		/* as store-rbd-lock.c has it */

extern const struct store_driver store_rbd_driver;
extern const struct store_io_ops store_rbd_io_ops;

static uint8_t key[4 * KEY_MAX];	/* the file */
static size_t loaded;			/* bytes of the passphrase that librbd was given */

static int load(rbd_image_t image, rbd_encryption_format_t format, rbd_encryption_options_t options,
		size_t size)
{
	const rbd_encryption_luks2_format_options_t *o = options;

	loaded = o->passphrase_size;
	expect_bytes(o->passphrase, key, loaded, "passphrase");
	return 0;
}

Test(store_rbd, passphrases_up_to_the_limit)
{
	static const unsigned lens[] = { 1, KEY_MAX - 2, KEY_MAX - 1, KEY_MAX, 4 * KEY_MAX };
	char file[] = "/tmp/test-store-rbd.XXXXXX";
	int fd = mkstemp(file);

	cr_assert_geq(fd, 0);
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7 + i / 256);
	rbd_lib.rbd_encryption_load = load;
	for_each_case(len, lens) {
		struct rbd_connect c = { .copy.ex.spec.luks = file };
		bool fits = *len < KEY_MAX;

		c.r = &c.copy;
		loaded = 0;
		cr_assert_eq(ftruncate(fd, 0), 0);
		cr_assert_eq(pwrite(fd, key, *len, 0), (ssize_t)*len);
		cr_assert_eq(store_rbd_phases[2].steps[3](&c), fits ? 0 : -EFBIG, "%u: %s", *len,
			     c.err);
		cr_assert_eq(loaded, fits ? *len : 0);
		cr_assert(fits || strstr(c.err, "2047 bytes"), "%s", c.err);
	}
	close(fd);
	unlink(file);
}

static int checks_conf(char *path, struct rbd_connect *c)
{
	*c = (struct rbd_connect){ .copy.ex.spec.conf = path };
	c->r = &c->copy;
	return store_rbd_phases[0].steps[0](c);
}

Test(store_rbd, configurations_up_to_the_limit)
{
	char file[] = "/tmp/test-store-rbd.XXXXXX";
	struct rbd_connect c;
	int fd = mkstemp(file);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, CEPH_CONF_MAX), 0);
	cr_assert_eq(checks_conf(file, &c), 0, "%s", c.err);
	cr_assert_eq(ftruncate(fd, CEPH_CONF_MAX + 1), 0);
	cr_assert_eq(checks_conf(file, &c), -EFBIG);
	cr_assert(strstr(c.err, "expected at most 16777216 bytes"), "%s", c.err);
	close(fd);
	unlink(file);
	cr_assert_eq(checks_conf(file, &c), -ENOENT);
}

/* librados would wait for somebody who writes. */
Test(store_rbd, a_configuration_is_a_regular_file)
{
	char file[] = "/tmp/test-store-rbd.XXXXXX";
	struct rbd_connect c;

	cr_assert(mkdtemp(file));
	cr_assert_eq(rmdir(file), 0);
	cr_assert_eq(mkfifo(file, 0600), 0);
	cr_assert_eq(checks_conf(file, &c), -EINVAL);
	cr_assert(strstr(c.err, "cannot be read: expected a regular file"), "%s", c.err);
	unlink(file);
}

/* ---- threads that open an image ---- */

static bool no_threads;
static unsigned nfreed, nended;
static sem_t let_go;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg);
void __real_export_spec_free(struct export_spec *spec);
void __wrap_export_spec_free(struct export_spec *spec);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

void __wrap_export_spec_free(struct export_spec *spec)
{
	nfreed++;
	__real_export_spec_free(spec);
}

static int create_late(rados_t *cluster, const char *id)
{
	while (sem_wait(&let_go))
		;
	*cluster = &let_go;
	return 0;
}

static int read_file_fails(rados_t cluster, const char *path)
{
	return -EINVAL;
}

static void late_ends(rados_t cluster)
{
	nended += cluster == &let_go;
}

static struct export an_image(struct exports *all, const char *conf)
{
	return (struct export){ .path = (char *)"rbd:pool/image", .all = all,
				.spec = { .name = "a", .path = "rbd:pool/image", .conf = conf,
					  .driver = &store_rbd_driver } };
}

Test(store_rbd, no_thread_to_open_an_image)
{
	struct exports all = { .n = 0 };
	struct store_rbd r = { .ex = an_image(&all, NULL) };
	char err[256] = "";

	no_threads = true;
	cr_assert_eq(store_rbd_connect(&r, err, sizeof(err)), -EAGAIN);
	cr_assert(strstr(err, "cannot be opened: "), "%s", err);
}

/* A call that nobody waits for gives its handles back when its cluster answers. */
Test(store_rbd, an_image_that_opens_too_late)
{
	char conf[] = "/tmp/test-store-rbd.XXXXXX", err[256] = "";
	struct exports all = { .n = 0 };
	struct store_rbd r = { .ex = an_image(&all, conf) };

	close(mkstemp(conf));
	rbd_lib.rados_create = create_late;
	rbd_lib.rados_conf_read_file = read_file_fails;
	rbd_lib.rados_shutdown = late_ends;
	sem_init(&let_go, 0, 0);
	atomic_store(&all.stopping, true);
	cr_assert_eq(store_rbd_connect(&r, err, sizeof(err)), -ECANCELED);
	cr_assert(strstr(err, "the server stops"), "%s", err);
	cr_assert(aside_left());
	sem_post(&let_go);
	while (aside_left())
		sched_yield();
	cr_assert_eq(nended, 1);
	cr_assert_eq(nfreed, 1);
	unlink(conf);
}

/* ---- ids ---- */

static int64_t pool_id;

static int fsid(rados_t cluster, char *buf, size_t len)
{
	return snprintf(buf, len, "%s", "ffffffff-ffff-ffff-ffff-ffffffffffff");
}

static int64_t get_pool(rados_ioctx_t pool)
{
	return pool_id;
}

static int get_id(rbd_image_t image, char *id, size_t len)
{
	return snprintf(id, len, "%s", "ffffffffffff") < 0;
}

static int get_features(rbd_image_t image, uint64_t *features)
{
	*features = 0;
	return 0;
}

/* The longest identity that there is has its place, whole. */
Test(store_rbd, longest_id)
{
	static const int64_t pools[] = { 0, 1, INT64_MAX - 1, INT64_MAX };
	struct store_id seen = { 0 };

	rbd_lib.rados_cluster_fsid = fsid;
	rbd_lib.rados_ioctx_get_id = get_pool;
	rbd_lib.rbd_get_id = get_id;
	rbd_lib.rbd_get_features = get_features;
	for_each_case(pool, pools) {
		struct rbd_connect c = { .copy.target.space = (char *)"" };
		const struct store_id *id = &c.copy.ex.id;

		c.r = &c.copy;
		pool_id = *pool;
		cr_assert_eq(store_rbd_phases[2].steps[5](&c), 0, "%s", c.err);
		cr_assert_lt(id->len, STORE_ID_MAX);
		cr_assert_eq(strlen(id->bytes), id->len);
		cr_assert(!store_id_equal(id, &seen));
		seen = *id;
	}
	cr_assert_gt(seen.len, STORE_ID_MAX - 4);
}

/* ---- watchers ---- */

static unsigned nwatchers;
static char addrs[4 * WATCHERS_MAX][32];

static int watchers(rbd_image_t image, rbd_image_watcher_t *list, size_t *n)
{
	bool fits = nwatchers <= *n;

	for (unsigned i = 0; fits && i < nwatchers; i++)
		list[i] = (rbd_image_watcher_t){ .addr = addrs[i] };
	*n = nwatchers;
	return fits ? 0 : -ERANGE;
}

static void cleanup(rbd_image_watcher_t *list, size_t n)
{
	cr_assert_eq(n, nwatchers);
}

/* Of more watchers than are looked at one may be the owner: it is not taken for dead. */
Test(store_rbd, watchers_up_to_the_limit)
{
	static const unsigned counts[] = { WATCHERS_MAX - 1, WATCHERS_MAX, WATCHERS_MAX + 1,
					   4 * WATCHERS_MAX };

	rbd_lib.rbd_watchers_list = watchers;
	rbd_lib.rbd_watchers_list_cleanup = cleanup;
	for (unsigned i = 0; i < ARRAY_SIZE(addrs); i++)
		snprintf(addrs[i], sizeof(addrs[i]), "10.0.0.1:0/%u", i);
	for_each_case(n, counts) {
		nwatchers = *n;
		cr_assert(store_rbd_lock_watches(NULL, addrs[*n - 1]));
		cr_assert_eq(store_rbd_lock_watches(NULL, "10.0.0.2:0/1"), *n > WATCHERS_MAX, "%u",
			     *n);
	}
}

/* ---- two written names ---- */

static void image_comes(struct store_rbd *r, struct store *store, const char *name)
{
	r->ex.name = r->ex.path = (char *)(uintptr_t)name;
	r->ex.life.goal = EXPORT_SHOWN;
	r->ex.store = store;
	list_add_tail(&store->names, &r->ex.store_link);
	store_rbd_driver.added(&r->ex);
}

/* A start sets the first name aside whose lock is not to be had: the next one is the written
 * name. */
Test(store_rbd, the_next_name_is_written)
{
	_Alignas(max_align_t) char memory[sizeof(struct store) + sizeof(struct store_rbd_all)];
	struct store *store = memset(memory, 0, sizeof(memory));
	struct store_rbd a = { 0 }, b = { 0 };
	char err[256];

	list_init(&store->names);
	store_rbd_driver.store_init(store);
	image_comes(&a, store, "a");
	image_comes(&b, store, "b");
	cr_assert_eq(store_rbd_claim(&a.ex, err, sizeof(err)), 0);
	cr_assert_eq(store_rbd_claim(&b.ex, err, sizeof(err)), -EBUSY);
	cr_assert(strstr(err, "already exported for writing as 'a'"), "%s", err);
	store_rbd_driver.removed(&a.ex);
	cr_assert_eq(store_rbd_claim(&b.ex, err, sizeof(err)), 0);
	store_rbd_driver.removed(&b.ex);
}

/* ---- keyrings ---- */

#define KEYRING_MAX (64u << 10)		/* as store-rbd-steps.c has it */

static char keyring[] = "/tmp/test-store-rbd.XXXXXX";

static int get_keyring(rados_t cluster, const char *option, char *buf, size_t len)
{
	return snprintf(buf, len, "%s", keyring) < 0;
}

static void version(int *major, int *minor, int *extra)
{
	*major = 18;
	*minor = 2;
}

/* A key of another cipher is named as long as the keyring has a sane length. */
Test(store_rbd, keyrings_up_to_the_limit)
{
	static const unsigned lens[] = { KEYRING_MAX - 1, KEYRING_MAX, KEYRING_MAX + 1,
					 4 * KEYRING_MAX };
	static const char text[] = "\n\tkey = AgAB\n";
	int fd = mkstemp(keyring);
	char why[512];

	cr_assert_geq(fd, 0);
	rbd_lib.rados_conf_get = get_keyring;
	rbd_lib.rbd_version = version;
	for_each_case(len, lens) {
		static char blanks[4 * KEYRING_MAX];

		memset(blanks, ' ', sizeof(blanks));
		memcpy(blanks + *len - strlen(text), text, strlen(text));
		cr_assert(!ftruncate(fd, 0) && pwrite(fd, blanks, *len, 0) == (ssize_t)*len);
		store_rbd_steps_fault(NULL, why, sizeof(why));
		cr_assert_eq(!strstr(why, "AES-256"), *len > KEYRING_MAX, "%u: %s", *len, why);
		cr_assert(strstr(why, keyring), "%s", why);
	}
	close(fd);
	unlink(keyring);
}

/* ---- fenced or not ---- */

#define ASK_MS 5000u			/* as store-rbd-lost.c has it */

/* An operation of librados, as rados_aio_stat() leaves it. */
static struct aio {
	rados_callback_t call;
	void *arg;
	rados_ioctx_t pool;		/* NULL: none is under way */
	int rc;
	int refs;
} aio;
static unsigned nasked, nwaited;
static int stat_rc;

static int aio_create(void *arg, rados_callback_t call, rados_completion_t *answer)
{
	cr_assert_eq(aio.refs, 0, "one question at a time");
	aio = (struct aio){ .call = call, .arg = arg, .refs = 1 };
	*answer = &aio;
	return 0;
}

static int aio_stat(rados_ioctx_t pool, const char *object, rados_completion_t answer,
		    uint64_t *size, time_t *mtime)
{
	if (stat_rc)
		return stat_rc;
	nasked++;
	aio.pool = pool;
	return 0;
}

static int aio_value(rados_completion_t answer)
{
	return aio.rc;
}

static void aio_release(rados_completion_t answer)
{
	aio.refs--;
}

static void aio_ends(int rc)
{
	cr_assert_not_null(aio.pool);
	aio.pool = NULL;
	aio.rc = rc;
	aio.call(&aio, aio.arg);
}

static int aio_cancel(rados_ioctx_t pool, rados_completion_t answer)
{
	cr_assert_not_null(pool);
	cr_assert_gt(aio.refs, 0);
	if (!aio.pool)
		return -ENOENT;
	cr_assert_eq(aio.pool, pool);
	aio_ends(-ECANCELED);
	return 0;
}

/* Of an operation that nothing ends, this never returns. */
static int aio_wait(rados_completion_t answer)
{
	cr_assert_gt(aio.refs, 0);
	cr_assert_null(aio.pool);
	cr_assert_lt(nwaited, nasked);
	nwaited++;
	return 0;
}

static uint64_t now_ms;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

uint64_t clock_now_ns(void)
{
	return now_ms * 1000000;
}

/* An image of which no client has read for a long time. */
static struct idle {
	struct exports all;
	struct store store;
	struct store_rbd r;
	struct loop loop;
} idle;

static int create_fails(rados_t *cluster, const char *id)
{
	return -ENOMEM;
}

/* A handle goes.  librados may crash if something is under way by it, or somebody is still being
 * called. */
static void handle_ends(rados_ioctx_t pool)
{
	cr_assert_null(aio.pool);
	cr_assert_eq(nwaited, nasked);
}

static void cluster_ends(rados_t cluster)
{
	cr_assert_null(aio.pool);
}

static void idle_begin(void)
{
	rbd_lib.rados_aio_create_completion2 = aio_create;
	rbd_lib.rados_aio_stat = aio_stat;
	rbd_lib.rados_aio_get_return_value = aio_value;
	rbd_lib.rados_aio_release = aio_release;
	rbd_lib.rados_aio_cancel = aio_cancel;
	rbd_lib.rados_aio_wait_for_complete_and_cb = aio_wait;
	rbd_lib.rados_create = create_fails;
	rbd_lib.rados_ioctx_destroy = handle_ends;
	rbd_lib.rados_shutdown = cluster_ends;
	idle.r.ex.all = &idle.all;
	idle.r.ex.store = &idle.store;
	idle.r.ex.name = (char *)"disk";
	idle.r.ex.path = (char *)"rbd/disk";
	idle.r.handle = (struct rbd_handle){ .cluster = &idle, .pool = &idle };
	pthread_mutex_init(&idle.r.renews, NULL);
	cr_assert_eq(loop_init(&idle.loop), 0);
	idle.r.asking = store_rbd_lost_watch(&idle.r.ex, &idle.loop);
	cr_assert_not_null(idle.r.asking);
}

static void idle_passes(uint64_t ms)
{
	now_ms += ms;
	loop_run_inbox(&idle.loop);
	loop_run_timers(&idle.loop, now_ms);
}

/* Nothing is under way by a handle that goes, and the server asks by the next one. */
Test(store_rbd, asks_by_the_next_handle)
{
	char why[320];

	idle_begin();
	idle_passes(ASK_MS);
	cr_assert_eq(nasked, 1);
	idle_passes(ASK_MS);
	cr_assert_eq(nasked, 1, "one question at a time");
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(store_rbd_share_renew(&idle.r.ex, why, sizeof(why)), -ENOMEM);
	idle_passes(0);
	idle_passes(ASK_MS);
	cr_assert_eq(nasked, 1, "no handle");
	idle.r.handle.pool = &aio;
	idle.r.opened++;
	idle_passes(ASK_MS);
	cr_assert_eq(nasked, 2);
	aio_ends(-ESHUTDOWN);
	idle_passes(0);
	cr_assert_eq(store_rbd_lost(&idle.r, 0), -ESHUTDOWN);
	store_rbd_lost_unwatch(idle.r.asking);
	loop_fini(&idle.loop);
	cr_assert_eq(aio.refs, 0);
}

/* A question that librados did not begin has no answer: the loop asks again, and the end does not
 * wait. */
Test(store_rbd, a_question_that_fails)
{
	idle_begin();
	stat_rc = -ENOMEM;
	idle_passes(ASK_MS);
	cr_assert_eq(aio.refs, 0);
	stat_rc = 0;
	idle_passes(ASK_MS);
	cr_assert_eq(nasked, 1);
	aio_ends(0);
	stat_rc = -ENOMEM;
	idle_passes(0);
	idle_passes(ASK_MS);
	store_rbd_lost_unwatch(idle.r.asking);
	loop_fini(&idle.loop);
	cr_assert_eq(nwaited, 0);
}

/* An answer that comes by the handle before says nothing of this one. */
Test(store_rbd, late_answer)
{
	idle_begin();
	idle_passes(ASK_MS);
	aio_ends(-ESHUTDOWN);
	idle.r.opened++;
	idle_passes(0);
	cr_assert_eq(store_rbd_lost(&idle.r, 0), 0);
	idle_passes(ASK_MS);
	cr_assert_eq(nasked, 2);
	store_rbd_lost_unwatch(idle.r.asking);
	cr_assert(loop_inbox_empty(&idle.loop), "no answer is to come");
	loop_fini(&idle.loop);
	cr_assert_null(aio.pool, "nothing is under way");
	cr_assert_eq(aio.refs, 0);
}

/* ---- the size behind a write ---- */

static rbd_update_callback_t updated;
static void *updated_arg;
static rbd_callback_t answered;
static void *answered_arg;
static pthread_t reactor_thread;
static unsigned nasked_here;		/* on the thread of the reactor */
static sem_t asks, may_answer;		/* on another thread */
static unsigned nwritten;
static int written_rc;
static uint64_t image_size = 1 << 20;

static int update_watch(rbd_image_t image, uint64_t *handle, rbd_update_callback_t call, void *arg)
{
	updated = call;
	updated_arg = arg;
	return 0;
}

static int update_unwatch(rbd_image_t image, uint64_t handle)
{
	return 0;
}

static int completion(void *arg, rbd_callback_t call, rbd_completion_t *answer)
{
	answered = call;
	answered_arg = arg;
	*answer = &answered;
	return 0;
}

static ssize_t completion_value(rbd_completion_t answer)
{
	return 0;
}

static void completion_release(rbd_completion_t answer)
{
}

static int write_begins(rbd_image_t image, uint64_t offset, size_t len, const char *buf,
			rbd_completion_t answer, int flags)
{
	return 0;
}

/* As librbd, which asks the cluster once after an update, and has all others wait for that. */
static int get_size(rbd_image_t image, uint64_t *size)
{
	*size = image_size;
	if (pthread_equal(pthread_self(), reactor_thread)) {
		nasked_here++;
		return 0;
	}
	sem_post(&asks);
	sem_wait(&may_answer);
	return 0;
}

static void written(struct export_io *io, int status)
{
	cr_assert_eq(status, written_rc);
	nwritten++;
}

static struct export_slot slot, *slots[] = { &slot };
static struct export_ring ring = { .slots = slots };

/* A write of the export, up to its answer. */
static void write_ends(struct export_io *io)
{
	*io = (struct export_io){ .ex = slot.ex, .op = RNBD_OP_WRITE, .len = 512, .done = written,
				  .slot = &slot, .reactor = ring.reactor, .stage = EXPORT_WORK };
	store_rbd_io_ops.rw(io);
	answered(&answered, answered_arg);
	loop_run_inbox(reactor_loop(io->reactor));
}

static void ring_begin(void)
{
	static struct export_pulse pulse;
	char err[64];

	rbd_lib.rbd_update_watch = update_watch;
	rbd_lib.rbd_update_unwatch = update_unwatch;
	rbd_lib.rbd_aio_create_completion = completion;
	rbd_lib.rbd_aio_get_return_value = completion_value;
	rbd_lib.rbd_aio_release = completion_release;
	rbd_lib.rbd_aio_write2 = write_begins;
	rbd_lib.rbd_get_size = get_size;
	idle.r.ex.all = &idle.all;
	idle.r.ex.store = &idle.store;
	idle.r.ex.pulse = &pulse;
	slot = (struct export_slot){ .ring = &ring, .ex = &idle.r.ex };
	cr_assert_eq(reactor_create("test", 64, &ring.reactor), 0);
	reactor_set_storage(ring.reactor, &ring);
	cr_assert_eq(store_rbd_io_ops.attach(&slot, err, sizeof(err)), 0);
}

static void ring_end(void)
{
	store_rbd_io_ops.detach(&slot);
	reactor_set_storage(ring.reactor, NULL);
	reactor_destroy(ring.reactor);
}

/* The reactor asks librbd for the size only if that has asked the cluster since the last update.  A
 * write that the end of the image has cut fails. */
Test(store_rbd, the_reactor_does_not_wait_for_a_size, .timeout = 60)
{
	struct export_io io[4];

	ring_begin();
	reactor_thread = pthread_self();
	cr_assert(!sem_init(&asks, 0, 0) && !sem_init(&may_answer, 0, 0));
	updated(updated_arg);
	write_ends(&io[0]);
	sem_wait(&asks);
	write_ends(&io[1]);
	cr_assert_eq(nasked_here, 0);
	sem_post(&may_answer);
	sem_post(&may_answer);
	while (nwritten < 2)
		loop_run_inbox(reactor_loop(ring.reactor));
	write_ends(&io[2]);
	cr_assert_eq(nasked_here, 1);
	idle.r.ex.failures.kinds[EXPORT_FAILED_WRITE].told = true;	/* logs nothing */
	image_size = 511;
	written_rc = -EIO;
	write_ends(&io[3]);
	cr_assert_eq(nwritten, 4);
	ring_end();
}

static int fenced(rbd_image_t image, uint64_t *size)
{
	return -ESHUTDOWN;
}

static void size_told(struct export *ex, int64_t size, void *arg)
{
	*(int64_t *)arg = size;
}

/* A server that is fenced on a shared image knows its size, and opens it again. */
Test(store_rbd, a_fenced_image_keeps_its_size)
{
	struct export_life life = { .loop = &idle.loop };
	struct store_lead lead = { .all = &idle.all, .state = STORE_LEAD_OWNER };
	int64_t size, told = 0;

	ring_begin();
	rbd_lib.rbd_get_size = fenced;
	idle.all.life = &life;
	idle.store.lead = &lead;
	idle.r.handle.image = &idle;
	idle.r.ex.size = 1 << 20;
	cr_assert_eq(loop_init(&idle.loop), 0);
	cr_assert(!store_rbd_io_ops.size(ring.reactor, &idle.r.ex, &size, size_told, &told));
	while (!told)
		loop_run_inbox(reactor_loop(ring.reactor));
	cr_assert_eq(told, 1 << 20);
	cr_assert_not(loop_inbox_empty(&idle.loop), "the lead hears of it");
	ring_end();
	loop_fini(&idle.loop);
}

/* librbd tells whole objects, also what is in front of the range and behind it. */
static int objects(rbd_image_t image, const char *from, uint64_t offset, uint64_t len,
		   uint8_t parent, uint8_t whole,
		   int (*found)(uint64_t offset, size_t len, int exists, void *arg), void *arg)
{
	found(0, 4608, 1, arg);
	found(4608, 3584, 0, arg);
	found(8192, 512, 1, arg);
	found(65536, 1 << 20, 1, arg);
	return 0;
}

Test(store_rbd, extents_of_a_range)
{
	static const uint32_t lens[] = { 512, 3584, 512, 65536 - 8704, 4096 };
	static uint8_t buf[RNBD_EXTENTS_ROOM];
	struct export_io io;

	ring_begin();
	rbd_lib.rbd_diff_iterate2 = objects;
	io = (struct export_io){ .ex = slot.ex, .op = RNBD_OP_EXTENTS, .offset = 4096,
				 .len = 65536, .buf = buf, .room = sizeof(buf), .done = written,
				 .slot = &slot, .reactor = ring.reactor, .stage = EXPORT_WORK };
	store_rbd_io_ops.extents(&io);
	while (!nwritten)
		loop_run_inbox(reactor_loop(ring.reactor));
	cr_assert_eq(rnbd_extents_decode(buf, sizeof(buf), io.len), ARRAY_SIZE(lens));
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		cr_assert_eq(rnbd_extents_get(buf, i).len, lens[i], "%u", i);
		cr_assert_eq(!rnbd_extents_get(buf, i).what, i % 2 == 0, "%u", i);
	}
	ring_end();
}
