/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of images: each name put together from parts comes apart into the same parts, and what
 * is no name is refused. */
#include <config.h>

#include <errno.h>
#include <stdio.h>

#include "store-rbd-priv.h"
#include "unit.h"

/* Each combination of parts, with and without namespace and snapshot. */
Test(rbd_target, parts)
{
	static const char *const parts[] = { "a", "rbd", "a b", ".x-1_", "k=v", "p,q", "\xc3\xa9" };
	char text[64];

	for (unsigned i = 0; i < 4 * ARRAY_SIZE(parts) * ARRAY_SIZE(parts); i++) {
		const char *pool = parts[i / 4 % ARRAY_SIZE(parts)];
		const char *image = parts[i / 4 / ARRAY_SIZE(parts)];
		struct rbd_target t;

		snprintf(text, sizeof(text), "rbd:%s/%s%s%s", pool, i & 1 ? "ns/" : "", image,
			 i & 2 ? "@s 1" : "");
		cr_assert_eq(rbd_target_parse(&t, text), 0, "%s", text);
		cr_assert_str_eq(t.pool, pool);
		cr_assert_str_eq(t.space, i & 1 ? "ns" : "");
		cr_assert_str_eq(t.image, image);
		if (i & 2)
			cr_assert_str_eq(t.snap, "s 1");
		else
			cr_assert_null(t.snap);
		rbd_target_fini(&t);
	}
}

Test(rbd_target, refused)
{
	static const char *const texts[] = {
		"", "rbd", "rbd:", "rbd:pool", "rbd:pool/", "rbd:/image", "rbd://", "rbd:p//i",
		"rbd:p/n/i/x", "rbd:p/i@", "rbd:p/@s", "rbd:p/i@a@b", "rbd:p/i@a/b", "rbd:@s",
		"rbd:p@s/i", "pool/image", "Rbd:p/i",
	};
	struct rbd_target t;

	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++)
		cr_assert_eq(rbd_target_parse(&t, texts[i]), -EINVAL, "%s", texts[i]);
}
