"""``palimpsest run --set``: what is accepted, and that ``params.yaml`` comes back."""

from pathlib import Path

import pytest
import yaml
from scratch_project import Project

from flows.checkout.overrides import ORIGINAL, checked_resources, overridden, overridden_text
from flows.checkout.run_lock import STATE_FOLDER
from tasks.errors import ParameterError, StageError
from tasks.language_model.adapt import COMMAND as ADAPT
from tasks.settings.base import Settings
from tasks.settings.overrides import full_key, parse_overrides

TOP_K = "top_k: {kind: top_k, k: 10}"


def test_only_the_overridden_lines_differ(project: Project) -> None:
    before = project.read("params.yaml").splitlines()
    overrides = parse_overrides(["filling.top_k.k=20", "compare.fills=[{filler: minilm, methods: [top_1, top_k]}]"])
    text = overridden_text(project.folder / "params.yaml", overrides)
    assert "  top_k: {kind: top_k, k: 20}" in text
    assert '  fills: [{"filler": "minilm", "methods": ["top_1", "top_k"]}]' in text
    assert [line for line in text.splitlines() if line[:1] == "#"] == [line for line in before if line[:1] == "#"]
    changed, original = yaml.safe_load(text), yaml.safe_load("\n".join(before))
    changed["filling"]["top_k"]["k"] = 10
    changed["compare"]["fills"] = original["compare"]["fills"]
    assert changed == original
    # A section that the file has not got, since it has only defaults.
    overrides = {"resources.time_limits.fill": 60, "resources.retries": 0}
    resources = yaml.safe_load(overridden_text(project.folder / "params.yaml", overrides))["resources"]
    assert (resources["time_limits"], resources["retries"]) == ({"fill": 60}, 0)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["filling.top_k.k=x"], r"filling.top_k.k: Input should be a valid integer \(got 'x'\)"),
        (["compare.fills.0.filler=minilm"], "'compare.fills' is a list; give all of it"),
        (["filling"], r"'filling' is not of the form KEY=VALUE"),
        (["evaluation.seed=[1"], "the value '\\[1' of 'evaluation.seed' is not YAML"),
        (["evaluation.seed=1", "evaluation.seed=2"], "'evaluation.seed' occurs twice"),
    ],
)
def test_what_is_not_allowed_is_said_with_its_key_path(project: Project, texts: list[str], message: str) -> None:
    before = project.read("params.yaml")
    with pytest.raises(ParameterError, match=message) as error, overridden(project.folder, parse_overrides(texts)):
        pytest.fail("nothing may start")
    assert "\n" not in str(error.value)
    assert project.read("params.yaml") == before
    assert not (project.folder / ORIGINAL).exists()


def test_both_files_are_put_back_byte_for_byte_also_after_an_error_or_a_kill(project: Project) -> None:
    before = [project.read(name) for name in ("params.yaml", "cells.yaml")]
    seen = []

    def interrupted() -> None:
        with overridden(project.folder, {"compare.seeds": [7]}):
            checked_resources(project.folder)
            seen.extend([project.read("params.yaml"), project.read("cells.yaml")])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "seeds: [7]" in seen[0]
    assert "chat-oracle-7: &" in seen[1]
    assert [project.read(name) for name in ("params.yaml", "cells.yaml")] == before
    assert not (project.folder / ORIGINAL).exists()
    # Overrides of a killed run are put back first.
    killed = overridden(project.folder, {"filling.top_k.k": 20})
    killed.__enter__()
    assert project.read("params.yaml") != before[0]
    with overridden(project.folder, {}):
        assert project.read("params.yaml") == before[0]


def test_an_edit_meanwhile_is_not_lost(project: Project) -> None:
    before = project.read("params.yaml")
    with (
        pytest.raises(StageError, match="was edited while a run with --set had changed it"),
        overridden(project.folder, {"filling.top_k.k": 20}),
    ):
        project.replace("params.yaml", "k: 20}", "k: 30}")
    assert "k: 30}" in project.read("params.yaml")
    assert Path(project.folder, STATE_FOLDER, "params.yaml.before_overrides").read_text(encoding="utf-8") == before


def test_a_setting_has_the_last_part_of_its_key_as_a_name_unless_two_have_it() -> None:
    for kind, key in [("transformer", "adaptation.epochs"), ("causal_lm", "causal_lm.adaptation.epochs")]:
        assert full_key("epochs", ADAPT.settings, {"kind": kind}) == key

    class Part(Settings):
        size: int = 1

    class Whole(Settings):
        left: Part = Part()
        right: Part = Part()

    with pytest.raises(ParameterError, match=r"'size' fits left\.size, right\.size; give one of these keys"):
        full_key("size", Whole, {})
    with pytest.raises(ParameterError, match=r"setting 'epoch' is unknown \(did you mean 'epochs'\?\)"):
        full_key("epoch", ADAPT.settings, {"kind": "transformer"})
