/* SPDX-License-Identifier: BSD-3-Clause */
/* The room of a text on a terminal, which is neither its bytes nor its characters. */
#ifndef WIDTH_H
#define WIDTH_H

/* The columns of @text, UTF-8 without control characters.  Main thread. */
int width_of(const char *text);

#endif
