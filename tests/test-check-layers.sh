#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check-layers.sh finds each kind of violation, and nothing in a tree without one.
set -u
check=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/check-layers.sh
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
failed=0

fresh_tree() {
	rm -rf "$tree/src"
	for d in common/base common/fabric/tcp common/fabric/verbs common/rtrs common/rnbd frwr \
		rtrs-client/io rtrs-client/path rtrs-client/sess rtrs-client/dev \
		rtrs-client/loop rtrs-client/ctl rtrs-client/start \
		nbdkit-rtrs-plugin \
		rtrs-server/reactor rtrs-server/rtrs rtrs-server/rnbd store store/file
	do
		mkdir -p "$tree/src/$d"
	done
	echo '#include <stdint.h>' > "$tree/src/common/base/le.h"
	echo '#include "le.h"' > "$tree/src/common/base/loop-impl.h"
	echo '#include <infiniband/verbs.h>' > "$tree/src/common/fabric/fabric.h"
	echo '#include "fabric.h"' > "$tree/src/common/fabric/tcp/tcp-key.h"
	printf '#include <rdma/rdma_cma.h>\n#include "fabric.h"\n' > \
		"$tree/src/common/fabric/verbs/verbs-cm.c"
	echo '#include "fabric.h"' > "$tree/src/common/fabric/verbs/verbs-priv.h"
	echo '#include "le.h"' > "$tree/src/common/rtrs/rtrs-msg.h"
	printf '#include <string.h>\n#include <zlib.h>\n#include "le.h"\n' \
		> "$tree/src/common/rnbd/rnbd-msg.h"
	echo '#include "fabric.h"' > "$tree/src/frwr/frwr.h"
	echo '#include <pthread.h>' > "$tree/src/rtrs-client/io/clt-io.h"
	echo '#include "clt-io.h"' > "$tree/src/rtrs-client/path/clt-path.h"
	echo '#include "clt-path.h"' > "$tree/src/rtrs-client/sess/clt-sess.h"
	printf '#include "clt-sess.h"\n#include "rnbd-msg.h"\n' > "$tree/src/rtrs-client/dev/dev.h"
	echo '#include "dev.h"' > "$tree/src/rtrs-client/dev/dev-priv.h"
	echo '#include "clt-io.h"' > "$tree/src/rtrs-client/loop/clt-loop.h"
	printf '#include <jansson.h>\n#include "dev.h"\n' > "$tree/src/rtrs-client/ctl/clt-ctl.h"
	echo '#include "clt-ctl.h"' > "$tree/src/rtrs-client/start/clt-start.h"
	printf '#include <nbdkit-plugin.h>\n#include "config.h"\n#include "frwr.h"\n' \
		> "$tree/src/nbdkit-rtrs-plugin/plugin.c"
	printf '#include "reactor-ring.h"\n' > "$tree/src/rtrs-server/reactor/reactor.c"
	printf '#include <liburing.h>\n#include "loop-impl.h"\n' > \
		"$tree/src/rtrs-server/reactor/reactor-ring.h"
	printf '#include "reactor-ring.h"\n#include "rnbd-msg.h"\n' > \
		"$tree/src/store/file/store-file-io.h"
	echo '#include "rtrs-msg.h"' > "$tree/src/rtrs-server/srv-fsm.h"
	echo '#include "rtrs-msg.h"' > "$tree/src/rtrs-server/rtrs/srv-path.h"
	printf '#include "srv-path.h"\n#include "rnbd-msg.h"\n' > \
		"$tree/src/rtrs-server/rnbd/srv-open.h"
}

# violation FILE INCLUDE MESSAGE: the tree with one include more is refused with this message
violation() {
	fresh_tree
	echo "#include $2" >> "$tree/src/$1"
	if out=$(sh "$check" "$tree" 2>&1); then
		echo "not found: $2 in $1"
		failed=1
	elif ! printf '%s\n' "$out" | grep -qF "src/$1:" || ! printf '%s\n' "$out" |
		grep -qF -- "$3"
	then
		echo "$2 in $1: expected \"$3\", got:"
		printf '%s\n' "$out"
		failed=1
	fi
}

fresh_tree
if ! out=$(sh "$check" "$tree" 2>&1); then
	echo "a clean tree was refused:"
	printf '%s\n' "$out"
	failed=1
fi

violation common/base/le.h '"rtrs-msg.h"' 'src/common/base may not use src/common/rtrs'
violation common/base/le.h '<infiniband/verbs.h>' 'is not for this file'
violation common/rtrs/rtrs-msg.h '"rnbd-msg.h"' 'src/common/rtrs may not use src/common/rnbd'
violation common/rtrs/rtrs-msg.h '"fabric.h"' 'src/common/rtrs may not use src/common/fabric'
violation common/rnbd/rnbd-msg.h '"rtrs-msg.h"' 'may not use'
violation common/fabric/fabric.h '"rtrs-msg.h"' 'may not use'
violation frwr/frwr.h '"rtrs-msg.h"' 'src/frwr may not use src/common/rtrs'
violation rtrs-server/srv-fsm.h '"clt-io.h"' 'may not use src/rtrs-client/io'
violation rtrs-client/io/clt-io.h '"srv-fsm.h"' 'may not use src/rtrs-server'
violation rtrs-client/io/clt-io.h '"clt-path.h"' \
	'src/rtrs-client/io may not use src/rtrs-client/path'
