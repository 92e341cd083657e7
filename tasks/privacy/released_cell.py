"""The files and reports of a cell of the experiment, and the check that they are of one state."""

from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.command import AnyFiles, StageCommand
from tasks.errors import CorpusError
from tasks.filling.methods import AnyMethod
from tasks.records.cell import Cell
from tasks.records.cells import audit_report, mask_report, training_report
from tasks.records.stage_report import content_hash, read_report
from tasks.results.report_index import cell_of_report
from tasks.review.unmasked import reader_sidecar
from tasks.settings.checks import check_settings
from tasks.spelling import nearest

if TYPE_CHECKING:
    from tasks.privacy.applied_text import AppliedText


@dataclass(frozen=True)
class FilledCell:
    """A filled cell, as recorded in its reports."""

    cell: Cell
    mask: dict[str, Any]
    """Report of the masking."""
    fill: dict[str, Any]
    """Report of the fill."""
    adapt: dict[str, Any] | None
    """Report of the model that was adapted on it; ``None`` if it is not requested."""
    audit: dict[str, Any] | None
    """Report of the attacks on it; ``None`` without attacks."""
    raw: Path
    """Private text."""
    masked: Path
    sidecar: Path
    reader: Path
    """Sidecar of the reference reader: findings of every shipped tagger in the private text."""
    text: Path
    """Filled text."""
    model: Path | None
    applied: "AppliedText | None" = None
    """Text to which the cell was applied, if that is released and not the run's own."""

    @property
    def lines(self) -> int:
        """The lines of the text that is released."""
        if self.applied:
            return int(self.applied.report["lines"] * self.applied.report["copies"])
        return int(self.fill["measured"]["lines"])

    @property
    def method(self) -> Any:  # noqa: ANN401 - of the kind that filled
        """The settings of the filling."""
        return check_settings(AnyMethod, self.fill["parameters"], f"filling of {self.cell.path}")

    def check_one_state(self) -> None:
        """Raise ``CorpusError`` if a file differs from the one in the reports."""
        reports = [(self.mask, self.raw, "inputs"), (self.mask, self.masked, "outputs")]
        reports += [(self.mask, self.sidecar, "outputs"), (self.fill, self.masked, "inputs")]
        reports += [(self.fill, self.sidecar, "inputs"), (self.fill, self.text, "outputs")]
        if self.adapt is not None and self.model is not None:
            reports += [(self.adapt, self.text, "inputs"), (self.adapt, self.model, "outputs")]
        for report, path, side in reports:
            if report[side].get(str(path)) != content_hash(path):
                raise CorpusError(
                    f"{str(path)!r} is not the file that the report of {_stage(report)!r} describes. "
                    f"Run: dvc repro {_stage(self.adapt or self.fill)}, then release again."
                )


def find_cell(name: str, reports: str | Path, *, with_model: bool) -> FilledCell:
    """The cell of a path such as ``chat/entity_tagger/minilm-top_k-1``.

    ``CorpusError`` if there is no report of such a fill, or of the model.
    """
    from tasks.filling.fill import COMMAND as FILL
    from tasks.language_model.adapt import COMMAND as ADAPT
    from tasks.masking.mask import COMMAND as MASK

    folder = Path(reports)
    filled = [path.relative_to(folder / "fill").with_suffix("").as_posix() for path in folder.glob("fill/**/*.json")]
    if name not in filled:
        raise CorpusError(
            f"{name!r} is no filled cell of this experiment{nearest(name, filled)}; a release is one of the "
            f"{len(filled)} fills that have a report in {str(folder / 'fill')!r}"
        )
    fill = read_report(folder / "fill" / f"{name}.json")
    cell = cell_of_report(fill)
    mask = read_report(folder / str(mask_report(cell)))
    adapt = read_report(folder / training_report(cell)) if with_model else None
    attacks = folder / audit_report(cell)
    of_mask, of_fill = stage_files(MASK, mask), stage_files(FILL, fill)
    return FilledCell(
        cell,
        mask,
        fill,
        adapt,
        read_report(attacks) if attacks.is_file() else None,
        raw=Path(of_mask.input),
        masked=Path(of_fill.input),
        sidecar=Path(str(of_mask.sidecar)),
        reader=reader_sidecar(str(cell.dataset)),
        text=Path(of_fill.output),
        model=Path(stage_files(ADAPT, adapt).output) if adapt else None,
    )


def stage_files(command: StageCommand[Any, AnyFiles], report: dict[str, Any]) -> AnyFiles:
    """The files of the command that wrote a report. ``CorpusError`` if this version has no such command."""
    _, name, *options = report["command"]
    try:
        with redirect_stderr(StringIO()):
            return command.files_from(command.parser(name, None).parse_args(options))
    except SystemExit:
        raise CorpusError(f"The report of {_stage(report)!r} is of another version. Run: palimpsest run") from None


def _stage(report: dict[str, Any]) -> str:
    return str(report["dvc_stage"] or report["stage"])
