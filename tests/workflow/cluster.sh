#!/usr/bin/env bash
# A SLURM of one node on this machine, from the installed packages slurm-wlm and munge; installs nothing.
#
#   cluster.sh check          say in one line why it cannot start here (exit 1), or nothing
#   cluster.sh start FOLDER   start munged, slurmctld and slurmd; all they write is in FOLDER
#   cluster.sh crash FOLDER   kill slurmd and whatever runs under it at once, as a power cut would
#   cluster.sh resume FOLDER  start slurmd again
#   cluster.sh stop FOLDER    stop everything and put /etc/slurm back
#
# Job steps look for /etc/slurm/slurm.conf only, so the file must be there meanwhile; an existing one is kept aside.
# Processes are ended by the ids they left in FOLDER, never by name.
set -euo pipefail

CONF=/etc/slurm/slurm.conf
KEPT=$CONF.before-pufferflow
MARK='# written by tests/workflow/cluster.sh'

reason() {
    local tool
    [ "$(id -u)" = 0 ] || { echo "SLURM's daemons need root"; return; }
    for tool in munged slurmctld slurmd sbatch srun squeue scancel scontrol sinfo; do
        command -v $tool >/dev/null || { echo "$tool is not installed (apt-get install slurm-wlm munge)"; return; }
    done
    for tool in slurmctld slurmd; do
        ! ps -C $tool -o stat= | grep -qv Z || { echo "another $tool runs on this machine"; return; }
    done
}

# until_true SECONDS COMMAND…
until_true() {
    local tries=$(($1 * 5)); shift
    for _ in $(seq $tries); do "$@" >/dev/null 2>&1 && return 0; sleep 0.2; done
    return 1
}

# The process whose id is in FILE; in a container nobody may collect the dead, who then stay as zombies.
alive() { [ -s "$1" ] && ps -o stat= -p "$(cat "$1")" 2>/dev/null | grep -qv Z; }
dead() { ! alive "$1"; }
end() {
    alive "$1" || return 0
    kill "$(cat "$1")"
    until_true 10 dead "$1" || kill -KILL "$(cat "$1")"
}

empty_queue() { [ -z "$(squeue --noheader)" ]; }
node_is_up() { sinfo --noheader --format=%T | grep -qE '^(idle|mixed|allocated)$'; }

configure() {
    local folder=$1 host cpus memory
    host=$(hostname -s)
    cpus=$(nproc)
    memory=$(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
    mkdir -p /etc/slurm
    if [ -e $CONF ] && ! grep -qF "$MARK" $CONF; then mv $CONF $KEPT; fi
    cat >$CONF <<CONF
$MARK
ClusterName=pufferflow
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=1
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

start() {
    local folder=$1 why
    why=$(reason)
    [ -z "$why" ] || { echo "$why" >&2; exit 1; }
    mkdir -p "$folder/state" "$folder/spool"
    configure "$folder"
    (umask 077 && head -c 128 /dev/urandom >"$folder/munge.key")
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" 2>"$folder/munged.err"
    slurmctld
    until_true 20 alive "$folder/slurmctld.pid" || fail "$folder" "slurmctld does not start"
    slurmd
    await_node "$folder"
}

resume() {
    slurmd
    await_node "$1"
}

await_node() {
    until_true 60 node_is_up || fail "$1" "the node does not come up"
}

fail() {
    echo "$2" >&2
    tail -n 15 "$1"/*.log >&2 || true
    stop "$1"
    exit 1
}

# Supervisors of the steps before the steps, so that nobody is left to report a failed job: the node is simply gone.
crash() {
    local inside pid supervisors
    kill -KILL "$(cat "$1/slurmd.pid")"
    inside=$( (scontrol listpids 2>/dev/null || true) | awk '$1 ~ /^[0-9]+$/ && $1 > 1 { print $1 }')
    supervisors=$(for pid in $inside; do ps -o ppid= -p "$pid" || true; done | sort -u |
        while read -r pid; do ! grep -q '^slurmstepd' "/proc/$pid/comm" || echo "$pid"; done)
    # shellcheck disable=SC2086 # lists of ids
    kill -KILL $supervisors $inside 2>/dev/null || true
    # what slurmctld does by itself after SlurmdTimeout, which a busy machine could pass with slurmd alive
    scontrol update NodeName="$(hostname -s)" State=DOWN Reason=crash
    echo "killed slurmd and $(wc -w <<<"$inside") processes of its jobs"
}

stop() {
    scancel --user=root 2>/dev/null || true
    until_true 10 empty_queue || true
    for daemon in slurmd slurmctld munged; do end "$1/$daemon.pid"; done
    if [ -e $CONF ] && grep -qF "$MARK" $CONF; then rm $CONF; fi
    if [ -e $KEPT ]; then mv $KEPT $CONF; fi
}

case ${1:-} in
    check) why=$(reason); [ -z "$why" ] || { echo "$why"; exit 1; } ;;
    start | crash | resume | stop) "$1" "$(realpath -m "${2:?which folder}")" ;;
    *) sed -n '2,9p' "$0" >&2; exit 2 ;;
esac
