/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers put together, in the hope that there is memory: what misses a part for want of it is
 * given up as a whole, so a reader never takes half of it for all.  NULL stands for that
 * everywhere.  Any thread. */
#ifndef CTL_JSON_H
#define CTL_JSON_H

#include <stdbool.h>

#include <jansson.h>

/* A string of @text; if that is no UTF-8, as names of files and of peers may be, with a '?' for
 * each byte that mask_control() masks.  All text becomes JSON here: jansson refuses what is no
 * UTF-8, and then an answer would be missing for want of memory, which is not wanting.  Write
 * "s:o", not "s:s" (tests/check-layers.sh). */
json_t *ctl_json_text(const char *text);
/* Append @item, whose reference is taken.  False: no memory. */
bool ctl_json_add(json_t *array, json_t *item);
/* @value if @complete; else it goes, and NULL. */
json_t *ctl_json_whole(json_t *value, bool complete);
/* @object with the members of @more, whose reference is taken. */
json_t *ctl_json_with(json_t *object, json_t *more);

#endif
