/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in the words of messages: a peer's name in a log, a name with a mistake, one name in many
 * rules, and users, with what keeps them from a file. */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stddef.h>
#include <sys/types.h>

/* Before a terminal or a log file gets @text, which a peer has chosen: replace by '?' each byte of
 * @text that is part of a control character, or is no UTF-8.  Control characters, U+0000 to U+001F
 * and U+007F to U+009F, could end a line or steer a terminal.  Characters that turn the direction
 * of a text, or that nobody sees, could make one name look like another: they are replaced, too. */
void mask_control(char *text);

/* ---- guesses which name a user meant by a wrong name ---- */

#define SUGGEST_LEN_MAX 40

/* The number of changes that make @b of the first @len bytes of @a: a letter inserted, removed or
 * replaced, or two neighbours swapped; capitals and small letters are the same.  SUGGEST_LEN_MAX
 * if @a or @b is longer. */
unsigned suggest_distance(const char *a, size_t len, const char *b);

/* The nearest of @n @names (some may be NULL) to the first @len bytes of @text; the first of
 * several.  NULL if more than a third of the letters differ from each name. */
const char *suggest_name(const char *text, size_t len, const char *const *names, size_t n);

/* The one text that is the same as @text, for as long as the program lives: for names that an
 * administrator writes.  NULL: no memory.  Any thread. */
const char *intern(const char *text);

/* ---- users, and what keeps them from a file.  Any thread. ---- */

#define WHO_TEXT_LEN 64

/* "user 104 (rtrs-server)", in @buf, of @uid; without the name if there is none, or a long one.
 * Returns @buf. */
const char *who_text(uid_t uid, char buf[WHO_TEXT_LEN]);

/* The setting of a unit that would hide @path of the machine from it, "ProtectHome=", and the
 * directory *@dir that it hides; NULL: none. */
const char *who_hides(const char *path, const char **dir);

/* Write to @buf why @uid, who runs this program, could not open @path, and what to do, with ": " in
 * front; @err: the -errno of open(2); @todo: what to do if the file itself is closed to @uid, as
 * "chown it".  "": nothing but the error itself is known.  Returns @buf. */
const char *who_closed(const char *path, int err, uid_t uid, const char *todo, char *buf,
		       size_t len);

#endif
