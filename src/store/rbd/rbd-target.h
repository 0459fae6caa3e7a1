/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of an image: "rbd:POOL/[NAMESPACE/]IMAGE[@SNAP]".  Pure. */
#ifndef RBD_TARGET_H
#define RBD_TARGET_H

#include <stddef.h>

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

#endif
