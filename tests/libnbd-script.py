# SPDX-License-Identifier: BSD-3-Clause
"""Run a test of libnbd's python/t as it is, but for one thing: a disk that it starts as
"nbdkit -s PLUGIN ..." is an export of a gateway, if the exports have such a one.

    libnbd-script.py DIR SOCKET KEYS SCRIPT

DIR/disks has the exports, named after plugin and argument: pattern-512 for "pattern size=512".
KEYS is a file of keys for TLS, or empty.  DIR/met gets a line for each export that the test is
given."""
import os
import runpy
import sys

import nbd

folder, socket, keys, script = sys.argv[1:]
own = nbd.NBD.connect_command


def connect_command(handle, argv):
    words = [word for word in argv[1:] if not word.startswith("-")]
    name = "-".join(words).replace("size=", "")
    if not os.path.exists(os.path.join(folder, "disks", name)):
        return own(handle, argv)
    with open(os.path.join(folder, "met"), "a") as met:
        print(os.path.basename(script), name, file=met)
    if not keys:
        return handle.connect_uri("nbd+unix:///%s?socket=%s" % (name, socket))
    handle.set_uri_allow_local_file(True)
    uri = "nbds+unix://alice@/%s?socket=%s&tls-psk-file=%s"
    return handle.connect_uri(uri % (name, socket, keys))


nbd.NBD.connect_command = connect_command
sys.argv = [script]
runpy.run_path(script, run_name="__main__")
