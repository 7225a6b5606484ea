#!/usr/bin/env bash
# A tracking server on this machine: MLflow on 127.0.0.1, its runs in a PostgreSQL of its own, all data in a folder.
#
#   scripts/server.sh start|stop
#
# SERVER_DIR   the folder (server)
# SERVER_PORT  MLflow's port (5000); PostgreSQL has none: a socket in the folder is its only door
# POSTGRES_BIN where initdb and pg_ctl are (the newest of Debian's)
# PYTHON       the Python that has MLflow (.venv/bin/python)
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
port=${SERVER_PORT:-5000}
python=${PYTHON:-$root/.venv/bin/python}
url=http://127.0.0.1:$port

fail() { echo "server: $*" >&2; exit 1; }

# What else the caller has open, a lock for instance, must not stay open for as long as a server lives.
close_inherited() {
    local fd
    for fd in /proc/self/fd/*; do
        fd=${fd##*/}
        [ "$fd" -le 2 ] || eval "exec $fd>&-"
    done
}

# PostgreSQL refuses root, so root hands it to the user that Debian's package makes.
as_postgres() (
    close_inherited
    [ "$(id -u)" = 0 ] || exec "$@"
    cd /
    exec runuser -u postgres -- "$@"
)

find_postgres() {
    local newest
    newest=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
    bin=${POSTGRES_BIN:-$newest}
    # A folder belongs to the version that made it.
    [ -z "${POSTGRES_BIN:-}" ] && [ -f "$data/PG_VERSION" ] && bin=/usr/lib/postgresql/$(cat "$data/PG_VERSION")/bin
    [ -x "$bin/initdb" ] && [ -x "$bin/pg_ctl" ] && return
    fail "no PostgreSQL in $bin: apt-get install postgresql, or name the folder of its initdb by POSTGRES_BIN"
}

postgres_runs() { as_postgres "$bin/pg_ctl" -D "$data" status >/dev/null 2>&1; }

start_postgres() {
    postgres_runs && return
    # The path of a socket has 107 bytes at most; PostgreSQL names it .s.PGSQL.5432.
    [ ${#dir} -le 80 ] || fail "$dir: a path of more than 80 characters is too long for a socket in it: set SERVER_DIR"
    if [ ! -f "$data/PG_VERSION" ]; then
        if [ "$(id -u)" = 0 ]; then
            id postgres >/dev/null 2>&1 || fail "root may not run PostgreSQL, and there is no user postgres: apt-get install postgresql"
            install -d -o postgres -g postgres -m 700 "$dir/postgres"
        else
            install -d -m 700 "$dir/postgres"
        fi
        as_postgres test -w "$dir/postgres" ||
            fail "the user postgres cannot enter $dir: set SERVER_DIR to a folder whose parents all may enter (chmod o+x), as /srv/noisyhealth"
        as_postgres "$bin/initdb" -D "$data" -U mlflow --auth-local=trust --auth-host=reject -E UTF8 --locale=C.UTF-8 \
            >"$dir/initdb.log" 2>&1 || fail "PostgreSQL could not make $data: $(tail -3 "$dir/initdb.log")"
    fi
    # Whoever may enter the folder of the socket may use the database: that is its owner alone.
    as_postgres "$bin/pg_ctl" -D "$data" -w -t 60 -l "$dir/postgres/log" \
        -o "-c listen_addresses='' -c unix_socket_directories='$dir/postgres'" start >/dev/null 2>&1 ||
        fail "PostgreSQL did not start; the end of $dir/postgres/log: $(as_postgres tail -5 "$dir/postgres/log")"
    as_postgres "$bin/psql" -h "$dir/postgres" -U mlflow -d postgres -tAc "select 1 from pg_database where datname = 'mlflow'" |
        grep -q 1 || as_postgres "$bin/createdb" -h "$dir/postgres" -U mlflow mlflow
}

# The id in the file may be another process's by now.
mlflow_runs() {
    [ -f "$dir/mlflow.pid" ] && grep -qaF "host=$dir/postgres" "/proc/$(cat "$dir/mlflow.pid")/cmdline" 2>/dev/null
}

answers() { "$python" -c "import urllib.request; urllib.request.urlopen('$url/health', timeout=5)" 2>/dev/null; }

start_mlflow() {
    mlflow_runs && return
    (
        close_inherited
        export MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false
        exec setsid "$python" -m mlflow server --host 127.0.0.1 --port "$port" --workers 2 \
            --backend-store-uri "postgresql+psycopg2://mlflow@/mlflow?host=$dir/postgres" \
            --artifacts-destination "file://$dir/artifacts"
    ) >"$dir/mlflow.log" 2>&1 </dev/null &
    echo $! >"$dir/mlflow.pid"
    echo "$url" >"$dir/url"
}

wait_for_mlflow() {
    for _ in $(seq 240); do
        answers && return
        mlflow_runs || break
        sleep 0.5
    done
    tail -5 "$dir/mlflow.log" >&2
    fail "MLflow does not answer at $url; its last lines are above, all of them in $dir/mlflow.log"
}

start() {
    mkdir -p "$dir/artifacts"
    exec 9>"$dir/lock"
    flock 9
    "$python" -c 'import mlflow, psycopg2' 2>/dev/null ||
        fail "$python cannot be run, or lacks MLflow or psycopg2: $python -m pip install -c constraints.txt -e '.[server]'"
    find_postgres
    if postgres_runs && mlflow_runs; then
        [ "$(cat "$dir/url")" = "$url" ] || fail "runs already at $(cat "$dir/url"), not at $url: stop it first"
        wait_for_mlflow
        echo "runs already: $url, data in $dir"
        return
    fi
    mlflow_runs || ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null ||
        fail "port $port is in use by another program: choose another by SERVER_PORT"
    start_postgres
    start_mlflow
    wait_for_mlflow
    echo "MLflow runs at $url, data in $dir"
}

stop() {
    [ -d "$dir" ] || { echo "nothing to stop: there is no $dir"; return; }
    find_postgres
    if mlflow_runs; then
        local group
        group=$(cat "$dir/mlflow.pid")
        kill -- "-$group"
        for _ in $(seq 40); do kill -0 -- "-$group" 2>/dev/null || break; sleep 0.25; done
        kill -KILL -- "-$group" 2>/dev/null || true
    fi
    rm -f "$dir/mlflow.pid" "$dir/url"
    if postgres_runs; then as_postgres "$bin/pg_ctl" -D "$data" -m fast -w stop >/dev/null; fi
    echo "stopped; the data stay in $dir"
}

dir=$(realpath -m "${SERVER_DIR:-$root/server}")
data=$dir/postgres/data
case ${1:-} in
    start | stop) "$1" ;;
    *) fail "usage: scripts/server.sh start|stop" ;;
esac
