# Three replicas of the gateway on a PostgreSQL of their own, behind a balancer: scripts/run --postgres.
# shellcheck shell=bash disable=SC2154
#
# Sourced by scripts/run. Uses its variables and its functions `await` and `serve`.

replica_count=3
database_folder='' balancer_pid=''
replica_pids=() replica_ports=() replica_admin_ports=() own_ports=()

# The folder with the programs of the newest PostgreSQL; those that Debian installs are not on PATH.
postgres_programs() {
    local folder
    for folder in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) \
        "$(dirname "$(command -v initdb || printf /none)")"; do
        [ ! -x "$folder/initdb" ] || [ ! -x "$folder/pg_ctl" ] || [ ! -x "$folder/createdb" ] || {
            printf '%s\n' "$folder"
            return
        }
    done
    return 1
}

need_replica_programs() {
    programs=$(postgres_programs) ||
        fail '--postgres needs PostgreSQL 15 or later; on Debian: sudo apt-get install postgresql'
    command -v haproxy >/dev/null ||
        fail '--postgres needs a balancer; on Debian: sudo apt-get install haproxy'
    ! grep -qE '^(store|replica|state_key)[[:space:]]*:' "$policy" ||
        fail "--postgres brings a store of its own; take store, replica and state_key out of $policy"
}

# Below the ports that the kernel gives to outgoing connections, and none that something here will listen on later.
free_port() {
    local port tries=0
    local meant=" $proxy_port $admin_port $example_port ${replica_ports[*]} ${replica_admin_ports[*]} ${own_ports[*]} "
    while [ "$tries" -lt 50 ]; do
        tries=$((tries + 1))
        port=$((10240 + RANDOM % 22000))
        case $meant in *" $port "*) continue ;; esac
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || {
            printf '%s\n' "$port"
            return
        }
    done
    fail 'no free port between 10240 and 32240'
}

# PostgreSQL refuses to run as root.
as_database_user() {
    if [ "$(id -u)" -ne 0 ]; then
        "$@"
        return
    fi
    local user=nobody
    ! getent passwd postgres >/dev/null || user=postgres
    setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups -- "$@"
}

# Reachable through a socket in a folder of its user alone, so it asks for no password.
start_database() {
    local log=$database_folder/log
    say "starting PostgreSQL in $database_folder"
    # Its user may not read the present folder.
    (
        cd "$database_folder" || exit
        as_database_user "$programs/initdb" --pgdata "$database_folder/data" --username taskgate \
            --auth trust --encoding UTF8 --locale C &&
            as_database_user "$programs/pg_ctl" -D "$database_folder/data" -l "$log" -w -s \
                -o "-c listen_addresses= -c unix_socket_directories=$database_folder" start &&
            "$programs/createdb" -h "$database_folder" -U taskgate taskgate
    ) >"$run_folder/postgres.log" 2>&1 || {
        cat "$run_folder/postgres.log" "$log" 2>/dev/null | tail -n 20 >&2
        fail "the database did not start; its last words are above"
    }
    database_url="postgres://taskgate@/taskgate?host=$database_folder"
}

stop_database() {
    [ -n "$database_folder" ] || return 0
    (cd "$database_folder" && as_database_user "$programs/pg_ctl" -D data -m fast -w stop) \
        >/dev/null 2>&1 || true
    rm -rf "$database_folder"
}

make_database_folder() {
    database_folder=$(mktemp -d "${TMPDIR:-/tmp}/taskgate-postgres.XXXXXX")
    [ "$(id -u)" -ne 0 ] ||
        chown "$(as_database_user id -u):$(as_database_user id -g)" "$database_folder"
}

start_replica() {
    local number=$1 own_port=$2 file
    file=$run_folder/replica-$number.yaml
    replica_ports+=("$(free_port)")
    replica_admin_ports+=("$(free_port)")
    {
        cat "$policy"
        printf '\nstore: {url: {env: TASKGATE_STORE_URL}}\nstate_key: {env: TASKGATE_STATE_KEY}\n'
        printf 'replica: {id: replica-%s, address: "http://127.0.0.1:%s", key_env: TASKGATE_REPLICA_KEY}\n' \
            "$number" "$own_port"
    } >"$file"
    serve "replica-$number" "$file" "${replica_ports[-1]}" "${replica_admin_ports[-1]}" \
        "replica $number"
    replica_pids+=("$served_pid")
}

write_balancer() {
    local i
    cat <<EOF
global
    log stderr format raw local0
defaults
    mode http
    log global
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    option httpchk GET /ready
    option redispatch
    retries 3
EOF
    printf '\nlisten agents\n    bind 127.0.0.1:%s\n    balance random\n' "$proxy_port"
    for ((i = 0; i < replica_count; i++)); do
        printf '    server replica-%d 127.0.0.1:%s check port %s inter 500ms fall 2 rise 1\n' \
            "$((i + 1))" "${replica_ports[i]}" "${replica_admin_ports[i]}"
    done
    printf '\nlisten operators\n    bind 127.0.0.1:%s\n    balance random\n' "$admin_port"
    for ((i = 0; i < replica_count; i++)); do
        printf '    server replica-%d 127.0.0.1:%s check inter 500ms fall 2 rise 1\n' \
            "$((i + 1))" "${replica_admin_ports[i]}"
    done
}

start_balancer() {
    say "starting the balancer on port $proxy_port"
    write_balancer >"$run_folder/haproxy.cfg"
    haproxy -db -f "$run_folder/haproxy.cfg" >"$run_folder/haproxy.log" 2>&1 &
    balancer_pid=$!
    await "$balancer_pid" balancer "$run_folder/haproxy.log" \
        curl -sf -m 2 -o /dev/null "http://127.0.0.1:$admin_port/health"
}

start_replicas() {
    make_database_folder
    start_database
    local number
    TASKGATE_STORE_URL=$database_url
    TASKGATE_STATE_KEY=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
    TASKGATE_REPLICA_KEY=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')
    export TASKGATE_STORE_URL TASKGATE_STATE_KEY TASKGATE_REPLICA_KEY
    for ((number = 1; number <= replica_count; number++)); do
        own_ports+=("$(free_port)")
        start_replica "$number" "${own_ports[-1]}"
    done
    start_balancer
}

print_replicas() {
    local i
    printf '\nBehind the balancer, which chooses at random:\n\n'
    for ((i = 0; i < replica_count; i++)); do
        printf '  replica-%d         process %s, page http://127.0.0.1:%s/#token=%s\n' \
            "$((i + 1))" "${replica_pids[i]}" "${replica_admin_ports[i]}" "$token"
    done
    printf '  database          psql %q\n' "$database_url"
    printf '\nTo see the others go on, end one: kill -9 %s\n' "${replica_pids[-1]}"
}

# Ends the processes in the order in which they need each other, and removes the database.
stop_replicas() {
    local pid
    for pid in "$balancer_pid" "${replica_pids[@]}"; do
        [ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null || true
    done
    for pid in "$balancer_pid" "${replica_pids[@]}"; do
        [ -z "$pid" ] || wait "$pid" 2>/dev/null || true
    done
    stop_database
}

# Until the last replica has ended: one that is killed is something to look at.
wait_for_replicas() {
    local left=("${replica_pids[@]}") still pid ended
    while [ "${#left[@]}" -gt 0 ]; do
        wait -n -p ended "${left[@]}" || true
        say "the replica with process $ended has ended; the logs are in $run_folder"
        still=()
        for pid in "${left[@]}"; do
            [ "$pid" = "$ended" ] || still+=("$pid")
        done
        left=("${still[@]}")
    done
    fail 'no replica runs any more'
}
