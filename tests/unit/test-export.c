/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports: what a command line may say, each refusal word by word, geometry, and sharing. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export-add.h"
#include "exports.h"
#include "names.h"
#include "store-file-priv.h"
#include "unit.h"

static char dir[64];
static struct exports exports;

static void setup(void)
{
	strcpy(dir, "/tmp/test-export.XXXXXX");
	cr_assert(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	exports_init(&exports, 1);
}

static void teardown(void)
{
	char cmd[96];

	exports_fini(&exports);
	cr_assert_eq(chdir("/"), 0);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	cr_assert_eq(system(cmd), 0);
}

TestSuite(export, .init = setup, .fini = teardown);

static void make_file(const char *name, off_t size)
{
	int fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, size), 0);
	close(fd);
}

static struct export *add_ok(const char *spec)
{
	char err[512] = "";
	struct export *ex;
	char name[300];

	cr_assert_eq(export_add_line(&exports, spec, err, sizeof(err)), 0, "%s: %s", spec, err);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, "="), spec);
	ex = exports_find(&exports, name);
	cr_assert_not_null(ex);
	return ex;
}

static void add_refused(const char *spec, int rc, const char *line)
{
	char err[512] = "";
	unsigned n = exports.n;

	cr_assert_eq(export_add_line(&exports, spec, err, sizeof(err)), rc, "%s: %s", spec, err);
	cr_assert_str_eq(err, line);
	cr_assert_eq(exports.n, n);
}

Test(export, spec)
{
	struct export *ex;

	make_file("plain", 1024);
	make_file("with,comma", 1024);
	make_file("back\\slash", 1024);
	make_file("equals=sign", 1024);
	ex = add_ok("a=plain");
	cr_assert_str_eq(ex->path, "plain");
	cr_assert(!ex->spec.readonly && !ex->direct && !store_file(ex)->is_block);
	cr_assert_eq(ex->size, 1024);
	cr_assert_eq(ex->index, 0);
	ex = add_ok("b=plain,readonly");
	cr_assert(ex->spec.readonly && !ex->direct);
	cr_assert_eq(ex->index, 1);
	cr_assert_str_eq(add_ok("c=with\\,comma,readonly")->path, "with,comma");
	cr_assert_str_eq(add_ok("d=back\\\\slash")->path, "back\\slash");
	cr_assert_str_eq(add_ok("e=equals=sign")->path, "equals=sign");
	cr_assert_null(exports_find(&exports, "f"));
	cr_assert_eq(exports.n, 5);
}

/* However it is named and opened; and no other file has it. */
Test(export, ident)
{
	struct export *ex;
	uint64_t ident;

	make_file("a", 1024);
	make_file("b", 1024);
	cr_assert_eq(link("a", "hard"), 0);
	cr_assert_eq(symlink("a", "soft"), 0);
	ident = add_ok("a=a")->ident;
	cr_assert_neq(ident, 0);
	cr_assert_eq(add_ok("hard=hard,readonly")->ident, ident);
	cr_assert_eq(add_ok("soft=soft")->ident, ident);
	ex = add_ok("b=b");
	cr_assert_neq(ex->ident, ident);
}

/* The name of an administrator replaces what the file system says, and is one file's alone. */
Test(export, id_of_a_file)
{
	static const char longest[] = "0123456789abcdef0123456789abcdef"
				      "0123456789abcdef0123456789ABCD._";
	char spec[128], err[512];
	uint64_t ident;

	make_file("a", 1024);
	make_file("b", 1024);
	make_file("c", 1024);
	ident = add_ok("a=a,id=x-1")->ident;
	cr_assert_eq(add_ok("again=a,readonly,id=x-1")->ident, ident);
	cr_assert_neq(add_ok("b=b")->ident, ident);
	add_refused("twin=b,id=x-1", -EEXIST, "export 'twin': 'b': 'a' of export 'a' has the same "
		    "id= but is another storage: give each an id= of its own");
	add_refused("two=a,id=y", -EEXIST, "export 'two': 'a': 'a' of export 'a' is the same "
		    "storage with another id=: give both the same id=");
	snprintf(spec, sizeof(spec), "long=c,id=%s", longest);
	add_ok(spec);
	snprintf(spec, sizeof(spec), "longer=c,id=%s0", longest);
	cr_assert_eq(export_add_line(&exports, spec, err, sizeof(err)), -EINVAL);
	add_refused("a1=c,id=a/b", -EINVAL, "export 'a1': id='a/b': expected at most 64 letters, "
		    "digits, '.', '_' and '-'");
}

