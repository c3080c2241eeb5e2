# tests/interleave/sites.awk - every ordered operation of the given files, and each weaker order:
#     file function operation#nth order line
/^[a-z].*\(/ && !/;[ \t]*(\/\*.*)?$/ && !/^#/ {
	name = $0
	sub(/\(.*/, "", name)
	sub(/.*[ *]/, "", name)
	delete nth
}
{
	file = FILENAME
	sub(/.*\//, "", file)
	rest = $0
	if (rest ~ /^[ \t]*(\/?\*|#)/)
		next
	while (match(rest, /(load|store|swap|add|sub|cas)_(acquire|release|acq_rel|seq_cst)\(/)) {
		op = substr(rest, RSTART, RLENGTH - 1)
		rest = substr(rest, RSTART + RLENGTH)
		if ((FNR, op) in on_line)
			continue                 # two alike on one line are one site
		on_line[FNR, op] = FILENAME
		nth[op]++
		if (op ~ /^load_acquire|^store_release|^swap_acquire|^cas_acquire|^cas_release/) weaker = "relaxed"
		else if (op == "load_seq_cst") weaker = "acquire"
		else if (op == "store_seq_cst") weaker = "release"
		else if (op == "cas_acq_rel") weaker = "acquire release fail"
		else if (op ~ /acq_rel$/) weaker = "acquire release"
		else weaker = "acq_rel"
		n = split(weaker, each, " ")
		for (i = 1; i <= n; i++)
			print file, name, op "#" nth[op], each[i], FNR
	}
}
FNR == 1 { delete on_line }
