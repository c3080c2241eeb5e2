#!/bin/bash
# tools/metrics.sh [--check] - make docs/metrics.md from the table of metrics (box/metrics.c), or only say whether it is up
# to date; --check also looks whether the dashboard and the alerts name metrics that exist.
set -eu
cd "$(dirname "$0")/.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
program=out/plain/tests/box/metrics_doc
make --no-print-directory -s CC=gcc SAN= "$program"
"$program" > "$tmp/page"
if [ "${1:-}" != --check ]; then
	cmp -s "$tmp/page" docs/metrics.md || cp "$tmp/page" docs/metrics.md
	exit 0
fi
rc=0
diff docs/metrics.md "$tmp/page" || { echo "run tools/metrics.sh"; rc=1; }
for file in packaging/grafana/noh.json packaging/prometheus/noh.rules.yml; do
	for name in $(grep -oE '\b(noh|process)_[a-z_]+' "$file" | sed -E 's/_(bucket|sum|count)$//' | sort -u); do
		grep -q "^| \`$name\`" "$tmp/page" || { echo "$file names $name, and there is no such metric"; rc=1; }
	done
done
exit $rc
