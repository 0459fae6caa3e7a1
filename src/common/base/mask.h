/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that a peer has chosen, before a terminal or a log file gets it.  Pure. */
#ifndef BASE_MASK_H
#define BASE_MASK_H

/* Replace by '?' each byte of @text that is part of a control character, or is no UTF-8.  Control
 * characters, U+0000 to U+001F and U+007F to U+009F, could end a line or steer a terminal.
 * Characters that turn the direction of a text, or that nobody sees, could make one name look like
 * another: they are replaced, too. */
void mask_control(char *text);

#endif