/* A device that does not have the attribute. */
Test(export, sysfs)
{
	char buf[64];

	cr_assert_not(store_file_disk_attr(0, "size", buf, sizeof(buf)));
	cr_assert_eq(store_file_disk_number(0, "size", 7), 7);
}

Test(export, refused)
{
	char longname[300], line[512];

	make_file("ok", 1024);
	make_file("odd", 1000);
	make_file("empty", 0);
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	add_ok("taken=ok");

	add_refused("ok", -EINVAL, "'ok': expected NAME=PATH[,readonly][,direct][,force]");
	add_refused("=ok", -EINVAL, "export without a name: expected NAME=PATH");
	add_refused("a=", -EINVAL, "export 'a': no path: expected NAME=PATH");
	add_refused("a/../b=ok", -EINVAL, "export name 'a/../b': '..' is not allowed in a name");
	add_refused("taken=ok", -EEXIST, "export name 'taken' is given twice");
	add_refused("a=ok,readable", -EINVAL, "export 'a': unknown flag 'readable': expected "
		    "readonly, direct, force, id= or shared= (a comma in PATH is written '\\,')");
	add_refused("a=ok,", -EINVAL,
		    "export 'a': unknown flag '': expected readonly, direct, force, id= or shared= "
		    "(a comma in PATH is written '\\,')");
	add_refused("a=missing", -ENOENT,
		    "export 'a': 'missing' cannot be opened: No such file or directory: expected a "
		    "path from / on, or from where the server was started");
	add_refused("a=.", -EISDIR,
		    "export 'a': '.' is a directory: expected a regular file or a block device");
	add_refused("a=fifo", -EINVAL,
		    "export 'a': 'fifo' is neither a regular file nor a block device");
	add_refused("a=/dev/null", -EINVAL,
		    "export 'a': '/dev/null' is neither a regular file nor a block device");
	add_refused("a=empty", -EINVAL,
		    "export 'a': 'empty' is empty: give it a size first, e.g.: "
		    "truncate -s 1G 'empty'");
	add_refused("a=odd", -EINVAL,
		    "export 'a': 'odd' has 1000 bytes, which is no multiple of 512, "
		    "and RNBD counts in sectors of 512: round it up with: truncate -s %512 'odd'");
	memset(longname, 'n', 255);
	strcpy(longname + 255, "=ok");
	snprintf(line, sizeof(line),
		 "export name '%.32s...' has 255 bytes: at most 254 fit the protocol", longname);
	add_refused(longname, -ENAMETOOLONG, line);
	memmove(longname, longname + 1, 258);
	add_ok(longname);
}

/* Root may write anything, so the test takes another identity. */
Test(export, not_writable)
{
	char user[WHO_TEXT_LEN], owner[WHO_TEXT_LEN];
	bool root = !geteuid();
	char line[512];

	make_file("ro", 1024);
	make_file("secret", 1024);
	cr_assert_eq(chmod("ro", 0444), 0);
	cr_assert_eq(chmod("secret", 0), 0);
	if (root) {
		cr_assert_eq(chmod(dir, 0755), 0);
		cr_assert_eq(setresuid(65534, 65534, 0), 0);
	}
	snprintf(line, sizeof(line), "export 'a': 'ro' is not writable by %s, who runs the server "
		 "(Permission denied): chown it, or export it read-only: " STORE_READONLY,
		 who_text(geteuid(), user));
	add_refused("a=ro", -EACCES, line);
	cr_assert(add_ok("a=ro,readonly")->spec.readonly);
	snprintf(line, sizeof(line), "export 'b': 'secret' cannot be opened: Permission denied: "
		 "%s, who runs this program, may not read it, and it is of %s and group %u with "
		 "mode 0000: chown it", user, who_text(root ? 0 : geteuid(), owner),
		 root ? 0 : (unsigned)getegid());
	add_refused("b=secret", -EACCES, line);
	if (root)
		cr_assert_eq(setresuid(0, 0, 0), 0);
}

