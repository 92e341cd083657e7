"""Options that say where the results of an experiment lie, for the commands that read them."""

import argparse


def add_summary_option(parser: argparse.ArgumentParser) -> None:
    """``--summary``: the rows of ``palimpsest summarise``."""
    parser.add_argument(
        "--summary",
        default="results/summary.json",
        metavar="FILE",
        help="rows of 'palimpsest summarise' (default: %(default)s)",
    )


def add_reports_option(parser: argparse.ArgumentParser) -> None:
    """``--reports``: the reports of the stages."""
    parser.add_argument(
        "--reports", default="results/reports", metavar="FOLDER", help="reports of the stages (default: %(default)s)"
    )
