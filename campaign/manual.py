"""The words of `--help`, and the verbs. Imports nothing, so that help costs nothing."""

HELP = """\
python -m campaign exp=EXPERIMENT [key=value ...]   measure a patched engine against the unpatched one, and judge it

  exp=exp8                    async scheduling for DFlash           exp=aa    equal arms: no difference may show
  exp=prefix_cache            does a drafter survive cache hits?    exp=exp7  one launch for a step's inputs, two phases
  exp=exp7x8                  both and each, in one bracket of four arms
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
  phase=shadow                one phase of an experiment that has several (default: each, as long as they pass)
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

  VERB --help                   more of one verb
  --cfg job, --info searchpath  what is composed, and from where      --config-dir DIR  another tree of yours

exit codes  0 PASS  1 FAIL  2 configuration  3 INCONCLUSIVE (and every screen)  4 VOID or host unfit  5 INVALID
            6 overlay drift  7 skipped  70 a fault of ours  130 interrupted  (RUNBOOK.md: what each asks of you)
"""

BOOT_HELP = """\
python -m campaign boot exp=EXPERIMENT arm=base|candidate [key=value ...]  one arm, proven and held; nothing is measured

  boot exp=exp8 arm=candidate                       what is asked of the arm, then its witness table and its address
  boot exp=exp8 arm=candidate dry_run=true          what would be asked of both arms; starts nothing
  boot exp=exp8 arm=base host.port=8300             every key that a run takes

The arm is staged, checked, started and witnessed exactly as in a run, and held until Ctrl-C; then nothing of it is
left. There is nothing to resume or to import; its folder is runs/probe-..., its log in boots/ below it.

exit codes  0 it was up and was stopped  1 the engine died, or its KV budget is too small  2 configuration
            4 the machine is not fit  5 a knob is not on, or the port is taken  6 overlay drift
"""
RESUME_HELP = """\
python -m campaign resume RUN_ID     go on with a run that was killed or interrupted

  resume exp8-20261130-145243-ba3a                  a folder in runs/ (ls runs), or a path to such a folder

Finished boots are kept, of a duet whole pairs; engines that the killed runner left are ended, by their marker. It takes
no key=value: a run goes on as it was registered. After a reboot, or after a pause of over 30 minutes, the block that it
was in is begun again. A run that has its verdict is told, and not measured further.

exit codes  those of the run that it ends  2 claims or prompts are not the registered ones  4 the machine is not fit
            6 engine, overlays or surroundings changed  7 the run is still being run
"""
IMPORT_HELP = """\
python -m campaign import RUN_ID... [--supersedes OTHER] [--corrects OTHER --because TEXT] [tracking.uri=URI]

  import exp8-20261130-145243-ba3a                  one run into MLflow, in place of what was there of it
  import RUN_ID RUN_ID                              several; one that fails leaves the others be
  import RUN_ID --supersedes OTHER                  it measured better; OTHER is marked and kept
  import RUN_ID --corrects OTHER --because "..."    OTHER was wrong, and why; the ledger says so
  import RUN_ID tracking.uri=sqlite:////tmp/t.db    into another tracker than the one that the run was made with

Needed where the tracker was away when the run ended, or lost what it had. A probe measures nothing and has nothing to
import.

exit codes  0 imported  2 no such run, a wrong word  4 the tracker takes nothing
"""
INSPECT_HELP = """\
python -m campaign inspect RUN_ID | FILE... [--json]     what was found, or what files of anybody's say

  inspect exp8-20261130-145243-ba3a                 a run: plan, boots, looks, gates, verdict
  inspect runs/RUN_ID/boots/01-A/engine.log         an engine's log: decisions, KV, drafting, why it died
  inspect before.txt after.txt                      two /metrics texts of one server, in this order: a window
  inspect 1.txt 2.txt 3.txt                         more of them: a series of windows
  inspect base.jsonl candidate.jsonl                answers (texts.jsonl) or streams (samples.jsonl) of two arms
  inspect runs/RUN_ID/records/step_rate.json        a bracket record, judged again
  inspect --json FILE...                            one JSON document (docs/schemas/inspect.json)

Files are recognised by what they hold; docs/inspect.md shows each kind. Several are read together, and where they
disagree that is told. Nothing is started.

exit codes  0 read, nothing wrong found (or a PASS)  1 FAIL: a log of an engine that failed, too  2 cannot be read
            3 INCONCLUSIVE  4 VOID  5 INVALID: counters that contradict each other, two servers as one window
"""
OF_A_VERB = {"boot": BOOT_HELP, "resume": RESUME_HELP, "import": IMPORT_HELP, "inspect": INSPECT_HELP}
WITH_CONFIG = ("run", "boot")
ON_A_RUN = ("resume", "import", "inspect")


def asked_for(words: list[str]) -> str | None:
    """The help that a command line asks for: of its verb, or of all; None where it asks for none."""
    if not words or words[0] == "help":
        return OF_A_VERB.get(words[1], HELP) if len(words) > 1 else HELP
    return OF_A_VERB.get(words[0], HELP) if {"-h", "--help"} & set(words) else None


def is_verb(word: str) -> bool:
    """Whether the first word of a command line is a verb of ours."""
    return word in WITH_CONFIG + ON_A_RUN