Test(export, p21_geometry_of_a_file)
{
	struct rnbd_dev_info g;
	struct stat st;

	make_file("f", 1 << 20);
	cr_assert_eq(stat("f", &st), 0);
	g = add_ok("a=f")->geometry;
	cr_assert_eq(g.logical_block_size, 512);
	cr_assert_eq(g.physical_block_size, st.st_blksize);
	cr_assert(g.writeback && g.fua);
	cr_assert_eq(g.secure_discard, 0);
	cr_assert_eq(g.max_write_zeroes_sectors, UINT32_MAX >> 9);
	if (g.max_discard_sectors)
		cr_assert(is_pow2(g.discard_granularity));
	/* Asking whether holes can be punched leaves the file as it is. */
	cr_assert_eq(stat("f", &st), 0);
	cr_assert_eq(st.st_size, 1 << 20);

	g = add_ok("b=f,readonly")->geometry;
	cr_assert_eq(g.max_discard_sectors, 0);
	cr_assert_eq(g.max_write_zeroes_sectors, 0);
}

/* A file as long as a file can be has no room behind its end, and holes all the same. */
Test(export, geometry_of_the_longest_file)
{
	int fd = memfd_create("long", MFD_CLOEXEC);
	struct rnbd_dev_info g;
	char spec[64];

	cr_assert_geq(fd, 0);
	cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
	cr_assert_eq(ftruncate(fd, INT64_MAX / 4096 * 4096), 0);
	snprintf(spec, sizeof(spec), "a=/proc/self/fd/%d", fd);
	g = add_ok(spec)->geometry;
	cr_assert_eq(g.max_discard_sectors, UINT32_MAX >> 9);
	close(fd);
}

/* doc/protocol.md 8.2, as a table: modes taken one after the other, and the answer to the last. */
Test(export, sharing)
{
	enum { RO = RNBD_ACCESS_RO, RW = RNBD_ACCESS_RW, MIG = RNBD_ACCESS_MIGRATION };
	static const struct {
		int modes[4], n, rc;
	} cases[] = {
		{ { RO }, 1, 0 },
		{ { RW }, 1, 0 },
		{ { MIG }, 1, 0 },
		{ { RO, RO, RO }, 3, 0 },
		{ { RO, RW }, 2, 0 },
		{ { RW, RO }, 2, 0 },
		{ { RW, RW }, 2, -EPERM },
		{ { RW, MIG }, 2, 0 },
		{ { MIG, RW }, 2, -EPERM },
		{ { MIG, MIG }, 2, 0 },
		{ { RW, MIG, RO }, 3, 0 },
		{ { RW, MIG, MIG }, 3, -EPERM },
		{ { RW, MIG, RW }, 3, -EPERM },
	};
	struct export *ex;

	make_file("f", 1024);
	ex = add_ok("a=f");
	for_each_case(c, cases) {
		int last = c->n - 1;

		for (int i = 0; i < last; i++)
			cr_assert_eq(export_acquire(ex, (enum rnbd_access_mode)c->modes[i]), 0);
		cr_assert_eq(export_acquire(ex, (enum rnbd_access_mode)c->modes[last]), c->rc,
			     "case %td", c - cases);
		for (int i = 0; i < last + !c->rc; i++)
			export_release(ex, (enum rnbd_access_mode)c->modes[i]);
		cr_assert(!ex->store->users && !ex->store->writers);
	}
}

