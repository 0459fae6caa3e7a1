/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the lessons: names of devices that cannot use their windows.  Any thread, in handlers and
 * under send locks, too.  A lesson is never changed or forgotten, so a pointer to its words stays
 * good. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "frwr-priv.h"
#include "log.h"

void frwr_lessons_init(struct frwr_lessons *l)
{
	memset(l, 0, sizeof(*l));
	pthread_mutex_init(&l->lock, NULL);
}

void frwr_lessons_fini(struct frwr_lessons *l)
{
	pthread_mutex_destroy(&l->lock);
}

unsigned frwr_lessons_count(struct frwr_lessons *l)
{
	LOCK_SCOPE(&l->lock);
	return l->n;
}

/* The lesson about @mode of @device, or NULL.  Lock held. */
static const struct frwr_lesson *lesson_find(const struct frwr_lessons *l, const char *device,
					     enum frwr_mode mode)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->lesson[i].mode == mode && !strcmp(l->lesson[i].device, device))
			return &l->lesson[i];
	}
	return NULL;
}

void frwr_lessons_apply(struct frwr_lessons *l, struct frwr_caps *caps)
{
	LOCK_SCOPE(&l->lock);
	for (int mode = FRWR_MW2; mode <= FRWR_MW1; mode++) {
		const struct frwr_lesson *lesson =
			lesson_find(l, caps->dev.name, (enum frwr_mode)mode);

		if (!lesson || caps->rc[mode])
			continue;
		caps->rc[mode] = -EOPNOTSUPP;
		caps->why[mode] = lesson->why;
		caps->unable[mode] = true;
	}
}

void frwr_pool_learn(struct frwr_pool *pool, struct frwr_lessons *l, const struct frwr_caps *caps)
{
	snprintf(pool->device, sizeof(pool->device), "%s", caps->dev.name);
	pool->lessons = l;
}

void frwr_unable(struct frwr_pool *pool, const char *what)
{
	struct frwr_lessons *l = pool->lessons;
	struct frwr_lesson *lesson;

	if (!l)
		return;
	LOCK_SCOPE(&l->lock);
	if (l->n == FRWR_LESSONS || lesson_find(l, pool->device, pool->mode))
		return;
	lesson = &l->lesson[l->n++];
	lesson->mode = pool->mode;
	memcpy(lesson->device, pool->device, sizeof(lesson->device));
	snprintf(lesson->why, sizeof(lesson->why),
		 "device %s offers memory windows of type %s and %s",
		 pool->device, pool->mode == FRWR_MW2 ? "2B" : "1", what);
	log_warn(NULL, "%s: they are not used any more", lesson->why);
}

void frwr_post_failed(struct frwr_pool *pool, int rc, const char *what)
{
	frwr_count(pool, post_fail);
	if (rc != -ENOTCONN)
		frwr_count(pool, partial_post);
	if (rc == -EOPNOTSUPP)
		frwr_unable(pool, what);
}
