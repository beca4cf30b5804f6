"""No secret stands in a record: not under a name that says so, not in a URL, not in a map, not masked by half."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign.asked import variables
from campaign.asked.arms import resolve
from campaign.asked.confidential import has_password, refuse, sounds_secret
from campaign.asked.pinned import load
from campaign.config import Campaign
from campaign.errors import ConfigError

HEAD = "# @package _global_\ndefaults:\n  - exp8\n  - _self_\n"
SECRET = "hunter2"
URL = f"http://bob:{SECRET}@proxy:3128"
SECRET_NAMES = [
    "DB_PASSWD", "PGPASSWORD", "DB_PASS", "PASSPHRASE", "TOKEN2", "HF_TOKENS", "GH_PAT", "HF_AUTH", "AUTHORIZATION",
    "BEARER", "COOKIE", "SESSION_COOKIE", "VLLM_API_KEY", "S3_ACCESS_KEY_ID", "SENTRY_DSN", "OAUTH_CLIENT", "apikey",
    "accessToken", "x-api-key", "lmcache.secret", "DB_PWD", "CREDS", "API_KEY_NEW", "OPENAI_API_KEY_PROMPT",
    "hf_token_new", "secretkey", "accesskey", "AWS_ACCESSKEY", "privatekey", "authkey", "passcode", "sig",
]  # fmt: skip
PLAIN_NAMES = [
    "PATH", "PWD", "OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "VLLM_MAX_BAD_WORDS_TOTAL_TOKENS", "eos_token_id",
    "image_token_index", "num_key_value_heads", "max_new_tokens", "stop_token_ids", "suppress_tokens", "pass_config",
    "post_grad_custom_post_pass", "AUTHOR", "PATCH_SIZE", "long_prefill_token_threshold", "reasoning_end_token",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_name_that_promises_a_secret_is_one_for_the_door_and_for_the_mask(name: str) -> None:
    assert sounds_secret(name)
    assert not variables.may_show(name, "x")


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_name_of_a_number_or_a_place_is_no_secret(name: str) -> None:
    assert not sounds_secret(name)


def test_of_the_engines_own_variables_only_its_keys_are_secrets() -> None:
    found = {name for name in load("0.29.0").variables if sounds_secret(name)}
    assert found == {"VLLM_API_KEY", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY"}


def test_none_of_the_engines_arguments_is_taken_for_a_secret_but_its_two_and_a_switch() -> None:
    found = {name for name in load("0.29.0").arguments if sounds_secret(name)}
    assert found == {"api_key", "hf_token", "allow_credentials"}


@given(st.text(max_size=30))
def test_any_text_is_a_name_with_an_answer(name: str) -> None:
    assert sounds_secret(name) in (True, False)


# what is written


@pytest.mark.parametrize("name", ["DB_PASSWD", "TOKEN2", "PASSPHRASE", "GH_PAT", "HF_AUTH", "COOKIE"])
def test_a_secret_of_any_spelling_is_refused_in_the_engines_environment(exp8: Campaign, name: str) -> None:
    exp8.engine.env[name] = SECRET
    with pytest.raises(ConfigError, match=rf"{name} sounds like a secret.*engine\.pass_env") as caught:
        resolve(exp8, "base")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        (f"tracking.uri={URL}", r"tracking\.uri: .*MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"),
        (f"engine.env.HTTPS_PROXY='{URL}'", r"engine\.env\.HTTPS_PROXY: found a URL with a password.*pass_env"),
        (f"engine.serve.otlp_traces_endpoint='{URL}'", r"otlp_traces_endpoint: found a URL with a password"),
        (f"hypothesis='see {URL}'", "hypothesis: found a URL with a password"),
        (f"host.overlay_path=['{URL}']", r"host\.overlay_path\[0\]: found a URL"),
        (f"engine.serve.model_loader_extra_config={{access_token: {SECRET}}}",
         r"model_loader_extra_config\.access_token: access_token sounds like a secret"),
        (f"engine.serve.kv_transfer_config={{a: [{{b: {{api_key: {SECRET}}}}}]}}", r"a\[0\]\.b\.api_key: api_key s"),
        (f"""arms.base.serve.additional_config='{{"password": 1, "b": "{SECRET}"}}'""", r"_config\.password: "),
    ],
    ids=lambda value: value.partition("=")[0] if "=" in value else "",
)  # fmt: skip
def test_a_secret_inside_a_value_is_refused_with_its_place_and_not_repeated(
    compose, override: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        compose("exp=exp8", override)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("experiment", "override", "sentence"),
    [
        (f"engine: {{env: {{HTTPS_PROXY: '{URL}'}}}}\n", "engine.env.HTTPS_PROXY=null", r"experiment mine\): found"),
        (f"engine: {{serve: {{additional_config: {{token: {SECRET}}}}}}}\n", "engine.serve.additional_config=null",
         r"\(experiment mine\)\.token: token sounds"),
    ],
    ids=["a URL", "a map"],
)  # fmt: skip
def test_a_secret_that_another_value_goes_over_would_be_recorded_too(
    compose, tmp_path: Path, experiment: str, override: str, sentence: str
) -> None:
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "mine.yaml").write_text(HEAD + experiment)
    with pytest.raises(ConfigError, match=sentence) as caught:
        compose("exp=mine", "--config-dir", str(tmp_path), override)
    assert SECRET not in str(caught.value)


def test_a_profile_with_a_password_in_a_url_is_refused(compose, tmp_path: Path) -> None:
    (tmp_path / "team.env").write_text(f"NCCL_DEBUG_FILE={URL}\n")
    with pytest.raises(ConfigError, match=r"NCCL_DEBUG_FILE \(profile team\.env:1\): found a URL") as caught:
        compose("exp=exp8", f"engine.profile={tmp_path}/team.env")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [f"https://{SECRET}@h/", f"http://user:p/{SECRET}@h/", f"postgresql://h/db?user=u&password={SECRET}",
     f"http://h/?api_key={SECRET}", f"https://h/x?a=1&sig={SECRET}"],
    ids=["a token alone", "with a slash", "a password in the query", "a key in the query", "a signature"],
)  # fmt: skip
def test_a_secret_anywhere_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="found a URL with a password") as caught:
        refuse("here", {"uri": text})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["http://127.0.0.1:5000", "sqlite:////srv/a:b@c/mlflow.db", "http://[::1]:5000/x@y", "ssh://git@host", "a:b@c", "",
     "postgresql://u@h/db?sslmode=require&timeout=60", "https://h/x@y?max_tokens=5", "why? password=x"],
)  # fmt: skip
def test_an_address_without_a_password_is_no_secret(text: str) -> None:
    assert not has_password(text)
    refuse("here", {"uri": text, "eos_token": "</s>", "token": None, "use_auth": False})


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just('{"a": [1]}'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(TREES, st.sampled_from(["password", "x-api-key"]))
def test_however_deep_a_secret_lies_it_is_found_in_a_map_and_in_its_json_text(tree: Any, key: str) -> None:
    refuse("here", tree)
    for found in ({"a": [tree, {key: SECRET}]}, json.dumps([tree, {"b": {key: SECRET}}])):
        with pytest.raises(ConfigError, match=f"{key} sounds like a secret") as caught:
            refuse("here", found)
        assert SECRET not in str(caught.value)