Test(export, two_names_of_one_file_share)
{
	struct export *a, *b, *other, *ro;

	make_file("f", 1024);
	make_file("g", 1024);
	cr_assert_eq(link("f", "hard"), 0);
	a = add_ok("a=f");
	b = add_ok("b=hard");
	other = add_ok("c=g");
	ro = add_ok("d=f,readonly");
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), 0);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RW), -EPERM);
	cr_assert_eq(export_acquire(other, RNBD_ACCESS_RW), 0);
	cr_assert_eq(export_acquire(ro, RNBD_ACCESS_RW), -EROFS);
	cr_assert_eq(export_acquire(ro, RNBD_ACCESS_MIGRATION), -EROFS);
	export_release(a, RNBD_ACCESS_RW);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RW), 0);
}

Test(export, error_is_latched_until_opened_anew)
{
	struct export *a, *b;

	make_file("f", 1024);
	a = add_ok("a=f");
	b = add_ok("b=f");
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), 0);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RO), 0);
	export_sync_failed(b, -EIO);
	export_sync_failed(a, -ENOSPC);
	cr_assert_eq(export_sync_error(a), -EIO);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_MIGRATION), 0, "the writer has it still open");
	export_release(b, RNBD_ACCESS_MIGRATION);
	export_release(a, RNBD_ACCESS_RW);
	cr_assert_eq(export_sync_error(b), -EIO);
	/* Nobody writes, whoever reads: what that takes is export-io's to do. */
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RO), -EAGAIN);
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), -EAGAIN);
	export_release(b, RNBD_ACCESS_RO);
	a->store->reopen = EXPORT_REOPEN_DONE;
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RW), 0);
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RO), 0, "in use, although the error has stayed");
	export_release(a, RNBD_ACCESS_RO);
	export_release(b, RNBD_ACCESS_RW);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RW), -EAGAIN,
		     "tried once more for the next one");
	cr_assert_eq(a->store->writers, 0);
}

/* A client that lost its path opens anew and so forgets the error by itself: only another number of
 * losses tells it that FLUSH cannot be trusted. */
Test(export, losses_tell_who_comes_back)
{
	struct export *a, *b;
	uint64_t before, failed;

	make_file("f", 1024);
	make_file("g", 1024);
	a = add_ok("a=f");
	b = add_ok("b=g");
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), 0);
	cr_assert_eq(export_acquire(b, RNBD_ACCESS_RW), 0);
	before = store_losses(&exports);
	export_release(b, RNBD_ACCESS_RW);
	cr_assert_eq(store_losses(&exports), before, "nothing was lost");
	export_sync_failed(a, -EIO);
	failed = store_losses(&exports);
	cr_assert_neq(failed, before);
	/* Who connected after the failure has unflushed writes that this forgets, too. */
	export_release(a, RNBD_ACCESS_RW);
	cr_assert_neq(store_losses(&exports), failed);
	failed = store_losses(&exports);
	atomic_store(&a->store->sync_error, 0);
	cr_assert_eq(export_acquire(a, RNBD_ACCESS_RW), 0);
	export_release(a, RNBD_ACCESS_RW);
	cr_assert_eq(store_losses(&exports), failed, "healthy again");
}

/* ---- many ---- */

#define MANY 200u

static struct export *many_name(unsigned i)
{
	char name[16];

	snprintf(name, sizeof(name), "m%u", i);
	return exports_find(&exports, name);
}

static void expect_many(bool (*is_there)(unsigned i))
{
	bool slots[MANY] = { false }, store_slots[MANY] = { false };

	for (unsigned i = 0; i < MANY; i++) {
		struct export *ex = many_name(i);

		cr_assert_eq(ex != NULL, is_there(i), "%u", i);
		if (!ex)
			continue;
		cr_assert_lt(ex->index, MANY);
		cr_assert(!slots[ex->index], "two exports have slot %u", ex->index);
		slots[ex->index] = true;
		cr_assert_lt(ex->store->index, exports.slots.n);
		cr_assert(!store_slots[ex->store->index], "two stores have slot %u",
			  ex->store->index);
		store_slots[ex->store->index] = true;
		cr_assert_eq(store_find(&exports, ex), ex->store);
	}
}

