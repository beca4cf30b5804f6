"""What must not stand in a record (plan.json, the report, MLflow): names that promise a secret, texts that carry one.

Pure. No error repeats the value.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from campaign.errors import ConfigError

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")  # of ACCESS_TOKEN2, access-token and accessToken alike
SECRETS = frozenset(  # wherever they stand
    (
        "APIKEY",
        "AUTH",
        "AUTHORIZATION",
        "BEARER",
        "COOKIE",
        "COOKIES",
        "CRED",
        "CREDS",
        "DSN",
        "JWT",
        "OAUTH",
        "SIG",
        "SIGNATURE",
        "WEBHOOK",
    )
)
ENDINGS = (
    "CREDENTIAL", "CREDENTIALS", "PASSCODE", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "SECRET", "SECRETS",
    "TOKEN", "ACCESSKEY", "APIKEY", "AUTHKEY", "PRIVATEKEY", "SECRETKEY", "SIGNINGKEY", "SSHKEY",
)  # fmt: skip
LAST = frozenset(("PASS", "PAT", "PW", "PWD"))  # only as the last word: pass_config is none; PWD alone is the shell's
COUNTED = frozenset(("KEY", "KEYS", "TOKEN", "TOKENS"))  # these also stand in names of numbers
OF_A_SECRET = frozenset(  # before KEY or TOKEN no number makes it plain: API_KEY_NEW, hf_token_new
    ("ACCESS", "API", "AUTH", "BEARER", "BOT", "GH", "GITHUB", "GITLAB", "HF", "HUB", "PRIVATE", "SECRET", "SIGNING")
)
NUMBER = re.compile(  # a word beside one of those: max_num_batched_tokens, eos_token_id, num_key_value_heads
    "ADDED|AUDIO|BATCHED|BOS|CLS|COUNT|CUSTOM|DECODE|DIM|DRAFT|END|EOS|FUSION|GRAD|HEADS?|IDS|IMAGE|INDEX|LIMIT|MASK|MAX|MIN|"
    "MULTIPLIER|NEW|NORM|NUM|PAD|PER|POST|PRE|PREFILL|QUEUED|SCALE|SCHEDULED|SEP|SIZE|SPEC|SPECIAL|SPECULATIVE|START|STOP|"
    "AS|DETAILS|ONLY|PROMPT|SUPPRESS|THINK|THRESHOLD|TOTAL|TYPES?|UNK|VALUE|VIDEO"
)
IN_URL = re.compile(  # a password behind a name, though it may hold a '/', or a token alone; a port is neither
    r"://[^/\s@:\[]*:(?!\d+/)[^\s@?#]+@|://[^/\s@:]*:[^/\s@]+@|https?://[^/\s@?#\[]+@"
)
QUERY = re.compile(r"://\S*?[?&;]")
PARAMETER = re.compile(r"[?&;]([^=&;#\s]+)=[^&;#\s]")
TRACKER = "MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD in the shell"


def sounds_secret(name: str) -> bool:
    """Whether a name says that its value is not for a record. One answer for variables, keys of maps and masks."""
    words = [word.upper() for word in WORD.findall(name)]
    return any(_secret(words, at) for at in range(len(words)))


def _secret(words: list[str], at: int) -> bool:
    word = words[at]
    beside = [*words[max(0, at - 1) : at], *words[at + 1 : at + 2]]
    if word in COUNTED:
        if at and words[at - 1] in OF_A_SECRET:
            return not word.startswith("TOKEN") or not {"ID", "IDS"} & set(beside)
        counted = word.startswith("TOKEN") and "ID" in beside  # a key's id goes with the key
        return not counted and not any(map(NUMBER.fullmatch, beside))
    if word in LAST:
        return words != ["PWD"] and at == len(words) - 1 and not any(map(NUMBER.fullmatch, beside))
    return word in SECRETS or word.endswith(ENDINGS)


def has_password(text: str) -> bool:
    """Whether a text holds a URL with a password in it, before its host or in its query."""
    in_query = QUERY.search(text) and any(sounds_secret(name) for name in PARAMETER.findall(text))
    return IN_URL.search(text) is not None or bool(in_query)


def refuse(where: str, value: object) -> None:
    """Raises ConfigError for a value that carries a secret: a URL with a password, a map's key that sounds secret."""
    refuse_keys(where, value)
    refuse_urls(where, value)


def refuse_keys(where: str, value: object) -> None:
    """Raises ConfigError where a map has something under a name that sounds secret, however deep."""
    for path, key, found in _below(where, value):
        if sounds_secret(key) and found not in (None, "") and not isinstance(found, bool):
            raise ConfigError(
                f"{path}: {key} sounds like a secret, and plan.json and the list of processes would show it; leave it "
                "out, and give it to the engine in a variable (engine.pass_env)"
            )


def refuse_urls(where: str, value: object) -> None:
    """Raises ConfigError for a URL with a password in any text of a tree."""
    for path, _, found in [(where, "", value), *_below(where, value)]:
        if isinstance(found, str) and has_password(found):
            way = TRACKER if path == "tracking.uri" else "a variable that is passed on (engine.pass_env)"
            raise ConfigError(f"{path}: found a URL with a password, and plan.json would show it; use {way}")


def _below(where: str, value: object) -> Iterator[tuple[str, str, Any]]:
    """Path, own name and value of all that is in a tree. Without recursion: whoever types deep trees gets an answer."""
    waiting: list[tuple[str, Any]] = [(where, value)]
    while waiting:
        path, node = waiting.pop()
        node = _data(node)
        if isinstance(node, dict):
            found = [(f"{path}.{key}" if path else str(key), str(key), each) for key, each in node.items()]
        elif isinstance(node, list | tuple):
            found = [(f"{path}[{number}]", "", each) for number, each in enumerate(node)]
        else:
            continue
        yield from found
        waiting += [(inner, each) for inner, _, each in found]


def _data(node: object) -> object:
    """JSON text as what it says; anything else as it is."""
    if not isinstance(node, str) or node.lstrip()[:1] not in ("{", "["):
        return node
    try:
        return json.loads(node)
    except (ValueError, RecursionError):
        return node
