#!/bin/bash
# Dialogues, scores, candidates and their ranks on many machines: each stage is an array of jobs, one shard each, and a
# job that merges the shards. The next stage waits for it.
#
#     TASKS=tasks.jsonl AGENT=openai:MODEL@http://HOST:8000/v1 COLLABORATOR=openai:MODEL@http://HOST:8001/v1 \
#         CRITIC=run/critic examples/slurm.sh 8 run
#
# Options for sbatch (partition, time, GPUs) go into SBATCH_* variables. A job that was killed or requeued resumes its own
# file. If records failed, the merge does not start: rerun this script, which does only what is missing.
set -euo pipefail
shards=$1 run=$2
after=""

# stage FILE WORDS...: `sweetrl WORDS...` in shards, which are merged into FILE.
stage() {
    local file=$1 jobs
    shift
    jobs=$(sbatch --parsable --requeue ${after:+"--dependency=afterok:$after"} --array="1-$shards" \
        --wrap "sweetrl ${*@Q} --quiet --shard \$SLURM_ARRAY_TASK_ID/$shards")
    after=$(sbatch --parsable --dependency="afterok:$jobs" \
        --wrap "sweetrl merge --quiet ${file%.jsonl}.*-of-$shards.jsonl -o $file")
}

stage "$run/episodes.jsonl" rollout --tasks "$TASKS" --agent "$AGENT" --collaborator "$COLLABORATOR" \
    --attempts "${ATTEMPTS:-4}" -o "$run"
stage "$run/verdicts.jsonl" score --tasks "$TASKS" --episodes "$run/episodes.jsonl" -o "$run/verdicts.jsonl"
stage "$run/candidates.jsonl" candidates --episodes "$run/episodes.jsonl" --agent "$AGENT" -o "$run/candidates.jsonl"
stage "$run/ranked.jsonl" rank --critic "$CRITIC" --tasks "$TASKS" --episodes "$run/episodes.jsonl" \
    --candidates "$run/candidates.jsonl" -o "$run/ranked.jsonl"
echo "the last job is $after; then run \`sweetrl turn-pairs\` and \`sweetrl train policy\` on $run/ranked.jsonl"