static bool all_of_many(unsigned i)
{
	return true;
}

static bool third_of_many(unsigned i)
{
	return i % 3 == 0;
}

Test(export, many_come_and_go)
{
	char spec[32];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < MANY; i++) {
			snprintf(spec, sizeof(spec), "m%u=mem:4K", i);
			if (!many_name(i))
				add_ok(spec);
		}
		expect_many(all_of_many);
		for (unsigned i = 0; i < MANY; i++) {
			if (!third_of_many(i))
				exports_del(&exports, many_name(i));
		}
		expect_many(third_of_many);
	}
	cr_assert_eq(exports.slots.n, MANY, "slots that were free were taken again");
	cr_assert_eq(exports.store_slots.n, MANY);
}

/* Whichever number of the two is the same: the id that a user gave, or the storage itself. */
Test(export, storage_has_one_id)
{
	make_file("f", 1024);
	make_file("g", 1024);
	add_ok("a=f,id=one");
	add_ok("b=f,id=one,readonly");
	add_refused("c=g,id=one", -EEXIST,
		    "export 'c': 'g': 'f' of export 'a' has the same id= but is another storage: "
		    "give each an id= of its own");
	add_refused("c=f,id=two", -EEXIST,
		    "export 'c': 'f': 'f' of export 'a' is the same storage with another id=: give "
		    "both the same id=");
	add_refused("c=f", -EEXIST,
		    "export 'c': 'f': 'f' of export 'a' is the same storage with another id=: give "
		    "both the same id=");
	exports_del(&exports, exports_find(&exports, "a"));
	add_refused("c=f", -EEXIST,
		    "export 'c': 'f': 'f' of export 'b' is the same storage with another id=: give "
		    "both the same id=");
	exports_del(&exports, exports_find(&exports, "b"));
	add_ok("c=f");
	add_ok("d=g,id=one");
}

/* Exports without a medium do not count. */
Test(export, media_are_counted)
{
	struct export *a, *b;

	make_file("f", 1024);
	make_file("g", 1024);
	a = add_ok("a=f");
	b = add_ok("b=g");
	add_ok("c=mem:4K");
	cr_assert(exports_one_medium(&exports));
	exports_hide(&exports, b);
	b->medium++;
	exports_show(&exports, b);
	cr_assert_not(exports_one_medium(&exports));
	exports_hide(&exports, a);
	cr_assert(exports_one_medium(&exports));
	exports_show(&exports, a);
	cr_assert_not(exports_one_medium(&exports));
	exports_hide(&exports, b);
	cr_assert(exports_one_medium(&exports));
	exports_show(&exports, b);
}

/* ---- capabilities ---- */

static uint64_t capabilities(const char *path, bool shared)
{
	struct export_spec spec = { .name = "a", .path = path, .shared = shared };
	char err[256];

	cr_assert_eq(export_spec_check(&spec, err, sizeof(err)), 0, "%s", err);
	return export_spec_capabilities(&spec);
}

/* Kept as long as the process lives, so only for an export that needs them. */
Test(export, capabilities_of_a_shared_block_device_alone)
{
	cr_assert_eq(store_file_driver.shared_capabilities,
		     1ULL << CAP_SYS_RAWIO | 1ULL << CAP_SYS_ADMIN);
	cr_assert_eq(capabilities("/dev/null", true), store_file_driver.shared_capabilities);
	cr_assert_eq(capabilities("/dev/null", false), 0);
	cr_assert_eq(capabilities("mem:1M", false), 0);
#ifdef HAVE_RBD
	cr_assert_eq(capabilities("rbd:pool/image", true), 0);
#endif
}
