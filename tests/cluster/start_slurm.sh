#!/usr/bin/env bash
# Starts a real one-node SLURM (Debian's slurm-wlm and munge), for tests and the tutorial.
#
#   tests/cluster/start_slurm.sh FOLDER [PID]    starts it; state and logs go to FOLDER; it ends
#                                                with the process PID, however that ends
#   tests/cluster/start_slurm.sh --stop FOLDER   ends its jobs and what the first call started
#
# Afterwards: export SLURM_CONF=FOLDER/slurm.conf. Exits with 1 and one line if it cannot start.
set -u

fail() { echo "no SLURM: $1" >&2; exit 1; }

stop() {
  export SLURM_CONF="$1/slurm.conf"
  timeout 10 scancel --user="$(id -un)" 2>/dev/null
  for _ in $(seq 20); do [ -z "$(timeout 5 squeue -h 2>/dev/null)" ] && break; sleep 0.5; done
  for name in slurmctld slurmd munged; do
    [ -f "$1/$name.pid" ] && kill "$(cat "$1/$name.pid")" 2>/dev/null
  done
}

if [ "${1:-}" = --stop ]; then
  stop "$(realpath -m "$2")"
  exit 0
fi

folder=$(realpath -m "${1:?a folder for state and logs}")
[ "$(id -u)" = 0 ] || fail "the daemons need root"
if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends slurm-wlm munge; } \
    >/dev/null 2>&1 || fail "slurm-wlm and munge are not installed and cannot be"
fi
mkdir -p "$folder/state" "$folder/spool" || fail "$folder cannot be made"
host=$(hostname -s)

# A munge of its own, so that an installed one is left alone.
head -c 1024 /dev/urandom >"$folder/munge.key" && chmod 600 "$folder/munge.key"
munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" \
  --seed-file="$folder/munge.seed" >/dev/null 2>&1 || fail "munged: see $folder/munged.log"

# proctrack and task plugins that need no cgroups, so that a container will do. KillWait and the
# timers are short, because tests wait for them.
cat >"$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
SlurmctldPort=$((20000 + RANDOM % 10000))
SlurmdPort=$((30000 + RANDOM % 10000))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobRequeue=1
KillWait=5
MinJobAge=3600
InactiveLimit=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc --all) State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld -f "$SLURM_CONF" || fail "slurmctld: see $folder/slurmctld.log"
slurmd -f "$SLURM_CONF" || fail "slurmd: see $folder/slurmd.log"
if [ -n "${2:-}" ]; then
  (while kill -0 "$2" 2>/dev/null; do sleep 1; done; stop "$folder") </dev/null >/dev/null 2>&1 &
fi
for _ in $(seq 60); do
  case "$(sinfo -h -o %T 2>/dev/null)" in idle* | mixed* | alloc*) echo "$SLURM_CONF"; exit 0 ;; esac
  sleep 0.5
done
fail "the node did not come up; see $folder/slurmd.log"
