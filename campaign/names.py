"""Names that other rooms rely on: metrics, tags, files. The only module of campaign that analysis may import."""

BASE = "base"
CANDIDATE = "candidate"
INTERACTION = "interaction"  # the line on what two changes together add: it decides nothing

DECODE_SET = "decode"  # the prompt set of the window; its answers run to max_tokens (ignore_eos)
PREFIX_SET = "prefix"  # prompts that share a prefix; of their answers the two passes
PREFIX_COLD, PREFIX_WARM = "prefix_cold", "prefix_warm"
SAMPLED_SET = "korean_sampled"  # the prompt set that is drawn; every other one is answered greedily

# boot-level metrics, units in the name
STEP_PER_S = "step_per_s"
TOK_PER_S = "tok_per_s"
ACCEPTANCE_LENGTH = "acceptance_length"
TTFT_MEDIAN_S = "ttft_median_s"
TTFT_COLD_S, TTFT_WARM_S = "ttft_cold_s", "ttft_warm_s"  # medians over prompts: emptied prefix cache, full one
TPOT_S = "tpot_s"
KV_TOKENS = "kv_tokens"
BOOT_SECONDS = "boot_s"
WINDOW_SECONDS = "window_s"
WINDOW_FIRST_STEP_PER_S = "window_first_step_per_s"  # of its first part, by the client's clock; as the next
WINDOW_LAST_STEP_PER_S = "window_last_step_per_s"
CHUNK_GAP_S = "chunk_gap_s"
PREFIX_HIT_PCT = "prefix_hit_pct"
DECODE_ANSWER_TOKENS = "decode_answer_tokens"  # mean of a boot; of a record, which has no answers
SPEED = (  # what an engine that only proves its logic says nothing about
    STEP_PER_S, TOK_PER_S, TPOT_S, TTFT_MEDIAN_S, TTFT_COLD_S, TTFT_WARM_S,
    WINDOW_FIRST_STEP_PER_S, WINDOW_LAST_STEP_PER_S, CHUNK_GAP_S,
)  # fmt: skip
# facts of a duet's boots
BESIDE = "beside"  # what base beside base showed
BEGAN, MACHINE_BOOT = "began", "machine_boot"  # facts: when a boot began (UTC), and the kernel's name of that uptime
SYNTHETIC = "synthetic"  # fact of every boot of an engine that makes its acceptance up: the label that says so
WINDOWS_DISCARDED, DISCARDED_BECAUSE = "windows_discarded", "windows_discarded_because"  # facts of a boot
UNLIKE = "unlike"  # why two engines beside each other are not alike on this machine


def logic_only_label(reason: str) -> str:
    """What stands beside every speed of an engine with `engine.logic_only`; empty where its speed counts."""
    return f"logic only ({reason})" if reason else ""


def clock_of(name: str) -> str:
    """By which clock a duration or a rate was taken; empty for what is neither. None of these is a device's."""
    engines, clients = "engine's own decode seconds", "client's perf_counter"
    by_the_client = set(SPEED) - {STEP_PER_S, TOK_PER_S, TPOT_S}
    found = dict.fromkeys((STEP_PER_S, TOK_PER_S, TPOT_S), engines) | dict.fromkeys(by_the_client, clients)
    return found.get(name, "host's monotonic clock" if name.endswith("_s") else "")


def speed_name(metric: str, logic_only: str) -> str:
    """A metric's name for trackers and results: a speed that says nothing carries that in its name."""
    return f"logic_only.{metric}" if logic_only and metric in SPEED else metric


def acceptance_pp(position: int) -> str:
    """Metric name of the acceptance at a draft position, in percentage points; positions count from 1."""
    return f"acceptance_pos{position}_pp"


ACCEPTANCE_ALL_PP = "acceptance_all_pp"  # accepted tokens per drafted token, over all positions
ACCEPTANCE_ESTIMATOR = "acceptance_estimator"  # fact of a boot: how its acceptance was counted
WARM_UP_REQUESTS, STEADY_AFTER_WARM_UP = "warm_up_requests", "steady_after_warm_up"  # facts of a boot
FILLED_BESIDE = "filled_beside"  # fact of a boot whose cache was filled beside a long request: tokens, or nothing known
DRAFT_COUNTERS = "draft_counters"  # fact of a boot whose counters show no draft: what shows that drafts happen

# MLflow tags
TAG_LEVEL = "level"  # campaign | experiment | boot
TAG_CAMPAIGN = "campaign_id"
TAG_EXPERIMENT = "experiment"
TAG_ARM = "arm"
TAG_VERDICT = "verdict"
TAG_GATE_PREFIX = "gate."  # gate.<name> = verdict
TAG_ENGINE = "engine"  # name, version and build
TAG_BOOTS = "boots"  # those that gave data, and their order (A is base), or how many pairs
TAG_VOIDED = "voided"  # boots that the environment tainted
TAG_CLAIM_PREFIX = "claim."  # claim.<gate> = effect, interval, bound, boots and looks in the words of its line
TAG_SUPERSEDES, TAG_SUPERSEDED_BY = "supersedes", "superseded_by"  # campaign ids
TAG_CORRECTS, TAG_CORRECTED_BY = "corrects", "corrected_by"  # campaign ids
TAG_BECAUSE = "because"  # why one run stands in another's place
