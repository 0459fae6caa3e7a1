# SPDX-License-Identifier: BSD-3-Clause
# For lists.sh: names of files become lists.mk.

{ all[n++] = $0; is[$0] = 1 }

END {
	for (i = 0; i < n; i++)
		if (all[i] ~ /^src\/.*local\.mk$/)
			read_named(all[i])
	for (i = 0; i < n; i++)
		sort_in(all[i])
	for (i = 0; i < nlists; i++)
		print_list(lists[i])
	for (i = 0; i < n; i++)
		if (all[i] ~ /^tests\/[a-z]*\/programs$/)
			read_programs(all[i])
	exit failed
}

function fail(text)
{
	print "lists.sh: " text >"/dev/stderr"
	failed = 1
}

function dir_of(file)
{
	sub(/\/[^\/]*$/, "", file)
	return file
}

# What automake calls it.
function canonical(name)
{
	gsub(/[^A-Za-z0-9]/, "_", name)
	return name
}

# The sources that the local.mk @file names.
function read_named(file,    line, words, k, m)
{
	while ((getline line <file) > 0) {
		m = split(line, words, /[ \t]+/)
		for (k = 1; k <= m; k++)
			if (words[k] ~ /^%D%\/.*\.[ch]$/)
				named[dir_of(file) substr(words[k], 4)] = 1
	}
	close(file)
}

function add(list, file)
{
	if (!(list in text))
		lists[nlists++] = list
	text[list] = text[list] " \\\n\t" file
}

function sort_in(file)
{
	if (file ~ /^src\/.*\.[ch]$/) {
		if (!(file in named))
			add("FILES_" canonical(dir_of(file)), file)
		return
	}
	if (file ~ /^tests\/test-[^\/]*\.sh$/)
		add("SHELL_TESTS", file)
	if (file ~ /^tests\/guest\/test-[^\/]*\.sh$/)
		add("GUEST_TESTS", file)
	if (file !~ /^\.ci\// && file !~ /(^|\/)\.git[a-z]*$/ && file !~ /\.mk$/)
		add("DIST_FILES", file)
}

function print_list(list)
{
	print list " =" text[list]
}

function read_programs(file,    line, row, dir)
{
	dir = dir_of(file)
	list = ""
	delete def
	row = ""
	while ((getline line <file) > 0) {
		sub(/[ \t]*#.*/, "", line)
		if (line ~ /^[ \t]/) {
			row = row line
			continue
		}
		read_row(file, dir, row)
		row = line
	}
	read_row(file, dir, row)
	close(file)
}

function read_row(file, dir, row,    word)
{
	if (row == "")
		return
	where = file ": " row
	split(row, word, /[ \t]+/)
	if (row ~ /^(if|else|endif)( |$)/)
		print row
	else if (word[1] == "list")
		start_list(word[2], word[3])
	else if (word[1] == "def")
		def[word[2]] = substr(row, index(row, word[2]) + length(word[2]))
	else
		program(dir, row)
}

function start_list(name, place)
{
	list = name
	top = place == "top"
	if (!(name in begun) && name !~ /^check_/)
		print name " ="
	begun[name] = 1
}

# The library that a row calls @word.
function library(word)
{
	if (word == "srv" || word == "ring")
		word = "rtrs" word
	return "lib" word ".la"
}

# A source of @dir that a row calls @word; "" if there is none.
function source(dir, word)
{
	if (word !~ /\.c$/)
		word = word ".c"
	if (word !~ /\//)
		word = dir "/" word
	if (!(word in is)) {
		fail(where ": no such file: " word)
		return ""
	}
	return word
}

function expand(line,    words, m, k, out)
{
	m = split(line, words, /[ \t]+/)
	for (k = 1; k <= m; k++) {
		if (words[k] ~ /^@/) {
			if (!(substr(words[k], 2) in def))
				fail(where ": nothing is defined as " words[k])
			words[k] = expand(def[substr(words[k], 2)])
		}
		out = out " " words[k]
	}
	return out
}

function program(dir, line,    words, m, k, j, parts, np, name, base, v, sources, libs, cpp, cflags, ld, w)
{
	line = expand(line)
	m = split(line, words, /[ \t]+/)
	# The first is empty: expand() begins with a space.
	name = words[2]
	base = name
	sub(/\.(crit|fuzz)$/, "", base)
	sources = base ~ /\.la$/ || line ~ /[ \t]main=/ ? "" : source(dir, base)
	cpp = "$(AM_CPPFLAGS)"
	cflags = "$(AM_CFLAGS)"
	ld = name ~ /\.fuzz$/ ? "$(FUZZ_LINK)" : "$(AM_LDFLAGS)"
	for (k = 3; k <= m; k++) {
		w = words[k]
		if (w ~ /^with=/) {
			np = split(substr(w, 6), parts, ",")
			for (j = 1; j <= np; j++)
				sources = sources " " source(dir, parts[j])
		} else if (w ~ /^main=/) {
			sources = source(dir, substr(w, 6)) " " sources
		} else if (w ~ /^wrap=/) {
			np = split(substr(w, 6), parts, ",")
			for (j = 1; j <= np; j++)
				ld = ld " -Wl,--wrap=" parts[j]
		} else if (w ~ /^in=/) {
			np = split(substr(w, 4), parts, ",")
			for (j = 1; j <= np; j++)
				cpp = cpp " " (parts[j] ~ /^[A-Z]/ ? "$(" parts[j] "_CPPFLAGS)" : "-I$(top_srcdir)/" parts[j])
		} else if (w ~ /^-D/) {
			cpp = cpp " " w
		} else if (w ~ /^-W/) {
			cflags = cflags " " w
		} else if (w ~ /^-l/) {
			libs = libs " " w
		} else if (w ~ /^[A-Z]/) {
			cflags = cflags " $(" w "_CFLAGS)"
			libs = libs " $(" w "_LIBS)"
		} else if (w != "") {
			libs = libs " " library(w)
			if (w ~ /^(srv|ring|sim)$/)
				cpp = cpp " $(SRV_CPPFLAGS)"
			if (w ~ /^(clt.*|sim)$/)
				cpp = cpp " $(CLT_CPPFLAGS)"
			if (w == "nbdsrv")
				cpp = cpp " $(NBD_CPPFLAGS)"
		}
	}
	if (name ~ /\.crit$/) {
		cflags = cflags " $(CRITERION_CFLAGS)"
		libs = libs " $(CRITERION_LIBS)"
	}
	if (name ~ /\.fuzz$/)
		libs = libs " $(FUZZ_MAIN)"
	if (!top)
		name = dir "/" name
	if (list == "")
		fail(where ": belongs to no list")
	print list " += " name
	v = canonical(name)
	print v "_SOURCES = " sources
	# Objects of programs without flags of their own are shared.
	if (cpp != "$(AM_CPPFLAGS)")
		print v "_CPPFLAGS = " cpp
	if (cflags != "$(AM_CFLAGS)")
		print v "_CFLAGS = " cflags
	if (name ~ /\.la$/) {
		print v "_LIBADD =" libs
		return
	}
	if (ld != "$(AM_LDFLAGS)")
		print v "_LDFLAGS = " ld
	print v "_LDADD =" libs
}
