/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a device of rtrs-attach: what is written is read, and nothing else harms. */
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include "attach-state.h"

/* @s, written and read again. */
static struct attach_state again(const struct attach_state *s)
{
	struct attach_state back;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	cr_assert_not_null(f);
	attach_state_put(s, f);
	fclose(f);
	attach_state_take(&back, s->name, text);
	free(text);
	return back;
}

Test(attach_state, read_as_written)
{
	const struct attach_state s = {
		.name = "disk0", .driver = "nbd", .index = 3, .disk = "nbd3",
		.server = "tcp://192.0.2.10:1234", .export_name = "a=b/c", .pid = 4000000,
		.wish = ATTACH_GOES_UNUSED,
	};
	struct attach_state back = again(&s);

	expect_bytes(&back, &s, sizeof(s), "state");
}

Test(attach_state, no_device)
{
	char none[] = "";
	struct attach_state s;

	attach_state_take(&s, "disk0", none);
	cr_assert_str_eq(s.name, "disk0");
	cr_assert_str_eq(s.driver, "");
	cr_assert_eq(s.index, -1);
	cr_assert_eq(s.wish, ATTACH_STAYS);
}

/* Of a later version, or damaged. */
Test(attach_state, other_lines)
{
	char text[] = "color=blue\nindex=x\nindex=99999999999\nwish=3\nwish=1\npid\n=\n"
		      "driver=nbd\ndisk=a-name-longer-than-any-of-the-kernel-32\n";
	struct attach_state s;

	attach_state_take(&s, "disk0", text);
	cr_assert_eq(s.index, -1);
	cr_assert_eq(s.wish, ATTACH_GOES);
	cr_assert_eq(s.pid, 0);
	cr_assert_str_eq(s.driver, "nbd");
	cr_assert_eq(strlen(s.disk), sizeof(s.disk) - 1);
}

static uint64_t mark(const char *name, const char *export)
{
	struct attach_state s = { 0 };

	snprintf(s.name, sizeof(s.name), "%s", name);
	snprintf(s.export_name, sizeof(s.export_name), "%s", export);
	return attach_state_mark(&s);
}

/* The kernel keeps the mark: a later version has to find its disks. */
Test(attach_state, marks)
{
	struct attach_state s = { .name = "disk0", .export_name = "disk" };

	cr_assert_eq(mark("disk0", "disk"), UINT64_C(0xb702666cc8e85e4c));
	cr_assert_eq(attach_state_mark_0(&s), UINT64_C(0xf0fbba45cc989046));
	cr_assert_neq(mark("disk0", "disk"), mark("disk1", "disk"));
	cr_assert_neq(mark("disk0", "disk"), mark("disk0", "disk1"));
	cr_assert_neq(mark("disk0", "disk"), mark("disk0d", "isk"));
	/* A device whose export is lost is known by its name. */
	cr_assert_eq((mark("disk0", "disk") ^ mark("disk0", "")) & ATTACH_MARK_NAME, 0);
	cr_assert_neq((mark("disk0", "") ^ mark("disk1", "")) & ATTACH_MARK_NAME, 0);
}

Test(attach_state, names)
{
	static const char *const good[] = { "disk0", "_", "9", "a.b-c_D", "lock", "a.lock.b" };
	static const char *const bad[] = { "", ".", "..", ".a", "-a", "a/b", "a b", "\xc3\xa4",
					   "a.lock", "a.tmp", "a.new", "a\n" };

	for_each_case(c, good)
		cr_assert(attach_name_ok(*c), "%s", *c);
	for_each_case(c, bad)
		cr_assert(!attach_name_ok(*c), "%s", *c);
}
