"""The words of `--help`, and the verbs. Imports nothing, so that help costs nothing."""

HELP = """\
python -m campaign exp=EXPERIMENT [key=value ...]   measure a patched engine against the unpatched one, and judge it

  exp=exp8                    async scheduling for DFlash           exp=aa    equal arms: no difference may show
  dry_run=true                show arms, schedule, claims and the detectable effect; start nothing

what is changed most
  bracket=screen              three boots, no verdict (default: verdict, 8, 12 or 16 boots ABBA BAAB ...)
  bracket=duet                both arms live at once, in pairs; what slows the machine slows both
  bracket.max_minutes=30      begin no block that would pass it;  bracket.max_boots=8 is one look
  bracket.schedule='ABBA'     other boots, A is base, B is candidate
  workload.max_tokens=128     tokens of each answer in the window
  arms.candidate.knobs.async_dflash=0      a knob of a staged overlay; new names need no +
  arms.base.serve.max_num_seqs=8           a serve argument of the engine (--max-num-seqs 8)
  engine.knobs.prefix_cache=1              the same for both arms: a knob that needs no overlay (auto, 0, 1)
  engine.serve.max_num_seqs=8              ... a serve argument; max_model_len is engine.serve.max_model_len
  engine.env.OMP_NUM_THREADS='"2"'         ... a variable; it is text, so it is quoted twice
  claims.step_rate.gate_pct=-5             the bound that must be shown
  engine.profile=FILE         a team's .env file; of two values of one thing the stronger counts:
                              command line > experiment > profile > default (dry_run=true shows who wrote each)
  host.port=8300  engine=NAME  model=NAME  tracking=none  gates.quality=null

other verbs
  boot exp=exp8 arm=candidate   the probe: one arm staged, checked, witnessed and held until Ctrl-C
  resume RUN_ID                 continue a run that was killed; finished boots are kept
  import RUN_ID...              bring results into MLflow (again; tracking.uri=URI: another one); a probe has none
  import RUN_ID --supersedes OTHER | --corrects OTHER --because "..."   and mark the OTHER run, which is kept
  inspect RUN_ID                show what a run found
  inspect FILE... [--json]      what logs, /metrics texts, answers, streams, bracket records say (docs/inspect.md);
                                the code is that of the conclusion: 1 if a log shows a failed engine
  (a RUN_ID is a folder in runs/; a path to such a folder does as well)

  --cfg job, --info searchpath  what is composed, and from where      --config-dir DIR  another tree of yours

exit codes  0 PASS  1 FAIL  2 configuration  3 INCONCLUSIVE (and every screen)  4 VOID or host unfit  5 INVALID
            6 overlay drift  7 skipped  70 a fault of ours  130 interrupted  (RUNBOOK.md: what each asks of you)
"""

WITH_CONFIG = ("run", "boot")
ON_A_RUN = ("resume", "import", "inspect")


def is_verb(word: str) -> bool:
    """Whether the first word of a command line is a verb of ours."""
    return word in WITH_CONFIG + ON_A_RUN
