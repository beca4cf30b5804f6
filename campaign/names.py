"""Names that other rooms rely on: metrics, tags, files. The only module of campaign that analysis may import."""

BASE = "base"
CANDIDATE = "candidate"

# boot-level metrics, units in the name
STEP_PER_S = "step_per_s"
TOK_PER_S = "tok_per_s"
ACCEPTANCE_LENGTH = "acceptance_length"
TTFT_MEDIAN_S = "ttft_median_s"
TPOT_S = "tpot_s"
KV_TOKENS = "kv_tokens"
BOOT_SECONDS = "boot_s"
WINDOW_SECONDS = "window_s"
SPEED = (STEP_PER_S, TOK_PER_S, TTFT_MEDIAN_S, TPOT_S)  # what an engine that only proves its logic says nothing about


def logic_only_label(reason: str) -> str:
    """What stands beside every speed of an engine with `engine.logic_only`; empty where its speed counts."""
    return f"logic only ({reason})" if reason else ""


def speed_name(metric: str, logic_only: str) -> str:
    """A metric's name for trackers and results: a speed that says nothing carries that in its name."""
    return f"logic_only.{metric}" if logic_only and metric in SPEED else metric


def acceptance_pp(position: int) -> str:
    """Metric name of the acceptance at a draft position, in percentage points; positions count from 1."""
    return f"acceptance_pos{position}_pp"


# MLflow tags
TAG_LEVEL = "level"  # campaign | experiment | boot
TAG_CAMPAIGN = "campaign_id"
TAG_EXPERIMENT = "experiment"
TAG_ARM = "arm"
TAG_VERDICT = "verdict"
TAG_GATE_PREFIX = "gate."  # gate.<name> = verdict
