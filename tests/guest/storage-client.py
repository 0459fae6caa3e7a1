#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An NBD client that takes one command a line and answers with one line: "ok", an errno's name, or
what was asked for.  Offsets and lengths are in KiB.

	open URI			close			size	flush
	write OFF LEN CHARACTER [fua]	read OFF LEN CHARACTER	trim OFF LEN
	zero OFF LEN [no-hole]		map OFF LEN

Data is LEN times CHARACTER; 0 is a byte of zero, and r is noise that nothing compresses.  read
answers "other" to other data, map "holes" when all of it is a hole that reads as zeroes, and "data"
when all of it is data."""

import random

import sys

import nbd

KIB = 1024


def connect(uri):
    handle = nbd.NBD()
    handle.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    handle.connect_uri(uri)
    return handle


def pattern(character, n):
    if character == 'r':
        return random.Random(n).randbytes(n)
    return bytes(n) if character == '0' else character.encode() * n


def mapped(h, off, n):
    got = []
    while n > 0:
        part = []
        h.block_status(n, off, lambda context, offset, entries, error: part.extend(entries) or 0)
        done = min(sum(part[::2]), n)
        got += part[1::2]
        off, n = off + done, n - done
    return {(0,): 'data', (3,): 'holes'}.get(tuple(set(got)), 'both')


def run(h, op, args):
    off, n = [int(a) * KIB for a in args[:2]] or [0, 0]
    if op == 'write':
        h.pwrite(pattern(args[2], n), off, nbd.CMD_FLAG_FUA if args[3:] == ['fua'] else 0)
    elif op == 'read':
        return 'ok' if h.pread(n, off) == pattern(args[2], n) else 'other'
    elif op == 'zero':
        h.zero(n, off, nbd.CMD_FLAG_NO_HOLE if args[2:] == ['no-hole'] else 0)
    elif op == 'trim':
        if not h.can_trim():
            return 'none'
        h.trim(n, off)
    elif op == 'map':
        return mapped(h, off, n)
    elif op == 'size':
        return str(h.get_size() // KIB)
    elif op == 'flush':
        h.flush()
    else:
        return 'no such command'
    return 'ok'


h = None
print('ready', flush=True)
for line in sys.stdin:
    op, *args = line.split()
    try:
        if op in ('open', 'close'):
            h = connect(args[0]) if op == 'open' else None
            answer = 'ok'
        else:
            answer = run(h, op, args)
    except nbd.Error as e:
        answer = e.errno or 'gone'
    print(answer, flush=True)
