"""A small campaign configuration, as `config.parse` would give it."""

from campaign.config import Arm, Campaign, ClaimConfig, ClaimKindName, Engine, Tracking


def campaign(**fields):
    """EXP-8 on the CPU reference engine."""
    plain = {
        "name": "exp8",
        "hypothesis": "Async scheduling hides the host's share of a decode step.",
        "arms": {"base": Arm(serve={"async_scheduling": False}), "candidate": Arm(knobs={"async_dflash": "1"})},
        "claims": {"step_rate": ClaimConfig(kind=ClaimKindName.superiority, metric="step_per_s", gate_pct=0.0)},
        "engine": Engine(name="cpu_0_29_0", version="0.29.0", build="cpu", python="python", module="m"),
        "tracking": Tracking(),
    }
    return Campaign(**(plain | fields))


def run_folder(tmp_path, name="exp8-20261130-120000-5f3c", boots=("01-A", "02-B")):
    """A run folder with the small files that a run leaves."""
    folder = tmp_path / "runs" / name
    for boot in boots:
        (folder / "boots" / boot).mkdir(parents=True)
        (folder / "boots" / boot / "engine.log").write_text(f"boot {boot}\nready\n")
        (folder / "boots" / boot / "env.json").write_text('{"HF_TOKEN": "secret"}')
    (folder / "plan.json").write_text('{"schema": 1, "hypothesis": "한국어"}\n')
    (folder / "result.json").write_text("{}\n")
    return folder
