#!/bin/bash
# tools/conformance.sh [--check] - docs/conformance.md, written from the tests themselves.
#
# Every TEST(function, "ID ID") of a test program is a sentence (the function's name) that proves the
# items of the specification named in the string. So is a line of tests/e2e/*.sh that ends in a comment of such items:
# its first string is the sentence. --check: is the page what the tests say now?
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C
page=docs/conformance.md

# id <tab> sentence <tab> file, one line per id of every test; "-" for a test that names none.
entries() {
	find tests -name '*_test.c' -o -name '*_stress.c' | sort | while read -r file; do
		tr '\n' ' ' < "$file" | grep -oE '\bTEST\([[:space:]]*[a-z_][A-Za-z0-9_]*[[:space:]]*(,[[:space:]]*"[^"]*"[[:space:]]*)?\)' |
			sed -E 's/^TEST\([[:space:]]*([A-Za-z0-9_]+)[[:space:]]*(,[[:space:]]*"([^"]*)"[[:space:]]*)?\)$/\1\t\3/' |
			awk -F'\t' -v OFS='\t' -v file="$file" '{
				gsub("_", " ", $1)
				n = split($2, id, /[ ,]+/)
				found = 0
				for (i = 1; i <= n; i++) if (id[i] != "") { print id[i], $1, file; found = 1 }
				if (!found) print "-", $1, file
			}' || true
	done
}
# The same of the tests from outside; those without items are not listed: their scripts say what they try.
outside() {
	grep -HoE '^[^#"]*"[^"]*".*# ([A-Z]+-?[0-9]+ ?)+$' tests/e2e/*.sh |
		sed -E 's/^([^:]*):[^"]*"([^"]*)".*# ([A-Z0-9 -]+)$/\1\t\2\t\3/' |
		awk -F'\t' -v OFS='\t' '{ n = split($3, id, / +/); for (i = 1; i <= n; i++) if (id[i] != "") print id[i], $2, $1 }' || true
}
write() {
	local all
	all=$(entries; outside)
	cat <<'END'
# Conformance

What the specification asks for, item by item, and the test that proves it. Written by
`tools/conformance.sh` from the tests; do not edit. The test's name is the sentence it proves; run one
with `make test T=<part of its path>`. What it means for you: [guarantees.md](guarantees.md).

| id | proved | by |
| --- | --- | --- |
END
	grep -v '^-' <<< "$all" | sort -t$'\t' -k1,1V -k3,3 -k2,2 -u |
		awk -F'\t' '{ printf "| %s | %s | [%s](../%s) |\n", $1, $2, $3, $3 }'
	printf '\n## Also tested\n\nWhat the parts promise each other; no item of its own.\n\n| part | test |\n| --- | --- |\n'
	grep '^-' <<< "$all" | sort -t$'\t' -k3,3 -k2,2 -u |
		awk -F'\t' '{ printf "| [%s](../%s) | %s |\n", $3, $3, $2 }'
}

if [ "${1:-}" = --check ]; then
	diff -u "$page" <(write) || { echo "$page is behind the tests: run tools/conformance.sh" >&2; exit 1; }
else
	write > "$page.new"
	mv "$page.new" "$page"
fi
