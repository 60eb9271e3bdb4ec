#!/bin/bash
# A PostgreSQL server for tests, in a folder of its own, on a Unix socket there:
#     server.sh run COMMAND…    starts one, runs the commands (each one word) one after the other with
#                               TASKGATE_TEST_POSTGRES (its URL) and TASKGATE_TEST_POSTGRES_FOLDER,
#                               and removes it; exit 77 where PostgreSQL is not installed
#     server.sh make FOLDER | start FOLDER | kill FOLDER | stop FOLDER
# As root it runs as another user, because PostgreSQL refuses root.
set -euo pipefail
script=$(realpath "$0")

find_programs() {
    local folder
    for folder in /usr/lib/postgresql/*/bin /usr/local/pgsql/bin; do
        [ -x "$folder/initdb" ] && programs=$folder
    done
    [ -n "${programs:-}" ]
}

# Runs a program of PostgreSQL's as a user that it accepts.
as_server() (
    local program=$programs/$1 user=nobody
    shift
    cd /
    if [ "$(id -u)" -ne 0 ]; then
        exec "$program" "$@"
    fi
    ! id postgres >/dev/null 2>&1 || user=postgres
    setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$program" "$@"
)

own() {
    local user=nobody
    [ "$(id -u)" -eq 0 ] || return 0
    ! id postgres >/dev/null 2>&1 || user=postgres
    chown "$user" "$1"
}

make() {
    mkdir -p "$1"
    chmod 755 "$1"
    own "$1"
    as_server initdb --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C.UTF-8 \
        -D "$1/data" >/dev/null
}

start() {
    as_server pg_ctl -s -w -D "$1/data" -l "$1/log" \
        -o "-c listen_addresses= -c unix_socket_directories=$1 -c max_connections=60 -c max_wal_size=64MB" start
}

# All of its processes at once, as when the machine loses power.
kill_all() {
    local main
    main=$(head -n 1 "$1/data/postmaster.pid")
    # shellcheck disable=SC2046 # a list of numbers
    kill -9 "$main" $(ps -o pid= --ppid "$main")
    while kill -0 "$main" 2>/dev/null; do
        sleep 0.01
    done
}

# Two databases of it behind PgBouncer: by_session and by_transaction.
start_pooler() {
    local mode
    {
        echo '[databases]'
        for mode in session transaction; do
            echo "by_$mode = host=$1 user=postgres dbname=postgres pool_mode=$mode"
        done
        printf '%s\n' '[pgbouncer]' "unix_socket_dir = $1" 'listen_port = 6432' 'auth_type = any' \
            "pidfile = $1/pooler.pid" "logfile = $1/pooler.log"
    } >"$1/pooler.ini"
    programs=/usr/sbin as_server pgbouncer -q -d "$1/pooler.ini"
}

stop() {
    [ ! -f "$1/pooler.pid" ] || kill "$(cat "$1/pooler.pid")"
    as_server pg_ctl -s -w -m immediate -D "$1/data" stop
}

# In memory where there is room, because each test makes and removes many small files.
find_room() {
    local kilobytes
    kilobytes=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1) || true
    if [ -w /dev/shm ] && [ "${kilobytes:-0}" -gt 500000 ]; then
        echo /dev/shm
    else
        echo "${TMPDIR:-/tmp}"
    fi
}

run() {
    local folder failed=0 command
    folder=$(mktemp -d "$(find_room)/taskgate-postgres-XXXXXX")
    # shellcheck disable=SC2064 # of this folder
    trap "stop '$folder' || true; rm -rf '$folder'" EXIT
    make "$folder"
    start "$folder"
    export TASKGATE_TEST_POSTGRES="postgres://postgres@/postgres?host=$folder"
    if [ -x /usr/sbin/pgbouncer ]; then
        start_pooler "$folder"
        export TASKGATE_TEST_POOLER=$folder
    fi
    export TASKGATE_TEST_POSTGRES_FOLDER=$folder TASKGATE_TEST_POSTGRES_SCRIPT=$script
    for command in "$@"; do
        "$command" || failed=1
    done
    return $failed
}

find_programs || {
    echo 'skipped: PostgreSQL is not installed' >&2
    exit 77
}
case ${1:-} in
    run) run "${@:2}" ;;
    make | start | stop) "$1" "$2" ;;
    kill) kill_all "$2" ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