violation rtrs-client/io/clt-io.h '"rnbd-msg.h"' 'may not use src/common/rnbd'
violation rtrs-client/path/clt-path.h '"clt-sess.h"' 'may not use src/rtrs-client/sess'
violation rtrs-client/sess/clt-sess.h '"dev.h"' 'may not use src/rtrs-client/dev'
violation rtrs-client/dev/dev.h '"clt-ctl.h"' 'src/rtrs-client/dev may not use src/rtrs-client/ctl'
violation rtrs-client/dev/dev.h '"clt-loop.h"' 'may not use src/rtrs-client/loop'
violation rtrs-client/ctl/clt-ctl.h '"clt-start.h"' 'may not use src/rtrs-client/start'
violation rtrs-client/start/clt-start.h '<jansson.h>' 'is not for this file'
violation rtrs-client/start/clt-start.h '<nbdkit-plugin.h>' 'is not for this file'
violation nbdkit-rtrs-plugin/plugin.c '"dev-priv.h"' 'is private to src/rtrs-client/dev'
violation common/fabric/fabric.h '"tcp-key.h"' 'src/common/fabric may not use src/common/fabric/tcp'
violation common/fabric/verbs/verbs-cm.c '"tcp-key.h"' 'may not use src/common/fabric/tcp'
violation common/fabric/tcp/tcp-key.h '<rdma/rdma_cma.h>' 'is not for this file'
violation rtrs-server/reactor/reactor.c '"tcp-key.h"' 'may not use src/common/fabric/tcp'
violation rtrs-server/reactor/reactor.c '"verbs-priv.h"' 'is private to src/common/fabric/verbs'
violation rtrs-server/srv-fsm.h '"loop-impl.h"' 'is not for this file'
violation rtrs-server/reactor/reactor.c '"nowhere.h"' 'is not below src/'
violation rtrs-server/reactor/reactor.c '<le.h>' 'include it in quotes'
violation rtrs-server/reactor/reactor.c 'MACRO' 'cannot be read'
violation common/rtrs/rtrs-msg.h '<time.h>' '<time.h> in pure code'
violation common/rtrs/rtrs-msg.h '<sys/socket.h>' 'in pure code'
violation common/rnbd/rnbd-msg.h '<stdio.h>' 'in pure code'
violation common/rnbd/rnbd-msg.h '<pthread.h>' 'in pure code'
violation common/rnbd/rnbd-msg.h '<infiniband/verbs.h>' 'is not for this file'
violation rtrs-server/srv-fsm.h '<unistd.h>' 'in pure code'
violation rtrs-server/srv-fsm.h '<liburing.h>' 'is not for this file'
violation rtrs-client/io/clt-io.h '<nbdkit-plugin.h>' 'is not for this file'
violation nbdkit-rtrs-plugin/plugin.c '<liburing.h>' 'is not for this file'
violation rtrs-server/rtrs/srv-path.h '"srv-open.h"' \
	'src/rtrs-server/rtrs may not use src/rtrs-server/rnbd'
violation rtrs-server/rtrs/srv-path.h '"rnbd-msg.h"' \
	'src/rtrs-server/rtrs may not use src/common/rnbd'
violation store/file/store-file-io.h '"srv-fsm.h"' 'src/store/file may not use src/rtrs-server'
violation rtrs-server/reactor/reactor.c '"rnbd-msg.h"' \
	'src/rtrs-server/reactor may not use src/common/rnbd'
violation rtrs-server/srv-fsm.h '"reactor-ring.h"' 'is not for this file'
violation common/fabric/fabric.h '<rdma/rdma_cma.h>' 'is not for this file'

for text in 'json_string(name)' 'json_pack("{s:i,s:s}", "n", 1, "name", name)'; do
	fresh_tree
	echo "$text" >> "$tree/src/nbdkit-rtrs-plugin/plugin.c"
	sh "$check" "$tree" | grep -qF 'goes through ctl_json_text()' ||
		{ echo "not found: $text"; failed=1; }
done
fresh_tree
mkdir "$tree/src/extra"
echo > "$tree/src/extra/x.c"
sh "$check" "$tree" | grep -qF 'src/extra has no rule' || { echo "unknown directory"; failed=1; }
fresh_tree
cp "$tree/src/common/base/le.h" "$tree/src/frwr/le.h"
sh "$check" "$tree" | grep -qF 'has the same name' || { echo "two headers of one name"; failed=1; }
sh "$check" "$tree/none" >/dev/null && { echo "a tree that does not exist"; failed=1; }
exit $failed
