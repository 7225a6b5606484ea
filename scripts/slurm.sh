#!/usr/bin/env bash
# A Slurm of one node on this machine, to try hydra/launcher=slurm on it. As root, without systemd, on loopback.
#
#   apt-get install --no-install-recommends slurm-wlm munge
#   scripts/slurm.sh start|stop FOLDER
#
# Two partitions: "cpu", and "gpu" whose one GPU is pretended (/dev/null), so that requests for it are granted.
set -euo pipefail

fail() { echo "slurm: $*" >&2; exit 1; }

[ $# = 2 ] || fail "usage: scripts/slurm.sh start|stop FOLDER"
dir=$(realpath -m "$2")
node=$(hostname -s)
export SLURM_CONF=$dir/slurm.conf

write_conf() {
    local size
    size=$(slurmd -C | grep -oE '(CPUs|RealMemory)=[0-9]+' | tr '\n' ' ')
    cat >"$SLURM_CONF" <<CONF
ClusterName=noisyhealth
SlurmUser=root
SlurmdUser=root
# The daemons look each other up by name, and listen on all addresses unless told not to.
SlurmctldHost=$node(127.0.0.1)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
# Neither cgroups nor MPI: they need what a container lacks.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
# Processors are handed out one by one, at once.
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
GresTypes=gpu
NodeName=$node NodeAddr=127.0.0.1 $size Gres=gpu:1
PartitionName=cpu Nodes=$node Default=YES
PartitionName=gpu Nodes=$node
CONF
    echo "Name=gpu File=/dev/null" >"$dir/gres.conf"
    echo "CgroupPlugin=autodetect" >"$dir/cgroup.conf"
}

# submitit learns from sacct that a job was killed, and sacct needs an accounting database. This asks the controller.
write_sacct() {
    cat >"$dir/bin/sacct" <<'SACCT'
#!/bin/sh
echo "JobID|State|NodeList"
scontrol --oneliner show job | awk '/^JobId=/ {
    split("", found)
    for (i = 1; i <= NF; i++) { at = index($i, "="); found[substr($i, 1, at - 1)] = substr($i, at + 1) }
    id = found["JobId"]
    task = found["ArrayTaskId"]
    if (task != "") id = found["ArrayJobId"] "_" (task ~ /^[0-9]+$/ ? task : "[" task "]")
    print id "|" found["JobState"] "|" found["NodeList"]
}'
SACCT
    chmod +x "$dir/bin/sacct"
}

start() {
    [ "$(id -u)" = 0 ] || fail "must be started by root"
    command -v slurmctld slurmd munged >/dev/null || fail "apt-get install --no-install-recommends slurm-wlm munge"
    getent ahostsv4 "$node" | grep -q '^127\.' || fail "slurmctld would not find itself: add the line '127.0.0.1 $node' to /etc/hosts"
    if [ "$(sinfo -h 2>/dev/null)" ]; then echo "runs already in $dir"; return; fi
    mkdir -p "$dir"/{bin,munge,spool,state}
    chmod 755 "$dir" "$dir/munge" # munged refuses folders that others may write
    [ -f "$dir/munge/key" ] || (umask 077 && head -c 1024 /dev/urandom >"$dir/munge/key")
    write_conf
    write_sacct
    munged --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" \
        --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=2
    slurmctld
    slurmd -N "$node"
    for _ in $(seq 60); do
        if [ "$(sinfo -h -p cpu -o %T 2>/dev/null)" = idle ]; then
            sinfo
            echo "In the shell that sweeps: export SLURM_CONF=$SLURM_CONF PATH=$dir/bin:\$PATH"
            return
        fi
        sleep 0.5
    done
    fail "the node does not become idle: see $dir/slurmctld.log and $dir/slurmd.log"
}

stop() {
    local ids=() pid
    for pid in slurmd slurmctld; do [ -f "$dir/$pid.pid" ] && ids+=("$(cat "$dir/$pid.pid")"); done
    scancel -u root 2>/dev/null || true
    scontrol shutdown 2>/dev/null || true
    for _ in $(seq 40); do
        # shellcheck disable=SC2046
        [ -z "$(for pid in "${ids[@]}"; do [ -d "/proc/$pid" ] && echo "$pid"; done)" ] && break
        sleep 0.25
    done
    [ ! -f "$dir/munge/pid" ] || munged --stop --socket="$dir/munge/socket" --pid-file="$dir/munge/pid" 2>/dev/null || true
    echo "stopped"
}

case $1 in
    start | stop) "$1" ;;
    *) fail "usage: scripts/slurm.sh start|stop FOLDER" ;;
esac
