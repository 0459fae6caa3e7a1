/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that a peer has chosen, before a terminal or a log file gets it.  Pure. */
#ifndef BASE_MASK_H
#define BASE_MASK_H

/* Put a '?' in the place of each byte of @text that is part of a control character (U+0000 to
 * U+001F, U+007F to U+009F), which could end a line or speak to a terminal, or of no UTF-8. */
void mask_control(char *text);

#endif
