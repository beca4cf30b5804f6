"""Whether /metrics texts are of one server: by the labels of its series, and by when it and its counters began."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from prometheus_client.parser import text_string_to_metric_families

from campaign.inspection.recognised import Source

OURS = "vllm:"
BEGAN = ("_created", "process_start_time_seconds")  # how the names of series end whose value is a time
LABELS = ("model_name", "engine")


@dataclass(frozen=True)
class Server:
    """What a text tells of who answered: the values of a label, and by series when it began, in seconds since 1970."""

    labels: dict[str, frozenset[str]]
    began_unix_s: dict[tuple[str, ...], float]


def apart(sources: Sequence[Source]) -> str:
    """Between which two texts another server answers, and how it shows, in words; empty where one gave all of them.

    Also empty where an earlier one answers again: of processes that answer in turn the counters tell more.
    """
    servers = [_server(source.text) for source in sources]
    changes = [(at, why) for at, pair in enumerate(pairwise(servers)) if (why := "; ".join(_differing(*pair)))]
    if not changes:
        return ""
    at, why = changes[0]
    if any(not list(_differing(servers[at], later)) for later in servers[at + 2 :]):
        return ""
    return (
        f"{sources[at].name} and {sources[at + 1].name} are of two servers, which make no window: {why}; take both "
        "from one server that goes on running"
    )


def _server(text: str) -> Server:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    engines = [sample for sample in samples if sample.name.startswith(OURS)]
    labels = {name: frozenset(s.labels[name] for s in engines if name in s.labels) for name in LABELS}
    began = {(s.name, *map(str, sorted(s.labels.items()))): s.value for s in samples if s.name.endswith(BEGAN)}
    return Server(labels, began)


def _differing(before: Server, after: Server) -> Iterator[str]:
    """By what two texts show that they are of two servers; nothing is told of what one of them does not show."""
    for name in LABELS:
        one, other = before.labels[name], after.labels[name]
        if one and other and one != other:
            yield f"{name} {', '.join(sorted(one))}, then {', '.join(sorted(other))}"
    common = [name for name in before.began_unix_s if name in after.began_unix_s]
    moved = [name for name in common if before.began_unix_s[name] != after.began_unix_s[name]]
    if moved:
        first, then = (_stamp(server.began_unix_s[moved[0]]) for server in (before, after))
        yield f"{moved[0][0]} says that it began {first}, then {then}"


def _stamp(unix_s: float) -> str:
    try:
        return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # no time at all, but another one
        return f"at {unix_s:g}"
