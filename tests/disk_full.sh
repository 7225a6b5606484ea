#!/bin/sh
# Sweeps on a disk that is full, in a mount namespace of its own: unshare -m sh disk_full.sh DISK OUT "ROOM ..." RUN...
# DISK: where a file system of 48 MB is mounted. OUT: a folder outside it for what was said and kept. ROOM: for how many
# cells there is room, in hundredths of one; the sweep is run once with each, and once when there is room for all.
# RUN: its command.
set -e
DISK=$1 OUT=$2 ROOMS=$3
shift 3
mount -t tmpfs -o size=48m tmpfs "$DISK"
cd "$DISK"
sweep() {
    name=$1 code=0
    shift
    "$@" perturb=typo,homophone,redact level=low,mid,high > "$OUT/$name.out" 2> "$OUT/$name.err" || code=$?
    echo $code > "$OUT/$name.code"
    cp mlflow.db "$OUT/$name.db"
}
"$@" perturb=none > "$OUT/first.out" 2> "$OUT/first.err"
cell=$(du -sk mlruns | cut -f1)
for room in $ROOMS; do
    rm -f filler
    free=$(df -k --output=avail . | tail -1)
    head -c $(((free - cell * room / 100) * 1024)) /dev/zero > filler
    sweep "$room" "$@"
done
rm filler
sweep again "$@"
cp -r mlruns "$OUT"
