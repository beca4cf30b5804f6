"""Whose layers a group holds, and when metadata may stay as it was; the engine's sources are asked too."""

import ast
import importlib.util
from pathlib import Path

import pytest

from kernels.prep_fused.reuse import EXTRAS, HOST_ONLY_BUILDERS, IGNORES_METADATA, Kind, kind_of_group, refusal_of_reuse

TARGET = [f"model.layers.{number}.self_attn.attn" for number in range(4)]
DRAFT = ["model.layers.4.self_attn.attn", "model.layers.5.self_attn.attn"]
ENGINE = Path(next(iter(importlib.util.find_spec("vllm").submodule_search_locations)))
GIVEN = {"attn_metadata", "slot_mappings"}


@pytest.mark.parametrize(
    ("layers", "kind"),
    [(TARGET, Kind.TARGET), (DRAFT, Kind.DRAFT), (TARGET[:1] + DRAFT[:1], Kind.MIXED), ([], Kind.TARGET)],
    ids=["target", "draft", "mixed", "empty"],
)
def test_b_a_group_is_the_drafters_by_membership_and_not_by_name(layers, kind):
    assert kind_of_group(layers, set(DRAFT)) is kind
    assert not any("draft" in layer for layer in layers)


def named(name):
    """A class of that name."""
    return type(name, (), {})


@pytest.mark.parametrize(
    ("speculator", "builders", "full", "refused"),
    [
        ("DFlashSpeculator", ["TritonAttentionMetadataBuilder"], True, None),
        ("DFlashSpeculator", ["TritonAttentionMetadataBuilder"], False, "no_full_graph"),
        ("DFlashSpeculator", ["FlashAttentionMetadataBuilder"], True, "builder"),
        ("DFlashSpeculator", ["TritonAttentionMetadataBuilder", "GDNAttentionMetadataBuilder"], True, "builder"),
        ("DFlashSpeculator", ["CPUAttentionMetadataBuilder"], True, "builder"),
        ("EagleSpeculator", ["TritonAttentionMetadataBuilder"], True, "speculator"),
        ("MTPSpeculator", ["TritonAttentionMetadataBuilder"], True, "speculator"),
        ("DFlash2Speculator", ["TritonAttentionMetadataBuilder"], True, "speculator"),
    ],
)
def test_f_only_who_is_known_to_ignore_the_metadata_goes_without(speculator, builders, full, refused):
    refusal = refusal_of_reuse(named(speculator), [named(builder) for builder in builders], full)
    assert (refusal.name if refusal else None) == refused


def propose_of(path):
    """class -> names that its `propose` reads, below the engine's package."""
    tree = ast.parse((ENGINE / path).read_text(encoding="utf-8"))
    return {
        owner.name: {n.id for n in ast.walk(method) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for method in owner.body
        if isinstance(method, ast.FunctionDef) and method.name == "propose"
    }


def test_f_the_engines_dflash_never_reads_what_the_whitelist_says_it_ignores():
    found = propose_of("v1/worker/gpu/spec_decode/dflash/speculator.py")
    assert set(found) == IGNORES_METADATA
    assert found["DFlashSpeculator"] & GIVEN == set()


def test_f_the_engines_autoregressive_drafters_do_read_it():
    found = propose_of("v1/worker/gpu/spec_decode/autoregressive/speculator.py")
    assert any(names & GIVEN for names in found.values())


def test_f_a_step_with_a_shared_prefix_needs_its_metadata():
    refusal = refusal_of_reuse(named("DFlashSpeculator"), [named(*HOST_ONLY_BUILDERS)], True, {"use_cascade"})
    assert refusal.name == "extras"


def test_f_the_builder_on_the_list_writes_to_the_device_for_the_extras_only():
    tree = ast.parse((ENGINE / "v1/attention/backends/triton_attn.py").read_text(encoding="utf-8"))
    owner = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in HOST_ONLY_BUILDERS)
    build = next(node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "build")
    conditions = {node: ast.unparse(node.test) for node in ast.walk(build) if isinstance(node, ast.If)}
    extra = [node for node, test in conditions.items() if any(name in test for name in EXTRAS)]
    inside = {id(node) for branch in extra for node in ast.walk(branch)}
    outside = {
        node.func.attr
        for node in ast.walk(build)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and id(node) not in inside
    }
    assert len(extra) == len(EXTRAS)
    assert outside & {"copy_", "to", "cpu", "fill_", "zero_", "tensor", "item"} == set()
