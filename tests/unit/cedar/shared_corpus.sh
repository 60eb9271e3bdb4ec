#!/bin/sh
# Runs the public test corpus of the language, which is too large for the repository, when it
# is beside it: shared_corpus.sh CORPUS_TEST FOLDER. Exit 77 tells Meson that there is none.
set -eu

test_program=$1
folder=${TASKGATE_CEDAR_DATA:-$2}
if [ ! -d "$folder" ]; then
    echo "skipped: there is no folder $folder with Cedar's test corpus"
    exit 77
fi
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
tar -xzf "$folder/corpus-public.tar.gz" -C "$unpacked"
"$test_program" "$folder/explicit" "$folder/supplement" "$folder/bench" "$unpacked"
